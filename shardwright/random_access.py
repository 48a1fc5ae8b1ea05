"""Records of a split in any order, by the index: one read for each, checksums verified, no shard read through."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import numpy as np

from shardwright.dataset import LocatedShard
from shardwright.errors import DatasetError
from shardwright.records import RecordError, unframe
from shardwright.sequence import Integers, Records


class RandomAccess:
    """Reads records by shard and position. Usable from several threads.

    A shard is opened for each record: that costs microseconds, and no number of shards runs into the limit of open
    files.

    Args:
        shards: the shards, in the order that `Records.shard` numbers them.

    Raises:
        DatasetError: an index is missing, damaged, or of another number of records.
    """

    def __init__(self, shards: Sequence[LocatedShard]) -> None:
        self._shards = list(shards)
        self._frames = [_frames(shard) for shard in self._shards]

    def read(self, records: Records) -> list[bytes]:
        """The payloads of records, in their order.

        Raises:
            DatasetError: a record is damaged or gone; names shard, number and key.
        """
        return [
            self._read(shard, record)
            for shard, record in zip(records.shard.tolist(), records.record.tolist(), strict=True)
        ]

    def _read(self, shard: int, record: int) -> bytes:
        offset, length = self._frames[shard][record].tolist()
        where = self._shards[shard]
        try:
            with open(where.file, "rb", buffering=0) as file:
                return unframe(os.pread(file.fileno(), length, offset), f"{where.path}, record {record}")
        except (OSError, RecordError) as error:
            raise DatasetError(f"{error} (key {_key(where, record)!r}). Write the dataset anew.") from None


def _frames(shard: LocatedShard) -> Integers:
    """Offset and length of every frame of a shard, int64 [n, 2]: 16 bytes a record, whatever the keys."""
    frames = np.empty((shard.records, 2), np.int64)
    count = 0
    try:
        with shard.index_file.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if count < shard.records:
                    frames[count] = row["offset"], row["length"]
                count += 1
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{shard.index_file}: no readable index ({error}). Write the dataset anew.") from None
    if count != shard.records:
        raise DatasetError(
            f"{shard.index_file}: names {count} records, the manifest {shard.records}. Write the dataset anew."
        )
    return frames


def _key(shard: LocatedShard, record: int) -> str:
    with shard.index_file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number == record:
                return str(json.loads(line)["key"])
    return ""
