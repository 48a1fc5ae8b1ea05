"""Connected regions of a mask, in run space: pixels that touch, also at a corner, are one region.

Runs are cut into pieces of one column; a piece is joined with those of the next column that it overlaps or touches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.images.geometry import IntArray
from shardwright.masks.rle import Runs, column_pieces, encode, normalize, run_positions
from shardwright.union_find import UnionFind

# In a target of masks, 0 or 1 otherwise: the pixel is not to be counted. All classes of a pixel have it or none.
IGNORE_VALUE = 255


class Regions(NamedTuple):
    """The regions of a mask, numbered by their first pixel, column by column.

    Attributes:
        column: column of every piece, int64 [n].
        begin: its first row.
        end: the row after its last one.
        region: number of its region, from 0.
        areas: pixels of every region, int64 [m].
    """

    column: IntArray
    begin: IntArray
    end: IntArray
    region: IntArray
    areas: IntArray


def find_regions(runs: Runs, height: int, *, corners: bool = True) -> Regions:
    """Finds the regions of a mask.

    Args:
        runs: int64 (n, 2), sorted and disjoint.
        height: rows of the mask, at least 1.
        corners: whether pixels that touch at a corner belong to one region, too, and not only those that share an edge.
    """
    column, begin, end = column_pieces(runs, height)
    # Keys of different columns stay apart, also of pieces that touch at a corner.
    stride = height + 2
    first, after = column * stride + begin, column * stride + end
    low = np.searchsorted(after, first + stride, side="left" if corners else "right")
    counts = np.maximum(np.searchsorted(first, after + stride, side="right" if corners else "left") - low, 0)
    left = np.repeat(np.arange(len(column)), counts)
    right = np.repeat(low, counts) + run_positions(counts)
    groups = UnionFind(len(column))
    groups.join(left, right)
    _, region = np.unique(groups.firsts(), return_inverse=True)
    areas = np.bincount(region, weights=end - begin).astype(np.int64)
    return Regions(column, begin, end, region.astype(np.int64), areas)


def remove_small(runs: Runs, height: int, min_area: int) -> Runs:
    """Removes the regions with fewer than `min_area` pixels out of a mask."""
    if min_area <= 1 or not len(runs):
        return runs
    found = find_regions(runs, height)
    kept = found.areas[found.region] >= min_area
    starts = found.column[kept] * height + found.begin[kept]
    return normalize(np.stack([starts, (found.end - found.begin)[kept]], axis=1))


def areas_and_hits(predicted: npt.NDArray[Any], *others: npt.NDArray[Any]) -> list[IntArray]:
    """Counts the pixels of every predicted region, and how many of them are in other masks.

    Args:
        predicted: bool [H, W].
        others: bool [H, W] each.

    Returns:
        int64 [m] of the areas, then of every other mask, in the order of `find_regions`.
    """
    height = predicted.shape[0]
    found = find_regions(encode(predicted), height)
    counts = [found.areas]
    for mask in others:
        before = np.concatenate([[0], np.cumsum(mask.reshape(-1, order="F"), dtype=np.int64)])
        hits = before[found.column * height + found.end] - before[found.column * height + found.begin]
        counts.append(np.bincount(found.region, weights=hits, minlength=len(found.areas)).astype(np.int64))
    return counts
