"""Turns of masks and boxes: equal to turning what is drawn, undone by their inverse, and what Pillow shows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picturing import DISPLAYED
from PIL import Image, ImageOps

from shardwright.images import boxes, orientation
from shardwright.masks import coordinate_frame, rle

orientations = st.integers(1, 8)


@st.composite
def masks(draw):
    height, width = draw(st.integers(1, 24)), draw(st.integers(1, 24))
    share = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    return np.random.default_rng(draw(st.integers(0, 2**32))).random((height, width)) < share


@given(masks(), orientations)
def test_turned_runs_are_those_of_the_turned_mask(mask, turn):
    runs = coordinate_frame.orient_runs(rle.encode(mask), *mask.shape, turn)
    turned = DISPLAYED[turn](mask)
    np.testing.assert_array_equal(runs, rle.encode(turned))
    assert orientation.displayed_size(*mask.shape, turn) == turned.shape
    assert runs.dtype == np.int64


@pytest.mark.parametrize("turn", range(1, 9))
@given(mask=masks())
def test_the_inverse_leads_back(turn, mask):
    runs = rle.encode(mask)
    there = coordinate_frame.orient_runs(runs, *mask.shape, turn)
    size = orientation.displayed_size(*mask.shape, turn)
    np.testing.assert_array_equal(coordinate_frame.orient_runs(there, *size, orientation.inverse(turn)), runs)
    assert orientation.displayed_size(*size, orientation.inverse(turn)) == mask.shape


@pytest.mark.parametrize("turn", range(1, 9))
def test_pillow_shows_the_same(turn):
    pixels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    image = Image.fromarray(pixels)
    image.getexif()[0x0112] = turn
    np.testing.assert_array_equal(np.asarray(ImageOps.exif_transpose(image)), DISPLAYED[turn](pixels))


@given(
    st.lists(st.tuples(*[st.integers(0, 16)] * 4), max_size=4),
    orientations,
)
def test_boxes_turn_with_the_pixels_they_surround(corners, turn):
    edges = [(min(a, b), max(a, b) + 1, min(c, d), max(c, d) + 1) for a, b, c, d in corners]
    lists = {
        boxes.XMIN: [2 * e[0] / 34 for e in edges],
        boxes.XMAX: [2 * e[1] / 34 for e in edges],
        boxes.YMIN: [e[2] / 17 for e in edges],
        boxes.YMAX: [e[3] / 17 for e in edges],
        boxes.TEXT: [b"x" for _ in edges],
    }
    height, width = 17, 34
    turned = orientation.orient_boxes(lists, turn)
    assert turned[boxes.TEXT] == lists[boxes.TEXT]
    for i, (left, right, top, bottom) in enumerate(edges):
        mask = np.zeros((height, width), bool)
        mask[top:bottom, 2 * left : 2 * right] = True
        rows, columns = np.nonzero(DISPLAYED[turn](mask))
        shape = DISPLAYED[turn](mask).shape
        found = [turned[name][i] for name in (boxes.XMIN, boxes.XMAX, boxes.YMIN, boxes.YMAX)]
        expected = [columns.min() / shape[1], (columns.max() + 1) / shape[1], rows.min() / shape[0]]
        np.testing.assert_allclose(found, [*expected, (rows.max() + 1) / shape[0]], atol=1e-6)
