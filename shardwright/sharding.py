"""How many shards a split gets, and which records go into which: pure arithmetic.

Shards of 100-200 MB read well from disk and bucket alike (TFX and TensorFlow advise it); a split has equally many
records in each, give or take one, so that hosts that share the shards have equal work.
"""

from __future__ import annotations

# A target of 150 MB then means 100 to 200 MB: on average a shard holds at most 4/3 of the target, and as shards are
# as few as that allows, two or more of them hold at least 2/3 of it.
_MOST_NUMERATOR, _MOST_DENOMINATOR = 4, 3


def shard_count(
    records: int,
    total_bytes: int,
    *,
    target_size: int | None = None,
    count: int | None = None,
    records_per_shard: int | None = None,
) -> int:
    """Number of shards of a split.

    Args:
        records: records in the split.
        total_bytes: their size together.
        target_size: bytes a shard shall have; on average shards have 2/3 to 4/3 of it, one alone may have less. Never
            more shards than records.
        count: this very number, whatever the data; shards beyond the records are empty.
        records_per_shard: at most so many records in one.

    Returns:
        At least 1: a split without records has one empty shard, since TFX wants a file in each.

    Raises:
        ValueError: not exactly one of the three options is given.
    """
    if sum(option is not None for option in (target_size, count, records_per_shard)) != 1:
        raise ValueError("give exactly one of target_size, count, records_per_shard")
    if count is not None:
        return count
    if records_per_shard is not None:
        return max(1, -(-records // records_per_shard))
    assert target_size is not None
    fewest = -(-total_bytes * _MOST_DENOMINATOR // (target_size * _MOST_NUMERATOR))
    return max(1, min(records, fewest))


def shard_bounds(records: int, count: int) -> list[int]:
    """Cuts records into shards of equal counts, give or take one.

    Args:
        records: records in the split.
        count: number of shards.

    Returns:
        `count + 1` positions: shard i holds records `bounds[i]` to `bounds[i + 1]`.
    """
    return [records * i // count for i in range(count + 1)]
