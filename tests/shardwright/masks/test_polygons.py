"""Polygons as masks: the pixel-center rule against a brute force in fractions, COCO's against `pycocotools`."""

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.masks import polygons, rle
from shardwright.masks.coco_segmentation import CocoMasks, mask_text
from shardwright.masks.dialects import COCO
from shardwright.masks.polygons import PolygonError, rasterize_centers, rasterize_fifths, read_polygon

SIDES = st.integers(1, 20)
# Quarters and eighths hit the centers of pixels often, and floats hold them exactly.
EXACT = st.integers(-40, 200).map(lambda number: number / 8)
ANY = st.floats(-5, 25)


def corners_of(numbers):
    return st.lists(st.tuples(numbers, numbers), min_size=3, max_size=9).map(np.array)


def mask_of(corners, height, width):
    runs = rasterize_centers(np.array(corners, dtype=np.float64), height, width)
    np.testing.assert_array_equal(rle.from_flat(runs.reshape(-1)), runs)
    return rle.draw(runs, height, width).astype(bool)


def by_brute_force(corners, height, width):
    """Counts the edges above each center, exactly."""
    mask = np.zeros((height, width), bool)
    points = [(Fraction(x), Fraction(y)) for x, y in corners.tolist()]
    for row in range(height):
        for column in range(width):
            x, y = column + Fraction(1, 2), row + Fraction(1, 2)
            for (x0, y0), (x1, y1) in zip(points, [*points[1:], points[0]], strict=True):
                if min(x0, x1) <= x < max(x0, x1) and y0 + (x - x0) * (y1 - y0) / (x1 - x0) <= y:
                    mask[row, column] ^= True
    return mask


@given(corners_of(EXACT), SIDES, SIDES)
def test_equals_point_in_polygon_at_every_center(corners, height, width):
    np.testing.assert_array_equal(mask_of(corners, height, width), by_brute_force(corners, height, width))


@given(corners_of(EXACT), st.integers(-8, 8), st.integers(-8, 8))
def test_moves_with_its_corners_by_whole_pixels(corners, right, down):
    frame = 60
    there = mask_of(corners + 20, frame, frame)
    moved = mask_of(corners + 20 + [right, down], frame, frame)
    np.testing.assert_array_equal(np.roll(there, (down, right), (0, 1)), moved)


@given(st.lists(st.tuples(ANY, ANY), max_size=8), ANY, ANY, SIDES, SIDES, st.booleans())
def test_areas_on_both_sides_of_a_line_neither_overlap_nor_leave_gaps(points, begin, end, height, width, turned):
    """The line goes from the left border to the right one, or from the upper to the lower, in any steps."""
    across, along = (height, width) if turned else (width, height)
    line = [(0.0, begin), *sorted((min(max(x, 0), across), y) for x, y in points), (float(across), end)]
    line = [(x, min(max(y, 0), along)) for x, y in line]
    one = [*line, (across, 0), (0, 0)]
    other = [*line[::-1], (0, along), (across, along)]
    if turned:
        one, other = [[(y, x) for x, y in side] for side in (one, other)]
    one, other = mask_of(one, height, width), mask_of(other, height, width)
    assert not (one & other).any()
    assert (one | other).all()


@given(corners_of(ANY), ANY, ANY, SIDES, SIDES)
def test_triangles_with_common_edges_make_up_their_polygon(corners, x, y, height, width):
    """Whatever the floats: what one triangle loses at an edge its neighbor has."""
    total = np.zeros((height, width), bool)
    for one, other in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        total ^= mask_of([one, other, (x, y)], height, width)
    np.testing.assert_array_equal(total, mask_of(corners, height, width))


@given(corners_of(ANY), st.integers(0, 8), SIDES, SIDES)
def test_neither_direction_nor_first_corner_matters(corners, turn, height, width):
    expected = mask_of(corners, height, width)
    np.testing.assert_array_equal(mask_of(np.roll(corners, turn, axis=0), height, width), expected)
    np.testing.assert_array_equal(mask_of(corners[::-1], height, width), expected)


@given(corners_of(EXACT), SIDES, SIDES)
def test_the_frame_only_cuts(corners, height, width):
    whole = mask_of(corners, 30, 30)
    np.testing.assert_array_equal(mask_of(corners, height, width), whole[:height, :width])


def test_a_polygon_of_many_crossings_is_looked_at_in_parts(monkeypatch):
    corners = np.random.default_rng(0).uniform(-5, 45, (60, 2))
    rules = (rasterize_centers, rasterize_fifths)
    whole = [rule(corners, 40, 40) for rule in rules]
    monkeypatch.setattr(polygons, "_AT_ONCE", 7)
    for rule, runs in zip(rules, whole, strict=True):
        np.testing.assert_array_equal(rule(corners, 40, 40), runs)


def test_whole_pixels_are_whole_pixels():
    mask = mask_of([(2, 1), (5, 1), (5, 3), (2, 3)], 4, 6)
    assert mask.sum() == 6
    assert mask[1:3, 2:5].all()
    # Centers on the outline: those of the upper and the left side belong to it.
    np.testing.assert_array_equal(mask_of([(1.5, 0.5), (4.5, 0.5), (4.5, 2.5), (1.5, 2.5)], 4, 6)[:2, 1:4], True)
    # The sides of a horizontal hourglass: its two triangles, centers on their upper edges included.
    hourglass = [[1, 0, 0, 1], [1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 0, 0]]
    np.testing.assert_array_equal(mask_of([(0, 0), (4, 4), (4, 0), (0, 4)], 4, 4), hourglass)
    # An area that an outline goes around twice is outside: even-odd.
    assert not mask_of([(0, 0), (4, 0), (4, 4), (0, 4)] * 2, 4, 4).any()


def test_a_polygon_is_read():
    assert read_polygon([0, 0, 1.5, 0, 1, 2]).tolist() == [[0, 0], [1.5, 0], [1, 2]]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([], "has 0 numbers; a polygon needs at least 6"),
        ([0, 0, 4, 4], "has 4 numbers"),
        ([0, 0, 4, 0, 4, 4, 9], "an odd count of 7 numbers"),
        ([0, 0, 4, "4", 4, 4], "number 4 of 6 is '4', not a number"),
        ([0, 0, True, 4, 4, 4], "number 3 of 6 is True"),
        ([0, 0, 4, 4, None, 4], "number 5 of 6 is None"),
        ([0, 0, 4, 4, [1], 4], r"number 5 of 6 is \[1\]"),
        ([float("nan"), 0, 4, 4, 4, 4], "number 1 of 6 is nan"),
        ([0, float("-inf"), 4, 4, 4, 4], "number 2 of 6 is -inf"),
        ([0, 0, 4, 4, 4, 10**400], "number 6 of 6 is 1000"),
    ],
)
def test_invalid_polygons_are_refused_by_number(numbers, message):
    with pytest.raises(PolygonError, match=message):
        read_polygon(numbers)


@given(st.lists(st.integers(-(2**31), 2**31) | st.floats(-(2.0**31), 2.0**31), min_size=6, max_size=12))
def test_no_coordinates_are_too_large_to_be_cut_off(numbers):
    corners = read_polygon(numbers[: len(numbers) // 2 * 2])
    mask_of(corners, 5, 7)


def by_the_coco_api(corners, height, width):
    """The steps of `rleFrPoly` of the COCO API: the whole outline in fifths, then the middles of columns."""
    points = [(int(5 * x + 0.5), int(5 * y + 0.5)) for x, y in corners.tolist()]
    outline = []
    for (xs, ys), (xe, ye) in zip(points, [*points[1:], points[0]], strict=True):
        dx, dy = abs(xe - xs), abs(ye - ys)
        flip = xs > xe if dx >= dy else ys > ye
        (x0, y0), (x1, y1) = ((xe, ye), (xs, ys)) if flip else ((xs, ys), (xe, ye))
        steps = max(dx, dy)
        edge = []
        for t in range(steps + 1):
            if dx >= dy:
                edge.append((x0 + t, int(y0 + (y1 - y0) / dx * t + 0.5) if dx else y0))
            else:
                edge.append((int(x0 + (x1 - x0) / dy * t + 0.5), y0 + t))
        outline += edge[::-1] if flip else edge
    mask = np.zeros(height * width + 1, bool)
    for (u0, v0), (u1, v1) in pairwise(outline):
        column = (min(u0, u1) + 0.5) / 5 - 0.5
        if u0 != u1 and column == int(column) and 0 <= column < width:
            row = int(np.ceil(min(max((min(v0, v1) + 0.5) / 5 - 0.5, 0), height)))
            mask[int(column) * height + row] ^= True
    return np.logical_xor.accumulate(mask)[:-1].reshape(width, height).T


FIFTHS = st.integers(-60, 130).map(lambda number: number / 5)


@given(st.one_of(corners_of(EXACT), corners_of(ANY), corners_of(FIFTHS)), SIDES, SIDES)
def test_the_coco_rule_is_that_of_the_coco_api(corners, height, width):
    runs = rasterize_fifths(corners, height, width)
    np.testing.assert_array_equal(rle.from_flat(runs.reshape(-1)), runs)
    expected = by_the_coco_api(corners, height, width)
    np.testing.assert_array_equal(rle.draw(runs, height, width).astype(bool), expected)


RECORDED = json.loads(Path(__file__).with_name("coco_polygons.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_masks_are_those_that_pycocotools_draws(number):
    """Recorded with pycocotools 2.0.11: `frPyObjects`, of all parts of an object, then `merge`."""
    one = RECORDED[number]
    size = {"height": one["height"], "width": one["width"]}
    runs = CocoMasks(clip=True).parse(mask_text(None, json.dumps(one["polygons"])), **size)
    np.testing.assert_array_equal(runs, COCO.parse(one["counts"], **size))


def test_large_coordinates_are_drawn_in_bounded_memory():
    far = np.array([(-(2.0**31), -(2.0**31)), (2.0**31, -(2.0**31)), (2.0**31, 2.0**31), (-(2.0**31), 2.0**31)])
    assert rle.area(rasterize_fifths(far, 300, 200)) == 60_000
    with pytest.raises(PolygonError, match=r"its outline crosses [\d,]+ columns"):
        rasterize_fifths(np.array([(0, 0), (30_000, 5)] * 1200, np.float64), 10, 30_000)
