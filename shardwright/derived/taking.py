"""Reading what is taken of other datasets: whole shards, held against the manifest's hash, or a few proven records.

A manifest answers for whole shards only: an index says where records lie and not what they are, and a record's own
CRC-32C tells damage from what is sound, not one sound record from another. So a shard has to be read through before
anything is known of its records. Who has done that already, and kept what every record was (`Proofs`), has those few
that are wanted read by their places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import IO, NamedTuple

from shardwright.dataset import Dataset, LocatedShard
from shardwright.errors import DatasetError
from shardwright.report.picks import record_at
from shardwright.storage import open_file
from shardwright.tfrecords.record_ranges import records_at

# Shard's file -> offset of a record -> SHA-256 of its serialized example, of shards that were the manifest's.
Proofs = Mapping[str, Mapping[int, bytes]]
# Where more of a shard's bytes are taken, the whole of it is read: one stream, and what lies between is hardly more.
SPARSE = 1 / 3
_PIECE = 1 << 20


class _Taken(NamedTuple):
    """What is taken of a shard.

    Attributes:
        shard: the shard.
        records: key, offset and length of the frame of each record, in their order.
    """

    shard: LocatedShard
    records: list[tuple[str, int, int]]


def taken_places(source: Dataset, shard: LocatedShard, choose: Callable[[str], bool]) -> Iterator[tuple[str, int, int]]:
    """Key, offset and length of the frame of every record of a shard whose key is chosen; no record is read."""
    before: tuple[str, int] | None = None
    for key, offset in source.entries(shard):
        if before is not None:
            yield (*before, offset - before[1])
        before = (key, offset) if choose(key) else None
    if before is not None:
        yield (*before, shard.bytes - before[1])


def taken_records(
    sources: Iterable[Dataset], split: str, choose: Callable[[str], bool], proofs: Proofs
) -> Iterator[tuple[str, bytes]]:
    """Key and serialized example of every record of a split that is taken.

    Args:
        sources: the datasets, in order.
        split: which split; a dataset need not have it.
        choose: which keys are taken.
        proofs: what is known of records; shards that are not there are read whole.

    Raises:
        DatasetError: a shard is damaged or not the manifest's; of one that is read whole this shows after its last
            record.
    """
    taken = (
        _Taken(shard, list(taken_places(source, shard, choose)))
        for source in sources
        if split in source.splits
        for shard in source.shards(split)
    )
    wanted = (one for one in taken if one.records)
    # Neighbours together, so that the requests for one shard do not wait for those for the one before.
    for known, group in groupby(wanted, lambda one: _is_known(one, proofs)):
        read = partial(_proven, proofs) if known else _whole
        yield from read(group)


def _is_known(taken: _Taken, proofs: Proofs) -> bool:
    known = proofs.get(taken.shard.file, {})
    size = sum(length for _, _, length in taken.records)
    return size < SPARSE * taken.shard.bytes and all(offset in known for _, offset, _ in taken.records)


def _proven(proofs: Proofs, group: Iterable[_Taken]) -> Iterator[tuple[str, bytes]]:
    files: list[str] = []

    def places() -> Iterator[tuple[tuple[int, int, int], tuple[str, str, int]]]:
        for shard, records in group:
            files.append(shard.file)
            for key, offset, length in records:
                yield (len(files) - 1, offset, length), (key, shard.file, offset)

    for (key, file, offset), payload in records_at(files, places()):
        if payload is None or hashlib.sha256(payload).digest() != proofs[file][offset]:
            raise _another(file)
        yield key, payload


def _whole(group: Iterable[_Taken]) -> Iterator[tuple[str, bytes]]:
    for shard, records in group:
        with open_file(shard.file) as file:
            read = _ReadThrough(file)
            for key, offset, _ in records:
                yield key, record_at(read, offset, shard.file)
            if read.sha256() != shard.sha256:
                raise _another(shard.file)


def _another(file: str) -> DatasetError:
    return DatasetError(
        f"{file}: is not what the manifest says: damaged, or changed since. `shardwright verify` tells more."
    )


class _ReadThrough:
    """A file that is read from its beginning to its end, also between what is wanted of it: so its hash is known."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._at, self._digest = file, 0, hashlib.sha256()

    def seek(self, offset: int, /) -> None:
        """Goes on to a place."""
        while self._at < offset and self.read(min(_PIECE, offset - self._at)):
            continue

    def read(self, size: int, /) -> bytes:
        """At most so many bytes."""
        data = self._file.read(size)
        self._digest.update(data)
        self._at += len(data)
        return data

    def sha256(self) -> str:
        """Of the whole file, hex."""
        while self.read(_PIECE):
            continue
        return self._digest.hexdigest()
