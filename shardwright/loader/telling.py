"""What an error of TensorFlow says of a dataset, in a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

import tensorflow as tf

from shardwright.errors import DatasetError

_Batch = TypeVar("_Batch")

# The names of TensorFlow's nodes, and of its datasets, which later ones put before all else.
_NODES = re.compile(
    r"\{\{.*?\}\}|\[Op:.*|Error in user-defined function passed to \S+ transformation with iterator: \S+: "
)
# What the loader says itself: of a record (`naming.guarded`), and where it reads in Python (`random_access`).
_OURS = re.compile(r"assertion failed: \[(.*)\]|(?:Dataset|Storage)Error: (.*)", re.ASCII)
# What TensorFlow escapes of an assertion's text, as C does; marks that would end or hide a line stay escaped.
_ESCAPED = re.compile(rb"\\([2-3][0-7]{2}|[\\'\"])")


def plain_message(error: tf.errors.OpError) -> str:
    """An error's first line without the names of TensorFlow's nodes; of what the loader says itself, only that."""
    said = _first_line(error)
    found = _OURS.fullmatch(said)
    if found is None:
        return said
    return found[2] or _ESCAPED.sub(_meant, found[1].encode()).decode(errors="replace")


def told(batches: Iterator[_Batch]) -> Iterator[_Batch]:
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
        raise DatasetError(plain_message(error)) from None


def _meant(escaped: re.Match[bytes]) -> bytes:
    return bytes([int(escaped[1], 8)]) if len(escaped[1]) == 3 else escaped[1]


def _first_line(error: tf.errors.OpError) -> str:
    said = str(error.message).splitlines() or [""]
    return _NODES.sub("", said[0]).strip()
