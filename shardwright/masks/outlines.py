"""Masks as polygons along the borders of their pixels: drawn by either rule of `polygons`, they give the mask back.

Every part whose pixels share edges is one polygon. A hole is cut out by a link: the polygon goes from its first corner
to the hole, around it, and back on the same line. Both rules count a line that is passed twice as none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shardwright.masks.regions import find_regions
from shardwright.masks.rle import Runs, draw

# Right, down, left, up: with the mask on the right-hand side, in coordinates whose y goes down.
_STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
# A right turn comes first, so that pixels that only touch at a corner stay apart.
_TURNS = (1, 0, 3)

Polygon = npt.NDArray[np.int64]


def outlines(runs: Runs, height: int, width: int) -> list[Polygon]:
    """Returns the outlines of a mask.

    Args:
        runs: the mask.
        height: rows of the image.
        width: columns of the image.

    Returns:
        For each part its corners, int64 (n, 2) of (x, y), n at least 4. The last is joined to the first.
    """
    found = find_regions(runs, height, corners=False)
    begins = found.column * height + found.begin
    outer: dict[int, Polygon] = {}
    holes: dict[int, list[Polygon]] = {}
    for corners in _loops(runs, height, width):
        # A pixel of the mask next to the first line.
        (x, y), (to_x, to_y) = corners[:2].tolist()
        if y == to_y:
            x, y = (x, y) if to_x > x else (x - 1, y - 1)
        else:
            x, y = (x - 1, y) if to_y > y else (x, y - 1)
        part = int(found.region[np.searchsorted(begins, x * height + y, side="right") - 1])
        (here, down), (there, below) = corners.T, np.roll(corners, -1, axis=0).T
        # Twice the area is negative for the outline of a hole.
        if (here * below - there * down).sum() > 0:
            outer[part] = corners
        else:
            holes.setdefault(part, []).append(corners)
    linked = []
    for part, corners in sorted(outer.items()):
        links = [line for hole in holes.get(part, []) for line in (corners[:1], hole, hole[:1])]
        linked.append(np.concatenate([corners, *links]))
    return linked


def _loops(runs: Runs, height: int, width: int) -> list[Polygon]:
    """Returns the closed lines between the pixels of a mask and others, without the points between their corners."""
    mask = np.zeros((height + 2, width + 2), bool)
    mask[1:-1, 1:-1] = draw(runs, height, width) > 0
    inside, stride = mask[1:-1, 1:-1], width + 1
    # Neighbor of a pixel, and where its edge on that side begins, relative to the pixel: above, right, below, left.
    sides = (
        (mask[:-2, 1:-1], 0),
        (mask[1:-1, 2:], 1),
        (mask[2:, 1:-1], stride + 1),
        (mask[1:-1, :-2], stride),
    )
    starts = []
    for direction, (neighbor, offset) in enumerate(sides):
        row, column = np.nonzero(inside & ~neighbor)
        starts.append((row * stride + column + offset) * len(_STEPS) + direction)
    edges = np.sort(np.concatenate(starts)).tolist()
    there, seen, found = set(edges), set(), []
    for first in edges:
        if first in seen:
            continue
        corners, edge = [], first
        while edge not in seen:
            seen.add(edge)
            point, direction = divmod(edge, len(_STEPS))
            across, down = _STEPS[direction]
            point += across + down * stride
            turns = ((point * len(_STEPS) + (direction + turn) % len(_STEPS)) for turn in _TURNS)
            edge = next(one for one in turns if one in there)
            if edge % len(_STEPS) != direction:
                corners.append((point % stride, point // stride))
        found.append(np.array(corners, np.int64))
    return found
