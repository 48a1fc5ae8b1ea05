"""Which records each host reads in an epoch of `order: fast`: disjoint, all of them, and nearly equally many.

Whole shards where they can be shared out evenly, since those are read from their beginning to their end. Else every
host takes an equal stretch of the records as they lie, shard after shard.

Who reads what, and how many steps that gives, by the manifest's counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError


class RecordRange(NamedTuple):
    """Records of a shard that follow each other.

    Attributes:
        shard: number of the shard in its split.
        first: position of the first of them in the shard.
        records: how many.
    """

    shard: int
    first: int
    records: int


def ranges_of(counts: Sequence[int], host: int, hosts: int) -> list[RecordRange]:
    """What a host reads in an epoch.

    Args:
        counts: records in each shard of the split.
        host: number of the host, from 0.
        hosts: number of hosts.

    Returns:
        Stretches of at least one record each, by shard.

    Raises:
        ValueError: there is no such host.
    """
    if not 0 <= host < hosts:
        raise ValueError(f"host {host} of {hosts}: count hosts from 0.")
    if _even(counts, hosts):
        return [RecordRange(shard, 0, counts[shard]) for shard in range(host, len(counts), hosts) if counts[shard]]
    total = sum(counts)
    start, stop = total * host // hosts, total * (host + 1) // hosts
    found, begin = [], 0
    for shard, count in enumerate(counts):
        first, last = max(start, begin), min(stop, begin + count)
        if first < last:
            found.append(RecordRange(shard, first - begin, last - first))
        begin += count
    return found


def share_sizes(counts: Sequence[int], hosts: int) -> list[int]:
    """How many records each host reads in an epoch."""
    return [sum(stretch.records for stretch in ranges_of(counts, host, hosts)) for host in range(hosts)]


def padded_steps(counts: Sequence[int], hosts: int, batch_size: int) -> int:
    """Batches with which every host sees all it reads in an epoch, when those with less fill theirs up.

    Args:
        counts: records in each shard of the split.
        hosts: number of hosts.
        batch_size: records in a batch of one host.
    """
    return -(-max(share_sizes(counts, hosts)) // batch_size)


def _even(counts: Sequence[int], hosts: int) -> bool:
    """Whether whole shards give the hosts equal shares, but for the one record by which planned shards differ."""
    if len(counts) % hosts:
        return hosts == 1
    shares = [sum(counts[host::hosts]) for host in range(hosts)]
    return max(shares) - min(shares) <= len(counts) // hosts


def host_ranges(dataset: ImageDataset, split: str, host: int, hosts: int) -> list[RecordRange]:
    """What a host reads in an epoch of `order: fast`.

    Raises:
        DatasetError: there is no such split.
        UsageError: there is no such host.
    """
    try:
        return ranges_of(_counts(dataset, split), host, hosts)
    except ValueError as error:
        raise UsageError(str(error)) from None


def padding_range(dataset: ImageDataset, split: str, share: Sequence[RecordRange]) -> RecordRange | None:
    """The record that fills a host's last batches up: its first one, or the split's where it has none."""
    counts = _counts(dataset, split)
    own = share or [RecordRange(shard, 0, count) for shard, count in enumerate(counts) if count]
    return own[0]._replace(records=1) if own else None


def steps_of(
    dataset: ImageDataset, split: str, batch_size: int, drop_remainder: bool, hosts: int, order: str, pad: bool = False
) -> int:
    """Batches that every host can take from one epoch. See `load.steps_per_epoch`."""
    counts = _counts(dataset, split)
    if pad and order != "exact":
        return padded_steps(counts, hosts, batch_size)
    if order == "exact":
        records, taken = sum(counts), batch_size * hosts
    else:
        records, taken = min(share_sizes(counts, hosts)), batch_size
    return records // taken if drop_remainder else -(-records // taken)


def _counts(dataset: ImageDataset, split: str) -> list[int]:
    return [shard.records for shard in dataset.shards(split)]
