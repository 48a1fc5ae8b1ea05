"""Polygons as masks, by two rules.

`coco` (`rasterize_fifths`) draws what the COCO API draws (`rleFrPoly` in cocodataset/cocoapi, common/maskApi.c, which
`pycocotools` calls): the pixels of `annToMask`, one by one. The code here is our own.

`center` (`rasterize_centers`): a pixel belongs to a polygon if its center does, by the even-odd rule. A center exactly
on an outline belongs to the area below the outline or, where the outline is vertical, to the right of it. So polygons
that share an edge neither overlap nor leave a gap.

Coordinates are COCO's: x to the right and y down in pixels from the top left corner of the image. So the center of the
pixel in row 0 and column 0 is (0.5, 0.5). Parts outside the image are cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from shardwright.masks.rle import RleError, Runs, run_positions

_Whole: TypeAlias = npt.NDArray[np.int64]
_Float: TypeAlias = npt.NDArray[np.float64]

# The COCO API calculates in fifths of a pixel; the middle of a column is its third one.
_SCALE, _MIDDLE = 5, 2
# Products of coordinates up to here are far from overflow, and no image has a side this long.
_LARGEST = 2**31
# Crossings of outline and columns in memory; a polygon may have more in total than would fit.
_AT_ONCE = 1 << 19
# An image of 30,000 columns has 560 outlines from side to side then.
_MOST_CROSSINGS = 1 << 24


class PolygonError(RleError):
    """A polygon is invalid; the message contains the position, the value and the limit."""

    code = "bad_polygon"


def read_polygon(numbers: Sequence[object]) -> npt.NDArray[np.float64]:
    """Reads a polygon in COCO's form [x, y, x, y, ...].

    Returns:
        Its corners, float64 (n, 2) of (x, y), n at least 3. The last is joined to the first.

    Raises:
        PolygonError: fewer than 6 numbers, an odd count, a value that is not a finite number, or one beyond any image.
    """
    if len(numbers) < 6:
        raise PolygonError(f"has {len(numbers)} numbers; a polygon needs at least 6, x and y of three corners")
    if len(numbers) % 2:
        raise PolygonError(f"has an odd count of {len(numbers)} numbers; the last x has no y")
    for i, number in enumerate(numbers):
        # True and false are integers to Python, but no coordinates.
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not abs(number) <= _LARGEST:
            shown = repr(number)[:40]
            raise PolygonError(
                f"number {i + 1} of {len(numbers)} is {shown}, not a number from {-_LARGEST} to {_LARGEST}"
            )
    return np.array(numbers, dtype=np.float64).reshape(-1, 2)


def rasterize_centers(corners: npt.NDArray[np.float64], height: int, width: int) -> Runs:
    """Finds the pixels whose center is in a polygon, without drawing it.

    Along the line of a column's pixel centers, inside and outside change where an edge crosses the line. An edge counts
    for the centers from its left end on and before its right end. Crossings are calculated in float64, in the same way
    for both directions of an edge.

    Args:
        corners: float64 (n, 2) of (x, y) in pixels.
        height: rows of the image, at least 1.
        width: columns of the image, at least 1.

    Returns:
        The runs, int64 (m, 2).

    Raises:
        PolygonError: its outline has so many crossings that drawing it would take minutes.
    """
    following = np.roll(corners, -1, axis=0)
    backwards = (following[:, 0] < corners[:, 0])[:, None]
    left, right = np.where(backwards, following, corners), np.where(backwards, corners, following)
    first = _first_center(left[:, 0], width)
    counts = _first_center(right[:, 0], width) - first
    changes = np.empty(0, np.int64)
    for edge, place in _crossings(counts):
        column = first[edge] + place
        (x, y), (right_x, right_y) = left[edge].T, right[edge].T
        crossed = y + (column + 0.5 - x) * (right_y - y) / (right_x - x)
        changes = _odd(np.concatenate([changes, column * height + _first_center(crossed, height)]))
    return _runs(changes)


def rasterize_fifths(corners: npt.NDArray[np.float64], height: int, width: int) -> Runs:
    """Finds the pixels of a polygon as the COCO API does.

    Corners are rounded to fifths of a pixel, and so is the outline between them: step by step along the longer side of
    an edge. At the middle of a column, inside and outside change at the upper one of the two steps. Only the steps at
    the middles of columns are calculated here, with the API's own float64 expressions.

    Args:
        corners: as in `rasterize_centers`.
        height: rows of the image, at least 1.
        width: columns of the image, at least 1.

    Returns:
        The runs, int64 (m, 2).

    Raises:
        PolygonError: see `rasterize_centers`.
    """
    fifths = np.trunc(_SCALE * corners + 0.5).astype(np.int64)
    following = np.roll(fifths, -1, axis=0)
    across, down = np.abs(following - fifths).T
    steep = across < down
    backwards = np.where(steep, fifths[:, 1] > following[:, 1], fifths[:, 0] > following[:, 0])[:, None]
    begin, end = np.where(backwards, following, fifths), np.where(backwards, fifths, following)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.where(steep, (end[:, 0] - begin[:, 0]) / down, (end[:, 1] - begin[:, 1]) / across)
    left, right = np.minimum(begin[:, 0], end[:, 0]), np.maximum(begin[:, 0], end[:, 0])
    first = np.clip(-((_MIDDLE - left) // _SCALE), 0, width)
    counts = np.clip(-((_MIDDLE - right) // _SCALE), 0, width) - first
    changes = np.empty(0, np.int64)
    for edge, place in _crossings(counts):
        column = first[edge] + place
        middle = column * _SCALE + _MIDDLE
        x, y, rise = begin[edge, 0], begin[edge, 1], slope[edge]
        # Of edges that go by columns, the upper one of the heights at the middle and at the next step.
        flat = np.minimum(*(np.trunc(y + rise * (middle - x + k) + 0.5) for k in (0, 1))).astype(np.int64)
        upper = np.where(steep[edge], _step_of_steep(x, y, rise, down[edge], middle), flat)
        row = np.ceil(np.clip((upper + 0.5) / _SCALE - 0.5, 0, height)).astype(np.int64)
        changes = _odd(np.concatenate([changes, column * height + row]))
    return _runs(changes)


def _step_of_steep(x: _Whole, y: _Whole, slope: _Float, steps: _Whole, middle: _Whole) -> _Whole:
    """Returns the height of the last step before edges that go by rows pass the middle of a column."""
    with np.errstate(invalid="ignore", divide="ignore"):
        guess = np.nan_to_num(np.floor((middle + 0.5 - x) / slope))
    # Rounding may put it off by one: the first step that has passed counts.
    near = np.clip(guess, 0, steps).astype(np.int64)[:, None] + np.arange(-2, 4)
    tried = np.clip(near, 1, np.maximum(steps, 1)[:, None])
    reached = np.trunc(x[:, None] + slope[:, None] * tried + 0.5)
    passed = np.where(slope[:, None] > 0, reached > middle[:, None], reached <= middle[:, None])
    step = np.take_along_axis(tried, passed.argmax(axis=1)[:, None], axis=1)[:, 0]
    return y + step - 1


def _crossings(counts: _Whole) -> Iterator[tuple[_Whole, _Whole]]:
    """Yields the number of the edge, and a number from 0 for each of its crossings, in bounded memory.

    Raises:
        PolygonError: there are so many that drawing the polygon would take minutes.
    """
    total = int(counts.sum())
    if total > _MOST_CROSSINGS:
        raise PolygonError(f"its outline crosses {total:,} columns of pixels; at most {_MOST_CROSSINGS:,} are read")
    crossing = np.flatnonzero(counts)
    for edges in np.split(crossing, np.flatnonzero(np.diff(np.cumsum(counts[crossing]) // _AT_ONCE)) + 1):
        yield np.repeat(edges, counts[edges]), run_positions(counts[edges])


def _runs(changes: _Whole) -> Runs:
    """Returns the runs between changes from outside to inside and back."""
    pairs = changes.reshape(-1, 2)
    return np.stack([pairs[:, 0], pairs[:, 1] - pairs[:, 0]], axis=1)


def _first_center(positions: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """Returns the first of `count` pixels whose center is at a position or beyond it; `count` where there is none."""
    return np.clip(np.ceil(positions - 0.5), 0, count).astype(np.int64)


def _odd(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the values that occur an odd number of times, sorted: two changes at one place cancel out.

    The end of a column and the start of the next are the same place, so a run goes on across them.
    """
    distinct, counts = np.unique(values, return_counts=True)
    return distinct[counts % 2 == 1]
