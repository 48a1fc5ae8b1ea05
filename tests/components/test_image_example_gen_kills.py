"""ImageExampleGen killed under TFX: the output stays empty, and a retry with another output takes over its shards."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import killing
import pytest
from ingesting import run, tree
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from shardwright.config import parse_config
from shardwright.ingest import IngestRecipe, ingest_recipe, input_fingerprint, locate, survey_input
from shardwright.ingest import write as writing
from shardwright_components.image_example_gen.executor import Executor

KILLED = (
    killing.KILL_AT_STEP
    + """
import json
import test_image_example_gen_kills as here
from shardwright import staging
staging.RecordWriter.write = counted(staging.RecordWriter.write)
here.execute(sys.argv[1], json.loads(sys.argv[2]))
"""
)


def execute(uri, properties):
    artifact = standard_artifacts.Examples()
    artifact.uri = str(uri)
    Path(uri).mkdir(parents=True)
    context = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=f"{uri}.tmp", unique_id="1")
    Executor(context).Do({}, {"examples": [artifact]}, properties)


@pytest.mark.slow
@pytest.mark.parametrize("step", [25, 60, 110])
def test_a_retry_with_another_output_takes_over_what_a_killed_attempt_finished(
    tmp_path, image_input, monkeypatch, step
):
    raw = {**image_input(tmp_path / "in"), "shards": {"records": 3}}
    run(raw, tmp_path / "cli")
    config = parse_config(raw, base="/")
    location = locate(config)
    monkeypatch.setenv("SHARDWRIGHT_INPUT", json.dumps(vars(location)))
    monkeypatch.setenv("SHARDWRIGHT_STAGING", str(tmp_path / "staging"))
    properties = {
        "input_fingerprint": input_fingerprint(config, location),
        "recipe": ingest_recipe(config, survey_input(IngestRecipe.of(config), location).survey.classes),
        "input_location": "",
    }
    examples = tmp_path / "examples"
    modules = os.pathsep.join([str(Path(__file__).parent), str(Path(killing.__file__).parent)])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(examples / "1"), json.dumps(properties), str(step)],
        env={**os.environ, "PYTHONPATH": modules, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list((examples / "1").iterdir()) == []
    finished = len(list((tmp_path / "staging").glob("*/done/[!.]*")))
    encoded = []
    encode_sample = writing.encode_sample
    monkeypatch.setattr(writing, "encode_sample", lambda *args: encoded.append(args) or encode_sample(*args))
    execute(examples / "2", properties)
    assert tree(examples / "2") == tree(tmp_path / "cli")
    done = [p for p in examples.iterdir() if p.name.startswith(".")] + list((tmp_path / "staging").iterdir())
    assert done == [], "leftovers of the killed attempt"
    assert len(encoded) <= 24 - 2 * finished
    assert finished > 0 or step == 25
