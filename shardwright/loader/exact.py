"""`order: exact`: one order of all records, read by the index. Any number of hosts may share it from any step on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright.dataset.random_access import RandomAccess
from shardwright.dataset.reader import LocatedShard
from shardwright.errors import UsageError
from shardwright.loader.error_context import ReadErrors, Record
from shardwright.loader.global_order import GlobalOrder, StepPlan
from shardwright.loader.load_options import ResolvedOptions

Tensor = Any

# Batches of encoded records that are read ahead of the decoder.
_READ_AHEAD = 4
_FOREVER = 2**62


def read_exact(shards: Sequence[LocatedShard], options: ResolvedOptions, errors: ReadErrors) -> tuple[Any, int]:
    """Reads a host's slices of batches.

    Args:
        shards: all shards of the split, with at least one record.
        options: of the loader. `shuffle_buffer` is the window of the order.
        errors: keeps the errors of reading.

    Returns:
        A `tf.data.Dataset` of dicts, and how many elements there are (a very large number with `repeat`). A dict has
        `count` (the place in the order), `position` (in the split), `record` (the serialized example) and, without
        `repeat`, `weight`: 0 for the records that fill the last batch up.

    Raises:
        UsageError: there is no such batch.
        DatasetError: an index is damaged.
    """
    order = GlobalOrder(tuple(shard.records for shard in shards), options.shuffle_seed, options.shuffle_buffer)
    steps = StepPlan(order, options.batch_size * options.hosts)
    per_epoch = order.records // steps.batch_size if options.drop_remainder else steps.per_epoch
    start, end = options.start_step, _FOREVER if options.repeat else per_epoch
    if not 0 <= start <= end:
        raise UsageError(f"start_step {start}: an epoch has {per_epoch} batches of {steps.batch_size}.")
    access = RandomAccess(shards)
    first = np.concatenate([[0], np.cumsum(order.counts)[:-1]])
    host, hosts, share = options.host, options.hosts, options.batch_size

    def read(step: np.int64) -> tuple[Any, ...]:
        if options.repeat:
            records, counted = steps.training(int(step), host, hosts), np.ones(share, bool)
        else:
            records, counted = steps.evaluation(int(step), host, hosts)
        places = int(step) * steps.batch_size + host * share + np.arange(share, dtype=np.int64)
        payloads = np.array(access.read(records), object)
        positions = (first[records.shard] + records.record).astype(np.int64)
        return places, positions, payloads, counted.astype(np.float32)

    def batch(step: Tensor) -> Record:
        kinds = (tf.int64, tf.int64, tf.string, tf.float32)
        parts = tf.numpy_function(errors.watched(read), [step], kinds)
        names = ("count", "position", "record", "weight")
        found = {name: tf.ensure_shape(part, [share]) for name, part in zip(names, parts, strict=True)}
        if options.repeat:
            del found["weight"]
        return found

    batches = tf.data.Dataset.range(start, end).map(batch, num_parallel_calls=_READ_AHEAD, deterministic=True)
    return batches.unbatch(), (end - start) * options.batch_size
