"""The tables of several deliveries as one: rows from old to new, in the columns of the newest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.sources.tables import Row, Table, shown_header


class TablePart(NamedTuple):
    """One delivery's annotations.

    Attributes:
        path: absolute path.
        folder: what stands before the names of its images in their keys, empty where nothing does.
        called: what a user calls the delivery.
    """

    path: str
    folder: str = ""
    called: str = ""


@dataclass(frozen=True)
class Spans:
    """Annotations that several deliveries consist of.

    Attributes:
        parts: the deliveries, from old to new; none where a single file says everything.
        agree: whether they must say the same of an image.
    """

    parts: tuple[TablePart, ...] = ()
    agree: bool = False


ONE_FILE = Spans()


@dataclass(frozen=True)
class JoinedTable(Table):
    """Several tables; see `Table`, whose attributes are those of the newest.

    A column that an older table lacks is empty there; one that only older tables have is left out.

    Attributes:
        tables: the tables, from old to new.
        parts: what each of them is.
        image: number of the column that names images, whose fields get the delivery's folder before them.
        agree: whether tables must say the same of an image, or the newest that names it counts.
    """

    tables: tuple[Table, ...] = ()
    parts: tuple[TablePart, ...] = ()
    image: int = -1
    agree: bool = False

    @staticmethod
    def join(parts: Sequence[TablePart]) -> JoinedTable:
        """Opens tables, given from old to new.

        Raises:
            UsageError: see `Table.open`.
        """
        tables = tuple(Table.open(part.path) for part in parts)
        newest = tables[-1]
        return JoinedTable(newest.path, newest.header, newest.delimiter, tables, tuple(parts))

    def with_images(self, column: int, agree: bool) -> JoinedTable:
        """The same tables when it is known which column names images, and whether they must `agree`.

        Raises:
            UsageError: an older table has no such column.
        """
        header = self.header[column]
        for table in self.tables:
            if header not in table.header:
                raise UsageError(
                    f"{table.path}: has no column {header!r}, as {self.path} has, but {shown_header(table.header)}. "
                    "Name the columns of all spans alike, or read one span."
                )
        return replace(self, image=column, agree=agree)

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`; a row's `part` is the number of its table."""
        for number, (table, part) in enumerate(zip(self.tables, self.parts, strict=True)):
            places = [table.header.index(name) if name in table.header else None for name in self.header]
            for row in table.rows():
                if len(row.fields) != len(table.header):
                    # One field too few, so that it is told as the broken row that it is.
                    yield Row(row.line, row.fields[: len(self.header) - 1], number)
                    continue
                fields = ["" if place is None else row.fields[place] for place in places]
                if part.folder and self.image >= 0:
                    fields[self.image] = f"{part.folder}/{fields[self.image].strip()}"
                yield Row(row.line, fields, number)
