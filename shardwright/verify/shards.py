"""Checks a shard and its index, and reports which record or line is damaged; or a file of TFRecords without a dataset.

The hashes in the manifest show whether a file is what was written. If one differs, the checksums of the records and the
offsets in the index locate the damage. Damage to a length, to its checksum, to a payload or to its checksum is
distinguished. A file without a dataset can be checked by lengths and checksums only.
"""

from __future__ import annotations

import itertools
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from shardwright.dataset.reader import LocatedShard
from shardwright.storage.checksum import BLAKE3, checksum_file, checksum_of, image_feature
from shardwright.storage.fingerprint import canonical_json
from shardwright.storage.limits import regular
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import (
    FOOTER_BYTES,
    HEADER_BYTES,
    AmbiguousExample,
    Place,
    check_example,
    checksum_difference,
    decode_example,
    feature_values,
    frame_length,
    header_is_valid,
)
from shardwright.tfrecords.scan import DAMAGED, TRUNCATED, scan_file
from shardwright.verify import findings as what
from shardwright.verify.damaged_ledger import Index, ledger_keys, read_index
from shardwright.verify.findings import VerifyFinding, VerifyReport

_KEY, _IMAGE = "image/key", "image/encoded"
_CODES = {DAMAGED: what.PAYLOAD_CHECKSUM, TRUNCATED: what.TRUNCATED}


@dataclass(frozen=True)
class ShardTask:
    """The input of a worker that checks one shard.

    Attributes:
        root: the dataset's folder.
        shard: the shard as the manifest lists it.
        number: its number in its split, from 0.
        index_checksum: hash of its index; empty if the manifest has none.
        ledger: the ledger's parts, relative to the root.
        deep: also hash every image.
        names: standard name of a feature -> its stored name (`Manifest.names`).
        url: URL of the dataset if the shard must be fetched first; else empty.
        algorithm: of the checksums of images (`Manifest.image_checksum`).
    """

    root: str
    shard: LocatedShard
    number: int
    index_checksum: str
    ledger: tuple[str, ...]
    deep: bool
    names: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    algorithm: str = BLAKE3


@dataclass
class ShardCheck:
    """The findings of one shard, and the number of records and bytes that were read."""

    findings: list[VerifyFinding] = field(default_factory=list)
    records: int = 0
    bytes: int = 0


class _Record(NamedTuple):
    """A record as found in the shard; `key` is `None` if it cannot be read."""

    offset: int
    length: int
    key: str | None


def check_shard(task: ShardTask) -> ShardCheck:
    """Checks a shard and its index."""
    shard = task.shard
    index = read_index(shard.index_file)
    index_path = os.path.relpath(shard.index_file, task.root)
    check = ShardCheck(bytes=index.bytes)
    try:
        size = os.stat(shard.file).st_size
        whole = checksum_file(shard.file) == shard.checksum
        walk = _Walk(task, index, size)
        records = list(walk.records())
    except OSError as error:
        check.findings.append(VerifyFinding(shard.path, what.MISSING, f"cannot be read ({error.strerror})"))
        return check
    check.records = len(records)
    check.bytes += size
    check.findings += walk.findings
    if whole and len(records) != shard.records:
        problem = f"contains {len(records)} records, the manifest lists {shard.records}"
        check.findings.append(VerifyFinding(shard.path, what.TOTALS, problem))
    if not whole and not walk.findings:
        code, problem = what.HASH, "its BLAKE3 is not the manifest's, though every record's checksum holds"
        if size != shard.bytes:
            code, problem = what.SIZE, f"{size} bytes, the manifest lists {shard.bytes}"
        check.findings.append(VerifyFinding(shard.path, code, problem))
    index_whole = index.checksum == task.index_checksum
    if index.problem:
        check.findings.append(VerifyFinding(index_path, what.MISSING, index.problem))
    elif whole or not index_whole:
        check.findings += _index_findings(task, index_path, index, records, index_whole)
    ends = [row.key if row else None for row in (index.rows[:1] + index.rows[-1:])] or [None, None]
    if index_whole and ends != [shard.first_key, shard.last_key]:
        problem = f"first and last key are {ends}, the manifest lists {[shard.first_key, shard.last_key]}"
        check.findings.append(VerifyFinding(index_path, what.TOTALS, problem))
    return check


class _Walk:
    """Walks through the frames of a shard; after a broken frame it resumes at the next offset of the index."""

    def __init__(self, task: ShardTask, index: Index, size: int) -> None:
        self.findings: list[VerifyFinding] = []
        self._task = task
        self._size = size
        self._rows = {row.offset: row for row in index.rows if row}
        self._offsets = sorted(self._rows)

    def records(self) -> Iterator[_Record]:
        """Yields every record that can be located, and adds to `findings`."""
        with open(self._task.shard.file, "rb", buffering=1 << 20, opener=regular) as file:
            offset = 0
            for number in itertools.count():
                if offset == self._size:
                    if number < self._task.shard.records:
                        self._cut(number, offset, "the file ends before it")
                    return
                length = self._length(file, number, offset)
                if length is None:
                    return
                yield _Record(offset, length, self._payload(file, number, offset, length))
                offset += length

    def _length(self, file: IO[bytes], number: int, offset: int) -> int | None:
        """Returns the length of the frame, or `None` if the rest of the file cannot be read."""
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES:
            self._cut(number, offset, f"{len(header)} bytes are left of its header")
            return None
        length = frame_length(header)
        if not header_is_valid(header):
            indexed = self._indexed_length(offset)
            if indexed is None:
                problem = "its length or the checksum of it is damaged, and without the index no later one can be found"
                self._find(what.LENGTH, problem, number, offset)
                return None
            if indexed == length:
                self._find(what.LENGTH_CHECKSUM, "the checksum of its length is damaged", number, offset)
            else:
                problem = f"its length is damaged: the frame has {indexed} bytes, but its length is {length}"
                self._find(what.LENGTH, problem, number, offset)
                length = indexed
        if offset + length > self._size:
            self._cut(number, offset, f"{self._size - offset} of its {length} bytes are left")
            return None
        return length

    def _indexed_length(self, offset: int) -> int | None:
        """Returns the length of a frame from its index row, or from that of the next frame."""
        if offset in self._rows:
            return self._rows[offset].length
        after = bisect_right(self._offsets, offset)
        return self._offsets[after] - offset if after < len(self._offsets) else None

    def _payload(self, file: IO[bytes], number: int, offset: int, length: int) -> str | None:
        """Checks a payload and returns the key in it."""
        payload = file.read(length - HEADER_BYTES - FOOTER_BYTES)
        difference = checksum_difference(payload, file.read(FOOTER_BYTES))
        # A flipped bit of the data changes several bits of its CRC-32C, so here the checksum itself is damaged.
        if difference.bit_count() == 1:
            self._find(what.PAYLOAD_CHECKSUM, "the checksum of its payload is damaged", number, offset)
        elif difference:
            problem = f"its payload of {len(payload)} bytes is damaged: the checksum does not fit"
            self._find(what.PAYLOAD, problem, number, offset)
            return None
        try:
            places = check_example(payload)
        except RecordError as error:
            self._find(what.PAYLOAD, str(error), number, offset)
            return None
        if self._task.deep and not difference:
            features = decode_example(payload)
            names, algorithm = self._task.names, self._task.algorithm
            hashed = image_feature(algorithm)
            image, digest = (features.get(names.get(name, name)) for name in (_IMAGE, hashed))
            if not isinstance(image, list) or not isinstance(digest, list) or not image or not digest:
                self._find(what.IMAGE, f"it contains no {_IMAGE} with {hashed}", number, offset)
            elif checksum_of(image[0], algorithm).encode() != digest[0]:
                self._find(what.IMAGE, f"the checksum of {_IMAGE} is not {hashed}", number, offset)
        return _text_at(payload, places.get(self._task.names.get(_KEY, _KEY)))

    def _cut(self, number: int, offset: int, problem: str) -> None:
        last = self._task.shard.records - 1
        more = f"; records {number + 1} to {last} are gone" if number < last else ""
        self._find(what.TRUNCATED, f"truncated: {problem}{more}", number, offset)

    def _find(self, code: str, problem: str, record: int, offset: int) -> None:
        row = self._rows.get(offset)
        key = row.key if row else None
        self.findings.append(VerifyFinding(self._task.shard.path, code, problem, record, key, offset=offset))


def _text_at(payload: bytes, place: Place | None) -> str | None:
    """Returns the value of a feature with one text."""
    try:
        values = None if place is None else feature_values(payload, place)
        return values[0].decode("utf-8") if isinstance(values, list) and len(values) == 1 else None
    except UnicodeDecodeError:
        return None


def _index_findings(
    task: ShardTask, path: str, index: Index, records: list[_Record], index_whole: bool
) -> Iterator[VerifyFinding]:
    """Yields the rows of an index that do not match the shard's records."""
    keys = [record.key for record in records]
    if None in keys and not index_whole:
        known = ledger_keys(Path(task.root), task.ledger, task.shard.split, task.number)
        keys = [known.get(number) if key is None else key for number, key in enumerate(keys)]
    # Compared by content, not by position: a flipped bit can split a line or join two.
    expected = {(r.offset, r.length, key): n for n, (r, key) in enumerate(zip(records, keys, strict=True))}
    end = records[-1].offset + records[-1].length if records else 0
    damaged = []
    for number, row in enumerate(index.rows):
        # A record whose key cannot be read matches any key.
        fitting = [(row.offset, row.length, key) for key in (row.key, None)] if row else []
        record = next((entry for entry in fitting if entry in expected), None)
        if record is not None:
            del expected[record]
        elif row is None or row.offset < end or len(records) == task.shard.records:
            # Rows of records that the shard has lost are intact.
            damaged.append(number)
    for line, lost in itertools.zip_longest(damaged, sorted(expected.values())):
        key = None if lost is None else keys[lost]
        problem = "a damaged line" if line is not None else "the line is missing"
        if lost is not None:
            place = {"key": key, "offset": records[lost].offset, "length": records[lost].length}
            problem += f"; the record is {canonical_json(place)}"
        yield VerifyFinding(path, what.ROW, problem, lost, key, None if line is None else line + 1)
    if not index_whole and not damaged and not expected:
        yield VerifyFinding(path, what.HASH, "its BLAKE3 is not the manifest's, though its lines fit the records")


def verify_file(path: str) -> VerifyReport:
    """Verifies a file of TFRecords, plain or compressed, of any origin.

    Args:
        path: the file, or its URL.

    Raises:
        UsageError: it cannot be read, or contains no records.
    """
    found = []
    count = size = 0
    for record in scan_file(path):
        if record.payload is None:
            code = _CODES.get(record.code, what.LENGTH)
            found.append(VerifyFinding(path, code, record.reason, record=record.number, offset=record.offset))
            continue
        count += 1
        size += len(record.payload)
        try:
            check_example(record.payload)
        except AmbiguousExample as error:
            found.append(VerifyFinding(path, what.PAYLOAD, str(error), record=record.number, offset=record.offset))
        except RecordError:
            continue  # Payloads of another kind are none of our business.
    return VerifyReport(path, tuple(found), 1, count, size)
