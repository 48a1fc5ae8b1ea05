"""Reads single records of shards in any order, by the index; checksums are verified.

On an object store each read is a request, so many requests are in flight. `records_at` reads records that are close to
each other in one request. `SameDataset` checks that a folder still contains the dataset that was opened, for readers
that open its files by name.
"""

from __future__ import annotations

import io
import os
import re
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from shardwright.dataset.manifest import MANIFEST_FILE, IndexRow
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.errors import DatasetError
from shardwright.storage import buckets, is_remote, map_threads, open_file, part_path, read_bytes, readers
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import HEADER_BYTES, frame_length, header_is_valid, unframe

Integers = npt.NDArray[np.int64]
# The end of a line of an index, and the bytes of lines to read in one step.
_WRITTEN = re.compile(rb',"length":([0-9]{1,18}),"offset":([0-9]{1,18})\}\n?\Z')
_LINES = 1 << 20
# Bytes of a request, and of the largest gap between two of its records.
_PIECE = 4 << 20
_GAP = 1 << 17
# Requests in flight: with 30 ms each, a gigabyte a second; and what waits stays under a hundred megabytes.
_REQUESTS = 8
_Item = TypeVar("_Item")
# Bytes to fetch of a record before its length is known.
_FIRST = 1 << 16
# A request for each record would take longer than to read it.
_SECONDS_BETWEEN_REQUESTS = 60.0
_State = tuple[object, ...]


class RecordIndices(NamedTuple):
    """Records by shard and position.

    Attributes:
        shard: numbers of their shards, int64 [n].
        record: positions in those shards, int64 [n].
    """

    shard: Integers
    record: Integers


class RandomAccess:
    """Reads records by shard and position. Usable from several threads.

    A shard is opened for each read: that costs microseconds, and no number of shards runs into the limit of open
    files.

    Args:
        shards: the shards, in the order that `Records.shard` numbers them.

    Raises:
        DatasetError: an index is missing, damaged, or of another number of records.
    """

    def __init__(self, shards: Sequence[LocatedShard]) -> None:
        self._shards = list(shards)
        self._remote = any(is_remote(shard.file) for shard in self._shards)
        if self._remote:
            self._frames = list(map_threads(_frames, self._shards, readers(self._shards[0].file)))
        else:
            self._frames = [_frames(shard) for shard in self._shards]
        self._same = SameDataset(self._shards)

    def read(self, records: RecordIndices) -> list[bytes]:
        """Returns the payloads of records, in their order.

        Raises:
            DatasetError: a record is damaged or gone; names shard, number, offset and key. Or the folder contains
                another dataset than at the beginning.
            StorageError: the object store does not answer.
        """
        if self._remote:
            indices = zip(records.shard.tolist(), records.record.tolist(), strict=True)
            readers_of = readers(self._shards[0].file)
            return list(map_threads(lambda index: self.read_range(*index, 1)[0], indices, readers_of))
        found = [b""] * len(records.shard)
        for shard in np.unique(records.shard).tolist():
            places = np.flatnonzero(records.shard == shard)
            mine = records.record[places]
            frames = self._frames[shard][mine].tolist()
            try:
                # Opened once for all of them: another thread may take Python's lock at each call of the system.
                with open(self._shards[shard].file, "rb", buffering=0) as file:
                    for place, record, (start, size) in zip(places.tolist(), mine.tolist(), frames, strict=True):
                        # The frame is freed here, so that its memory is that of the next one.
                        found[place] = self._unframe(shard, record, os.pread(file.fileno(), size, start))
            except OSError as error:
                raise self._damaged(shard, int(mine[0]), error) from None
        self._same.check()
        return found

    def read_range(self, shard: int, first: int, records: int) -> list[bytes]:
        """Returns the payloads of records that follow each other in a shard, by one read. See `read`."""
        frames = self._frames[shard][first : first + records]
        start, stop = int(frames[0, 0]), int(frames[-1].sum())
        try:
            data = read_bytes(part_path(self._shards[shard].file, start, stop))
        except OSError as error:
            raise self._damaged(shard, first, error) from None
        found = [
            self._unframe(shard, first + number, data[offset - start : offset - start + length])
            for number, (offset, length) in enumerate(frames.tolist())
        ]
        self._same.check()
        return found

    def lengths(self, shard: int) -> Integers:
        """Returns the bytes of every record of a shard, with its frame."""
        return self._frames[shard][:, 1]

    def _unframe(self, shard: int, record: int, framed: bytes) -> bytes:
        try:
            return unframe(framed, f"{self._shards[shard].path}, record {record}")
        except RecordError as error:
            raise self._damaged(shard, record, error) from None

    def _damaged(self, shard: int, record: int, error: Exception) -> DatasetError:
        self._same.check()
        where = self._shards[shard]
        offset = int(self._frames[shard][record, 0])
        return DatasetError(f"{error} (at byte {offset}, key {_key(where, record)!r}). Re-create the dataset.")


def _frames(shard: LocatedShard) -> Integers:
    """Returns offset and length of every frame of a shard, int64 [n, 2]: 16 bytes a record, for keys of any length."""
    frames = np.empty((shard.records, 2), np.int64)
    count = 0
    try:
        with open_file(shard.index) as file:
            while lines := file.readlines(_LINES):
                # Our own form of a line is quick to read. A key may contain anything, but never the end of a line.
                matches = [_WRITTEN.search(line) for line in lines]
                if all(matches):
                    numbers = b" ".join(b"%b %b" % match.group(2, 1) for match in matches if match)
                    found = np.array(numbers.split(), np.int64).reshape(-1, 2)
                else:
                    rows = [IndexRow.from_json(line) for line in lines]
                    found = np.array([(row.offset, row.length) for row in rows], np.int64).reshape(-1, 2)
                frames[count : count + len(found)] = found[: max(0, shard.records - count)]
                count += len(found)
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise DatasetError(f"{shard.index}: not a readable index ({error}). Re-create the dataset.") from None
    if count != shard.records:
        raise DatasetError(
            f"{shard.index}: names {count} records, the manifest {shard.records}. Re-create the dataset."
        )
    return frames


def _key(shard: LocatedShard, record: int) -> str:
    with suppress(OSError), open_file(shard.index) as lines:
        for number, line in enumerate(lines):
            if number == record:
                return IndexRow.from_json(line).key
    return ""


@dataclass
class _Piece:
    """A range of a file, and the wanted records in it: offset, length, item."""

    file: int
    start: int
    stop: int
    wanted: list[tuple[int, int, Any]]


def records_at(
    files: Sequence[str], places: Iterable[tuple[Sequence[int], _Item]]
) -> Iterator[tuple[_Item, bytes | None]]:
    """Reads records, the next ones while the caller works with one.

    Args:
        files: files of records, or their URLs.
        places: (file, offset, length) of each record, and an item to return with it; taken some megabytes ahead.

    Yields:
        The item of each, in order, and the payload; `None` where it is damaged or cannot be read.
    """

    def read(piece: _Piece) -> tuple[_Piece, bytes]:
        try:
            return piece, read_bytes(part_path(files[piece.file], piece.start, piece.stop))
        except OSError:
            return piece, b""

    pieces = map_threads(read, _pieces(places), _REQUESTS, lambda piece: piece.stop - piece.start)
    for piece, data in pieces:
        for offset, length, item in piece.wanted:
            begin = offset - piece.start
            payload = None
            with suppress(RecordError):
                payload = unframe(data[begin : begin + length])
            yield item, payload


def _pieces(places: Iterable[tuple[Sequence[int], _Item]]) -> Iterator[_Piece]:
    piece: _Piece | None = None
    for (file, offset, length), item in places:
        stop = offset + length
        if piece is not None and (
            piece.file != file or not 0 <= offset - piece.stop <= _GAP or stop - piece.start > _PIECE
        ):
            yield piece
            piece = None
        if piece is None:
            piece = _Piece(file, offset, stop, [])
        piece.stop = stop
        piece.wanted.append((offset, length, item))
    if piece is not None:
        yield piece


class RecordLocation(NamedTuple):
    """The location of a record.

    Attributes:
        shard: position among the shards of the dataset.
        offset: of its frame.
    """

    shard: int
    offset: int


def read_record(shards: Sequence[LocatedShard], place: RecordLocation) -> bytes:
    """Returns the payload of a record.

    Raises:
        DatasetError: it is damaged, or has changed since it was read.
    """
    shard = shards[place.shard]
    try:
        if is_remote(shard.file):
            return read_record_at(io.BytesIO(_fetched(shard.file, place.offset)), place.offset, shard.file, begin=0)
        with open_file(shard.file) as file:
            return read_record_at(file, place.offset, shard.file)
    except OSError as error:
        raise DatasetError(f"{shard.file}: cannot be read ({error.strerror or error}). Restore it.") from None


class Seekable(Protocol):
    """The methods of a file that `read_record_at` needs."""

    def seek(self, offset: int, /) -> Any:
        """Goes to a place."""
        ...

    def read(self, size: int, /) -> bytes:
        """Returns at most so many bytes from there."""
        ...


def read_record_at(file: Seekable, offset: int, name: str, *, begin: int | None = None) -> bytes:
    """Returns the payload of the record at an offset of an open shard.

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
        message = f"{name}: damaged, or changed while it was read ({error})"
        raise DatasetError(f"{message}. Run `shardwright verify` for a list of all damage.") from None


def _fetched(url: str, offset: int) -> bytes:
    """Reads an object from an offset on: at least a whole frame, mostly by one request."""
    start = read_bytes(part_path(url, offset, offset + _FIRST))
    head = start[:HEADER_BYTES]
    length = frame_length(head) if len(head) == HEADER_BYTES and header_is_valid(head) else 0
    if length <= len(start):
        return start
    return start + read_bytes(part_path(url, offset + len(start), offset + length))


class SameDataset:
    """Checks that the folder of some shards contains the same dataset as when it was opened.

    A folder may be replaced by a dataset with shards of the same names and sizes while a training reads it. Usable
    from several threads, and picklable.

    Args:
        shards: of one dataset.

    Raises:
        DatasetError: it is another dataset already.
    """

    def __init__(self, shards: Sequence[LocatedShard]) -> None:
        self._shards = list(shards)
        self._root = shards[0].file.removesuffix(shards[0].path).rstrip("/") if shards else ""
        self._remote = is_remote(self._root)
        self._state: _State | None = None
        self._next = time.monotonic() + _SECONDS_BETWEEN_REQUESTS
        self.check()

    def check(self) -> None:
        """Checks it now, after a file was opened or read. A bucket is asked once a minute.

        Raises:
            DatasetError: the manifest is gone, or has changed and states another checksum of a shard, or none.
        """
        if self._remote:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + _SECONDS_BETWEEN_REQUESTS
        state = self._now()
        if state is None and self._state is not None:
            raise DatasetError(f"{self._root}: the dataset was deleted while it was read. Create and load it again.")
        if state == self._state:
            return
        try:
            now = {shard.path: shard.checksum for shard in ImageDataset.open(self._root).manifest.shards}
        except DatasetError as error:
            raise DatasetError(f"{self._root}: has changed since it was loaded ({error})") from None
        if any(now.get(shard.path) != shard.checksum for shard in self._shards):
            raise DatasetError(f"{self._root}: contains another dataset now than when it was loaded. Load it again.")
        self._state = state

    def _now(self) -> _State | None:
        """Returns what changes with every new manifest; nothing where there is none: copied shards never have one."""
        file = f"{self._root}/{MANIFEST_FILE}"
        if self._remote:
            info = buckets.stat(file)
            return None if info is None else (info.pin, info.size, info.checksum)
        try:
            found = os.stat(file)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns
