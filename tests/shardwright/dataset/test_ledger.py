"""Ledger rows are sorted in pieces, and the pieces leave nothing behind."""

import random
import re

import pytest

from shardwright.dataset import ledger, manifest
from shardwright.dataset.ledger import LedgerRow, RowSorter
from shardwright.dataset.manifest import IndexRow
from shardwright.storage.fingerprint import canonical_json


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 95])
def test_pieces_make_the_same_lines_as_sorting_all(tmp_path, monkeypatch, count):
    monkeypatch.setattr("shardwright.dataset.ledger._ROWS_IN_MEMORY", 10)
    monkeypatch.setattr("shardwright.dataset.ledger._MERGE_WIDTH", 3)
    rows = [LedgerRow(f"key {i % 40:02d} ü", "rejected", f"code{i}", "line\nend") for i in range(count)]
    random.Random(1).shuffle(rows)
    sorter = RowSorter(tmp_path / "scratch")
    for row in rows:
        sorter.add(row.key, f"{row.to_json()}\n")
    assert sorter.count == count
    lines = [f"{row.to_json()}\n" for row in sorted(rows, key=lambda row: (row.key, row.to_json()))]
    assert list(sorter.lines()) == lines
    assert list(tmp_path.iterdir()) == []


KEYS = ["a.jpg", "x/é.png", 'quoted".jpg', "back\\slash", "tab\t", "", "\x7f"]


@pytest.mark.parametrize("key", KEYS)
def test_a_row_of_an_index_or_a_ledger_is_read_as_any_json_of_its_values(key, monkeypatch):
    """Lines as they are written are read by a pattern, all others as JSON."""
    written = LedgerRow(key, "written", "", "", "train", 3, 0)
    line = canonical_json({"key": key, "length": 123, "offset": 0}).encode()
    read = LedgerRow.from_json(written.to_json()), IndexRow.from_json(line + b"\n")
    assert read == (written, IndexRow(key, 0, 123))
    for module in (ledger, manifest):
        monkeypatch.setattr(module, "_PLAIN_ROW", re.compile(b"(?!)" if module is manifest else "(?!)"))
    assert (LedgerRow.from_json(written.to_json()), IndexRow.from_json(line + b"\n")) == read


@pytest.mark.parametrize(
    "line",
    [
        b'{"key":"a\xff","length":123,"offset":0}',
        b'{"key":"a","length":15,"offset":0}',
        b'{"key":"a","length":0123,"offset":0}',
        b'{"key":"a","length":123,"offset":-1}',
        b'{"key":"a","length":123,"offset":0}}',
        b'{"key":"\\ud800","length":123,"offset":0}',
        b'{"key":"a","length":123,"offset":99999999999999999999}',
    ],
)
def test_what_is_no_row_of_an_index_is_refused(line):
    with pytest.raises((ValueError, KeyError, TypeError)):
        IndexRow.from_json(line)
