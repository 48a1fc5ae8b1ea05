"""Findings of a verification, and the report that contains them."""

from __future__ import annotations

from dataclasses import dataclass

from shardwright.text.escaping import escape

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
    """One damage or inconsistency.

    Attributes:
        file: the file, relative to the dataset's folder.
        code: kind of the problem, one of the constants above.
        problem: a sentence that describes it.
        record: number of the record in its shard, from 0.
        key: key of the record, or of the ledger's row.
        line: number of the line in a text file, from 1.
        offset: offset of the record in its shard, in bytes.
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
        """The place in the file, for people; control characters in keys are escaped."""
        parts = [] if self.record is None else [f"record {self.record}"]
        parts += [] if self.line is None else [f"line {self.line}"]
        if self.key is not None:
            parts.append(f"key {escape(self.key)}")
        return ", ".join(parts)


@dataclass(frozen=True)
class VerifyReport:
    """The result of a verification.

    Attributes:
        dataset: the dataset's folder, absolute.
        findings: the findings, by file and place; empty if the dataset is intact.
        shards: number of shards that were checked.
        records: number of records that were read.
        bytes: bytes that were read.
    """

    dataset: str
    findings: tuple[VerifyFinding, ...]
    shards: int
    records: int
    bytes: int
