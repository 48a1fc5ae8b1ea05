"""One class per image in a table: columns for image and label."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from shardwright.sources.csv_source import CsvSource, Statement
from shardwright.sources.tables import IMAGE, LABEL, Row, Table


class LabelCsv(CsvSource):
    """See `CsvSource`. Rows that repeat what an earlier one says are fine; an image with two classes is rejected."""

    def __init__(
        self,
        table: Table,
        columns: Mapping[str, int],
        keys: list[str],
        skip: frozenset[int],
        classes: Mapping[str, int | None] | None,
        notes: tuple[str, ...],
    ) -> None:
        super().__init__(table, columns, keys, skip, classes, notes)
        # Line of the first row about each image and the number of what it says: 12 bytes an image, not a string.
        self._first_line = array("q", bytes(8 * len(keys)))
        self._said = array("i", bytes(4 * len(keys)))
        self._labels: dict[str, int] = {}

    def _take_apart(self, row: Row) -> Statement:
        name = row.fields[self._columns[IMAGE]]
        label = row.fields[self._columns[LABEL]].strip()
        problem = "names no image" if not name.strip() else "names no class" if not label else ""
        return Statement(row.line, name, self._names.find(name), label, None, problem)

    def _conflict(self, image: int, statement: Statement) -> str:
        number = self._labels.setdefault(statement.label, len(self._labels))
        line = self._first_line[image]
        if not line:
            self._first_line[image], self._said[image] = statement.line, number
            return ""
        if self._said[image] == number:
            return ""
        before = next(label for label, known in self._labels.items() if known == self._said[image])
        return f"says {statement.label!r}, row {line} says {before!r}; an image has one class"
