"""COCO's segmentations as text, and polygons as masks.

A segmentation is a list of polygons `[[x, y, ...], ...]`, all of which belong to the object, or run lengths
`{"size": [height, width], "counts": ...}` with counts as a list or compressed. Source: the COCO data format
(cocodataset.org) and its API (cocodataset/cocoapi, PythonAPI/pycocotools/coco.py, `annToRLE`). The text of a mask is
JSON: `[height, width, segmentation]`, with the image's size as the file states it, or null.

A pixel belongs to a polygon if its centre does, by the even-odd rule. Coordinates are COCO's: x to the right and y down
in pixels from the top left corner of the image, so the centre of the pixel in row 0 and column 0 is (0.5, 0.5). A
centre exactly on an outline belongs to the area below the outline or, where the outline is vertical, to the right of
it. So polygons that share an edge neither overlap nor leave a gap. Parts outside the image are cut off.

The rule is that of the COCO API (cocodataset/cocoapi, common/maskApi.c, `rleFrPoly`: samples the outline at the centres
of the columns and flips between inside and outside there), without its rounding of coordinates to fifths of a pixel.
The code here is our own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.masks.dialects import COCO
from shardwright.masks.rle import RleError, Runs, run_positions, union

# Products of coordinates up to here are far from overflow, and no image has a side this long.
_LARGEST = 2**31
# Crossings of outline and columns in memory; a polygon may have more in total than would fit.
_AT_ONCE = 1 << 22
# An image of 30,000 columns has 2,200 outlines from side to side then.
_MOST_CROSSINGS = 1 << 26


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


def rasterize(corners: npt.NDArray[np.float64], height: int, width: int) -> Runs:
    """Finds the pixels of a polygon, without drawing it.

    Along the line of a column's pixel centres, inside and outside change where an edge crosses the line. An edge counts
    for the centres from its left end on and before its right end. Crossings are calculated in float64, in the same way
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
    first = _first_centre(left[:, 0], width)
    counts = _first_centre(right[:, 0], width) - first
    total = int(counts.sum())
    if total > _MOST_CROSSINGS:
        raise PolygonError(f"its outline crosses {total:,} columns of pixels; at most {_MOST_CROSSINGS:,} are read")
    crossing = np.flatnonzero(counts)
    parts = np.split(crossing, np.flatnonzero(np.diff(np.cumsum(counts[crossing]) // _AT_ONCE)) + 1)
    changes = np.empty(0, np.int64)
    for edges in parts:
        edge = np.repeat(edges, counts[edges])
        column = first[edge] + run_positions(counts[edges])
        (x, y), (right_x, right_y) = left[edge].T, right[edge].T
        crossed = y + (column + 0.5 - x) * (right_y - y) / (right_x - x)
        changes = _odd(np.concatenate([changes, column * height + _first_centre(crossed, height)]))
    runs = changes.reshape(-1, 2)
    return np.stack([runs[:, 0], runs[:, 1] - runs[:, 0]], axis=1)


def _first_centre(positions: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """Returns the first of `count` pixels whose centre is at a position or beyond it; `count` where there is none."""
    return np.clip(np.ceil(positions - 0.5), 0, count).astype(np.int64)


def _odd(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the values that occur an odd number of times, sorted: two changes at one place cancel out.

    The end of a column and the start of the next are the same place, so a run goes on across them.
    """
    distinct, counts = np.unique(values, return_counts=True)
    return distinct[counts % 2 == 1]


_SHOWN = 40


class SizeError(RleError):
    """A mask was drawn on an image of another size."""

    code = "size_mismatch"


class SegmentationError(RleError):
    """A segmentation is neither polygons nor run lengths."""

    code = "bad_segmentation"


def mask_text(size: tuple[int, int] | None, segmentation: str) -> str:
    """Returns the text of a mask.

    Args:
        size: height and width of the image if the file states them.
        segmentation: JSON.
    """
    height, width = ("null", "null") if size is None else size
    return f"[{height},{width},{segmentation}]"


@dataclass(frozen=True)
class CocoMasks:
    """Reads texts of masks; see `shardwright.formats.base.MaskCode`."""

    def size(self, text: str) -> tuple[int, int] | None:
        """Returns height and width as the run lengths, or the file, state them; `None` where neither does."""
        height, width, segmentation = json.loads(text)
        size = segmentation.get("size") if isinstance(segmentation, dict) else [height, width]
        if not isinstance(size, list) or len(size) != 2 or not all(type(side) is int for side in size):
            return None
        return size[0], size[1]

    def masks(self, label: int, text: str, *, height: int, width: int) -> list[tuple[int, Runs]]:
        """Returns the one mask of a segmentation; see `parse`."""
        return [(label, self.parse(text, height=height, width=width))]

    def parse(self, text: str, *, height: int, width: int) -> Runs:
        """Reads the text of a mask.

        Args:
            text: the text.
            height: rows of the image, at least 1.
            width: columns of the image, at least 1.

        Returns:
            The runs, column by column, int64 (n, 2).

        Raises:
            RleError: the segmentation is broken, or belongs to an image of another size; `code` distinguishes the two.
        """
        stated_height, stated_width, segmentation = json.loads(text)
        if stated_height is not None:
            _check_size("the image", (stated_height, stated_width), height, width)
        if isinstance(segmentation, dict):
            return _read_counts(segmentation, height, width)
        if not isinstance(segmentation, list) or not segmentation:
            shown = json.dumps(segmentation)[:_SHOWN]
            raise SegmentationError(f"the segmentation is {shown}; write polygons [[x, y, ...]] or run lengths")
        return _draw_polygons(segmentation, height, width)


def _draw_polygons(polygons: Sequence[object], height: int, width: int) -> Runs:
    parts = []
    for i, polygon in enumerate(polygons):
        where = f"polygon {i + 1} of {len(polygons)}"
        if not isinstance(polygon, list):
            raise PolygonError(f"{where} is {json.dumps(polygon)[:_SHOWN]}, not a list; write polygons [[x, y, ...]]")
        try:
            corners = read_polygon(polygon)
        except PolygonError as error:
            raise PolygonError(f"{where} {error}") from None
        parts.append(rasterize(corners, height, width))
    return union(parts)


def _read_counts(segmentation: dict[str, Any], height: int, width: int) -> Runs:
    size, counts = segmentation.get("size"), segmentation.get("counts")
    if not isinstance(size, list) or len(size) != 2 or not isinstance(counts, (list, str)):
        keys = ", ".join(map(repr, segmentation)) or "nothing"
        raise SegmentationError(
            f'run lengths need {{"size": [height, width], "counts": list or text}}; it contains {keys}'
        )
    _check_size("the mask", tuple(size), height, width)
    return COCO.parse(json.dumps(counts) if isinstance(counts, list) else counts, height=height, width=width)


def _check_size(what: str, stated: tuple[object, ...], height: int, width: int) -> None:
    if stated != (height, width):
        shown = "x".join(repr(side)[:_SHOWN] for side in stated)
        turned = "; was the mask drawn on the turned image?" if stated == (width, height) else ""
        raise SizeError(f"{what} has {shown} (height x width) there, but the file has {height}x{width}{turned}")
