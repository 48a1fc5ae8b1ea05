"""`order: exact`: one order of all records, read by the index, that any number of hosts may share from any step on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright.dataset.random_access import RandomAccess
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.errors import DatasetError, UsageError
from shardwright.loader.error_context import ReadErrors
from shardwright.loader.global_order import GlobalOrder, StepPlan

Tensor = Any

# Batches of encoded records that are read ahead of the decoder.
_READ_AHEAD = 4
_FOREVER = 2**62


def exact_steps(
    dataset: ImageDataset, split: str, batch_size: int, hosts: int, *, seed: int | None, window: int
) -> StepPlan:
    """The batches of a split.

    Args:
        dataset: the dataset.
        split: name of the split.
        batch_size: records in the batch of one host.
        hosts: number of hosts.
        seed: of the order; `None` keeps that of the disk.
        window: records that are mixed at a time.

    Raises:
        DatasetError: there is no such split, or it holds no record.
    """
    counts = tuple(shard.records for shard in dataset.shards(split))
    if not any(counts):
        raise DatasetError(f"{dataset.root}: split {split!r} holds no record, so there is nothing to load.")
    return StepPlan(GlobalOrder(counts, seed, window), batch_size * hosts)


def read_exactly(
    shards: Sequence[LocatedShard],
    steps: StepPlan,
    host: int,
    hosts: int,
    *,
    start: int,
    repeat: bool,
    drop_remainder: bool,
    unread: ReadErrors,
) -> Any:
    """Records of a host's slices of batches.

    Args:
        shards: all shards of the split.
        steps: the batches of all hosts.
        host: number of this host, from 0.
        hosts: number of hosts.
        start: the first batch.
        repeat: go on with the next epoch, without end; else one epoch, the last batch filled up.
        drop_remainder: leave out a last batch that is not full.
        unread: is told what goes wrong.

    Returns:
        A `tf.data.Dataset` of (place in the order, (position in the split, serialized example, weight)); the
        weight is 0 for what fills a batch up.

    Raises:
        UsageError: there is no such host or batch.
        DatasetError: an index is damaged.
    """
    per_epoch = steps.order.records // steps.batch_size if drop_remainder else steps.per_epoch
    end = _FOREVER if repeat else per_epoch
    if not 0 <= host < hosts:
        raise UsageError(f"host {host} of {hosts}: count hosts from 0.")
    if not 0 <= start <= end:
        raise UsageError(f"start_step {start}: an epoch has {per_epoch} batches of {steps.batch_size}.")
    access = RandomAccess(shards)
    first = np.concatenate([[0], np.cumsum([shard.records for shard in shards])[:-1]])
    share = steps.batch_size // hosts

    def read(step: np.int64) -> tuple[Any, ...]:
        if repeat:
            records, counted = steps.training(int(step), host, hosts), np.ones(share, bool)
        else:
            records, counted = steps.evaluation(int(step), host, hosts)
        places = int(step) * steps.batch_size + host * share + np.arange(share, dtype=np.int64)
        payloads = np.array(access.read(records), object)
        positions = (first[records.shard] + records.record).astype(np.int64)
        return places, positions, payloads, counted.astype(np.float32)

    def batch(step: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        kinds = (tf.int64, tf.int64, tf.string, tf.float32)
        places, *others = (
            tf.ensure_shape(part, [share]) for part in tf.numpy_function(unread.watched(read), [step], kinds)
        )
        return places, tuple(others)

    return tf.data.Dataset.range(start, end).map(batch, num_parallel_calls=_READ_AHEAD, deterministic=True).unbatch()
