"""Records of a split in any order, by the index: one read for each, checksums verified, no shard read through.

Shards may lie on an object store. There a read is a request, so many of them are in flight, and records that lie side
by side are read in one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import numpy as np

from shardwright.dataset import LocatedShard
from shardwright.epochs.sequence import Integers, Records
from shardwright.errors import DatasetError
from shardwright.manifest import IndexRow
from shardwright.storage import in_parallel, is_remote, open_file, part_path, read_bytes, readers
from shardwright.tfrecords.records import RecordError, unframe

# How a line of an index ends, and about how many bytes of lines are read at a time.
_WRITTEN = re.compile(rb',"length":([0-9]{1,18}),"offset":([0-9]{1,18})\}\n?\Z')
_LINES = 1 << 20


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
            self._frames = list(in_parallel(_frames, self._shards, readers(self._shards[0].file)))
        else:
            self._frames = [_frames(shard) for shard in self._shards]

    def read(self, records: Records) -> list[bytes]:
        """The payloads of records, in their order.

        Raises:
            DatasetError: a record is damaged or gone; names shard, number, offset and key.
            StorageError: the object store does not answer.
        """
        places = zip(records.shard.tolist(), records.record.tolist(), strict=True)
        if self._remote:
            return list(in_parallel(lambda place: self._read(*place), places, readers(self._shards[0].file)))
        return [self._read(shard, record) for shard, record in places]

    def read_stretch(self, shard: int, first: int, records: int) -> list[bytes]:
        """The payloads of records that follow each other in a shard, by one read. See `read`."""
        frames = self._frames[shard][first : first + records]
        start, stop = int(frames[0, 0]), int(frames[-1].sum())
        try:
            data = self._bytes(shard, start, stop)
        except OSError as error:
            raise self._damaged(shard, first, error) from None
        return [
            self._unframe(shard, first + number, data[offset - start : offset - start + length])
            for number, (offset, length) in enumerate(frames.tolist())
        ]

    def lengths(self, shard: int) -> Integers:
        """Bytes of every record of a shard, with its frame."""
        return self._frames[shard][:, 1]

    def _read(self, shard: int, record: int) -> bytes:
        offset, length = self._frames[shard][record].tolist()
        try:
            framed = self._bytes(shard, offset, offset + length)
        except OSError as error:
            raise self._damaged(shard, record, error) from None
        return self._unframe(shard, record, framed)

    def _bytes(self, shard: int, start: int, stop: int) -> bytes:
        path = self._shards[shard].file
        if is_remote(path):
            return read_bytes(part_path(path, start, stop))
        with open(path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), stop - start, start)

    def _unframe(self, shard: int, record: int, framed: bytes) -> bytes:
        try:
            return unframe(framed, f"{self._shards[shard].path}, record {record}")
        except RecordError as error:
            raise self._damaged(shard, record, error) from None

    def _damaged(self, shard: int, record: int, error: Exception) -> DatasetError:
        where = self._shards[shard]
        offset = int(self._frames[shard][record, 0])
        return DatasetError(f"{error} (at byte {offset}, key {_key(where, record)!r}). Write the dataset anew.")


def _frames(shard: LocatedShard) -> Integers:
    """Offset and length of every frame of a shard, int64 [n, 2]: 16 bytes a record, whatever the keys."""
    frames = np.empty((shard.records, 2), np.int64)
    count = 0
    try:
        with open_file(shard.index) as file:
            while lines := file.readlines(_LINES):
                found = _places(lines)
                frames[count : count + len(found)] = found[: max(0, shard.records - count)]
                count += len(found)
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise DatasetError(f"{shard.index}: no readable index ({error}). Write the dataset anew.") from None
    if count != shard.records:
        raise DatasetError(
            f"{shard.index}: names {count} records, the manifest {shard.records}. Write the dataset anew."
        )
    return frames


def _places(lines: list[bytes]) -> Integers:
    """Offset and length of each line of an index."""
    # As the index is written, which is quick to read; keys may hold anything, but what ends a line is no part of one.
    found = [_WRITTEN.search(line) for line in lines]
    if all(found):
        numbers = b" ".join(b"%b %b" % match.group(2, 1) for match in found if match)
        return np.array(numbers.split(), np.int64).reshape(-1, 2)
    rows = [IndexRow.from_json(line) for line in lines]
    return np.array([(row.offset, row.length) for row in rows], np.int64).reshape(-1, 2)


def _key(shard: LocatedShard, record: int) -> str:
    with open_file(shard.index) as lines:
        for number, line in enumerate(lines):
            if number == record:
                return IndexRow.from_json(line).key
    return ""
