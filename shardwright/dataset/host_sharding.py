"""The records that each host reads in an epoch of `order: fast`: disjoint, all of them, and nearly equally many.

Hosts read whole shards where these can be divided evenly, since a shard is then read from its beginning to its end.
Otherwise every host reads an equal range of the records in the order of the shards. All follows from the manifest's
counts, as the number of batches in an epoch does: neither needs the records or TensorFlow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from shardwright.config.loader import check_epoch
from shardwright.dataset.reader import ImageDataset


class RecordRange(NamedTuple):
    """Consecutive records of a shard.

    Attributes:
        shard: number of the shard in its split.
        first: position of the first of them in the shard.
        records: how many.
    """

    shard: int
    first: int
    records: int


def host_ranges(counts: Sequence[int], host: int, hosts: int) -> list[RecordRange]:
    """Returns the records that a host reads in an epoch.

    Args:
        counts: records in each shard of the split.
        host: number of the host, from 0.
        hosts: number of hosts.

    Returns:
        Ranges of at least one record each, by shard.

    Raises:
        ValueError: there is no such host.
    """
    if not 0 <= host < hosts:
        raise ValueError(f"host {host} of {hosts}: count hosts from 0.")
    # Whole shards give equal shares, apart from the one record by which planned shards differ.
    shares = [sum(counts[number::hosts]) for number in range(hosts)]
    if not len(counts) % hosts and max(shares) - min(shares) <= len(counts) // hosts:
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
    """Returns how many records each host reads in an epoch."""
    return [sum(part.records for part in host_ranges(counts, host, hosts)) for host in range(hosts)]


def padded_steps(counts: Sequence[int], hosts: int, batch_size: int) -> int:
    """Returns the batches of every host in an epoch when hosts with fewer records fill theirs up.

    Args:
        counts: records in each shard of the split.
        hosts: number of hosts.
        batch_size: records in a batch of one host.
    """
    return -(-max(share_sizes(counts, hosts)) // batch_size)


def padding_range(counts: Sequence[int], ranges: Sequence[RecordRange]) -> RecordRange | None:
    """Returns the record that fills a host's last batches up: its first one, or the split's if it has none."""
    own = ranges or [RecordRange(shard, 0, count) for shard, count in enumerate(counts) if count]
    return own[0]._replace(records=1) if own else None


def shards_of_host(counts: Sequence[int], host: int, hosts: int, *, pad: bool) -> list[int]:
    """Returns the numbers of the shards that a host reads, including the one that fills its batches up."""
    ranges = host_ranges(counts, host, hosts)
    filler = padding_range(counts, ranges) if pad else None
    return sorted({part.shard for part in (*ranges, *([filler] if filler else []))})


def steps_per_epoch(
    dataset_dir: str | os.PathLike[str],
    split: str,
    batch_size: int,
    *,
    drop_remainder: bool = False,
    hosts: int = 1,
    order: str = "fast",
    pad: bool = False,
) -> int:
    """Returns the batches that every host can take from one epoch, by the manifest's counts.

    Args:
        dataset_dir: folder of the dataset.
        split: name of the split.
        batch_size: images in a batch of one host.
        drop_remainder: do not count a last batch that is not full.
        hosts: number of hosts; with `fast` the one with the fewest records decides.
        order: `fast` or `exact`.
        pad: of `load`; the host with the most records then decides.

    Raises:
        DatasetError: there is no such dataset or split.
        UsageError: an argument has another type or is out of range, or `load` refuses the combination.
    """
    check_epoch(batch_size, hosts=hosts, order=order, drop_remainder=drop_remainder, pad=pad)
    counts = [shard.records for shard in ImageDataset.open(dataset_dir).shards(split)]
    if pad and order != "exact":
        return padded_steps(counts, hosts, batch_size)
    if order == "exact":
        records, taken = sum(counts), batch_size * hosts
    else:
        records, taken = min(share_sizes(counts, hosts)), batch_size
    return records // taken if drop_remainder else -(-records // taken)
