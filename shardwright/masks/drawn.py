"""Shapes that annotation tools draw, as text, and as masks.

The text of a shape is JSON, `[height, width, shape]`, with the image's size as the tool states it, or null. The writer
of a shard, which knows the image's true size, draws it. Angles are in
degrees, clockwise. A shape is one of:

| shape | what it is |
|---|---|
| `[[x, y, ...], ...]` | polygons in pixels, all of which belong to the object, as in COCO |
| `{"size": [h, w], "counts": ...}` | COCO's run lengths |
| `{"fractions": [[x, y, ...], ...]}` | polygons in fractions of the image's width and height |
| `{"outline": [x, y, ...], "holes": [[x, y, ...], ...]}` | a polygon in pixels without others that are holes in it |
| `{"ellipse": [x, y, rx, ry, angle]}` | the pixels whose center is in an ellipse: center and radii in pixels, degrees |
| `{"rows": [...], "box": [left, top, width, height]}` | counts of pixels off, on, off, ..., row by row within a box |
| `{"brush": [...]}` | the bytes of a brush stroke; see `shardwright.masks.brush` |
| `{"png": "...", "at": [left, top]}` | a PNG in base64, whose pixels other than 0 belong to the object |
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.images.boxes import Box, check_within
from shardwright.masks.brush import brush_runs
from shardwright.masks.coco_segmentation import CocoMasks, SegmentationError
from shardwright.masks.mask_pixels import read_mask
from shardwright.masks.rle import Runs, draw, encode, normalize

# No image has a side this long.
_LARGEST = 2**31


@dataclass(frozen=True)
class DrawnMasks(CocoMasks):
    """Reads texts of shapes; see `shardwright.formats.base.MaskCode`."""

    def size(self, text: str) -> tuple[int, int] | None:
        """Returns height and width as the shape or the tool states them; `None` where neither does."""
        height, width, shape = json.loads(text)
        if isinstance(shape, dict) and "size" in shape:
            return super().size(text)
        return (height, width) if type(height) is int and type(width) is int else None

    def parse(self, text: str, *, height: int, width: int) -> Runs:
        """Draws a shape in the size that it states, which must be the image's."""
        shape = self._stated(text, height, width)
        if not isinstance(shape, dict) or "counts" in shape:
            return super().parse(text, height=height, width=width)
        if "fractions" in shape:
            sides = (width, height)
            scaled = [[number * sides[i % 2] for i, number in enumerate(one)] for one in shape["fractions"]]
            return self._draw(scaled, height, width)
        if "holes" in shape:
            outside = self._draw([shape["outline"]], height, width)
            inside = draw(self._draw(shape["holes"], height, width), height, width)
            return encode(draw(outside, height, width) & (1 - inside))
        if "ellipse" in shape:
            return _ellipse(shape["ellipse"], height, width, clip=self.clip)
        if "brush" in shape:
            return brush_runs(shape["brush"], height, width)
        if "rows" in shape:
            return _rows(shape["rows"], shape["box"], height, width)
        return _png(shape["png"], shape["at"], height, width)


def ellipse_box(x: float, y: float, rx: float, ry: float, degrees: float) -> Box:
    """Returns the box around an ellipse; center and radii in pixels, `degrees` clockwise."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    across, down = math.hypot(rx * cos, ry * sin), math.hypot(rx * sin, ry * cos)
    return Box(x - across, y - down, x + across, y + down)


def _ellipse(numbers: list[float], height: int, width: int, *, clip: bool) -> Runs:
    x, y, rx, ry, degrees = numbers
    if not (0 < rx <= _LARGEST and 0 < ry <= _LARGEST and abs(x) <= _LARGEST and abs(y) <= _LARGEST):
        raise SegmentationError(f"the ellipse at {x:g}, {y:g} with the radii {rx:g} and {ry:g} has no area in an image")
    if not clip:
        check_within("the ellipse", ellipse_box(*numbers), height=height, width=width)
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    across = np.arange(width) + 0.5 - x
    # A line down a column meets the ellipse at: square * down**2 + 2 * half * down + rest = 0.
    square = (sin / rx) ** 2 + (cos / ry) ** 2
    half = across * cos * sin * (1 / rx**2 - 1 / ry**2)
    rest = across**2 * ((cos / rx) ** 2 + (sin / ry) ** 2) - 1
    inside = half**2 - square * rest
    reach = np.sqrt(np.maximum(inside, 0)) / square
    middle = y - half / square
    # The first and the one after the last row whose center is inside.
    first = np.clip(np.ceil(middle - reach - 0.5), 0, height).astype(np.int64)
    last = np.clip(np.floor(middle + reach - 0.5) + 1, 0, height).astype(np.int64)
    drawn = np.flatnonzero((inside > 0) & (last > first))
    return normalize(np.stack([drawn * height + first[drawn], last[drawn] - first[drawn]], axis=1))


def _rows(counts: list[int], box: list[int], height: int, width: int) -> Runs:
    left, top, columns, rows = box
    _check_within(left, top, rows, columns, height, width)
    total = sum(counts)
    if any(count < 0 for count in counts) or total != rows * columns:
        raise SegmentationError(f"the run lengths hold {total} pixels; its box {rows}x{columns} has {rows * columns}")
    values = np.zeros(len(counts), np.uint8)
    values[1::2] = 1
    return _placed(np.repeat(values, counts).reshape(rows, columns), left, top, height, width)


def _png(text: str, at: list[int], height: int, width: int) -> Runs:
    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise SegmentationError("the mask is not a PNG in base64") from None
    mask = read_mask(data, max_pixels=height * width)
    if mask.colored:
        raise SegmentationError("the mask is a PNG of colors; save it as gray")
    values = mask.values
    _check_within(at[0], at[1], values.shape[0], values.shape[1], height, width)
    return _placed(values != 0, at[0], at[1], height, width)


def _check_within(left: int, top: int, rows: int, columns: int, height: int, width: int) -> None:
    if left < 0 or top < 0 or rows < 1 or columns < 1 or left + columns > width or top + rows > height:
        raise SegmentationError(
            f"the mask of {rows}x{columns} (height x width) at column {left}, row {top} is not within the image, "
            f"{height}x{width}"
        )


def _placed(part: npt.NDArray[Any], left: int, top: int, height: int, width: int) -> Runs:
    """Returns the runs of a part of an image."""
    whole = np.zeros((height, part.shape[1]), np.uint8)
    whole[top : top + part.shape[0]] = part
    return encode(whole) + np.array([left * height, 0], np.int64)
