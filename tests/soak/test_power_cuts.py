"""Power cuts on a real ext4 and a real xfs: the image of a loop device is what a disk holds then. Needs root."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from ingesting import run, tree

pytestmark = pytest.mark.soak

_CUTS = 50
# The smallest that each can be made with, in MB.
_SMALLEST = {"ext4": 64, "xfs": 320}
_INGEST = """
import json, sys
from shardwright.config import parse_config
from shardwright.ingest import ingest
print("ready", flush=True)
ingest(parse_config(json.loads(sys.argv[1]), base="/"), sys.argv[2], workers=1, quiet=True)
"""


@contextmanager
def mounted(image, folder):
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", "-o", "loop", str(image), str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no loop device can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(params=sorted(_SMALLEST))
def image(tmp_path, request):
    make = f"mkfs.{request.param}"
    if os.geteuid() or not shutil.which(make):
        pytest.skip(f"only root mounts a file system, and {make} makes it")
    file = tmp_path / "disk.img"
    file.touch()
    os.truncate(file, _SMALLEST[request.param] << 20)
    subprocess.run([make, "-q", str(file)], check=True)
    return file


def cut(raw, image, folder, copy, seconds):
    """Ingests on the image's file system, and copies the image after some seconds, or when the ingest has ended."""
    with mounted(image, folder):
        command = [sys.executable, "-c", _INGEST, json.dumps(raw), str(folder / "made" / "out")]
        began = 0.0
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            began = time.monotonic()
            try:
                assert process.wait(seconds) == 0
                ended = True
            except subprocess.TimeoutExpired:
                # Nothing is written while the image is copied.
                process.send_signal(signal.SIGSTOP)
                ended = False
            took = time.monotonic() - began
            subprocess.run(["cp", "--sparse=always", str(image), str(copy)], check=True)
            process.kill()
        # Nothing is left of the files that the next one finds.
        shutil.rmtree(folder / "made", ignore_errors=True)
    return ended, took


def test_after_a_power_cut_there_is_no_dataset_or_the_whole_one(tmp_path, image, image_input):
    raw = {**image_input(tmp_path / "in", images=120), "shards": {"records": 5}}
    run(raw, tmp_path / "whole" / "out")
    whole = tree(tmp_path / "whole" / "out")
    copy, moments = tmp_path / "copy.img", random.Random(6)
    ended, seconds = cut(raw, image, tmp_path / "disk", copy, None)
    assert ended
    there = 0
    for number in range(_CUTS + 1):
        with mounted(copy, tmp_path / "after") as folder:
            out = folder / "made" / "out"
            if out.exists():
                there += 1
                assert tree(out) == whole
            assert out.exists() or not ended, "what was reported as written is not there"
            run(raw, out)
            assert tree(out) == whole
            assert [place.name for place in out.parent.iterdir()] == ["out"]
        if number < _CUTS:
            ended, _ = cut(raw, image, tmp_path / "disk", copy, moments.uniform(0, seconds))
    assert there
