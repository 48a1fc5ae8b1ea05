"""Errors that name the bad record: its shard, its number there, its offset, and its key.

A check that names a record costs more for every image than all other steps but decoding. So nothing is named while all
goes well: only the positions of the records in progress are kept. When a batch fails, these records are read again, in
Python, to name the bad one and the reason.

`error_message` is the text of an error of TensorFlow in one line.
"""

from __future__ import annotations

import inspect
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from functools import partial
from itertools import accumulate, groupby
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from shardwright.dataset.reader import LocatedShard
from shardwright.errors import DatasetError, ShardwrightError, describe_os_error
from shardwright.running.processes import usable_cores
from shardwright.storage import open_file
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import read_records

Tensor = Any
# A record on its way to the parser: `record` (the serialized example), `position` (in the split), and, depending on the
# order, `weight` and `count` (its place in the order).
Record = dict[str, Tensor]

# No function here branches on a tensor in Python; AutoGraph's search for that takes longer than the rest of `load`.
no_autograph = tf.autograph.experimental.do_not_convert

# The thread that has decoded an image copies it into its batch, while it is in that thread's cache: that saves six
# percent of the time of decoding. TensorFlow fuses `map` and `batch` automatically, but not within the function of
# another dataset; its own op for it is deprecated in favour of that, and used here without the warning.
_map_and_batch = inspect.unwrap(tf.data.experimental.map_and_batch)
_MOST_CALLS = 64
_FOREVER = 1 << 62
# The key of the number of finished elements; not a position.
_DONE = -1
_UNEXPLAINED = "a record could not be decoded, but could at the second attempt. Is there enough memory?"

_Given = ParamSpec("_Given")
_Read = TypeVar("_Read")
_Batch = TypeVar("_Batch")
# The names of TensorFlow's nodes and datasets, which later versions put first.
_NODES = re.compile(
    r"\{\{.*?\}\}|\[Op:.*|Error in user-defined function passed to \S+ transformation with iterator: \S+: "
)
# The loader's own messages: of a record (`with_error_context`), and of reading in Python (`random_access`).
_OURS = re.compile(r"assertion failed: \[(.*)\]|(?:Dataset|Storage)Error: (.*)", re.ASCII)
# TensorFlow's C escapes of an assertion's text; characters that would end or hide a line stay escaped.
_ESCAPED = re.compile(rb"\\([2-3][0-7]{2}|[\\'\"])")


def require(condition: Tensor, problem: str, value: Tensor) -> Tensor:
    """Returns a value where a condition holds; otherwise ends the iteration, which `with_error_context` explains.

    Args:
        condition: boolean scalar.
        problem: the message of the error: what is wrong, and what to do.
        value: usable only where the condition holds.
    """
    with tf.control_dependencies(
        [tf.raw_ops.Assert(condition=condition, data=[tf.constant(problem.encode("utf-8", "surrogateescape"))])]
    ):
        return tf.identity(value)


def threads_of_decoding() -> int:
    """Returns twice the number of processors, so that decoding never waits for batching."""
    return 2 * usable_cores()


def calls_at_once(batch: int, threads: int) -> int:
    """Returns how many examples are in progress: more than a batch, so that no thread waits for its last one."""
    return max(threads, min(batch + threads, _MOST_CALLS))


class ErrorContext:
    """Explains why a record fails.

    Attributes:
        read_errors: keeps the errors of the functions that read records in Python.

    Args:
        shards: all shards of the split.
        problem: returns what is wrong with a serialized example; empty when nothing is. It gets an empty one for a
            record that cannot be read.
    """

    def __init__(self, shards: Sequence[LocatedShard], problem: Callable[[bytes], str]) -> None:
        self.read_errors = ReadErrors()
        self._problem = problem
        self._shards = list(shards)
        self._begins = list(accumulate((shard.records for shard in self._shards), initial=0))

    def explain(self, positions: Sequence[int]) -> str:
        """Returns the name of the first wrong record of some, and what is wrong with it; empty when none is.

        The shards are read from their beginning, so that an earlier record that damages the rest of its shard is found.

        Args:
            positions: in the split, ascending.

        Raises:
            StorageError: the object store does not answer.
        """
        if why := self.read_errors.why():
            return why
        # The last of the shards that begin there: those before it are empty.
        shard_of = partial(bisect_right, self._begins, hi=len(self._shards))
        for end, wanted in groupby(positions, shard_of):
            shard, begin = self._shards[end - 1], self._begins[end - 1]
            for record, payload in _payloads(shard, {position - begin for position in wanted}):
                if message := self._problem(payload):
                    return f"{_named(shard, record)}: {message}"
        return ""


def _payloads(shard: LocatedShard, wanted: Set[int]) -> Iterator[tuple[int, bytes]]:
    """Yields numbers and payloads of wanted records of a shard, until one cannot be read."""
    record, last = 0, max(wanted)
    with suppress(RecordError, FileNotFoundError):
        for record, (_, payload) in enumerate(read_records(shard.file)):
            if record in wanted:
                yield record, payload
            if record == last:
                return
            record += 1
    yield record, b""


def _named(shard: LocatedShard, record: int) -> str:
    """Returns shard, number, offset and key of a record."""
    row: dict[str, Any] = {}
    # A damaged index must not hide what is wrong with the record.
    with suppress(OSError, ValueError), open_file(shard.index) as lines:
        row = next((json.loads(line) for count, line in enumerate(lines) if count == record), {})
    return f"{shard.path}, record {record} at byte {row.get('offset', '?')}, key {row.get('key', '?')}"


class ReadErrors:
    """Keeps the last error of a function: of an error in Python, TensorFlow may keep no more than a missing batch."""

    def __init__(self) -> None:
        self._why = ""

    def watched(self, read: Callable[_Given, _Read]) -> Callable[_Given, _Read]:
        """Returns a function whose last error is kept."""

        def watching(*given: _Given.args, **named: _Given.kwargs) -> _Read:
            try:
                return read(*given, **named)
            except ShardwrightError as error:
                self._why = str(error)
                raise
            except Exception as error:
                self._why = describe_os_error(error) if isinstance(error, OSError) else repr(error)
                raise

        return watching

    def why(self) -> str:
        """Returns the message of the last error, once; empty where there was none."""
        why, self._why = self._why, ""
        return why


def with_error_context(
    records: Any,
    make: Callable[[Tensor, Record], Any],
    explain: Callable[[list[int]], str],
    *,
    count: int | None,
    threads: int | None = None,
    batch: int | None = None,
    drop_remainder: bool = False,
) -> Any:
    """Makes an example of every record; an error names the record that is wrong.

    Args:
        records: a `tf.data.Dataset` of dicts with `position`.
        make: makes an example of the number of an element, from 0, and of the element; may fail.
        explain: returns which of some records is the first wrong one, and why; empty when none is. It gets positions
            in ascending order, all failed ones among them.
        count: how many elements there are; `None`: without end.
        threads: examples that are made concurrently; with `batch`, `calls_at_once` of them. By default as many as
            decoding needs.
        batch: examples of a batch; by default they come one by one.
        drop_remainder: leave out a last batch that is not full.

    Returns:
        A `tf.data.Dataset` of examples, or batches of them, in the order of the records. After a wrong one, only its
        error follows.

    Raises:
        tf.errors.InvalidArgumentError: while iterating, in the place of a wrong record or its batch; names the record.
    """
    each, threads = batch or 1, threads or threads_of_decoding()

    def watched(_: Tensor) -> Any:
        # Called by every iterator, so that each has its own table.
        progress = _InProgress()

        def begin(number: Tensor, record: Record) -> tuple[Tensor, Any]:
            # `make` is not within the control dependencies: constants would wait there, and TensorFlow not fold them.
            return record["position"], make(number, progress.add(record))

        # Not by `enumerate`, within a function: Grappler would rewrite its numbers.
        numbered = tf.data.Dataset.zip((tf.data.Dataset.range(_FOREVER), records))
        if batch is None:
            made = numbered.map(no_autograph(begin), num_parallel_calls=threads, deterministic=True)
        else:
            options = {"num_parallel_calls": calls_at_once(batch, threads), "drop_remainder": drop_remainder}
            made = numbered.apply(_map_and_batch(no_autograph(begin), batch, **options))
        # An error is left out and the next number asked for, which is too large then: this ends the stream. Otherwise
        # TensorFlow would search for the next element without an error, for ever where there is none.
        numbers = tf.data.Dataset.range(0, _FOREVER, each)
        numbers = numbers.take_while(no_autograph(lambda number: tf.equal(progress.done(), number)))
        examples = tf.data.Dataset.zip((numbers, made)).ignore_errors()
        examples = examples.map(no_autograph(lambda number, pair: progress.finish(pair[0], number + each, pair[1])))
        # If nothing fails there are as many elements as `count` takes, and `fail` is never called.
        fail = no_autograph(lambda _: progress.fail(explain, made.element_spec[1]))
        examples = examples.concatenate(tf.data.Dataset.range(_FOREVER).map(fail))
        elements = None if count is None else count // each if drop_remainder else -(-count // each)
        return examples if elements is None else examples.take(elements)

    return tf.data.Dataset.from_tensors(0).flat_map(no_autograph(watched))


class _InProgress:
    """The positions of the records in progress, and how many elements are finished, in a hash table."""

    def __init__(self) -> None:
        self._table = tf.raw_ops.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.int64)

    def add(self, record: Record) -> Record:
        key = tf.reshape(record["position"], [1])
        noted = tf.raw_ops.LookupTableInsertV2(table_handle=self._table, keys=key, values=key)
        return _after(noted, record)

    def finish(self, positions: Tensor, done: Tensor, example: Any) -> Any:
        removed = tf.raw_ops.LookupTableRemoveV2(table_handle=self._table, keys=tf.reshape(positions, [-1]))
        with tf.control_dependencies([removed]):
            keys = [tf.constant(_DONE, tf.int64)]
            noted = tf.raw_ops.LookupTableInsertV2(table_handle=self._table, keys=keys, values=[done])
        return _after(noted, example)

    def done(self) -> Tensor:
        """Returns how many elements are finished."""
        keys, none = [tf.constant(_DONE, tf.int64)], tf.constant(0, tf.int64)
        return tf.raw_ops.LookupTableFindV2(table_handle=self._table, keys=keys, default_value=none)[0]

    def fail(self, explain: Callable[[list[int]], str], spec: Any) -> Any:
        """Fails with the explanation; its types and shapes are those of an example."""

        def message(numbers: npt.NDArray[np.int64]) -> bytes:
            problem = explain(sorted(position for position in numbers.tolist() if position != _DONE))
            return (problem or _UNEXPLAINED).encode("utf-8", "surrogateescape")

        kinds = {"Tkeys": tf.int64, "Tvalues": tf.int64}
        positions = tf.raw_ops.LookupTableExportV2(table_handle=self._table, **kinds).keys
        text = tf.ensure_shape(tf.numpy_function(message, [positions], tf.string), [])
        with tf.control_dependencies([tf.raw_ops.Assert(condition=False, data=[text])]):
            return tf.nest.map_structure(lambda part: tf.zeros([side or 1 for side in part.shape], part.dtype), spec)


def _after(operation: Any, values: Any) -> Any:
    """Returns values once an operation is done."""
    with tf.control_dependencies([operation]):
        return tf.nest.map_structure(tf.identity, values)


def error_message(error: tf.errors.OpError) -> str:
    """Returns an error's first line without the names of TensorFlow's nodes; of a message of the loader, only that."""
    line = _first_line(error)
    match = _OURS.fullmatch(line)
    if match is None:
        return line
    if match[2]:
        return match[2]
    octets = _ESCAPED.sub(lambda c: bytes([int(c[1], 8)]) if len(c[1]) == 3 else c[1], match[1].encode())
    return octets.decode(errors="replace")


def with_plain_errors(batches: Iterator[_Batch]) -> Iterator[_Batch]:
    """Yields batches; a damaged record, or a store that does not answer, ends them with a `DatasetError`.

    Args:
        batches: an iterator over the dataset that `load` returns.

    Raises:
        DatasetError: while iterating; names shard, record, offset and key. A defect of ours stays as it is.
    """
    try:
        yield from batches
    except tf.errors.OpError as error:
        if _OURS.fullmatch(_first_line(error)) is None:
            raise
        raise DatasetError(error_message(error)) from None


def _first_line(error: tf.errors.OpError) -> str:
    lines = str(error.message).splitlines() or [""]
    return _NODES.sub("", lines[0]).strip()
