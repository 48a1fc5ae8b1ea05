"""What the CSV formats share: columns of images, further columns, captions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shardwright.errors import ConfigError
from shardwright.sources.base import Images, Values
from shardwright.sources.further_columns import FurtherColumns
from shardwright.sources.names import NameIndex
from shardwright.sources.row_source import CAPTION_FEATURE, RowSource, Statement
from shardwright.sources.tables import IMAGE, IMAGE_LABEL, Row, Table, shown_header


@dataclass(frozen=True)
class TableInput:
    """A table and what it is read with.

    Attributes:
        table: the CSV.
        columns: role -> number of its column.
        images: what is listed.
        names: how rows name images.
        classes: `input.classes`.
        notes: what was told so far.
        further: columns that become features.
        captions: numbers of the columns of captions.
    """

    table: Table
    columns: Mapping[str, int]
    images: Images
    names: NameIndex
    classes: Mapping[str, int | None] | None
    notes: tuple[str, ...]
    further: FurtherColumns
    captions: tuple[int, ...] = ()


class CsvSource(RowSource):
    """A table of annotations."""

    def __init__(self, given: TableInput) -> None:
        super().__init__(given.table.path, given.images, given.names, given.classes, given.notes)
        self._table = given.table
        self._columns = given.columns
        self._further = given.further
        self._captions = given.captions

    @abstractmethod
    def _take_apart(self, row: Row) -> Statement:
        """Reads one row that has as many fields as the header."""

    def column(self, option: str, header: str) -> Iterator[tuple[int, str]]:
        """Image and field, stripped, of a column that plays no role here, for every row that names an image.

        Args:
            option: YAML path of the option that asks for it.
            header: the column's name.

        Raises:
            ConfigError: it is not there, or twice.
        """
        if self._table.header.count(header) != 1:
            how_often = "no" if header not in self._table.header else "more than one"
            problem = f"{self.name} has {how_often} column {header!r}"
            raise ConfigError(option, problem, f"It has: {shown_header(self._table.header)}.")
        number = self._table.header.index(header)
        for row in self._table.rows():
            image = self._take_apart(row).image if len(row.fields) == len(self._table.header) else None
            if image is not None:
                yield image, row.fields[number].strip()

    def _look(self, image: int, statement: Statement) -> None:
        if statement.row is not None:
            self._further.look(image, statement.row)

    def _features(self) -> tuple[dict[str, str], list[str]]:
        kinds, notes = self._further.tell()
        return {**kinds, **({CAPTION_FEATURE: "bytes"} if self._captions else {})}, notes

    def _values(self, image: int, statement: Statement) -> Values:
        captions = super()._values(image, statement)
        return captions if statement.row is None else {**captions, **self._further.values(image, statement.row)}

    def _statements(self) -> Iterator[Statement]:
        width = len(self._table.header)
        first = min(self._columns[role] for role in (IMAGE, IMAGE_LABEL) if role in self._columns)
        for row in self._table.rows():
            if len(row.fields) != width:
                problem = f"{len(row.fields)} fields, the header has {width}"
                yield Statement(row.line, "", self._find_in(row, first), problem=problem)
                continue
            statement = self._take_apart(row)
            if self._captions:
                captions = (row.fields[column].strip() for column in self._captions)
                statement = statement._replace(captions=tuple(filter(None, captions)))
            if self._further.given:
                problem = statement.problem or self._further.problem(row)
                statement = statement._replace(row=row, problem=problem)
            yield statement

    def _find_in(self, row: Row, column: int) -> int | None:
        return self._names.find(row.fields[column]) if column < len(row.fields) else None
