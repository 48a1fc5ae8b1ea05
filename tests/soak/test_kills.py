"""An ingest is killed a hundred times at random moments."""

import random

import pytest
from killing import kills

pytestmark = pytest.mark.soak


def test_a_hundred_kills_leave_nothing_or_all_and_resume_to_the_same_bytes(tmp_path, image_input, monkeypatch):
    raw = {**image_input(tmp_path / "in", images=160), "shards": {"records": 5}}
    killed, resumed = kills(raw, tmp_path / "kills", 100, random.Random(100), monkeypatch)
    assert killed >= 75
    assert resumed >= 25


def test_a_hundred_kills_of_a_run_in_ranges_resume_to_the_same_bytes(tmp_path, image_input, monkeypatch):
    raw = {**image_input(tmp_path / "in", images=160), "shards": {"count": 2}}
    killed, resumed = kills(raw, tmp_path / "kills", 100, random.Random(46), monkeypatch, most=4)
    assert killed >= 75
    assert resumed >= 25
