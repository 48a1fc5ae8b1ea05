"""`order: fast`: every host interleaves shards of its own."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import tensorflow as tf

from shardwright.dataset import Dataset, LocatedShard
from shardwright.errors import UsageError

Tensor = Any

# Fixed, not tuned: the order of the records depends on it, and it must be the same on every machine.
_SHARDS_AT_ONCE = 16
_READ_BUFFER = 1 << 20


def host_shards(dataset: Dataset, split: str, host: int, hosts: int) -> list[LocatedShard]:
    """The shards that a host reads: `host`, `host + hosts`, ...

    Raises:
        DatasetError: there is no such split.
        UsageError: there is no such host, or nothing for it to read.
    """
    shards = dataset.shards(split)
    if not 0 <= host < hosts:
        raise UsageError(f"host {host} of {hosts}: count hosts from 0.")
    if len(shards) < hosts:
        raise UsageError(
            f"{dataset.root}: split {split!r} has {len(shards)} shards for {hosts} hosts. Write at least one shard a "
            "host (shards.count)."
        )
    return shards[host::hosts]


def read_interleaved(dataset: Dataset, shards: list[LocatedShard], shuffle_seed: int | None, buffer: int) -> Any:
    """Records with the path of their shard and their position in the split, in a fixed order for a seed.

    Args:
        dataset: whose shards they are.
        shards: those of this host.
        shuffle_seed: mixes shards and records, anew every epoch; `None` keeps their order.
        buffer: records that are mixed at a time.

    Returns:
        A `tf.data.Dataset` of (path of the shard, position in the split, serialized example).
    """
    whole = dataset.shards(shards[0].split)
    first = dict(zip((shard.path for shard in whole), accumulate((s.records for s in whole), initial=0), strict=False))
    files = tf.data.Dataset.from_tensor_slices(
        (
            tf.constant([shard.file for shard in shards], tf.string),
            tf.constant([shard.path for shard in shards], tf.string),
            tf.constant([shard.records for shard in shards], tf.int64),
            tf.constant([first[shard.path] for shard in shards], tf.int64),
        )
    )

    def records_of(file: Tensor, path: Tensor, count: Tensor, position: Tensor) -> Any:
        # A reader's error does not say which file it read. It ends the shard early instead (and is logged); the empty
        # record in the place of what is missing is told apart, and named, by the parser.
        found = tf.data.TFRecordDataset(file, buffer_size=_READ_BUFFER).ignore_errors(log_warning=True)
        missing = tf.data.Dataset.from_tensors(b"").repeat()
        records = found.concatenate(missing).take(count)
        return records.enumerate(position).map(lambda place, record: (path, place, record))

    if shuffle_seed is not None:
        files = files.shuffle(len(shards), seed=shuffle_seed)
    cycle = min(len(shards), _SHARDS_AT_ONCE)
    records = files.interleave(records_of, cycle_length=cycle, num_parallel_calls=tf.data.AUTOTUNE)
    return records if shuffle_seed is None else records.shuffle(buffer, seed=shuffle_seed)
