"""Computes the number of shards of a split, and which records go into which; pure arithmetic.

Shards of 100-200 MB read well from disk and bucket alike (TFX and TensorFlow advise it); a split has equally many
records in each, give or take one, so that hosts that share the shards have equal work. A host reads whole shards and
wants ten or more of them (TensorFlow's advice for TPUs), but none of under 10 MB.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from shardwright.config.shards import ShardsConfig
from shardwright.errors import ConfigError

# A target of 150 MB then means 100 to 200 MB: on average a shard has at most 4/3 of the target. There are as few shards
# as that allows, so two or more of them have at least 2/3 of it each.
_MOST_NUMERATOR, _MOST_DENOMINATOR = 4, 3
_SHARDS_PER_HOST = 10
_LEAST_SIZE = 10_000_000
# Each shard is several files, also an empty one; a split of few records is not read by more hosts than this.
_MOST_EMPTY = 10_000


def shards_of(options: ShardsConfig, records: int, total_bytes: int) -> int:
    """Returns the number of shards of a split by the options `shards`; see `shard_count`."""
    return shard_count(
        records,
        total_bytes,
        target_size=options.target_size,
        count=options.count,
        records_per_shard=options.records,
        hosts=options.hosts,
    )


def shard_count(
    records: int,
    total_bytes: int,
    *,
    target_size: int | None = None,
    count: int | None = None,
    records_per_shard: int | None = None,
    hosts: int | None = None,
) -> int:
    """Returns the number of shards of a split.

    Args:
        records: records in the split.
        total_bytes: their size together.
        target_size: target bytes of a shard; on average shards have 2/3 to 4/3 of it, a single one may have less. Never
            more shards than records.
        count: this very number; shards beyond the records are empty.
        records_per_shard: at most so many records in one.
        hosts: machines that will share the shards; for `target_size`. At least ten shards each, a multiple of their
            number, as far as shards of 10 MB or more allow.

    Returns:
        At least 1: a split without records has one empty shard, since TFX wants a file in each.

    Raises:
        ValueError: not exactly one of the three options is given, or `hosts` without `target_size`.
        ConfigError: `count` is more than 10,000 and more than the records.
    """
    if sum(option is not None for option in (target_size, count, records_per_shard)) != 1:
        raise ValueError("give exactly one of target_size, count, records_per_shard")
    if hosts is not None and target_size is None:
        raise ValueError("hosts is for target_size")
    if count is not None:
        if count > max(records, _MOST_EMPTY):
            raise ConfigError(
                "shards.count",
                f"{count:,} shards for {records:,} records are mostly empty",
                f"Give at most {max(records, _MOST_EMPTY):,}, or shards.records instead.",
            )
        return count
    if records_per_shard is not None:
        return max(1, -(-records // records_per_shard))
    assert target_size is not None
    fewest = -(-total_bytes * _MOST_DENOMINATOR // (target_size * _MOST_NUMERATOR))
    return max(1, min(records, fewest if hosts is None else _for_hosts(fewest, total_bytes, hosts)))


def _for_hosts(fewest: int, total_bytes: int, hosts: int) -> int:
    most = max(fewest, total_bytes // _LEAST_SIZE)
    wanted = max(fewest, _SHARDS_PER_HOST * hosts)
    if wanted > most:
        wanted = most
    equal = -(-wanted // hosts) * hosts
    if equal > most:
        equal -= hosts
    return equal if equal >= fewest else wanted


def shard_bounds(records: int, count: int) -> list[int]:
    """Cuts records into shards of equal counts, give or take one.

    Args:
        records: records in the split.
        count: number of shards.

    Returns:
        `count + 1` positions: shard i has records `bounds[i]` to `bounds[i + 1]`.
    """
    return [records * i // count for i in range(count + 1)]


def deal_classes(classes: Sequence[Hashable], count: int) -> list[npt.NDArray[np.int64]]:
    """Distributes records so that every shard has every class equally often, give or take one.

    Class after class is dealt like cards, each where the one before ended, so that shards are equally full too.

    Args:
        classes: class of every record of the split, in the order of the records; `None` where it has none.
        count: number of shards.

    Returns:
        Shard -> positions of its records in `classes`, ascending: order within a shard is that of the split.
    """
    dealt: dict[Hashable, list[int]] = {}
    for position, name in enumerate(classes):
        dealt.setdefault(name, []).append(position)
    cards = np.array([position for group in dealt.values() for position in group], dtype=np.int64)
    return [np.sort(cards[shard::count]) for shard in range(count)]
