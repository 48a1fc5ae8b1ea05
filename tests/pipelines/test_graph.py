"""The graph: its cache keys contain no paths of this machine, and `STEPS` agrees with its components."""

import json
import shutil

import build
from descent import Months
from tfx.v1.types import BaseBeamComponent

from shardwright.config import parse_config
from shardwright.config.cloud import COMPONENTS
from shardwright.config.vertex import ON_DATAFLOW
from shardwright.dataset.dataset_schema import render_schema
from shardwright.dataset.reader import ImageDataset
from shardwright.ingest.baseline import resolve_baseline
from shardwright.pipelines.graph import STEPS, GraphInputs, build_nodes

SCHEMA = render_schema("classification", ["a", "b"], "single", {})
INPUTS = GraphInputs("0" * 64, "{}", "schema.pbtxt", SCHEMA, "pushed", "")


def report_key(root, monkeypatch):
    """Returns the part of Report's cache key that is about drift, in a run that works in that folder."""
    raw = {
        "task": "classification",
        "input": {"images": "images"},
        "gate": {"drift": {"reference": "blessed", "ignore": ["size"]}, "skew": {"images": 50}},
        "run": {"root": str(root)},
    }
    monkeypatch.chdir(root)
    nodes = build_nodes(resolve_baseline(parse_config(raw, base=str(root))), INPUTS)
    (report,) = [node for node in nodes if node.id == "Report"]
    assert str(root) not in json.dumps([node.exec_properties for node in nodes], default=str)
    return dict(json.loads(report.exec_properties["drift"]))


def test_steps_are_the_components_of_the_graph():
    """Names and order are those of the nodes; the configuration's lists, which cannot import `STEPS`, agree."""
    nodes = build_nodes(build.config(source="images", task="classification"), INPUTS)
    assert ["InputResolver", *(node.id for node in nodes)] == [step.name for step in STEPS]
    beam = {node.id for node in nodes if isinstance(node, BaseBeamComponent)}
    assert beam == {step.name for step in STEPS if step.uses_beam}
    assert set(COMPONENTS) == {step.name for step in STEPS}
    assert set(ON_DATAFLOW) == {step.name for step in STEPS if step.uses_beam and step.reads_buckets}


def test_the_reference_is_a_digest_in_any_folder(small_dataset, tmp_path, monkeypatch):
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
