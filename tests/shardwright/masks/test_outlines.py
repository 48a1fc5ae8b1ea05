"""Outlines of masks: drawn again, by either rule, they are the mask."""

import numpy as np
import pytest

from shardwright.masks import rle
from shardwright.masks.outlines import outlines
from shardwright.masks.polygons import rasterize_centers, rasterize_fifths
from shardwright.masks.regions import find_regions

NESTED = np.ones((9, 11), bool)
NESTED[1:-1, 1:-1] = False
NESTED[3:6, 3:8] = True
NESTED[4, 5] = False
NESTED[2, 2] = True
SEED = np.random.default_rng(5)
MASKS = {
    "one pixel": np.array([[True]]),
    "full": np.ones((3, 5), bool),
    "checkerboard": np.indices((6, 7)).sum(axis=0) % 2 == 0,
    "holes in parts in holes": NESTED,
    "empty": np.zeros((4, 4), bool),
    **{f"noise {share}": SEED.random((23, 17)) < share for share in (0.1, 0.5, 0.8, 0.97)},
}


@pytest.mark.parametrize("rule", [rasterize_centers, rasterize_fifths])
@pytest.mark.parametrize("name", MASKS)
def test_the_mask_comes_back(name, rule):
    mask = MASKS[name]
    height, width = mask.shape
    runs = rle.encode(mask)
    found = outlines(runs, height, width)
    drawn = np.zeros(mask.shape, int)
    for corners in found:
        assert len(corners) >= 4
        # Fractions of the image, as YOLO stores them.
        given = corners / (width, height) * (width, height)
        drawn += rle.draw(rule(given, height, width), height, width)
    assert np.array_equal(drawn, mask)
    assert len(found) == len(find_regions(runs, height, corners=False).areas)
