"""ImageExampleGen with spans, an earlier dataset and stratified groups: the command line's bytes, through Beam."""

import csv
import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from shardwright.components.image_example_gen.executor import Executor
from shardwright.config import parse_config
from shardwright.errors import CheckFailed
from shardwright.ingest import ingest, ingest_recipe, input_fingerprint, locate
from shardwright.lineage.record import read_lineage


def tree(root):
    files = [
        p for p in Path(root).rglob("*") if p.is_file() and p.name not in ("build.json", "lineage.json", "inputs.jsonl")
    ]
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def deliver(folder, numbers):
    for number in numbers:
        file = folder / "images" / f"{number:02d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(number).integers(0, 256, (6, 9, 3), dtype=np.uint8)).save(file)
    with (folder / "labels.csv").open("w", newline="") as file:
        rows = ((f"{n:02d}.png", ("cat", "dog")[n % 2], n // 3) for n in numbers)
        csv.writer(file).writerows([("image", "label", "patient"), *rows])


def configuration(root, **split):
    raw = {
        "task": "classification",
        "input": {
            "images": str(root / "{SPAN}" / "images"),
            "labels": {"path": str(root / "{SPAN}" / "labels.csv")},
            "span": "all",
        },
        "split": {"method": "stratified", "group": {"column": "patient"}, **split},
        "evaluator": {"split": "eval"},
    }
    return parse_config(raw, base="/")


def execute(uri, config, monkeypatch, recipe=None):
    monkeypatch.setenv("SHARDWRIGHT_INPUT", json.dumps(asdict(locate(config))))
    properties = {
        "input_fingerprint": input_fingerprint(config, locate(config)),
        "recipe": recipe or ingest_recipe(config, ["cat", "dog"]),
        "input_location": "",
    }
    artifact = standard_artifacts.Examples()
    artifact.uri = str(uri)
    Path(uri).mkdir(parents=True)
    context = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=f"{uri}.tmp", unique_id="1")
    Executor(context).Do({}, {"examples": [artifact]}, properties)
    return properties


def test_the_artifact_is_the_dataset_of_the_command_line(tmp_path, monkeypatch):
    deliver(tmp_path / "in" / "1", range(30))
    first = ingest(configuration(tmp_path / "in"), tmp_path / "first", quiet=True)
    deliver(tmp_path / "in" / "2", range(27, 40))
    config = configuration(tmp_path / "in", keep_from=str(tmp_path / "first"))
    ingest(config, tmp_path / "cli", quiet=True)
    properties = execute(tmp_path / "examples" / "1", config, monkeypatch)
    assert tree(tmp_path / "examples" / "1") == tree(tmp_path / "cli")
    assert read_lineage(tmp_path / "examples" / "1")["parents"]["previous"] == first.digest
    assert str(tmp_path) not in json.dumps(properties)


def test_an_earlier_dataset_that_was_rewritten_meanwhile_is_refused(tmp_path, monkeypatch):
    deliver(tmp_path / "in" / "1", range(30))
    ingest(configuration(tmp_path / "in"), tmp_path / "first", quiet=True)
    config = configuration(tmp_path / "in", keep_from=str(tmp_path / "first"))
    recipe = ingest_recipe(config, ["cat", "dog"])
    (tmp_path / "first").rename(tmp_path / "older")
    ingest(configuration(tmp_path / "in", salt="x"), tmp_path / "first", quiet=True)
    with pytest.raises(CheckFailed, match=r"split.keep_from: .*first has changed since the run began"):
        execute(tmp_path / "examples" / "1", config, monkeypatch, recipe)
