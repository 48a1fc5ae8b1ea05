"""Which record an error means: its shard, its number there, where it begins, and its key.

A check that names a record costs more for every image than all else that is done to it but decoding. So nothing is
named while all goes well: records are parsed a group at a time, and only when one of a group fails, the group is gone
through once more, in Python, to say which one it was, and why.
"""

from __future__ import annotations

import inspect
import json
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from shardwright.dataset import LocatedShard
from shardwright.storage import open_file

Tensor = Any

# No function here branches on a tensor in Python; AutoGraph's search for that takes longer than the rest of `load`.
plain = tf.autograph.experimental.do_not_convert

# An image is copied into its batch by the thread that has decoded it, while it is in that one's cache: that saves some
# six hundredths of what decoding takes. TensorFlow puts `map` and `batch` together by itself, but not within the
# function of another dataset; its own op for it is deprecated in favour of that, and meant here without the warning.
_map_and_batch = inspect.unwrap(tf.data.experimental.map_and_batch)
_MOST_CALLS = 64


def require(holds: Tensor, problem: str, value: Tensor) -> Tensor:
    """A value; the end of the iteration, which `guarded` then explains, where something does not hold.

    Args:
        holds: boolean scalar.
        problem: what is wrong otherwise, and what to do.
        value: what is fit to be used only where it holds.

    Returns:
        The value.
    """
    with tf.control_dependencies([tf.raw_ops.Assert(condition=holds, data=[tf.constant(problem)])]):
        return tf.identity(value)


def threads_of_decoding() -> int:
    """Twice as many as can decode at a time, so that nobody waits for what puts images into batches."""
    return 2 * len(os.sched_getaffinity(0))


def calls_at_once(batch: int, threads: int) -> int:
    """Examples that are on their way: more than a batch has, so that no thread waits for its last one, but bounded."""
    return max(threads, min(batch + threads, _MOST_CALLS))


def guarded(
    elements: Any,
    make: Callable[..., Any],
    record_of: Callable[..., tuple[Tensor, Tensor]],
    told: Callable[[int, bytes], str],
    *,
    group: int,
    threads: int,
    batch: int | None = None,
    drop_remainder: bool = False,
) -> Any:
    """Makes an example of every element; an error says which record is wrong.

    Args:
        elements: a `tf.data.Dataset` of tuples.
        make: makes an example of the number of an element, from 0, and of its parts; may fail.
        record_of: position in the split and serialized example of an element, or of a batch of them.
        told: what is wrong with such a record, empty when nothing is.
        group: elements that are gone through again when one fails; three times as many are held, still encoded.
        threads: examples that are made at a time, of batches `calls_at_once`.
        batch: examples of a batch; by default they come one by one. A group is then a number of whole batches.
        drop_remainder: leave out a last batch that is not full.

    Returns:
        A `tf.data.Dataset` of examples, or batches of them, in the order of the elements.

    Raises:
        tf.errors.InvalidArgumentError: while iterating: in the place of a record that is wrong, or of its batch; names
            it.
    """

    def explain(positions: npt.NDArray[np.int64], records: npt.NDArray[np.object_]) -> bytes:
        for position, record in zip(positions.tolist(), records.tolist(), strict=True):
            problem = told(position, record)
            if problem:
                return problem.encode()
        return b"a record could not be decoded, and at the second attempt could. Is there enough memory?"

    def failing(spec: Any) -> Callable[..., Any]:
        def fail(_: Tensor, group: Any) -> Any:
            positions, records = record_of(*group)
            text = tf.ensure_shape(tf.numpy_function(explain, [positions, records], tf.string), [])
            with tf.control_dependencies([tf.raw_ops.Assert(condition=False, data=[text])]):
                # Never made; what is asked of it is its types and shapes.
                return tf.nest.map_structure(lambda one: tf.zeros([side or 1 for side in one.shape], one.dtype), spec)

        return fail

    def numbered(number: Tensor, element: Any) -> tuple[Tensor, Any]:
        return number, make(number, *element)

    def sound(records: Any) -> Any:
        if batch is None:
            return records.map(plain(numbered), num_parallel_calls=threads, deterministic=True)
        calls = calls_at_once(batch, threads)
        return records.apply(
            _map_and_batch(plain(numbered), batch, num_parallel_calls=calls, drop_remainder=drop_remainder)
        )

    def examples(window: Tensor, parts: Any) -> Any:
        first = window * group
        # Not by `enumerate`, whose numbers are rewritten by Grappler: a millisecond, here for every group.
        records = tf.data.Dataset.zip((tf.data.Dataset.range(first, first + group), tf.data.Dataset.zip(parts)))
        made = sound(records)
        explained = records.batch(group).map(failing(made.element_spec[1])).repeat()
        count = records.cardinality()
        if batch is not None:
            count = count // batch if drop_remainder else -(-count // batch)
        each = 1 if batch is None else batch
        numbers = tf.data.Dataset.range(first, first + count * each, each)

        def whole(number: Tensor, found: tuple[Tensor, Any]) -> Tensor:
            # What fails is left out; the next one then has a number too large for its place, and no more is given.
            return found[0] == number if batch is None else found[0][0] == number

        found = tf.data.Dataset.zip((numbers, made.ignore_errors())).take_while(plain(whole))
        found = found.map(plain(lambda _, found: found[1]))
        # Where nothing fails there is as much as there are records for, and what explains is never asked.
        return found.concatenate(explained).take(count)

    group = group if batch is None else max(1, group // batch) * batch
    # Windows hold what they are given, where batches would copy it. The next one is read while this one is decoded.
    return elements.window(group).prefetch(1).enumerate().flat_map(examples)


class Naming:
    """Names records by their position in a split.

    Args:
        shards: all shards of the split.
    """

    def __init__(self, shards: Sequence[LocatedShard]) -> None:
        self._shards = list(shards)
        self._begins = list(accumulate((shard.records for shard in self._shards), initial=0))

    def name(self, position: int) -> str:
        """Shard, number, offset and key of a record."""
        # The last of the shards that begin there: those before it are empty.
        number = bisect_right(self._begins, position, hi=len(self._shards)) - 1
        shard = self._shards[number]
        record = position - self._begins[number]
        row: dict[str, Any] = {}
        # What is wrong with the record is to be told also where its index is damaged.
        with suppress(OSError, ValueError), open_file(shard.index) as lines:
            row = next((json.loads(line) for count, line in enumerate(lines) if count == record), {})
        return f"{shard.path}, record {record} at byte {row.get('offset', '?')}, key {row.get('key', '?')}"
