"""Which record an error means: its shard, its number there, where it begins, and its key.

A check that names a record costs more for every image than all else that is done to it but decoding. So nothing is
named while all goes well: only the positions of the records that are under way are kept. When a batch can't be made,
these are read once more, in Python, to say which one it was, and why.

What an error of TensorFlow says of a dataset, in a line.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from itertools import accumulate, groupby
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from shardwright.dataset.reader import LocatedShard
from shardwright.errors import DatasetError, ShardwrightError
from shardwright.storage import open_file
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import read_records

Tensor = Any

# No function here branches on a tensor in Python; AutoGraph's search for that takes longer than the rest of `load`.
no_autograph = tf.autograph.experimental.do_not_convert

# An image is copied into its batch by the thread that has decoded it, while it is in that one's cache: that saves some
# six hundredths of what decoding takes. TensorFlow puts `map` and `batch` together by itself, but not within the
# function of another dataset; its own op for it is deprecated in favour of that, and meant here without the warning.
_map_and_batch = inspect.unwrap(tf.data.experimental.map_and_batch)
_MOST_CALLS = 64
_FOREVER = 1 << 62
# Where it is noted how many elements are done; no position.
_DONE = -1
_UNEXPLAINED = "a record could not be decoded, and at the second attempt could. Is there enough memory?"

_Given = ParamSpec("_Given")
_Read = TypeVar("_Read")


def require(holds: Tensor, problem: str, value: Tensor) -> Tensor:
    """A value; the end of the iteration, which `with_error_context` then explains, where something does not hold.

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


def with_error_context(
    elements: Any,
    make: Callable[..., Any],
    position_of: Callable[..., Tensor],
    told: Callable[[list[int]], str],
    *,
    count: int | None,
    threads: int,
    batch: int | None = None,
    drop_remainder: bool = False,
) -> Any:
    """Makes an example of every element; an error says which record is wrong.

    Args:
        elements: a `tf.data.Dataset` of tuples.
        make: makes an example of the number of an element, from 0, and of its parts; may fail.
        position_of: position in the split of an element.
        told: what is wrong with the first of some records that something is wrong with, and which it is; empty when
            nothing is. Given in the order of the split, all that have failed among them.
        count: how many elements there are; `None`: without end.
        threads: examples that are made at a time, of batches `calls_at_once`.
        batch: examples of a batch; by default they come one by one.
        drop_remainder: leave out a last batch that is not full.

    Returns:
        A `tf.data.Dataset` of examples, or batches of them, in the order of the elements. After one that is wrong
        comes nothing but its error.

    Raises:
        tf.errors.InvalidArgumentError: while iterating: in the place of a record that is wrong or could not be read,
            or of its batch; names it.
    """
    each = batch or 1

    def explain(positions: npt.NDArray[np.int64]) -> bytes:
        problem = told(sorted(position for position in positions.tolist() if position != _DONE))
        return problem.encode() or _UNEXPLAINED.encode()

    def watched(_: Tensor) -> Any:
        # Made anew by every iterator. The positions of what is under way; and how many elements are done.
        under_way = tf.raw_ops.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.int64)

        def begun(number: Tensor, element: Any) -> tuple[Tensor, Any]:
            position = position_of(*element)
            key = tf.reshape(position, [1])
            noted = tf.raw_ops.LookupTableInsertV2(table_handle=under_way, keys=key, values=key)
            with tf.control_dependencies([noted]):
                element = tf.nest.map_structure(tf.identity, element)
            # Not within the block above: constants, too, would wait there, and TensorFlow not fold them.
            return position, make(number, *element)

        def goes_on(number: Tensor) -> Tensor:
            done = tf.raw_ops.LookupTableFindV2(
                table_handle=under_way, keys=[tf.constant(_DONE, tf.int64)], default_value=tf.constant(0, tf.int64)
            )
            return tf.equal(done[0], number)

        def ended(number: Tensor, made: tuple[Tensor, Any]) -> Any:
            positions, example = made
            removed = tf.raw_ops.LookupTableRemoveV2(table_handle=under_way, keys=tf.reshape(positions, [-1]))
            with tf.control_dependencies([removed]):
                noted = tf.raw_ops.LookupTableInsertV2(
                    table_handle=under_way, keys=[tf.constant(_DONE, tf.int64)], values=[number + each]
                )
            with tf.control_dependencies([noted]):
                return tf.nest.map_structure(tf.identity, example)

        def fail(_: Tensor) -> Any:
            kinds = {"Tkeys": tf.int64, "Tvalues": tf.int64}
            positions = tf.raw_ops.LookupTableExportV2(table_handle=under_way, **kinds).keys
            text = tf.ensure_shape(tf.numpy_function(explain, [positions], tf.string), [])
            with tf.control_dependencies([tf.raw_ops.Assert(condition=False, data=[text])]):
                # Never made; what is asked of it is its types and shapes.
                return tf.nest.map_structure(lambda one: tf.zeros([side or 1 for side in one.shape], one.dtype), spec)

        # Not by `enumerate`, within a function: TensorFlow would have its numbers rewritten by Grappler.
        numbered = tf.data.Dataset.zip((tf.data.Dataset.range(_FOREVER), elements))
        if batch is None:
            made = numbered.map(no_autograph(begun), num_parallel_calls=threads, deterministic=True)
        else:
            calls = calls_at_once(batch, threads)
            made = numbered.apply(
                _map_and_batch(no_autograph(begun), batch, num_parallel_calls=calls, drop_remainder=drop_remainder)
            )
        spec = made.element_spec[1]
        # An error is left out, and the next number asked for, which is too large then: that is the end of it. Else one
        # would be looked for that is no error, for ever where there is none.
        numbers = tf.data.Dataset.range(0, _FOREVER, each).take_while(no_autograph(goes_on))
        found = tf.data.Dataset.zip((numbers, made)).ignore_errors().map(no_autograph(ended))
        # Where nothing fails there is as much as there are elements for, and what explains is never asked.
        found = found.concatenate(tf.data.Dataset.range(_FOREVER).map(no_autograph(fail)))
        if count is None:
            return found
        return found.take(count // each if drop_remainder else -(-count // each))

    return tf.data.Dataset.from_tensors(0).flat_map(no_autograph(watched))


class ReadErrors:
    """Why something could not be read: of an error in Python, TensorFlow may leave no more than a missing batch."""

    def __init__(self) -> None:
        self._why = ""

    def watched(self, read: Callable[_Given, _Read]) -> Callable[_Given, _Read]:
        """A function whose last error is kept."""

        def watching(*given: _Given.args, **named: _Given.kwargs) -> _Read:
            try:
                return read(*given, **named)
            except Exception as error:
                self._why = str(error) if isinstance(error, ShardwrightError) else repr(error)
                raise

        return watching

    def why(self) -> str:
        """What the last error said, once; empty where there was none."""
        why, self._why = self._why, ""
        return why


class RecordLocator:
    """Names records by their position in a split.

    Args:
        shards: all shards of the split.
    """

    def __init__(self, shards: Sequence[LocatedShard]) -> None:
        self._shards = list(shards)
        self._begins = list(accumulate((shard.records for shard in self._shards), initial=0))

    def first_wrong(self, positions: Sequence[int], problem: Callable[[bytes], str]) -> str:
        """Names the first of some records that something is wrong with, and says what.

        Their shards are read up to them, so that one is named as well that cut short what could be read of its shard.

        Args:
            positions: in the split, ascending.
            problem: what is wrong with a record, empty when nothing is; of one that can't be read it is given nothing.

        Raises:
            StorageError: the object store does not answer.
        """
        for shard, wanted in groupby(positions, self._shard_of):
            begin = self._begins[shard]
            for record, payload in self._read({position - begin for position in wanted}, shard):
                if said := problem(payload):
                    return f"{self._name(shard, record)}: {said}"
        return ""

    def _read(self, wanted: Set[int], shard: int) -> Iterator[tuple[int, bytes]]:
        """Numbers and payloads of wanted records of a shard, until one can't be read."""
        record, last = 0, max(wanted)
        with suppress(RecordError, FileNotFoundError):
            for record, (_, payload) in enumerate(read_records(self._shards[shard].file)):
                if record in wanted:
                    yield record, payload
                if record == last:
                    return
                record += 1
        yield record, b""

    def _shard_of(self, position: int) -> int:
        # The last of the shards that begin there: those before it are empty.
        return bisect_right(self._begins, position, hi=len(self._shards)) - 1

    def _name(self, number: int, record: int) -> str:
        """Shard, number, offset and key of a record."""
        shard = self._shards[number]
        row: dict[str, Any] = {}
        # What is wrong with the record is to be told also where its index is damaged.
        with suppress(OSError, ValueError), open_file(shard.index) as lines:
            row = next((json.loads(line) for count, line in enumerate(lines) if count == record), {})
        return f"{shard.path}, record {record} at byte {row.get('offset', '?')}, key {row.get('key', '?')}"


_Batch = TypeVar("_Batch")

# The names of TensorFlow's nodes, and of its datasets, which later ones put before all else.
_NODES = re.compile(
    r"\{\{.*?\}\}|\[Op:.*|Error in user-defined function passed to \S+ transformation with iterator: \S+: "
)
# What the loader says itself: of a record (`naming.with_error_context`), and where it reads in Python
# (`random_access`).
_OURS = re.compile(r"assertion failed: \[(.*)\]|(?:Dataset|Storage)Error: (.*)", re.ASCII)
# What TensorFlow escapes of an assertion's text, as C does; marks that would end or hide a line stay escaped.
_ESCAPED = re.compile(rb"\\([2-3][0-7]{2}|[\\'\"])")


def error_message(error: tf.errors.OpError) -> str:
    """An error's first line without the names of TensorFlow's nodes; of what the loader says itself, only that."""
    said = _first_line(error)
    found = _OURS.fullmatch(said)
    if found is None:
        return said
    return found[2] or _ESCAPED.sub(_meant, found[1].encode()).decode(errors="replace")


def with_plain_errors(batches: Iterator[_Batch]) -> Iterator[_Batch]:
    """Batches whose end by a damaged record, or a store that does not answer, is an error of ours.

    Args:
        batches: an iterator of what `load` gives.

    Raises:
        DatasetError: while iterating; names shard, record, offset and key. What is a defect stays as it is.
    """
    try:
        yield from batches
    except tf.errors.OpError as error:
        if _OURS.fullmatch(_first_line(error)) is None:
            raise
        raise DatasetError(error_message(error)) from None


def _meant(escaped: re.Match[bytes]) -> bytes:
    return bytes([int(escaped[1], 8)]) if len(escaped[1]) == 3 else escaped[1]


def _first_line(error: tf.errors.OpError) -> str:
    said = str(error.message).splitlines() or [""]
    return _NODES.sub("", said[0]).strip()
