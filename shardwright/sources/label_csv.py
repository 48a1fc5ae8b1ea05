"""Classes of images in a table: one or several, in one field or in rows."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping

from shardwright.config.labels import LabelsConfig
from shardwright.errors import UsageError
from shardwright.fingerprint import text_number
from shardwright.manifest import MULTI, SINGLE
from shardwright.sources.base import Survey
from shardwright.sources.classes import as_integer
from shardwright.sources.csv_source import CsvSource, TableInput
from shardwright.sources.export_record import ExportRecord
from shardwright.sources.label_fields import Reading, tell_multi, tell_separator
from shardwright.sources.row_source import Statement
from shardwright.sources.tables import IMAGE, LABEL, Row, label_columns

# A table with more different fields than this is read by the first ones.
_MOST_FIELDS = 100_000


class LabelTable(CsvSource):
    """A table of classes. Where an image has one, an image with two is rejected; rows that repeat another are fine."""

    def __init__(self, given: TableInput) -> None:
        super().__init__(given)
        # Line of the first row about each image and the number of what it says: 12 bytes an image, not a string.
        self._first_line = array("q", bytes(8 * len(given.images.keys)))
        self._said = array("i", bytes(4 * len(given.images.keys)))
        self._labels: dict[str, int] = {}

    def _conflict(self, image: int, statement: Statement) -> str:
        if self.kind == MULTI:
            return ""
        (label,) = statement.labels
        number = self._labels.setdefault(label, len(self._labels))
        line = self._first_line[image]
        if not line:
            self._first_line[image], self._said[image] = statement.line, number
            return ""
        if self._said[image] == number:
            return ""
        before = next(label for label, known in self._labels.items() if known == self._said[image])
        return f"says {label!r}, row {line} says {before!r}; an image has one class"


class LabelCsv(LabelTable):
    """Columns for image and label.

    Args:
        given: the table.
        options: `input.labels`.
        record: of the export of ours that the table is.
    """

    def __init__(self, given: TableInput, options: LabelsConfig, record: ExportRecord | None = None) -> None:
        super().__init__(given)
        self._record = record
        self._options = options
        self._reading = Reading(False)
        self._beside = _names_beside(given)

    def survey(self) -> Survey:
        """See `Source.survey`."""
        self._reading = self._tell()
        self.kind = MULTI if self._reading.multi else SINGLE
        if self._reading.reason:
            self._notes += (
                f"an image may have several classes, since {self._reading.reason} (input.labels.multi and separator "
                "say otherwise)",
            )
        return super().survey()

    def _take_apart(self, row: Row) -> Statement:
        name = row.fields[self._columns[IMAGE]]
        labels = self._reading.split(row.fields[self._columns[LABEL]].strip())
        problem = "names no image" if not name.strip() else ""
        if not labels and not self._reading.multi:
            problem = problem or "names no class"
        for column, ids in self._beside.items():
            self._check_name(row, column, ids, labels)
        return Statement(row.line, name, self._names.find(name), labels, problem=problem)

    def _check_name(self, row: Row, column: int, ids: Mapping[str, int], labels: tuple[str, ...]) -> None:
        """Holds the name of a class that stands beside its id against `input.classes`."""
        said = row.fields[column].strip()
        number = as_integer(labels[0]) if len(labels) == 1 else None
        if said in ids and number in ids.values() and ids[said] != number:
            known = next(name for name, known in ids.items() if known == number)
            raise UsageError(
                f"{self._path}, row {row.line}: the class {number} is {said!r} by column "
                f"{self._table.header[column]!r}, but {known!r} by input.classes. Mend the one that is wrong."
            )

    def _tell(self) -> Reading:
        """How fields are read, by all of them as far as the configuration does not say it."""
        multi, separator = self._options.multi, self._options.separator
        if multi is False:
            return Reading(False)
        if self._record is not None and self._record.labels == MULTI and multi and separator is None:
            return Reading(True, self._record.separator, exact=True)
        if separator or (multi and separator is not None):
            return Reading(True, separator or "")
        fields, images, several = self._look_through()
        reason = ""
        if separator is None:
            where = f"{self._path}, column {self._table.header[self._columns[LABEL]]!r}"
            names = None if self._classes is None else tuple(self._classes)
            separator, reason = tell_separator(fields, names, where)
        if not separator and multi is None and tell_multi(images, several, self._path):
            reason = f"the rows of {several} of {images} images name different ones"
        return Reading(bool(separator or reason or multi), separator, reason)

    def _look_through(self) -> tuple[Collection[str], int, int]:
        """Different label fields, how many images have one, and how many of these have rows with different ones."""
        fields: dict[str, int] = {}
        first = array("q", bytes(8 * len(self._images.keys)))
        differs = bytearray(len(first))
        for row in self._table.rows():
            label = row.fields[self._columns[LABEL]].strip() if len(row.fields) == len(self._table.header) else ""
            if not label:
                continue
            number = fields.get(label) or text_number(label)
            if len(fields) < _MOST_FIELDS:
                fields[label] = number
            image = self._names.find(row.fields[self._columns[IMAGE]])
            if image is not None:
                differs[image] |= first[image] not in (0, number)
                first[image] = first[image] or number
        return fields, len(first) - first.count(0), sum(differs)


def _names_beside(given: TableInput) -> dict[int, dict[str, int]]:
    """Columns that may hold the names of the classes whose ids are read, each with the ids of `input.classes`."""
    ids = {name: number for name, number in (given.classes or {}).items() if number is not None}
    taken = (*given.columns.values(), *given.captions)
    return dict.fromkeys(label_columns(given.table, taken), ids) if ids else {}
