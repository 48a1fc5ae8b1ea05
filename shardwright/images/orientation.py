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

from shardwright.images.boxes import XMAX, XMIN, YMAX, YMIN

UPRIGHT = 1
MIRRORS_COLUMNS = (2, 3, 6, 7)
MIRRORS_ROWS = (3, 4, 7, 8)
# Turned by a quarter one way is undone by a quarter the other way; all others undo themselves.
_INVERSES = {6: 8, 8: 6}


def transposes(orientation: int) -> bool:
    """Returns whether rows become columns."""
    return orientation >= 5


def displayed_size(height: int, width: int, orientation: int) -> tuple[int, int]:
    """Returns height and width of the displayed picture from those of the stored one, or the reverse."""
    return (width, height) if transposes(orientation) else (height, width)


def inverse(orientation: int) -> int:
    """Returns the orientation whose turn undoes that of the given one."""
    return _INVERSES.get(orientation, orientation)


def orient_boxes(lists: Mapping[str, Any], orientation: int) -> dict[str, Any]:
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
    if orientation in MIRRORS_COLUMNS:
        x = [1 - edge for edge in reversed(x)]
    if orientation in MIRRORS_ROWS:
        y = [1 - edge for edge in reversed(y)]
    return {**lists, XMIN: x[0], XMAX: x[1], YMIN: y[0], YMAX: y[1]}
