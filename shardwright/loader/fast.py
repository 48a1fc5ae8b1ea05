"""`order: fast`: every host reads its own records, several shards concurrently."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from shardwright.dataset.host_sharding import RecordRange, host_ranges, padded_steps, padding_range
from shardwright.dataset.random_access import RandomAccess, SameDataset
from shardwright.dataset.reader import LocatedShard
from shardwright.loader.error_context import ReadErrors, Record, no_autograph
from shardwright.loader.load_options import ResolvedOptions
from shardwright.loader.memory import READ_BUFFER, SHARDS_AT_ONCE
from shardwright.storage import is_remote

Tensor = Any

# Consecutive records of one shard, out of a buffer that stays in the processor's cache.
_IN_A_ROW = 16
# Bytes of one request to an object store, and requests in flight.
_PIECE = 4 << 20
_PIECES_AT_ONCE = 16


def read_fast(shards: Sequence[LocatedShard], options: ResolvedOptions, errors: ReadErrors) -> tuple[Any, int]:
    """Reads one epoch of a host's records.

    Args:
        shards: all shards of the split.
        options: of the loader.
        errors: keeps the errors of reading.

    Returns:
        A `tf.data.Dataset` as of `read_ranges`, and how many elements it has. With `pad` each has a `weight`: 1, and 0
        for the records that fill the last batches up.
    """
    counts = [shard.records for shard in shards]
    ranges = host_ranges(counts, options.host, options.hosts)
    records = read_ranges(shards, ranges, options.shuffle_seed, errors)
    filler = padding_range(counts, ranges) if options.pad else None
    if filler is None:
        return records, sum(part.records for part in ranges)
    count = padded_steps(counts, options.hosts, options.batch_size) * options.batch_size
    more = read_ranges(shards, [filler], None, errors).cache().repeat()
    return _weighed(records, 1.0).concatenate(_weighed(more, 0.0)).take(count), count


def read_ranges(
    shards: Sequence[LocatedShard],
    ranges: Sequence[RecordRange],
    shuffle_seed: int | None,
    errors: ReadErrors | None = None,
) -> Any:
    """Reads records in a fixed order for a seed. They are not yet mixed with each other.

    Args:
        shards: all shards of the split.
        ranges: the records to read.
        shuffle_seed: mixes shards, or pieces of them, in every epoch; `None` keeps their order.
        errors: keeps the errors of reading.

    Returns:
        A `tf.data.Dataset` of dicts of `position` (in the split) and `record` (the serialized example, which is empty
        where a shard is damaged).

    Raises:
        DatasetError: while iterating: a record that is read in pieces is damaged, or the folder of the shards contains
            another dataset than at the beginning.
    """
    begins = list(accumulate((shard.records for shard in shards), initial=0))
    whole = all(part.records == shards[part.shard].records for part in ranges)
    if whole and not any(is_remote(shard.file) for shard in shards):
        return _interleaved(shards, ranges, begins, shuffle_seed, errors or ReadErrors())
    return _in_pieces(shards, ranges, begins, shuffle_seed, errors or ReadErrors())


def _weighed(records: Any, weight: float) -> Any:
    return records.map(no_autograph(lambda record: {**record, "weight": tf.constant(weight)}))


def _interleaved(
    shards: Sequence[LocatedShard],
    ranges: Sequence[RecordRange],
    begins: Sequence[int],
    shuffle_seed: int | None,
    errors: ReadErrors,
) -> Any:
    """Reads whole shards, sixteen of them concurrently."""
    same = SameDataset(shards)

    def opened(shard: npt.NDArray[np.int64]) -> bytes:
        same.check()
        return os.fsencode(shards[int(shard)].file)

    files = tf.data.Dataset.from_tensor_slices(
        (
            tf.constant([part.shard for part in ranges], tf.int64),
            tf.constant([part.records for part in ranges], tf.int64),
            tf.constant([begins[part.shard] for part in ranges], tf.int64),
        )
    )

    def records_of(shard: Tensor, count: Tensor, position: Tensor) -> Any:
        file = tf.ensure_shape(tf.numpy_function(errors.watched(opened), [shard], tf.string), [])
        # The error of TensorFlow's reader does not name the file. It ends the shard early instead (and is logged). The
        # parser detects the empty records in the place of the missing ones, and names them.
        records = tf.data.TFRecordDataset(file, buffer_size=READ_BUFFER).ignore_errors(log_warning=True)
        missing = tf.data.Dataset.from_tensors(b"").repeat()
        # Not by `enumerate`, whose numbers Grappler rewrites for every shard, nor in batches, which copy each record.
        positions = tf.data.Dataset.range(position, position + count)
        return tf.data.Dataset.zip({"position": positions, "record": records.concatenate(missing)})

    if shuffle_seed is not None and ranges:
        files = files.shuffle(len(ranges), seed=shuffle_seed)
    if ranges:
        # No record of a shard again: the dataset is checked when all shards have been opened.
        nothing = tuple(tf.constant([0], tf.int64) for _ in range(3))
        files = files.concatenate(tf.data.Dataset.from_tensor_slices(nothing))
    cycle = max(1, min(len(ranges), SHARDS_AT_ONCE))
    return files.interleave(records_of, cycle_length=cycle, block_length=_IN_A_ROW)


def _in_pieces(
    shards: Sequence[LocatedShard],
    ranges: Sequence[RecordRange],
    begins: Sequence[int],
    shuffle_seed: int | None,
    errors: ReadErrors,
) -> Any:
    """Reads by the index: from any record on, with many concurrent requests."""
    used = sorted({part.shard for part in ranges})
    access = RandomAccess([shards[shard] for shard in used])
    pieces = [
        (used.index(shard), first, records, begins[shard] + first)
        for part in ranges
        for shard, first, records in _pieces(part, access.lengths(used.index(part.shard)))
    ]

    def read(piece: Any) -> tuple[Any, Any]:
        shard, first, records, position = piece.tolist()
        payloads = np.array(access.read_range(shard, first, records), object)
        return np.arange(position, position + records, dtype=np.int64), payloads

    def records_of(piece: Tensor) -> Record:
        positions, payloads = tf.numpy_function(errors.watched(read), [piece], (tf.int64, tf.string))
        return {"position": tf.ensure_shape(positions, [None]), "record": tf.ensure_shape(payloads, [None])}

    listed = tf.data.Dataset.from_tensor_slices(np.array(pieces, np.int64).reshape(-1, 4))
    if shuffle_seed is not None and pieces:
        listed = listed.shuffle(len(pieces), seed=shuffle_seed)
    return listed.map(records_of, num_parallel_calls=_PIECES_AT_ONCE).unbatch()


def _pieces(part: RecordRange, lengths: Any) -> list[RecordRange]:
    """Divides a range into parts of about `_PIECE` bytes each."""
    ends = np.cumsum(lengths[part.first : part.first + part.records])
    cuts = [0, *(np.flatnonzero(np.diff(ends // _PIECE)) + 1).tolist(), part.records]
    return [RecordRange(part.shard, part.first + low, high - low) for low, high in pairwise(cuts)]
