"""Reading an index or a ledger that may be damaged: line by line, each what was written or nothing."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from shardwright.fingerprint import canonical_json
from shardwright.manifest import STATUSES, WRITTEN, LedgerRow


class IndexRow(NamedTuple):
    """One line of an index."""

    key: str
    offset: int
    length: int


@dataclass(frozen=True)
class Index:
    """An index as it lies there.

    Attributes:
        rows: its lines, `None` for each that is not what is written into an index.
        sha256: hash of the file; empty where it cannot be read.
        bytes: its size.
        problem: why it cannot be read, or empty.
    """

    rows: list[IndexRow | None]
    sha256: str
    bytes: int
    problem: str


def read_index(file: Path) -> Index:
    """Reads the index of a shard."""
    try:
        data = file.read_bytes()
    except OSError as error:
        return Index([], "", 0, f"cannot be read ({error.strerror})")
    return Index([_index_row(line) for line in io.BytesIO(data)], hashlib.sha256(data).hexdigest(), len(data), "")


def _index_row(line: bytes) -> IndexRow | None:
    try:
        row = IndexRow(**json.loads(line))
        whole = canonical_json(row._asdict()).encode("utf-8") + b"\n" == line
    except (ValueError, TypeError, RecursionError):
        return None
    sound = isinstance(row.key, str) and type(row.offset) is int and type(row.length) is int
    return row if whole and sound else None


def read_ledger(file: Path) -> Iterator[tuple[bytes, LedgerRow | None]]:
    """Lines of a ledger's part, each with its row, `None` for a damaged line. `OSError` when it cannot be read."""
    with file.open("rb") as lines:
        for line in lines:
            yield line, _ledger_row(line)


def _ledger_row(line: bytes) -> LedgerRow | None:
    try:
        row = LedgerRow.from_json(line.decode("utf-8"))
        whole = row.to_json().encode("utf-8") + b"\n" == line
    except (ValueError, TypeError, RecursionError):
        return None
    return row if whole and isinstance(row.key, str) and row.status in STATUSES else None


def ledger_keys(root: Path, parts: Sequence[str], split: str, shard: int) -> dict[int, str]:
    """Keys of a shard's records by their numbers, as the ledger tells them; what cannot be read is left out."""
    keys: dict[int, str] = {}
    for part in parts:
        try:
            for _, row in read_ledger(root / part):
                if row and (row.status, row.split, row.shard) == (WRITTEN, split, shard) and row.index is not None:
                    keys[row.index] = row.key
        except OSError:
            continue
    return keys
