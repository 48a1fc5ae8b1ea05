"""Ranges of records, the unit of parallel work: how shards are cut into them, and how one is written.

There are many more ranges than processors, whatever the shards. A range is about a twentieth of a second of one
processor, by a rough estimate of what its records take. The cut depends on the plan alone, so a run that goes on after
a kill finds the parts of another one, with any number of workers.

The process that writes the last range of a shard makes the shard of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.dataset.shard_names import ShardNames
from shardwright.running.processes import usable_cores
from shardwright.staging.commit import DatasetPlan
from shardwright.staging.staging import PlannedShard, RecordResult, Staging
from shardwright.storage import is_remote

# Nanoseconds of one processor.
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
Bounds = tuple[int, ...]


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


@dataclass(frozen=True)
class Cut:
    """Shards that are cut into ranges.

    Attributes:
        bounds: of the ranges of each shard.
        sizes: bytes of the images of each shard.
        costs: nanoseconds of one processor that each takes, roughly.
    """

    bounds: tuple[Bounds, ...] = ()
    sizes: tuple[int, ...] = ()
    costs: tuple[int, ...] = ()

    @staticmethod
    def of(
        shards: Iterable[npt.NDArray[np.int64]], sizes: npt.NDArray[np.int64], cost: npt.NDArray[np.int64], root: str
    ) -> Cut:
        """Cuts shards.

        Args:
            shards: positions of the images of each.
            sizes: bytes of every image, int64 (n,).
            cost: nanoseconds of every image, int64 (n,).
            root: folder or URL of the images.
        """
        most = _RANGE_OF_BUCKET if is_remote(root) else _RANGE
        bounds, shard_sizes, costs = [], [], []
        for positions in shards:
            ends, before = np.cumsum(cost[positions]), 0
            cuts = [0]
            while cuts[-1] < len(positions):
                end = int(np.searchsorted(ends, before + most, "right"))
                cuts.append(min(max(end, cuts[-1] + 1), cuts[-1] + _MOST_IMAGES, len(positions)))
                before = int(ends[cuts[-1] - 1])
            bounds.append(tuple(cuts) if len(cuts) > 1 else (0, 0))
            shard_sizes.append(int(sizes[positions].sum()))
            costs.append(before)
        return Cut(tuple(bounds), tuple(shard_sizes), tuple(costs))

    def missing(self, shards: tuple[PlannedShard, ...], staging: Staging, processes: int) -> list[Range]:
        """Returns the ranges that are still to be written, in the order in which to begin them.

        Args:
            shards: every shard of the plan.
            staging: where finished shards and parts are.
            processes: those that write at the same time.
        """
        missing = [number for number, result in enumerate(staging.results(shards)) if result is None]
        small = min(_SMALL, sum(self.costs[number] for number in missing) // max(1, processes) // _SMALL_PART)
        ranges = []
        # The longest first, so that the last ones to be written are short and no process waits long for another.
        for number in sorted(missing, key=lambda number: -self.costs[number]):
            cuts, size, cost = self.bounds[number], self.sizes[number], self.costs[number]
            parts = staging.missing_parts(shards[number], cuts)
            begun = len(parts) < len(cuts) - 1
            if len(cuts) <= 2 or (not begun and (processes == 1 or cost <= small) and cost <= _SMALL):
                ranges.append(Range(number, -1, cuts, size))
            else:
                # Where no part is missing, the last one is all that remains to be done with: the shard is made of them.
                todo = parts or [len(cuts) - 2]
                ranges += [Range(number, part, cuts, size * (cuts[part + 1] - cuts[part]) // cuts[-1]) for part in todo]
        return ranges


def processes_for(cost: int, workers: int | None) -> int:
    """Returns how many processes are used for work of so many nanoseconds where `workers` are asked for."""
    if workers is None:
        return usable_cores() if cost > _WORTH_PROCESSES else 1
    return workers


def write_range(
    part: Range,
    plan: DatasetPlan,
    staging: Staging,
    names: ShardNames,
    records: Callable[[Range], Iterable[RecordResult]],
    inputs: str = "",
) -> Range:
    """Writes a range of a shard into staging, and the shard if that was its last range; not what is there already.

    Args:
        part: the range, or all of a shard.
        plan: the dataset.
        staging: its staging folder.
        names: names of its shards.
        records: makes the results of a range, in the order of the records.
        inputs: see `Staging.write_shard`.

    Returns:
        The range.
    """
    planned = plan.shards[part.shard]
    facts = partial(plan.facts, planned)

    def write(number: int) -> None:
        ends = part.bounds[number], part.bounds[number + 1]
        staging.write_part(planned, *ends, records(part._replace(number=number)), facts())

    if part.number < 0:
        staging.write_shard(planned, records(part), names, facts=facts(), inputs=inputs)
    elif staging.result(planned) is None:
        write(part.number)
        while (damaged := staging.join_parts(planned, part.bounds, names, facts(), inputs)) is not None:
            write(damaged)
    return part
