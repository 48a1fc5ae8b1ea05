"""Verify finds 10,000 of 10,000 flipped bits and cuts, each where it is."""

import random

import damage
import pytest
from ingesting import run

from shardwright.verify import verify

pytestmark = pytest.mark.soak


def test_ten_thousand_flips_and_cuts_are_found_where_they_are(tmp_path, image_input):
    raw = image_input(tmp_path / "in", images=60)
    for number in (3, 11, 17, 40):
        (tmp_path / "in" / "images" / f"{number:03d}.jpg").write_bytes(b"BM")
    run(raw, tmp_path / "out")
    damage.settle(tmp_path / "out", tmp_path)
    draw = random.Random("ten thousand")
    for _ in range(10_000):
        one = damage.drawn(tmp_path / "out", draw)
        fits = damage.must_be_found(tmp_path / "out", one)
        with damage.done(tmp_path / "out", one):
            found = verify(tmp_path / "out").findings
        assert fits(found), (one, found)
    assert verify(tmp_path / "out").findings == ()
