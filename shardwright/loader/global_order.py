"""One global order of a split's records, from a seed and an epoch number: the order that `order: exact` reads.

An epoch is made in two steps. The shards are permuted and concatenated; then every window of consecutive records is
permuted in itself. So a record is near the place at which it is read, and the record at a place follows by arithmetic.
No buffer has to be filled or saved, any step can be computed alone, and the number of hosts makes no difference. A step
is `batch_size` consecutive places, of which each host takes an equal slice.

Permutations come from sorting hashes (SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", 2014), not from a library's generator, whose stream another version may change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from shardwright.dataset.random_access import Integers, RecordIndices

_OF_SHARDS, _OF_WINDOWS = 1, 2
_ODD = 0x9E3779B97F4A7C15
_RANGE = 2**64


@dataclass(frozen=True)
class GlobalOrder:
    """The order of all epochs of a split.

    Attributes:
        counts: records in each shard.
        seed: another seed, another order; `None` keeps the order of the shards and records.
        window: how many consecutive records are permuted among each other.

    Raises:
        ValueError: there are no records, or the window is empty.
    """

    counts: tuple[int, ...]
    seed: int | None
    window: int = 4096

    def __post_init__(self) -> None:
        if self.window < 1 or any(count < 0 for count in self.counts) or self.records < 1:
            raise ValueError(f"no order of {self.records} records in windows of {self.window}")

    @property
    def records(self) -> int:
        """Records in an epoch."""
        return sum(self.counts)

    def at(self, places: Integers) -> RecordIndices:
        """Returns the records at places of the endless sequence of epochs.

        Args:
            places: int64 [n], from 0; place `e * records + p` is place p of epoch e.

        Returns:
            The records, in the order of `places`.
        """
        epochs, within = np.divmod(np.asarray(places, np.int64), self.records)
        shard, record = np.empty_like(within), np.empty_like(within)
        for epoch in np.unique(epochs).tolist():
            mine = epochs == epoch
            shard[mine], record[mine] = self._in_epoch(epoch, within[mine])
        return RecordIndices(shard, record)

    def _in_epoch(self, epoch: int, places: Integers) -> RecordIndices:
        counts = np.array(self.counts, np.int64)
        order = _permutation(len(counts), self.seed, (_OF_SHARDS, epoch, 0))
        ends = np.cumsum(counts[order])
        windows, within = np.divmod(places, self.window)
        moved = np.empty_like(places)
        for window in np.unique(windows).tolist():
            mine = windows == window
            first = window * self.window
            size = min(self.window, self.records - first)
            moved[mine] = first + _permutation(size, self.seed, (_OF_WINDOWS, epoch, window))[within[mine]]
        place = np.searchsorted(ends, moved, side="right")
        shard = order[place]
        return RecordIndices(shard, moved - (ends[place] - counts[shard]))


@dataclass(frozen=True)
class StepPlan:
    """Batches of a global order, shared by hosts.

    Attributes:
        order: the order.
        batch_size: records in the batch of all hosts together.

    Raises:
        ValueError: a batch has no record.
    """

    order: GlobalOrder
    batch_size: int

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"a batch of {self.batch_size} records")

    @cached_property
    def per_epoch(self) -> int:
        """Steps that see every record of one epoch; the last one may be padded."""
        return -(-self.order.records // self.batch_size)

    def training(self, step: int, host: int = 0, hosts: int = 1) -> RecordIndices:
        """Returns the records of a host at a step of a training, whose steps run across the ends of epochs.

        Args:
            step: from 0.
            host: number of this host, from 0.
            hosts: number of hosts; may be another one at another step.

        Raises:
            ValueError: the hosts cannot share a batch equally, or there is no such host.
        """
        return self.order.at(self._places(step, host, hosts))

    def evaluation(self, step: int, host: int = 0, hosts: int = 1) -> tuple[RecordIndices, npt.NDArray[np.bool_]]:
        """Returns the records of a host at a step of one pass over the first epoch.

        Returns:
            The records, and which of them count: copies of the last record, which fill the last batch up, do not.

        Raises:
            ValueError: see `training`.
        """
        places = self._places(step, host, hosts)
        return self.order.at(np.minimum(places, self.order.records - 1)), places < self.order.records

    def _places(self, step: int, host: int, hosts: int) -> Integers:
        if hosts < 1 or self.batch_size % hosts:
            raise ValueError(
                f"a batch of {self.batch_size} cannot be shared equally by {hosts} hosts; make it a multiple of them"
            )
        if not 0 <= host < hosts or step < 0:
            raise ValueError(f"no host {host} of {hosts} at step {step}")
        share = self.batch_size // hosts
        first = step * self.batch_size + host * share
        return np.arange(first, first + share, dtype=np.int64)


@lru_cache(maxsize=8)
def _permutation(size: int, seed: int | None, purpose: tuple[int, int, int]) -> Integers:
    if seed is None:
        return np.arange(size, dtype=np.int64)
    state = seed % _RANGE
    for part in purpose:
        state = int(_mixed(np.array([(state + _ODD * (part + 1)) % _RANGE], np.uint64))[0])
    # Multiplying an array of uint64 wraps around, as the hash needs.
    hashes = _mixed(np.uint64(state) + np.arange(1, size + 1, dtype=np.uint64) * np.uint64(_ODD))
    return np.argsort(hashes, kind="stable").astype(np.int64)


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Applies the finalizer of SplitMix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
