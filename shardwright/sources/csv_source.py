"""What the CSV formats share: columns of images, further columns, captions."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from shardwright.errors import CheckFailed, ConfigError
from shardwright.fingerprint import canonical_json, text_number
from shardwright.sources.base import Images, Values
from shardwright.sources.further_columns import FurtherColumns
from shardwright.sources.joined_tables import JoinedTable
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
        hint: see `Survey.hint`.
    """

    table: Table
    columns: Mapping[str, int]
    images: Images
    names: NameIndex
    classes: Mapping[str, int | None] | None
    notes: tuple[str, ...]
    further: FurtherColumns
    captions: tuple[int, ...] = ()
    hint: str = ""


class CsvSource(RowSource):
    """A table of annotations."""

    def __init__(self, given: TableInput) -> None:
        super().__init__(given.table.path, given.images, given.names, given.classes, given.notes)
        self._table = given.table
        self._columns = given.columns
        self._further = given.further
        self._captions = given.captions
        self._hint = given.hint
        self._newest: array[int] | None = None

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
        for row in self._rows():
            image = self._image(row) if len(row.fields) == len(self._table.header) else None
            if image is not None:
                yield image, row.fields[number].strip()

    def _look(self, image: int, statement: Statement) -> None:
        if statement.row is not None:
            self._further.look(image, statement.row)

    def _features(self) -> tuple[dict[str, str], list[str]]:
        kinds, notes = self._further.tell()
        return {**kinds, **({CAPTION_FEATURE: "bytes"} if self._captions else {})}, notes

    def _reader(self) -> Callable[[int, Statement], Values]:
        captions, further = super()._reader(), self._further.reader()

        def values(image: int, statement: Statement) -> Values:
            said = captions(image, statement)
            return said if statement.row is None else {**said, **further(image, statement.row)}

        return values

    def _statements(self) -> Iterator[Statement]:
        width = len(self._table.header)
        for row in self._rows():
            if len(row.fields) != width:
                problem = f"{len(row.fields)} fields, the header has {width}"
                yield Statement(row.line, "", self._image(row), problem=problem)
                continue
            statement = self._take_apart(row)
            if self._captions:
                captions = (row.fields[column].strip() for column in self._captions)
                statement = statement._replace(captions=tuple(filter(None, captions)))
            if self._further.given:
                problem = statement.problem or self._further.problem(row)
                statement = statement._replace(row=row, problem=problem)
            yield statement

    def _rows(self) -> Iterator[Row]:
        """The rows, without those of images that the table of a newer delivery names too."""
        if not isinstance(self._table, JoinedTable):
            yield from self._table.rows()
            return
        if self._newest is None:
            self._newest = self._newest_parts(self._table)
        for row in self._table.rows():
            image = self._image(row)
            if image is None or self._newest[image] == row.part:
                yield row

    def _newest_parts(self, table: JoinedTable) -> array[int]:
        """Number of the newest table that names each image.

        Raises:
            CheckFailed: tables say different things of an image, and they must agree.
        """
        newest = array("i", [-1]) * len(self._images.keys)
        several = bytearray(len(newest))
        said: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for row in table.rows():
            image = self._image(row)
            if image is None:
                continue
            several[image] |= newest[image] not in (-1, row.part)
            newest[image] = row.part
            if table.agree:
                # The order of the rows plays no part.
                said[image][row.part] += text_number(canonical_json(row.fields))
        for image, sums in said.items():
            if len(set(sums.values())) > 1:
                spans = " and ".join(table.parts[part].called for part in sorted(sums))
                raise CheckFailed(
                    f"input.on_conflict: {self.name} says different things of {self._images.keys[image]} in {spans}. "
                    "Set it to newest, or mend the tables."
                )
        if any(several):
            self._notes += (f"labels: {sum(several)} images have rows in several spans; those of the newest count",)
        return newest

    def _image(self, row: Row) -> int | None:
        """Position of the image that a row names, whole or broken."""
        if len(row.fields) == len(self._table.header):
            return self._take_apart(row).image
        column = min(self._columns[role] for role in (IMAGE, IMAGE_LABEL) if role in self._columns)
        return self._names.find(row.fields[column]) if column < len(row.fields) else None
