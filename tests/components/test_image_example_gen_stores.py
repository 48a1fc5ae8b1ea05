"""ImageExampleGen between buckets: input, staging and artifact on an object store, Beam's workers in processes."""

import json

import pytest
from object_stores import running_stores
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from shardwright.config import parse_config
from shardwright.ingest import IngestRecipe, ingest, ingest_recipe, input_fingerprint, locate, survey_input
from shardwright_components.image_example_gen.executor import Executor

FREE = ("build.json", "lineage.json", "inputs.jsonl", "origins/inputs.jsonl")
OPTIONS = ["--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]


@pytest.mark.slow
def test_an_artifact_on_a_bucket_is_the_dataset_of_the_command_line(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    ingest(parse_config(raw, base="/"), tmp_path / "cli", quiet=True)
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        stores.copy_of(tmp_path / "in", f"{bucket}/data")
        places = {"images": f"{bucket}/data/images", "labels": {"path": f"{bucket}/data/labels.csv"}}
        config = parse_config({**raw, "input": {**raw["input"], **places}}, base="/")
        location = locate(config)
        classes = survey_input(IngestRecipe.of(config), location).survey.classes
        monkeypatch.setenv("SHARDWRIGHT_INPUT", json.dumps(vars(location)))
        monkeypatch.setenv("SHARDWRIGHT_STAGING", f"{bucket}/staging")
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        properties = {
            "input_fingerprint": input_fingerprint(config, location),
            "recipe": ingest_recipe(config, classes),
            "input_location": "",
        }
        artifact = standard_artifacts.Examples()
        artifact.uri = f"{bucket}/examples/1"
        context = BaseBeamExecutor.Context(OPTIONS, tmp_dir=str(tmp_path / "tfx"), unique_id="1")
        Executor(context).Do({}, {"examples": [artifact]}, properties)
        assert artifact.split_names == '["eval", "test", "train"]'
        files = (p for p in (tmp_path / "cli").rglob("*") if p.is_file() and p.name not in FREE)
        found = {name: data for name, data in stores.tree(artifact.uri).items() if name not in FREE}
        assert found == {str(p.relative_to(tmp_path / "cli")): p.read_bytes() for p in files}
        assert not stores.tree(f"{bucket}/staging")
