"""Reads indexes and ledgers that may be damaged, and checks the ledger against the manifest.

Each line is accepted only if writing its row again gives the same bytes.
"""

from __future__ import annotations

import io
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shardwright.dataset import ledger
from shardwright.dataset import manifest as dataset_manifest
from shardwright.dataset.ledger import WRITTEN, LedgerRow
from shardwright.dataset.manifest import IndexRow, Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.shard_names import LEDGER_FOLDER
from shardwright.storage import open_file, read_bytes
from shardwright.storage.checksum import checksum_of, new_checksum
from shardwright.storage.fingerprint import canonical_json
from shardwright.verify import findings as what
from shardwright.verify.findings import VerifyFinding

_SHOWN = 5


@dataclass(frozen=True)
class Index:
    """An index as read from its file.

    Attributes:
        rows: its rows, `None` for each damaged line.
        checksum: hash of the file; empty if it cannot be read.
        bytes: its size.
        problem: why it cannot be read, or empty.
    """

    rows: list[IndexRow | None]
    checksum: str
    bytes: int
    problem: str


def read_index(file: Path) -> Index:
    """Reads the index of a shard."""
    try:
        data = read_bytes(str(file))
    except OSError as error:
        return Index([], "", 0, f"cannot be read ({error.strerror})")
    return Index([_index_row(line) for line in io.BytesIO(data)], checksum_of(data), len(data), "")


def _index_row(line: bytes) -> IndexRow | None:
    try:
        row = IndexRow.from_json(line)
        return row if canonical_json(row._asdict()).encode("utf-8") + b"\n" == line else None
    except (ValueError, KeyError, TypeError):
        return None


def read_ledger(file: Path) -> Iterator[tuple[bytes, LedgerRow | None]]:
    """Yields the lines of a ledger's part, each with its row, `None` for a damaged line. May raise `OSError`."""
    with open_file(str(file)) as lines:
        for line in lines:
            row = None
            with suppress(ValueError, TypeError, RecursionError):
                row = LedgerRow.from_json(line.decode("utf-8"))
                row = row if row.to_json().encode("utf-8") + b"\n" == line else None
            yield line, row


def ledger_keys(root: Path, parts: Sequence[str], split: str, shard: int) -> dict[int, str]:
    """Returns the keys of a shard's records by their numbers, from the readable lines of the ledger."""
    keys: dict[int, str] = {}
    for part in parts:
        try:
            for _, row in read_ledger(root / part):
                if row and (row.status, row.split, row.shard) == (WRITTEN, split, shard) and row.index is not None:
                    keys[row.index] = row.key
        except OSError:
            continue
    return keys


@dataclass
class LedgerCheck:
    """The findings of the ledger, and the bytes that were read."""

    findings: list[VerifyFinding] = field(default_factory=list)
    bytes: int = 0


def check_ledger(dataset: ImageDataset) -> LedgerCheck:
    """Checks every part of a dataset's ledger against the manifest, and damaged ones against the indexes.

    If nothing is damaged, it also checks that no key has two rows.
    """
    check = LedgerCheck()
    counts: Counter[str] = Counter()
    # All parts together are sorted by key.
    before, again = None, []
    for part, checksum in sorted(dataset.manifest.parts.items()):
        if not part.startswith(LEDGER_FOLDER):
            continue
        digest = new_checksum()
        try:
            for number, (line, row) in enumerate(read_ledger(Path(dataset.root, part)), 1):
                digest.update(line)
                check.bytes += len(line)
                if row is not None:
                    what_of = f"records/{row.split}" if row.status == ledger.WRITTEN else f"{row.status}/{row.code}"
                    counts.update(("inputs", row.status, what_of))
                    if row.key == before:
                        again.append(VerifyFinding(part, what.ROW, "another row of this key", key=row.key, line=number))
                    before = row.key
            if digest.hexdigest() != checksum:
                check.findings += _place(dataset, part)
        except OSError as error:
            check.findings.append(VerifyFinding(part, what.MISSING, f"cannot be read ({error.strerror})"))
    if not check.findings:
        check.findings += [*_totals(dataset.manifest, counts), *again]
    return check


def _totals(manifest: Manifest, counts: Counter[str]) -> Iterator[VerifyFinding]:
    for shard in manifest.shards:
        counts[f"shards' {shard.split}"] += shard.records
    expected = Counter(manifest.totals)
    for name in dataset_manifest.MARKS:  # The ledger has no rows for these.
        del expected[name]
    for split in manifest.splits:
        expected[f"shards' {split}"] = expected[f"records/{split}"]
    for name in sorted(expected.keys() | counts.keys()):
        if expected[name] != counts[name]:
            problem = f"{name}: counted {counts[name]}, the manifest's totals contain {expected[name]}"
            yield VerifyFinding(dataset_manifest.MANIFEST_FILE, what.TOTALS, problem)


def _place(dataset: ImageDataset, part: str) -> Iterator[VerifyFinding]:
    """Yields the damaged lines of a part, found with the indexes.

    The line of a written record follows from its index row; that of another input does not. A part has at most 100,000
    lines, so they fit into memory for any size of the dataset.
    """
    lines = list(read_ledger(Path(dataset.root, part)))
    # Lines without a matching index row; those that remain at the end are damaged.
    unmatched = {
        line: number for number, (line, row) in enumerate(lines, 1) if row is None or row.status == ledger.WRITTEN
    }
    missing = _match_index_rows(dataset, part, lines, unmatched)
    damaged = sorted(unmatched.values())
    keys = [(row.key, number) for number, (line, row) in enumerate(lines, 1) if row and line not in unmatched]
    names: dict[int, str] = {}
    for key in sorted(missing):
        # The ledger is sorted by key, so a lost row was between its neighbors.
        after = bisect_left(keys, (key, 0))
        low, high = (keys[after - 1][1] if after else 0), (keys[after][1] if after < len(keys) else len(lines) + 1)
        number = next((n for n in damaged if low < n < high and n not in names), None)
        if number is not None:
            names[number] = key
            missing.remove(key)
    for number in damaged:
        yield VerifyFinding(part, what.ROW, "a damaged line", key=names.get(number), line=number)
    if missing:
        yield VerifyFinding(part, what.ROW, f"{len(missing)} lines are missing; this is the first", key=min(missing))
    if not damaged and not missing:
        others = [number for number, (_, row) in enumerate(lines, 1) if row and row.status != ledger.WRITTEN]
        shown = ", ".join(map(str, others[:_SHOWN])) + (", …" if len(others) > _SHOWN else "")
        problem = f"a line about an input that was not written is damaged or missing; there are {len(others)}: {shown}"
        yield VerifyFinding(part, what.HASH, problem, line=others[0] if len(others) == 1 else None)


def _match_index_rows(
    dataset: ImageDataset, part: str, lines: list[tuple[bytes, LedgerRow | None]], unmatched: dict[bytes, int]
) -> set[str]:
    """Removes lines that match an index row from `unmatched`; returns keys whose line is missing in this part."""
    parts = [name for name in sorted(dataset.manifest.parts) if name.startswith(LEDGER_FOLDER)]
    read = [row.key for _, row in lines if row]
    first = "" if part == parts[0] or not read else min(read)
    last = None if part == parts[-1] or not read else max(read)
    missing: set[str] = set()
    whole = True
    for split in dataset.splits:
        for number, shard in enumerate(dataset.shards(split)):
            rows = read_index(shard.index_file).rows
            whole &= None not in rows and len(rows) == shard.records
            for place, entry in enumerate(rows):
                if entry is None:
                    continue
                expected = LedgerRow(entry.key, ledger.WRITTEN, split=split, shard=number, index=place)
                line = expected.to_json().encode("utf-8") + b"\n"
                if line in unmatched:
                    del unmatched[line]
                elif first <= entry.key and (last is None or entry.key <= last):
                    missing.add(entry.key)
    if not whole:
        # Index rows are damaged, too, so a readable line may be intact.
        for line in [line for line, number in unmatched.items() if lines[number - 1][1] is not None]:
            del unmatched[line]
    return missing
