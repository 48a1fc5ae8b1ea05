"""Cuts shards into ranges of records, the unit of parallel work: many more than processors, whatever the shards.

A range is about a twentieth of a second of one processor, by a rough estimate of what its images take. The cut depends
on the plan alone, so a run that goes on after a kill finds the parts of another one, with any number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config import ImagesConfig
from shardwright.dataset.stored_image import may_decode
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import is_remote

Bounds = tuple[int, ...]

# Nanoseconds of one processor: for an image with its record, and for a byte that is read, hashed, and decoded.
_OF_IMAGE, _OF_BYTE, _OF_DECODING = 200_000, 2, 25
_RANGE = 50_000_000
# The first request to a bucket takes as long as reading many images, and is made for each range.
_RANGE_OF_BUCKET = 16 * _RANGE
# A range is held in memory, with its annotations.
_MOST_IMAGES = 512
# A shard that takes so much less than all work of a process is written at once, which spares copying it.
_SMALL_PART = 16
_SMALL = 400 * _RANGE
# Starting processes takes longer than this work.
_WORTH_PROCESSES = 4 * _RANGE


class Range(NamedTuple):
    """Consecutive images of a shard that one call writes.

    Attributes:
        shard: position of the shard in the plan.
        number: position in `bounds`; -1 for the whole shard.
        bounds: where the ranges of the shard begin, and where the last one ends.
        size: bytes of its images, for the progress.
    """

    shard: int
    number: int
    bounds: Bounds
    size: int = 0

    @property
    def images(self) -> int:
        """Number of its images."""
        begin, end = self.ends
        return end - begin

    @property
    def ends(self) -> tuple[int, int]:
        """Its first image, and the image after its last, in the shard."""
        if self.number < 0:
            return 0, self.bounds[-1]
        return self.bounds[self.number], self.bounds[self.number + 1]


def cost_of(options: ImagesConfig, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns about how many nanoseconds of one processor each image takes.

    Args:
        options: `images`.
        sizes: bytes of each image, int64 (n,).
    """
    decoded = may_decode(options)
    return _OF_IMAGE + sizes * (_OF_DECODING if decoded else _OF_BYTE)


def worth_processes(cost: int) -> bool:
    """Returns whether work of so many nanoseconds takes longer than to start processes for it."""
    return cost > _WORTH_PROCESSES


def cut_ranges(
    shards: Mapping[PlannedShard, npt.NDArray[np.int64]], cost: npt.NDArray[np.int64], root: str
) -> list[Bounds]:
    """Cuts shards into ranges.

    Args:
        shards: shard -> positions of its images.
        cost: of each image; see `cost_of`.
        root: folder or URL of the images.
    """
    most = _RANGE_OF_BUCKET if is_remote(root) else _RANGE
    bounds = []
    for positions in shards.values():
        ends, before = np.cumsum(cost[positions]), 0
        cuts = [0]
        while cuts[-1] < len(positions):
            end = int(np.searchsorted(ends, before + most, "right"))
            cuts.append(min(max(end, cuts[-1] + 1), cuts[-1] + _MOST_IMAGES, len(positions)))
            before = int(ends[cuts[-1] - 1])
        bounds.append(tuple(cuts) if len(cuts) > 1 else (0, 0))
    return bounds


def missing_ranges(
    shards: Sequence[PlannedShard],
    bounds: Sequence[Bounds],
    shard_bytes: Sequence[int],
    costs: Sequence[int],
    staging: Staging,
    processes: int,
) -> list[Range]:
    """Returns the ranges that are still to be written, in the order in which to begin them.

    Args:
        shards: every shard of the plan.
        bounds: of the ranges of each.
        shard_bytes: bytes of the images of each.
        costs: nanoseconds of each.
        staging: where finished shards and parts are.
        processes: those that write at the same time.
    """
    missing = [number for number, result in enumerate(staging.results(shards)) if result is None]
    small = min(_SMALL, sum(costs[number] for number in missing) // max(1, processes) // _SMALL_PART)
    ranges = []
    # The longest first, so that the last ones to be written are short and no process waits long for another.
    for number in sorted(missing, key=lambda number: -costs[number]):
        cuts, size = bounds[number], shard_bytes[number]
        parts = staging.missing_parts(shards[number], cuts)
        begun = len(parts) < len(cuts) - 1
        if len(cuts) <= 2 or (not begun and (processes == 1 or costs[number] <= small) and costs[number] <= _SMALL):
            ranges.append(Range(number, -1, cuts, size))
        else:
            # Where no part is missing, the last one is all that remains to be done with: the shard is made of them.
            todo = parts or [len(cuts) - 2]
            ranges += [Range(number, part, cuts, size * (cuts[part + 1] - cuts[part]) // cuts[-1]) for part in todo]
    return ranges
