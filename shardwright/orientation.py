"""Exif orientations as turns of masks and boxes: eight ways in which stored pixels may have to be turned for display.

Every turn is a transposition (or none) and then a mirroring of rows, of columns, of both or of none. For a stored
picture `a` the displayed one is, in numpy's words:

| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
|---|---|---|---|---|---|---|---|
| `a` | `a[:, ::-1]` | `a[::-1, ::-1]` | `a[::-1]` | `a.T` | `a.T[:, ::-1]` | `a.T[::-1, ::-1]` | `a.T[::-1]` |

Numbers after Exif 2.32 (tag 0x0112).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shardwright.boxes import XMAX, XMIN, YMAX, YMIN
from shardwright.masks.rle import Runs, column_pieces, normalize, transpose

UPRIGHT = 1
_MIRRORS_COLUMNS = (2, 3, 6, 7)
_MIRRORS_ROWS = (3, 4, 7, 8)
# Turned by a quarter one way is undone by a quarter the other way; all others undo themselves.
_INVERSES = {6: 8, 8: 6}


def transposes(orientation: int) -> bool:
    """Tells whether rows become columns."""
    return orientation >= 5


def displayed_size(height: int, width: int, orientation: int) -> tuple[int, int]:
    """Height and width of the displayed picture of a stored one, and the other way round."""
    return (width, height) if transposes(orientation) else (height, width)


def inverse(orientation: int) -> int:
    """The orientation whose turn undoes that of the given one."""
    return _INVERSES.get(orientation, orientation)


def turn_runs(runs: Runs, height: int, width: int, orientation: int) -> Runs:
    """Turns a mask from the stored to the displayed frame, in run space.

    The way back: `turn_runs(runs, *displayed_size(height, width, orientation), inverse(orientation))`.

    Args:
        runs: int64 (n, 2), in the stored frame.
        height: rows of the stored frame, at least 1.
        width: columns of the stored frame, at least 1.
        orientation: 1-8.

    Returns:
        The runs in the displayed frame, int64 (m, 2); those given for orientation 1.
    """
    if transposes(orientation):
        runs = transpose(runs, height, width)
        height, width = width, height
    columns, rows = orientation in _MIRRORS_COLUMNS, orientation in _MIRRORS_ROWS
    if columns:  # Both: the last position comes first.
        runs = np.stack([height * width - runs[::-1].sum(axis=1), runs[::-1, 1]], axis=1)
    return _mirror_rows(runs, height) if columns != rows else runs


def turn_boxes(lists: Mapping[str, Any], orientation: int) -> dict[str, Any]:
    """Turns the boxes of an image from the stored to the displayed frame.

    Args:
        lists: the features of the image that begin with `boxes.PREFIX`; edges are shares of its width and height.
        orientation: 1-8.

    Returns:
        The same names and lengths.
    """
    x = [np.asarray(lists[name], np.float32) for name in (XMIN, XMAX)]
    y = [np.asarray(lists[name], np.float32) for name in (YMIN, YMAX)]
    if transposes(orientation):
        x, y = y, x
    if orientation in _MIRRORS_COLUMNS:
        x = [1 - edge for edge in reversed(x)]
    if orientation in _MIRRORS_ROWS:
        y = [1 - edge for edge in reversed(y)]
    return {**lists, XMIN: x[0], XMAX: x[1], YMIN: y[0], YMAX: y[1]}


def _mirror_rows(runs: Runs, height: int) -> Runs:
    """Turns every column upside down."""
    column, begin, end = column_pieces(runs, height)
    return normalize(np.stack([column * height + height - end, end - begin], axis=1))
