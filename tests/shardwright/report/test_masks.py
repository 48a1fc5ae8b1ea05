"""Shapes of masks in run space are those of drawn masks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shardwright.masks.rle import encode
from shardwright.report.mask_shapes import MaskShapes, regions

MASKS = st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(
    lambda shape: arrays.arrays(np.uint8, shape, elements=st.integers(0, 1))
)


def flooded(mask):
    left = {tuple(place) for place in np.argwhere(mask)}
    count = 0
    while left:
        count += 1
        waiting = [left.pop()]
        while waiting:
            row, column = waiting.pop()
            for near in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                if near in left:
                    left.remove(near)
                    waiting.append(near)
    return count


@given(MASKS)
def test_regions_are_those_of_a_flood_fill(mask):
    assert regions(encode(mask), mask.shape[0]) == flooded(mask)


@given(st.integers(0, 2**32))
def test_shapes_add_up(seed):
    random = np.random.default_rng(seed)
    shapes, drawn = MaskShapes(2), []
    for _ in range(3):
        masks = (random.random((2, 6, 8)) < 0.4).astype(np.uint8)
        drawn.append(masks)
        shapes.add([encode(mask) for mask in masks], 6, 8, 1)
    both = np.stack(drawn)
    assert shapes.images == 3
    assert shapes.shared[0, 1] == shapes.shared[1, 0] == int((both[:, 0] & both[:, 1]).sum())
    assert [shapes.shared[i, i] for i in range(2)] == both.sum(axis=(0, 2, 3)).tolist()
    assert shapes.regions.sum() == sum(shapes.masks) == int(both.any(axis=(2, 3)).sum())


def test_heat_is_that_of_the_displayed_mask():
    mask = np.zeros((48, 96), np.uint8)
    mask[:24, :48] = 1
    shapes = MaskShapes(1)
    shapes.add([encode(mask)], 48, 96, 1)
    assert shapes.heat[0, :12, :12].all()
    assert shapes.heat[0].sum() == 144
    turned = MaskShapes(1)
    turned.add([encode(mask)], 48, 96, 6)  # Turned by a quarter to the right: the upper left becomes the upper right.
    assert turned.heat[0, :12, 12:].all()
    assert turned.heat[0].sum() == 144
