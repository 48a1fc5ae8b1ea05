"""ImageExampleGen killed under TFX: the output stays empty, and a retry with another output takes over its shards."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import killing
import pytest
from example_gen import execute, parameters
from ingesting import run, tree

from shardwright.config import parse_config
from shardwright.ingest import example
from shardwright.ingest import write_shards as write

KILLED = (
    killing.KILL_AT_STEP
    + """
import json
import example_gen  # of shardwright.components
from shardwright.staging import staging
staging.RecordWriter.write = counted(staging.RecordWriter.write)
example_gen.execute(sys.argv[1], json.loads(sys.argv[2]))
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("step", [25, 110])
def test_a_retry_with_another_output_takes_over_what_a_killed_attempt_finished(
    tmp_path, image_input, monkeypatch, step
):
    raw = {**image_input(tmp_path / "in"), "shards": {"records": 3}}
    run(raw, tmp_path / "cli")
    properties = parameters(parse_config(raw, base="/"), monkeypatch, tmp_path / "staging")
    examples = tmp_path / "examples"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(examples / "1"), json.dumps(properties), str(step)],
        env={**os.environ, "PYTHONPATH": str(Path(killing.__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list((examples / "1").iterdir()) == []
    finished = len(list((tmp_path / "staging").glob("*/done/[!.]*")))
    encoded = []
    example_values = example.example_values
    monkeypatch.setattr(write, "example_values", lambda *args: encoded.append(args) or example_values(*args))
    execute(examples / "2", properties)
    assert tree(examples / "2") == tree(tmp_path / "cli")
    done = [p for p in examples.iterdir() if p.name.startswith(".")] + list((tmp_path / "staging").iterdir())
    assert done == [], "leftovers of the killed attempt"
    assert len(encoded) <= 24 - 2 * finished
    assert finished > 0 or step == 25
