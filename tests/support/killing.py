"""Shared by the tests that kill a writer: at a step, which finds every order of renames, or after a time, which finds
what no step is."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from ingesting import run, tree

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.staging import ranges

# Put before a script that is called with (..., step) as its third argument: the step-th rename, link, fsync, mkdir or
# record that it writes is its last.
KILL_AT_STEP = """
import os, signal, sys
from pathlib import Path
left = int(sys.argv[3])

def counted(function):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return call

os.rename, os.link, os.fsync = counted(os.rename), counted(os.link), counted(os.fsync)
Path.replace, Path.mkdir, Path.rename = counted(Path.replace), counted(Path.mkdir), counted(Path.rename)
"""

# Cuts shards into ranges of so many images, on the way to the whole shard, where the last argument is not 0.
_IN_RANGES = """
import sys
from shardwright.staging import ranges
if int(sys.argv[-1]):
    ranges._MOST_IMAGES, ranges._SMALL = int(sys.argv[-1]), 0
"""

_INGEST_TO_A_STEP = (
    KILL_AT_STEP
    + _IN_RANGES
    + """
import json, shutil
from shardwright.staging import staging
from shardwright import storage
from shardwright.config import parse_config
from shardwright.ingest import ingest, survey
staging.RecordWriter.write = counted(staging.RecordWriter.write)
shutil.rmtree, survey.hash_file = counted(shutil.rmtree), counted(survey.hash_file)
before = left
ingest(parse_config(json.loads(sys.argv[1]), base="/"), sys.argv[2], quiet=True)
print(before - left)
"""
)

_INGEST = (
    _IN_RANGES
    + """
import json, sys
from shardwright.config import parse_config
from shardwright.ingest import ingest
print("ready", flush=True)
ingest(parse_config(json.loads(sys.argv[1]), base="/"), sys.argv[2], workers=int(sys.argv[3]), quiet=True)
"""
)

_MOST_SECONDS = 120


@dataclass
class Ended:
    """How a writer ended: whether it was killed, and the seconds or steps it took."""

    killed: bool
    took: float


def ingest_to_a_step(raw, out, step=10**9, most=0):
    """Runs an ingest in a process that kills itself at a step; it reports the steps it took when it was not killed."""
    command = [sys.executable, "-c", _INGEST_TO_A_STEP, json.dumps(raw), str(out), str(step), str(most)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return Ended(done.returncode != 0, int(done.stdout or 0))


def ingest_for(raw, out, workers, seconds=_MOST_SECONDS, most=0):
    """Runs an ingest in processes and kills the first of them after some seconds, as a machine short of memory may."""
    command = [sys.executable, "-c", _INGEST, json.dumps(raw), str(out), str(workers), str(most)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout.readline() == "ready\n"
        started = time.monotonic()
        try:
            code = process.wait(seconds)
            assert code == 0
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        took = time.monotonic() - started
        _await_end(process.pid)
    return Ended(code != 0, took)


def _await_end(group):
    """Waits for the other processes of a killed one: left alone, they would wait for work for ever."""
    until = time.monotonic() + _MOST_SECONDS
    while _living(group):
        assert time.monotonic() < until, "workers outlive the process that started them"
        time.sleep(0.01)


def _living(group):
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = entry.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            return True
    return False


def check_and_resume(raw, out, whole, workers, monkeypatch, most=0):
    """Checks what a kill has left: nothing that reads as a dataset, or the whole one; then the same for a new run.

    Returns the number of shards and parts that the killed run had finished and the resumed one took over.
    """
    staging = out.with_name(f".{out.name}.staging")
    committed = out.exists()
    if committed:
        assert tree(out) == whole
    else:
        with pytest.raises(DatasetError):
            ImageDataset.open(out)
    finished = list(staging.glob("*/done/[!.]*"))
    begun = len(list(staging.glob("*/Split-*/.*")))
    assert begun <= workers
    parts = len(list(staging.glob("*/parts/*/[!.]*.json")))
    written, encoded = _count_written(monkeypatch)
    if most:
        monkeypatch.setattr(ranges, "_MOST_IMAGES", most)
        monkeypatch.setattr(ranges, "_SMALL", 0)
    manifest = run(raw, out, workers=1)
    assert tree(out) == whole
    assert [p.name for p in out.parent.iterdir()] == [out.name], "leftovers of the killed run"
    assert len(encoded) <= manifest.totals["written"] - parts
    if most:
        return len(finished) + parts
    assert len(written) == (0 if committed else len(manifest.shards) - len(finished))
    return len(finished)


def _count_written(monkeypatch):
    from shardwright.ingest import run_ingest as ingest_run
    from shardwright.ingest import write_shards as write

    written = []
    write_shard = write.write_range

    def counted(number, **given):
        written.append(number)
        return write_shard(number, **given)

    encoded = []
    encode = write.encode
    monkeypatch.setattr(ingest_run, "write_range", counted)
    monkeypatch.setattr(write, "encode", lambda job, plan: encoded.append(job.file.key) or encode(job, plan))
    return written, encoded


def kills(raw, folder, count, random, monkeypatch, most=0):
    """Kills `count` ingests, half at a step and half after a time, and checks what each leaves.

    With `most`, shards are written in ranges of so many images.
    """
    folder.mkdir()
    run(raw, folder / "whole" / "out")
    whole = tree(folder / "whole" / "out")
    steps = ingest_to_a_step(raw, folder / "steps" / "out", most=most).took
    seconds = ingest_for(raw, folder / "seconds" / "out", 2, most=most).took
    killed, resumed = 0, 0
    for number in range(count):
        out = folder / str(number) / "out"
        out.parent.mkdir()
        if number % 2:
            workers, ended = 1, ingest_to_a_step(raw, out, random.randint(1, int(steps)), most)
        else:
            workers, ended = 2, ingest_for(raw, out, 2, random.uniform(0, seconds), most)
        killed += ended.killed
        with monkeypatch.context() as patch:
            resumed += check_and_resume(raw, out, whole, workers, patch, most) > 0
    return killed, resumed
