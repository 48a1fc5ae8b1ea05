"""`order: fast`: every host reads records of its own, several shards at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright.dataset.random_access import RandomAccess
from shardwright.dataset.reader import LocatedShard
from shardwright.loader.error_context import ReadErrors
from shardwright.loader.host_sharding import RecordRange
from shardwright.storage import is_remote

Tensor = Any

# Fixed, not tuned: the order of the records depends on it, and it must be the same on every machine.
_SHARDS_AT_ONCE = 16
# So many records of one are read in a row, out of a buffer that stays in the processor's cache.
_IN_A_ROW = 16
_READ_BUFFER = 256 << 10
# What is read by one request to an object store, and how many of them are in flight.
_PIECE = 4 << 20
_PIECES_AT_ONCE = 16


def read_fast(
    shards: Sequence[LocatedShard],
    share: Sequence[RecordRange],
    shuffle_seed: int | None,
    unread: ReadErrors | None = None,
) -> Any:
    """Records with their position in the split, in a fixed order for a seed, but not yet mixed among each other.

    Args:
        shards: all shards of the split.
        share: what this host reads.
        shuffle_seed: mixes shards, or pieces of them, anew every epoch; `None` keeps their order.
        unread: is told what goes wrong where records are read in pieces.

    Returns:
        A `tf.data.Dataset` of (position in the split, serialized example); the example is empty where a shard is
        damaged.

    Raises:
        DatasetError: while iterating, of what is read in pieces: a record is damaged.
    """
    begins = list(accumulate((shard.records for shard in shards), initial=0))
    whole = all(stretch.records == shards[stretch.shard].records for stretch in share)
    if whole and not any(is_remote(shard.file) for shard in shards):
        return _interleaved(shards, share, begins, shuffle_seed)
    return _in_pieces(shards, share, begins, shuffle_seed, unread or ReadErrors())


def padded(records: Any, shards: Sequence[LocatedShard], filler: RecordRange, total: int, unread: ReadErrors) -> Any:
    """Fills records up with one that does not count.

    Args:
        records: what `read_fast` gives, no more than `total`.
        shards: all shards of the split.
        filler: the record.
        total: how many there are to be.
        unread: see `read_fast`.

    Returns:
        A `tf.data.Dataset` of (position in the split, serialized example, weight): 1, and 0 for what fills up.
    """

    def weighed(of: Any, weight: float) -> Any:
        return of.map(tf.autograph.experimental.do_not_convert(lambda *record: (*record, tf.constant(weight))))

    more = read_fast(shards, [filler], None, unread).cache().repeat()
    return weighed(records, 1.0).concatenate(weighed(more, 0.0)).take(total)


def _interleaved(
    shards: Sequence[LocatedShard], share: Sequence[RecordRange], begins: Sequence[int], shuffle_seed: int | None
) -> Any:
    files = tf.data.Dataset.from_tensor_slices(
        (
            tf.constant([shards[stretch.shard].file for stretch in share], tf.string),
            tf.constant([stretch.records for stretch in share], tf.int64),
            tf.constant([begins[stretch.shard] for stretch in share], tf.int64),
        )
    )

    def records_of(file: Tensor, count: Tensor, position: Tensor) -> Any:
        # A reader's error does not say which file it read. It ends the shard early instead (and is logged); the empty
        # record in the place of what is missing is told apart, and named, by the parser.
        found = tf.data.TFRecordDataset(file, buffer_size=_READ_BUFFER).ignore_errors(log_warning=True)
        missing = tf.data.Dataset.from_tensors(b"").repeat()
        # Not by `enumerate`, whose numbers Grappler rewrites for every shard, nor in batches, which copy each record.
        return tf.data.Dataset.zip((tf.data.Dataset.range(position, position + count), found.concatenate(missing)))

    if shuffle_seed is not None and share:
        files = files.shuffle(len(share), seed=shuffle_seed)
    cycle = max(1, min(len(share), _SHARDS_AT_ONCE))
    return files.interleave(records_of, cycle_length=cycle, block_length=_IN_A_ROW)


def _in_pieces(
    shards: Sequence[LocatedShard],
    share: Sequence[RecordRange],
    begins: Sequence[int],
    shuffle_seed: int | None,
    unread: ReadErrors,
) -> Any:
    """By the index: from any record on, and many requests at a time."""
    used = sorted({stretch.shard for stretch in share})
    access = RandomAccess([shards[shard] for shard in used])
    pieces = [
        (used.index(shard), first, records, begins[shard] + first)
        for stretch in share
        for shard, first, records in _pieces(stretch, access.lengths(used.index(stretch.shard)))
    ]

    def read(piece: Any) -> tuple[Any, Any]:
        shard, first, records, position = piece.tolist()
        payloads = np.array(access.read_range(shard, first, records), object)
        return np.arange(position, position + records, dtype=np.int64), payloads

    def records_of(piece: Tensor) -> tuple[Tensor, Tensor]:
        positions, payloads = tf.numpy_function(unread.watched(read), [piece], (tf.int64, tf.string))
        return tf.ensure_shape(positions, [None]), tf.ensure_shape(payloads, [None])

    listed = tf.data.Dataset.from_tensor_slices(np.array(pieces, np.int64).reshape(-1, 4))
    if shuffle_seed is not None and pieces:
        listed = listed.shuffle(len(pieces), seed=shuffle_seed)
    return listed.map(records_of, num_parallel_calls=_PIECES_AT_ONCE).unbatch()


def _pieces(stretch: RecordRange, lengths: Any) -> list[RecordRange]:
    """A stretch in parts of about `_PIECE` bytes each."""
    ends = np.cumsum(lengths[stretch.first : stretch.first + stretch.records])
    cuts = [0, *(np.flatnonzero(np.diff(ends // _PIECE)) + 1).tolist(), stretch.records]
    return [RecordRange(stretch.shard, stretch.first + low, high - low) for low, high in pairwise(cuts)]
