"""`shardwright ingest` onto a bucket, killed at a request or called as users call it."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ingesting import run
from object_stores import SCHEMES

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError

FREE = ("build.json", "lineage.json", "inputs.jsonl", "origins/inputs.jsonl")
SHARDWRIGHT = str(Path(sys.executable).with_name("shardwright"))
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("scheme", SCHEMES)]


@pytest.fixture
def written(tmp_path, image_input):
    """An input's configuration file, and the bytes of its dataset by name."""
    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "local")
    (tmp_path / "config.yaml").write_text(json.dumps({"name": "stores", **raw}))
    files = (p for p in (tmp_path / "local").rglob("*") if p.is_file() and p.name not in FREE)
    return tmp_path / "config.yaml", {str(p.relative_to(tmp_path / "local")): p.read_bytes() for p in files}


def dataset(stores, out):
    return {name: data for name, data in stores.tree(out).items() if name not in (*FREE, ".publishing")}


def called(written, out, *options, **variables):
    call = [SHARDWRIGHT, "ingest", str(written[0]), "--out", out, *options]
    return subprocess.run(call, capture_output=True, text=True, check=False, env={**os.environ, **variables})


def test_the_command_writes_onto_a_bucket_once(stores, written, scheme):
    out = f"{stores.bucket(scheme)}/out/"
    for _ in range(2):
        done = called(written, out)
        assert done.returncode == 0, done.stderr
        assert dataset(stores, out.rstrip("/")) == written[1]
    other = json.loads(written[0].read_text()) | {"split": {"ratios": {"train": 0.5, "test": 0.5}}}
    written[0].write_text(json.dumps(other))
    done = called(written, out)
    assert done.returncode == 2
    assert "contains another dataset" in done.stderr
    assert "Traceback" not in done.stderr


def test_after_a_kill_at_any_request_the_next_run_ends_with_the_same_bytes(stores, written, tmp_path, scheme):
    out = f"{stores.bucket(scheme)}/out"
    asked = []
    stores.meddle = lambda method, path: asked.append(path)
    assert called(written, out).returncode == 0
    killed = 0
    for attempt, step in enumerate(random.Random(scheme).sample(range(1, len(asked)), 4)):
        out = f"{stores.bucket(scheme)}/out"
        # Each time as on another machine, where the run that goes on has only the bucket.
        killed += kill_at(stores, step, written, out, TMPDIR=str(made(tmp_path / f"tmp{attempt}")))
        # The store may complete the last request of the killed process at any time, also between two looks at it.
        if reason := why_not_open(out):
            assert re.search("not a finished dataset|no such folder", reason)
        else:
            assert dataset(stores, out) == written[1]
        done = called(written, out, TMPDIR=str(made(tmp_path / f"other{attempt}")))
        assert done.returncode == 0, done.stderr
        assert ImageDataset.open(out).manifest == ImageDataset.open(tmp_path / "local").manifest
        assert dataset(stores, out) == written[1]
        assert ".publishing" not in stores.tree(out)
    assert killed >= 3


def why_not_open(out):
    try:
        ImageDataset.open(out)
    except DatasetError as error:
        return str(error)
    return ""


def made(folder):
    folder.mkdir()
    return folder


def kill_at(stores, step, written, out, **variables):
    """Calls the command and kills it at its step-th request; returns whether it was killed."""
    left = [step]
    call = [SHARDWRIGHT, "ingest", str(written[0]), "--out", out]
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, env={**os.environ, **variables})

    def kill(method, path):
        left[0] -= 1
        if left[0] == 0:
            process.send_signal(signal.SIGKILL)

    stores.meddle = kill
    code = process.wait()
    stores.meddle = None
    return code == -signal.SIGKILL
