"""Shared by the tests of ImageExampleGen: its parameters, and its executor as a launcher runs it."""

import json
from pathlib import Path

from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from shardwright.components.image_example_gen.executor import Executor
from shardwright.config import parse_config
from shardwright.ingest import IngestRecipe, ingest_recipe, input_fingerprint, locate, survey_input


def input_on(bucket, stores, folder, raw):
    """Copies images and labels below a bucket; returns the configuration that reads them there."""
    stores.copy_of(folder, f"{bucket}/data")
    places = {"images": f"{bucket}/data/images", "labels": {"path": f"{bucket}/data/labels.csv"}}
    return parse_config({**raw, "input": {**raw["input"], **places}}, base="/")


def parameters(config, monkeypatch, staging):
    """The parameters for a configuration; sets the environment that a run sets."""
    location = locate(config)
    monkeypatch.setenv("SHARDWRIGHT_INPUT", json.dumps(vars(location)))
    monkeypatch.setenv("SHARDWRIGHT_STAGING", str(staging))
    return {
        "input_fingerprint": input_fingerprint(config, location),
        "recipe": ingest_recipe(config, survey_input(IngestRecipe.of(config), location).survey.classes),
        "input_location": "",
    }


def execute(uri, properties, beam_args=()):
    """Runs the executor with a fresh output: an empty folder, or a URL where nothing lies."""
    artifact = standard_artifacts.Examples()
    artifact.uri = uri = str(uri)
    remote = "://" in uri
    if not remote:
        Path(uri).mkdir(parents=True)
    temporary = "no-folder-is-needed" if remote else f"{uri}.tmp"
    context = BaseBeamExecutor.Context(beam_pipeline_args=list(beam_args), tmp_dir=temporary, unique_id="1")
    Executor(context).Do({}, {"examples": [artifact]}, properties)
    return artifact
