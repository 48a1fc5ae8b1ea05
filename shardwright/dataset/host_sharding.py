"""The records that each host reads in an epoch of `order: fast`: disjoint, all of them, and nearly equally many.

Hosts read whole shards where these can be divided evenly, since a shard is then read from its beginning to its end.
Otherwise every host reads an equal range of the records in the order of the shards. All follows from the manifest's
counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


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


def _even(counts: Sequence[int], hosts: int) -> bool:
    """Returns whether whole shards give equal shares, apart from the one record by which planned shards differ."""
    if len(counts) % hosts:
        return hosts == 1
    shares = [sum(counts[host::hosts]) for host in range(hosts)]
    return max(shares) - min(shares) <= len(counts) // hosts


def padding_range(counts: Sequence[int], ranges: Sequence[RecordRange]) -> RecordRange | None:
    """Returns the record that fills a host's last batches up: its first one, or the split's if it has none."""
    own = ranges or [RecordRange(shard, 0, count) for shard, count in enumerate(counts) if count]
    return own[0]._replace(records=1) if own else None


def shards_of_host(counts: Sequence[int], host: int, hosts: int, *, pad: bool) -> list[int]:
    """Returns the numbers of the shards that a host reads, including the one that fills its batches up."""
    ranges = host_ranges(counts, host, hosts)
    filler = padding_range(counts, ranges) if pad else None
    return sorted({part.shard for part in (*ranges, *([filler] if filler else []))})
