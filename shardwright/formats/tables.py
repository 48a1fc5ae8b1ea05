"""CSV tables, streamed: byte-order mark, any line ends, quotes, comma, semicolon or tab, and which column is which.

A Parquet file is a table with the same fields.

The tables of several deliveries as one: rows from old to new, in the columns of the newest.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from shardwright.errors import ConfigError, UsageError
from shardwright.formats.parquet_pages import is_parquet_file
from shardwright.masks.dialects import dialect_of_header
from shardwright.storage import limits, open_table, read_bytes
from shardwright.untrusted.budget import Budget
from shardwright.untrusted.json_text import parse_untrusted_json

if TYPE_CHECKING:
    from shardwright.formats.parquet import ParquetFile

IMAGE, LABEL, MASK, IMAGE_LABEL, CAPTION = "image", "label", "mask", "image_label", "caption"

# Known headers, reduced to letters and digits, the most specific first.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    IMAGE_LABEL: ("imagelabel", "imageidclassid", "imageclass", "imageidlabel"),
    IMAGE: (
        "image",
        "imageid",
        "idcode",
        "imagename",
        "imagepath",
        "filename",
        "filepath",
        "file",
        "frame",
        "path",
        "img",
        "key",
        "imagekey",
        "name",
        "id",
        "imageindex",
        "imagefile",
        "picture",
        "photo",
    ),
    LABEL: (
        # Next to `labels`, numbers are only their ids.
        *("label", "class", "labels", "classid", "classname", "labelid", "category", "categoryid", "target", "species"),
        *("classes", "categories", "targets", "tags", "findinglabels", "findinglabel"),
        *("diagnosis", "dx", "breed", "choice"),
    ),
    MASK: ("encodedpixels", "rle", "rlemask", "mask", "segmentation", "annotation", "counts"),
    CAPTION: ("caption", "captions", "text", "captiontext", "description", "sentence", "comment", "prompt"),
}
# Next to the ids of classes, some tables have their names.
_ALSO_LABELS = frozenset((*_SYNONYMS[LABEL], "labelname", "labeltext", "categoryname", "classtext", "name"))
# Columns of the height and the width of an image.
_SIZES = tuple((f"{prefix}height", f"{prefix}width") for prefix in ("image", "img", "original", "orig", ""))
DELIMITERS = (",", ";", "\t")
# A table with a column for each class of ImageNet-21k has 22,000. Each field is an object of fifty bytes.
BUDGET = Budget("fields in a row", objects=1 << 15)
# Enough rows to see which column is what, and about the bytes of them that are kept.
_FIRST_ROWS, _FIRST_BYTES = 1000, 16 << 20
# A list without a header: `cats/1.jpg 0`.
_LISTED = re.compile(r"\S+\.(?:jpe?g|png|bmp|gif|tiff?|webp)(?: \S+)+\s*$", re.IGNORECASE)
_EXCELS_LINE = re.compile("sep=.\\s*$", re.IGNORECASE)
_QUOTED = re.compile('"[^"]*"')


class TableRow(NamedTuple):
    """A row of a table: the line it begins on, from 1, its fields, and the number of its table among several."""

    line: int
    fields: list[str]
    part: int = 0


@dataclass(frozen=True)
class Table:
    """A CSV with a header.

    Attributes:
        path: its path.
        header: column names as written, spaces around them removed.
        delimiter: what separates fields.
        headless: whether the first line is a row already, and the names of the columns are `column_1` and so on.
        content: the bytes of a file that is not too large to be kept: several passes open it once.
    """

    path: str
    header: tuple[str, ...]
    delimiter: str
    headless: bool = False
    content: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The file's name without its folder, for messages that must not depend on the folder."""
        return os.path.basename(self.path)

    @cached_property
    def first_rows(self) -> list[TableRow]:
        """The first whole rows, which show what the columns are; a large file is opened once for all who look."""
        found: list[TableRow] = []
        size = 0
        for row in self.rows():
            if len(row.fields) == len(self.header):
                found.append(row)
            size += 8 * len(row.fields) + sum(map(len, row.fields))
            if len(found) == _FIRST_ROWS or size > _FIRST_BYTES:
                break
        return found

    @staticmethod
    def open(path: str, content: bytes | None = None) -> Table:
        """Reads the header.

        Raises:
            UsageError: missing, empty, or not UTF-8 text; a Parquet file that cannot be read.
        """
        content = read_kept(path) if content is None else content
        if is_parquet_file(path, content):
            from shardwright.formats.parquet import ParquetFile

            return ParquetTable.of(ParquetFile.open(path))
        with _open(path, content) as file:
            try:
                first = next(filter(str.strip, limits.bounded_lines(file)), "")
            except (UnicodeDecodeError, limits.LineTooLong) as error:
                raise _no_text(path, error) from None
        if not first:
            raise UsageError(f"{path}: the file is empty. Give a CSV with a header line.")
        if _EXCELS_LINE.match(first):
            problem = f"its first line is {first.strip()!r}, which is for Excel and no header"
            raise UsageError(f"{path}: {problem}. Remove this line.")
        delimiter = max(DELIMITERS, key=first.count)
        delimiter = " " if delimiter not in first and _LISTED.match(first) else delimiter
        csv.field_size_limit(limits.LONGEST_LINE)
        try:
            header = next(csv.reader(_one_row([first], delimiter), delimiter=delimiter, strict=False), [])
        except csv.Error as error:
            raise UsageError(f"{path}: the header is not CSV ({error}). Fix the file.") from None
        return Table(path, tuple(name.strip() for name in header), delimiter, content=content)

    def without_header(self) -> Table:
        """Returns the same table, whose first line is a row."""
        return replace(self, header=tuple(f"column_{i + 1}" for i in range(len(self.header))), headless=True)

    def find_column(self, option: str, header: str) -> int:
        """Returns the number of the column that an option names.

        Raises:
            ConfigError: it is not there, or twice.
        """
        if self.header.count(header) != 1:
            how_often = "no" if header not in self.header else "more than one"
            problem = f"{self.path} has {how_often} column {header!r}"
            raise ConfigError(option, problem, f"It has: {shown_header(self.header)}.")
        return self.header.index(header)

    def rows(self) -> Iterator[TableRow]:
        """Streams the rows below the header; blank lines are skipped.

        Raises:
            UsageError: the text cannot be read as UTF-8 or as CSV; names the line.
        """
        # A quote that is never closed makes one field of all that follows.
        csv.field_size_limit(limits.LONGEST_LINE)
        delimiter, most, at, below_header = self.delimiter, BUDGET.objects, 1, self.headless
        with _open(self.path, self.content) as file:
            lines = limits.bounded_lines(file)
            try:
                for line in lines:
                    first = at
                    wide = len(line) > most and line.count(delimiter) >= most
                    if wide or '"' in line or "\0" in line:
                        reader = csv.reader(_one_row(chain((line,), lines), delimiter), delimiter=delimiter)
                        fields = next(reader, [])
                        at += reader.line_num
                    else:  # A fifth of the time that the general reader takes for a long field.
                        fields = line.rstrip("\r\n").split(delimiter)
                        at += 1
                    if fields and (fields[0].strip() or any(map(str.strip, fields))):
                        if below_header:
                            yield TableRow(first, fields)
                        below_header = True
            except (UnicodeDecodeError, limits.LineTooLong) as error:
                raise _no_text(self.path, error) from None
            except csv.Error as error:
                raise UsageError(f"{self.path}: line {at} is not CSV ({error}). Fix the file.") from None


@dataclass(frozen=True)
class ParquetTable(Table):
    """A Parquet file; see `Table`. The line of a row is its number, from 1.

    Attributes:
        file: the file.
    """

    file: ParquetFile | None = None

    @staticmethod
    def of(file: ParquetFile) -> ParquetTable:
        """Returns the table of a file."""
        return ParquetTable(file.path, file.header, "", file=file)

    def rows(self) -> Iterator[TableRow]:
        """Streams the rows."""
        assert self.file is not None, "see `of`"
        for number, fields in enumerate(self.file.texts(), 1):
            if any(field.strip() for field in fields):
                yield TableRow(number, fields)


@dataclass(frozen=True)
class LinesTable(Table):
    """JSON lines as a table: the members of the first line are the columns, and a row has the texts of their values."""

    @staticmethod
    def of(path: str, content: bytes | None) -> LinesTable:
        """Reads the members of the first line.

        Raises:
            UsageError: it is not a JSON object.
        """
        _, entry = next(json_lines(path, content, texts=True), (0, None))
        if not isinstance(entry, dict) or not entry:
            raise UsageError(f"{path}: line 1 is not a JSON object with members. Fix the file.")
        return LinesTable(path, tuple(entry), "", content=content)

    def rows(self) -> Iterator[TableRow]:
        """Streams the lines; one that is not an object has no fields."""
        for number, entry in json_lines(self.path, self.content, texts=True):
            values = [entry.get(name) for name in self.header] if isinstance(entry, dict) else []
            texts = (one if isinstance(one, str) else "" if one is None else json.dumps(one) for one in values)
            yield TableRow(number, list(texts))


class TablePart(NamedTuple):
    """One delivery's annotations.

    Attributes:
        path: absolute path.
        folder: the folder of its images, with which their keys begin; may be empty.
        called: what a user calls the delivery.
    """

    path: str
    folder: str = ""
    called: str = ""


@dataclass(frozen=True)
class Spans:
    """Annotations that several deliveries consist of.

    Attributes:
        parts: the deliveries, from old to new; none where a single file has all rows.
        agree: whether their rows about an image must be the same.
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
        spans: what each of them is, and whether they must have the same rows about an image, or the newest counts.
        image: number of the column that names images, whose fields get the delivery's folder before them.
    """

    tables: tuple[Table, ...] = ()
    spans: Spans = ONE_FILE
    image: int = -1

    @staticmethod
    def join(spans: Spans) -> JoinedTable:
        """Opens tables, given from old to new.

        Raises:
            UsageError: see `Table.open`.
        """
        tables = tuple(Table.open(part.path) for part in spans.parts)
        newest = tables[-1]
        return JoinedTable(newest.path, newest.header, newest.delimiter, tables=tables, spans=spans)

    def with_images(self, column: int) -> JoinedTable:
        """Returns the same tables when it is known which column names images.

        Raises:
            UsageError: an older table does not have the column.
        """
        header = self.header[column]
        for table in self.tables:
            if header not in table.header:
                raise UsageError(
                    f"{table.path}: has no column {header!r}, as {self.path} has, but {shown_header(table.header)}. "
                    "Name the columns of all spans alike, or read one span."
                )
        return replace(self, image=column)

    def rows(self) -> Iterator[TableRow]:
        """Streams the rows; the `part` of one is the number of its table."""
        for number, (table, part) in enumerate(zip(self.tables, self.spans.parts, strict=True)):
            places = [table.header.index(name) if name in table.header else None for name in self.header]
            for row in table.rows():
                if len(row.fields) != len(table.header):
                    # One field too few, so that it is reported as a broken row.
                    yield TableRow(row.line, row.fields[: len(self.header) - 1], number)
                    continue
                fields = ["" if place is None else row.fields[place] for place in places]
                if part.folder and self.image >= 0:
                    fields[self.image] = f"{part.folder}/{fields[self.image].strip()}"
                yield TableRow(row.line, fields, number)


def read_kept(path: str) -> bytes | None:
    """Returns the bytes of a file for all passes; `None` of a large one, and of one that cannot be read."""
    try:
        return read_bytes(path, most=limits.MOST_KEPT_BYTES)
    except OSError:
        return None  # Who reads it in passes reports what is wrong.


def _open(path: str, content: bytes | None) -> TextIO:
    return open_table(path) if content is None else io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")


def _one_row(lines: Iterable[str], delimiter: str) -> Iterator[str]:
    """Yields the lines of a row, one where no quoted field goes on, until it has too much for a row.

    Raises:
        csv.Error: it has too many bytes or fields.
    """
    size = fields = 0
    quoted = False
    for line in lines:
        size += len(line)
        if size > limits.LONGEST_LINE:
            raise csv.Error(f"a row of more than {limits.LONGEST_LINE:,} characters; is a quote not closed?")
        quotes = line.count('"')
        ends_quoted = quoted ^ (quotes % 2 == 1)
        # A line without a quote within quotes has no end of a field.
        if (quotes and (quoted or ends_quoted)) or (not quoted and line.count(delimiter) >= BUDGET.objects):
            # Delimiters within quotes do not count.
            closed = '"' * quoted + line + '"' * ends_quoted
            fields += _QUOTED.sub("", closed).count(delimiter)
            if fields >= BUDGET.objects:
                raise csv.Error(f"a row of more than {BUDGET.objects:,} fields")
        quoted = ends_quoted
        yield line


def rows_by_name(table: Table, column: str) -> dict[str, list[tuple[int, Mapping[str, str]]]]:
    """Returns the rows of each name in a column: line, and fields by header, none where their number is another."""
    rows: dict[str, list[tuple[int, Mapping[str, str]]]] = {}
    for row in table.rows():
        fields = dict(zip(table.header, map(str.strip, row.fields), strict=False))
        whole = fields if len(row.fields) == len(table.header) else {}
        rows.setdefault(fields.get(column, ""), []).append((row.line, whole))
    return rows


def json_lines(path: str, content: bytes | None = None, *, texts: bool = False) -> Iterator[tuple[int, Any]]:
    """Yields the number and the content of each line of JSON lines that is not blank, `None` of one that is not JSON.

    Args:
        path: the file.
        content: its bytes, where they were read already.
        texts: whether numbers stay the texts that they are.

    Raises:
        UsageError: it is not UTF-8, or a line has no end.
    """
    numbers = {"parse_float": str, "parse_int": str, "parse_constant": str} if texts else {}
    number = 0
    with _open(path, content) as file:
        try:
            for number, line in enumerate(limits.bounded_lines(file), 1):
                if line.strip():
                    try:
                        entry = parse_untrusted_json(line, **numbers)
                    except ValueError:
                        entry = None
                    yield number, entry
        except UnicodeDecodeError:
            problem = f"line {number + 1} or one of the next is not UTF-8 text"
            raise UsageError(f"{path}: {problem}. Save the file in UTF-8.") from None
        except limits.LineTooLong as error:
            raise UsageError(f"{path}: {error}. Give a file with line ends.") from None


def _no_text(path: str, error: UnicodeDecodeError | limits.LineTooLong) -> UsageError:
    if isinstance(error, limits.LineTooLong):
        return UsageError(f"{path}: {error}, so it is not a table. Give a CSV file with line ends.")
    utf16 = error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    found = error.object[error.start : error.start + 4].hex(" ")
    problem = "is UTF-16, not UTF-8 text" if utf16 else f"is not UTF-8 text (bytes {found})"
    return UsageError(f"{path}: {problem}. Save it as CSV in UTF-8 (in Excel: 'CSV UTF-8').")


def reduce_header(name: str) -> str:
    """Returns a header as synonyms are compared: letters and digits only, lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def by_reduced(names: Sequence[str]) -> dict[str, str]:
    """Returns headers by what synonyms are compared with; of several that are alike, the first."""
    return {reduce_header(name): name for name in reversed(names) if name}


def choose_columns(table: Table, overrides: Mapping[str, str]) -> dict[str, int]:
    """Finds out which column plays which role.

    Args:
        table: the table.
        overrides: role -> header, from `input.labels.columns`; they win over what the headers suggest.

    Returns:
        Role -> number of the column, for those roles that a column was found for.

    Raises:
        UsageError: a header that `overrides` names is not there, or twice; or one that plays a role is there twice.
    """
    reduced = [reduce_header(name) for name in table.header]
    columns: dict[str, int] = {}
    for role, wanted in overrides.items():
        columns[role] = table.find_column(f"input.labels.columns.{role}", wanted)
    for role, synonyms in _SYNONYMS.items():
        free = [name if i not in columns.values() else "" for i, name in enumerate(reduced)]
        known = [name for name in synonyms if name in free]
        if role not in columns and known:
            columns[role] = free.index(known[0])
            name = table.header[columns[role]]
            if table.header.count(name) > 1:
                raise UsageError(
                    f"{table.path}: several columns are called {name!r}, and one of them holds the {role}. "
                    f"Rename the others. It has: {shown_header(table.header)}."
                )
    named = [i for i, name in enumerate(table.header) if dialect_of_header(name) and i not in columns.values()]
    if MASK not in columns and len(named) == 1:
        columns[MASK] = named[0]
    return columns


def has_known_names(header: Sequence[str]) -> bool:
    """Returns whether a column has a name that states its role."""
    known = {name for names in _SYNONYMS.values() for name in names}
    return any(reduce_header(name) in known for name in header)


def choose_role(role: str, names: Sequence[str], overrides: Mapping[str, str]) -> str:
    """Returns the name among `names` that plays a role; the one in `overrides`, or an empty text where none does."""
    if role in overrides:
        return overrides[role]
    reduced = by_reduced(names)
    return next((reduced[synonym] for synonym in _SYNONYMS[role] if synonym in reduced), "")


def size_columns(header: Sequence[str]) -> tuple[str, ...]:
    """Returns the headers of the columns that state height and width of the image; nothing where one is missing."""
    reduced = by_reduced(header)
    return next((tuple(reduced[name] for name in names) for names in _SIZES if reduced.keys() >= set(names)), ())


def label_columns(table: Table, taken: Collection[int]) -> list[int]:
    """Returns the numbers of further columns that look like classes, other than those taken."""
    names = (reduce_header(name) for name in table.header)
    return [i for i, name in enumerate(names) if name in _ALSO_LABELS and i not in taken]


def caption_columns(table: Table, columns: Mapping[str, int], taken: Collection[int]) -> tuple[int, ...]:
    """Returns the numbers of the columns of captions: the one that was found, or `caption_1` and so on."""
    if CAPTION in columns:
        return (columns[CAPTION],)
    reduced = [re.fullmatch(r"([a-z]+)[0-9]+", reduce_header(name)) for name in table.header]
    numbered = (i for i, match in enumerate(reduced) if match and match[1] in _SYNONYMS[CAPTION] and i not in taken)
    return tuple(numbered)


def missing_columns(table: Table, expected: str) -> UsageError:
    """Returns the error for a table that lacks the `expected` columns."""
    return UsageError(
        f"{table.path}: columns {shown_header(table.header)} were found, but expected {expected}. "
        "Name them by input.labels.columns, e.g. {image: photo, label: kind}, or give another file."
    )


def columns_note(table: Table, columns: Mapping[str, int], captions: Sequence[int] = ()) -> str:
    """Returns a note: the roles of the columns."""
    pairs = [*columns.items(), *((CAPTION, column) for column in captions)]
    return f"{table.name}: " + ", ".join(f"{role} from column {table.header[column]!r}" for role, column in pairs)


def shown_header(header: Sequence[str]) -> str:
    """Returns column names, for messages."""
    return ", ".join(repr(name) for name in header)
