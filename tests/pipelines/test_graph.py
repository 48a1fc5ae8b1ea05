"""The one graph: what decides its cache keys, and that no place on this machine does."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from descent import Months

from shardwright.config import parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.schema import render_schema
from shardwright.ingest.baseline import resolve_baseline
from shardwright.pipelines.graph import GraphInputs, build_nodes


def report_key(root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What Report is cached by in a run that works in that folder."""
    raw = {
        "task": "classification",
        "input": {"images": "images"},
        "gate": {"drift": {"reference": "blessed", "ignore": ["size"]}, "skew": {"images": 50}},
        "run": {"root": str(root)},
    }
    monkeypatch.chdir(root)
    schema = render_schema("classification", ["a", "b"], "single", {})
    inputs = GraphInputs("0" * 64, "{}", "{}", ("a", "b"), False, "schema.pbtxt", schema, "pushed", "")
    nodes = build_nodes(resolve_baseline(parse_config(raw, base=str(root))), inputs)
    (report,) = [node for node in nodes if node.id == "Report"]
    assert str(root) not in json.dumps([node.exec_properties for node in nodes], default=str)
    return dict(json.loads(report.exec_properties["drift"]))


def test_the_reference_is_a_digest_wherever_it_lies(
    small_dataset: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`blessed` under a link to the run's folder, and in one that has moved."""
    months = Months(tmp_path / "run", small_dataset)
    (tmp_path / "link").symlink_to(months.root)
    linked = report_key(tmp_path / "link", monkeypatch)
    digest = ImageDataset.open(months.datasets[3]).manifest.digest
    assert linked == {
        "drift": {"images": 2000, "alpha": 0.006, "ignore": ["size"], "digest": digest},
        "skew": {"images": 50, "alpha": 0.006, "ignore": []},
    }
    shutil.copytree(months.root, tmp_path / "moved")
    assert report_key(tmp_path / "moved", monkeypatch) == linked
