"""The table of precision and recall: counted over pairs and pictures, on a few small ones."""

from itertools import pairwise

import numpy as np
from PIL import Image

from benchmarks.likeness import ALTERATIONS, DISTANCES, drawn_pictures, found_pictures, measure_likeness, table
from shardwright.duplicates.hashes import ImageHashes


def test_copies_are_distinguished_from_other_pictures():
    rows = measure_likeness(drawn_pictures(4))
    assert [(row.name, row.distance) for row in rows] == [(n, d) for n in ImageHashes._fields for d in DISTANCES]
    by_place = {(row.name, row.distance): row for row in rows}
    near = by_place["perceptual", 8]
    assert near.precision == 1
    assert near.recall["png"] == near.recall["jpeg 70"] == near.recall["x 0.5"] == 1
    assert near.recall["flipped"] == 0
    for name in ImageHashes._fields:
        recalls = [by_place[name, distance].recall for distance in DISTANCES]
        assert all(a[way] <= b[way] for a, b in pairwise(recalls) for way in ALTERATIONS)


def test_pairs_are_counted_as_one_would_by_hand():
    pictures = [Image.new("RGB", (80, 80), level) for level in ("gray", "gray", "gray")]
    rows = measure_likeness(pictures)
    # All images are the same: of the pairs, those of one picture are 3 * C(13, 2) of C(39, 2).
    assert {row.precision for row in rows} == {3 * 78 / 741}
    assert all(recall == 1 for row in rows for recall in row.recall.values())


def test_a_second_hash_can_only_make_it_stricter():
    pictures = drawn_pictures(3)
    one = {(row.name, row.distance): row for row in measure_likeness(pictures)}
    both = measure_likeness(pictures, confirm="difference")
    for row in both:
        alone = one[row.name.split(" ")[0], row.distance]
        assert all(row.recall[way] <= alone.recall[way] for way in ALTERATIONS)
    assert len(table(both).splitlines()) == 1 + 3 * len(DISTANCES)


def test_pictures_of_a_folder_are_those_that_can_be_decoded(tmp_path):
    (tmp_path / "in").mkdir()
    Image.fromarray(np.zeros((9, 12, 3), np.uint8)).save(tmp_path / "in" / "a.png")
    (tmp_path / "b.txt").write_text("no picture")
    assert [picture.size for picture in found_pictures(tmp_path)] == [(12, 9)]
