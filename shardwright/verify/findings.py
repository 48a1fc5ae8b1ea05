"""What is wrong with a dataset: one finding a place."""

from __future__ import annotations

from dataclasses import dataclass

from shardwright.escaping import escape

MISSING = "missing"
STRAY = "stray"
SIZE = "size"
HASH = "hash"
LENGTH = "length"
LENGTH_CHECKSUM = "length_checksum"
PAYLOAD = "payload"
PAYLOAD_CHECKSUM = "payload_checksum"
TRUNCATED = "truncated"
KEY = "key"
IMAGE = "image"
ROW = "row"
TOTALS = "totals"
MANIFEST = "manifest"


@dataclass(frozen=True)
class VerifyFinding:
    """One thing that is wrong.

    Attributes:
        file: the file, relative to the dataset's folder.
        code: what, as a word.
        problem: what, as a sentence.
        record: number of the record in its shard, from 0.
        key: key of the record, or of the ledger's row.
        line: number of the line in a file of lines, from 1.
        offset: where the record begins in its shard, in bytes.
    """

    file: str
    code: str
    problem: str
    record: int | None = None
    key: str | None = None
    line: int | None = None
    offset: int | None = None

    @property
    def place(self) -> str:
        """Where in the file, for people; keys with line ends or the like are escaped."""
        parts = [] if self.record is None else [f"record {self.record}"]
        parts += [] if self.line is None else [f"line {self.line}"]
        if self.key is not None:
            parts.append(f"key {escape(self.key)}")
        return ", ".join(parts)


@dataclass(frozen=True)
class VerifyReport:
    """What a verification found.

    Attributes:
        dataset: the dataset's folder, absolute.
        findings: all that is wrong, by file and place; none when the dataset is whole.
        shards: number of shards looked at.
        records: number of records that were read.
        bytes: bytes that were read.
    """

    dataset: str
    findings: tuple[VerifyFinding, ...]
    shards: int
    records: int
    bytes: int
