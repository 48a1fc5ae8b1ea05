"""Polygons as masks: the pixel-centre rule, against a brute force in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.masks import coco, rle
from shardwright.masks.coco import PolygonError, rasterize, read_polygon

SIDES = st.integers(1, 20)
# Quarters and eighths hit the centres of pixels often, and floats hold them exactly.
EXACT = st.integers(-40, 200).map(lambda number: number / 8)
ANY = st.floats(-5, 25)


def corners_of(numbers):
    return st.lists(st.tuples(numbers, numbers), min_size=3, max_size=9).map(np.array)


def mask_of(corners, height, width):
    runs = rasterize(np.array(corners, dtype=np.float64), height, width)
    np.testing.assert_array_equal(rle.from_flat(runs.reshape(-1)), runs)
    return rle.draw(runs, height, width).astype(bool)


def by_brute_force(corners, height, width):
    """Counts the edges above each centre, exactly."""
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
def test_equals_point_in_polygon_at_every_centre(corners, height, width):
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
    """Whatever the floats: what one triangle loses at an edge its neighbour has."""
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
    whole = rasterize(corners, 40, 40)
    monkeypatch.setattr(coco, "_AT_ONCE", 7)
    np.testing.assert_array_equal(rasterize(corners, 40, 40), whole)


def test_whole_pixels_are_whole_pixels():
    mask = mask_of([(2, 1), (5, 1), (5, 3), (2, 3)], 4, 6)
    assert mask.sum() == 6
    assert mask[1:3, 2:5].all()
    # Centres on the outline: those of the upper and the left side belong to it.
    np.testing.assert_array_equal(mask_of([(1.5, 0.5), (4.5, 0.5), (4.5, 2.5), (1.5, 2.5)], 4, 6)[:2, 1:4], True)
    # The sides of a horizontal hourglass: its two triangles, centres on their upper edges included.
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
