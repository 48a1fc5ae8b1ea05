"""Which record an error means: its shard, its number there, where it begins, and its key.

What is told of a record is read from its index only when something is wrong with it: in a branch of the graph that a
whole dataset never enters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright.dataset import LocatedShard
from shardwright.storage import is_remote, read_bytes

Tensor = Any

# An index has a line of JSON for each record, its keys sorted.
_KEY = r'^.*"key":"((?:[^"\\]|\\.)*)".*$'
_OFFSET = r'^.*"offset":([0-9]+).*$'


class Naming:
    """Names records by their position in a split.

    Args:
        shards: all shards of the split.
    """

    def __init__(self, shards: Sequence[LocatedShard]) -> None:
        self._paths = [shard.path for shard in shards]
        self._indexes = [shard.index for shard in shards]
        self._ends = np.cumsum([shard.records for shard in shards], dtype=np.int64)
        self._begins = np.array([0, *accumulate(shard.records for shard in shards)][:-1], np.int64)
        self._told = tf.function(self._name, input_signature=[tf.TensorSpec([], tf.int64)], autograph=False)

    def require(self, holds: Tensor, position: Tensor, problem: Callable[[], Tensor | str], value: Tensor) -> Tensor:
        """A value, or the end of the iteration where something does not hold.

        Args:
            holds: boolean scalar.
            position: int64 scalar, of the record that it must hold for.
            problem: says what is wrong, and what to do.
            value: what is fit to be used only where it holds.

        Returns:
            The value.

        Raises:
            tf.errors.InvalidArgumentError: while iterating; names the record.
        """

        def fail() -> Tensor:
            text = tf.strings.join([self._told(position), ": ", problem()])
            with tf.control_dependencies([tf.debugging.Assert(tf.constant(False), [text])]):
                return tf.constant(False)

        with tf.control_dependencies([tf.cond(holds, lambda: tf.constant(True), fail)]):
            return tf.identity(value)

    def _name(self, position: Tensor) -> Tensor:
        shard = tf.searchsorted(tf.constant(self._ends), position[tf.newaxis], side="right")[0]
        number = position - tf.gather(tf.constant(self._begins), shard)
        path = tf.gather(tf.constant(self._paths), shard)
        line = self._line(tf.gather(tf.constant(self._indexes), shard), number)
        key = tf.strings.regex_replace(line, _KEY, r"\1")
        offset = tf.strings.regex_replace(line, _OFFSET, r"\1")
        place = tf.strings.join([", record ", tf.strings.as_string(number), " at byte ", offset, ", key ", key])
        return tf.strings.join([path, place])

    def _line(self, index: Tensor, number: Tensor) -> Tensor:
        if any(is_remote(path) for path in self._indexes):
            text = tf.ensure_shape(tf.numpy_function(_read, [index], tf.string), [])
        else:
            text = tf.io.read_file(index)
        lines = tf.strings.split(text, "\n")
        return tf.gather(lines, tf.minimum(number, tf.size(lines, tf.int64) - 1))


def _read(index: bytes) -> bytes:
    return read_bytes(index.decode())
