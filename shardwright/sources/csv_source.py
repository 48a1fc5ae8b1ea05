"""What the CSV formats share: reading a table twice and matching its rows with images and classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.rle_dialects import Dialect
from shardwright.sources.base import Annotation, Survey
from shardwright.sources.classes import ClassMap, map_classes
from shardwright.sources.names import NameIndex
from shardwright.sources.tables import IMAGE, IMAGE_LABEL, Row, Table
from shardwright.storage import Listing, Refusal

_SHOWN_NAMES = 3
# More distinct values than this are no classes: the wrong column was taken.
_MOST_CLASSES = 10_000


class Statement(NamedTuple):
    """A row, taken apart.

    Attributes:
        line: line of the table.
        name: image as the table names it.
        image: position of its key, or `None` when there is no such image.
        label: class as the table writes it; empty when the row names none.
        text: run lengths, or `None` where the table has no masks.
        problem: what is wrong with the row, or empty.
    """

    line: int
    name: str
    image: int | None
    label: str
    text: str | None
    problem: str = ""


class CsvSource(ABC):
    """A table of annotations.

    Args:
        table: the CSV.
        columns: role -> number of its column.
        keys: sorted keys of the listing.
        skip: positions that are no images.
        classes: `input.classes`.
        notes: what was told so far.
    """

    unlisted = "fail"
    mask_column = ""
    dialect = Dialect()

    def __init__(
        self,
        table: Table,
        columns: Mapping[str, int],
        keys: list[str],
        skip: frozenset[int],
        classes: Mapping[str, int | None] | None,
        notes: tuple[str, ...],
    ) -> None:
        self.name = table.name
        self._table = table
        self._columns = columns
        self._count = len(keys)
        self._names = NameIndex(keys, skip)
        self._keys = keys
        self._classes = classes
        self._notes = notes
        self._map: ClassMap | None = None

    @abstractmethod
    def _take_apart(self, row: Row) -> Statement:
        """Reads one row that has as many fields as the header."""

    def _conflict(self, image: int, statement: Statement) -> str:
        """How a sound row contradicts earlier rows about the image at a position; empty when it does not."""
        del image, statement
        return ""

    def survey(self) -> Survey:
        """See `Source.survey`."""
        values: dict[str, str] = {}
        survey = Survey(classes=(), listed=bytearray(self._count))
        missing: dict[str, int] = {}
        for statement in self._statements():
            if len(survey.names) < _SHOWN_NAMES and statement.name and statement.name not in survey.names:
                survey.names.append(statement.name)
            if statement.problem:
                self._reject(survey, statement, "bad_row", statement.problem)
            elif statement.image is None:
                missing.setdefault(statement.name, statement.line)
            elif conflict := self._conflict(statement.image, statement):
                self._reject(survey, statement, "conflicting_labels", conflict)
            if statement.image is not None:
                survey.listed[statement.image] = 1
            if statement.label and statement.label not in values and not statement.problem:
                values[statement.label] = f"{self._table.path}, row {statement.line}"
                if len(values) > _MOST_CLASSES:
                    raise UsageError(
                        f"{self._table.path}: more than {_MOST_CLASSES} different classes, e.g. {statement.label!r}. "
                        "Say which column holds them by input.labels.columns."
                    )
        survey.refused += [
            Refusal(name, "missing_image", f"{self.name}, row {line} names it, but there is no such image")
            for name, line in missing.items()
        ]
        self._map = map_classes(values, self._classes)
        survey.classes = self._map.names
        survey.notes = (*self._notes, *self._map.notes)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        """See `Source.annotations`."""
        assert self._map is not None, "survey comes first"
        for statement in self._statements():
            if statement.image is not None and statement.label and not statement.problem and statement.text != "":
                index = self._map.index[statement.label]
                yield Annotation(statement.image, index, statement.text, statement.line)

    def attachments(self) -> Listing | None:
        """See `Source.attachments`."""
        return None

    def _reject(self, survey: Survey, statement: Statement, code: str, problem: str) -> None:
        reason = f"{self.name}, row {statement.line}: {problem}"
        if statement.image is None:
            survey.refused.append(Refusal(f"{self.name}:{statement.line}", code, reason))
        elif statement.image not in survey.rejected:
            survey.rejected[statement.image] = Refusal(self._keys[statement.image], code, reason)

    def _statements(self) -> Iterator[Statement]:
        width = len(self._table.header)
        first = min(self._columns[role] for role in (IMAGE, IMAGE_LABEL) if role in self._columns)
        for row in self._table.rows():
            if len(row.fields) != width:
                problem = f"{len(row.fields)} fields, the header has {width}"
                yield Statement(row.line, "", self._find_in(row, first), "", None, problem)
            else:
                yield self._take_apart(row)

    def _find_in(self, row: Row, column: int) -> int | None:
        return self._names.find(row.fields[column]) if column < len(row.fields) else None
