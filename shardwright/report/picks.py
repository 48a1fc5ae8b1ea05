"""Which images are shown: the first few by some score, kept while all go by, and read again in the end."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from shardwright.dataset import LocatedShard
from shardwright.errors import DatasetError
from shardwright.storage import is_remote, open_file, part_path, read_bytes
from shardwright.tfrecords.records import HEADER_BYTES, frame_length, header_holds, unframe

# Bytes that are fetched of a record before its length is known.
_FIRST = 1 << 16


class Place(NamedTuple):
    """Where a record lies.

    Attributes:
        shard: position among the shards of the dataset.
        offset: of its frame.
    """

    shard: int
    offset: int


class Pick(NamedTuple):
    """An image that is going to be shown; the order is that of the scores.

    Attributes:
        score: why it was chosen.
        key: its key.
        place: where its record lies.
        label: the class whose mask it is shown for; -1 for none.
    """

    score: float
    key: str
    place: Place
    label: int = -1


class Lowest:
    """Keeps those with the lowest scores, in memory that does not grow.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._picks: list[Pick] = []
        self._limit = float("inf")

    def offer(self, score: float, key: str, place: Place, label: int = -1) -> None:
        """Takes part in the choice."""
        if score > self._limit:
            return
        self._picks.append(Pick(score, key, place, label))
        if len(self._picks) >= 4 * self._count + 16:
            self._settle()

    def picks(self) -> list[Pick]:
        """Those chosen, the lowest first."""
        self._settle()
        return list(self._picks)

    def _settle(self) -> None:
        self._picks = sorted(self._picks)[: self._count]
        if len(self._picks) == self._count:
            self._limit = self._picks[-1].score if self._picks else -float("inf")


def read_again(shards: Sequence[LocatedShard], place: Place) -> bytes:
    """The payload of a record.

    Raises:
        DatasetError: it is damaged, or has changed since it was read.
    """
    shard = shards[place.shard]
    try:
        if is_remote(shard.file):
            return record_at(io.BytesIO(_fetched(shard.file, place.offset)), place.offset, shard.file, begin=0)
        with open_file(shard.file) as file:
            return record_at(file, place.offset, shard.file)
    except OSError as error:
        raise DatasetError(f"{shard.file}: cannot be read ({error.strerror or error}). Restore it.") from None


class Seekable(Protocol):
    """What `record_at` needs of a file."""

    def seek(self, offset: int, /) -> Any:
        """Goes to a place."""
        ...

    def read(self, size: int, /) -> bytes:
        """At most so many bytes from there."""
        ...


def record_at(file: Seekable, offset: int, name: str, *, begin: int | None = None) -> bytes:
    """The payload of the record at an offset of an open shard.

    Args:
        file: the shard, or a part of it.
        offset: of the record's frame.
        name: the shard's, for messages.
        begin: where the frame begins in the file, where that is only a part.

    Raises:
        DatasetError: it is damaged, or another index's.
    """
    try:
        file.seek(offset if begin is None else begin)
        header = file.read(HEADER_BYTES)
        rest = file.read(max(0, frame_length(header) - HEADER_BYTES))
        return unframe(header + rest, f"{name} at offset {offset}")
    except (ValueError, TypeError, struct.error) as error:
        told = f"{name}: damaged, or changed while it was read ({error})"
        raise DatasetError(f"{told}. `shardwright verify` names all that is damaged.") from None


def _fetched(url: str, offset: int) -> bytes:
    """What an object holds from an offset on: a whole frame at least, mostly by one request."""
    start = read_bytes(part_path(url, offset, offset + _FIRST))
    head = start[:HEADER_BYTES]
    length = frame_length(head) if len(head) == HEADER_BYTES and header_holds(head) else 0
    if length <= len(start):
        return start
    return start + read_bytes(part_path(url, offset + len(start), offset + length))


def key_folder(key: str) -> str:
    """The first folder of a key, which mostly names a source; empty where it has none."""
    return os.path.dirname(key).split("/", 1)[0]
