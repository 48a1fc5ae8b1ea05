"""Ledger rows are sorted in pieces, and the pieces leave nothing behind."""

import random

import pytest

from shardwright.dataset.ledger import LedgerRow, RowSorter


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
