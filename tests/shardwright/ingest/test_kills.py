"""Ingest: 20 kills at random steps and times; each shows nothing or all and resumes to the same bytes."""

import random
import time

import pytest
from ingesting import run
from killing import ingest_for, kills

from shardwright.storage import file_pins


@pytest.fixture
def raw(tmp_path, image_input):
    made = {**image_input(tmp_path / "in", images=160), "shards": {"records": 5}}
    # Times identify older files in the name of the staging folder: a run before and one after that do not share it.
    time.sleep(file_pins._SETTLED_NANOSECONDS / 1e9 + 0.2)
    return made


@pytest.mark.slow
def test_ten_kills_leave_nothing_or_all_and_resume_to_the_same_bytes(tmp_path, raw, monkeypatch):
    killed, resumed = kills(raw, tmp_path / "kills", 10, random.Random(20), monkeypatch)
    # Some of the kills after a time come when the run is over.
    assert killed >= 7
    assert resumed >= 2


@pytest.mark.slow
def test_kills_of_a_run_in_ranges_leave_nothing_or_all_and_resume_to_the_same_bytes(tmp_path, raw, monkeypatch):
    in_ranges = {**raw, "shards": {"count": 2}}
    killed, resumed = kills(in_ranges, tmp_path / "kills", 10, random.Random(5), monkeypatch, most=4)
    # Some of the kills after a time come when the run is over.
    assert killed >= 4
    assert resumed >= 2


@pytest.mark.slow
def test_kills_of_a_run_that_copies_leave_nothing_or_all_and_resume_to_the_same_bytes(tmp_path, raw, monkeypatch):
    run({**raw, "split": {"ratios": {"train": 0.5, "eval": 0.25, "test": 0.25}}}, tmp_path / "earlier")
    copying = {**raw, "reuse_from": str(tmp_path / "earlier")}
    killed, resumed = kills(copying, tmp_path / "kills", 8, random.Random(8), monkeypatch)
    assert killed >= 5
    assert resumed >= 1


def test_workers_end_with_the_process_that_started_them(tmp_path, raw):
    """A fast machine is done after the longer times; each call checks that no worker is left."""
    killed = [ingest_for(raw, tmp_path / f"out{number}", 2, 0.4 / 2**number).killed for number in range(4)]
    assert any(killed)
