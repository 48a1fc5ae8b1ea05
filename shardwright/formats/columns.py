"""Further columns of a table as features: `image/meta/<column>`, typed by all their values.

If all rows of an image have the same value in a column, the image has it once. If they differ, it has a list in the
order of the rows, without empty values. Only the hash of an image's first value is kept: nine bytes for each column.

The type of a column is detected from all of its values, since a single row decides.

| type | values | feature |
|---|---|---|
| `int` | whole numbers of 64 bits; one with leading zeros (`007`) is a code, so text | int64 |
| `float` | decimal numbers within float32, rounded to it | float32 |
| `ints`, `floats` | lists of them, with or without brackets, split at `|`, `;`, `,` or spaces | int64, float32 |
| `texts` | lists of texts, split likewise; never detected, as a sentence looks like one | bytes |
| `text` | anything else | bytes, UTF-8 |

An empty field, and `nan` among numbers, is not a value.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from shardwright.config.input import AUTO, FLOAT, FLOATS, INT, INTS, KINDS, TEXT, TEXTS
from shardwright.dataset.feature_presets import PREFIX, feature_name
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import Values
from shardwright.formats.tables import Table, TableRow
from shardwright.storage.fingerprint import text_number

List: TypeAlias = "list[int] | list[float] | list[str]"

# The one that splits a list is the first that any value holds: spaces may follow the others.
SEPARATORS = ("|", ";", ",", " ")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_CODE = re.compile(r"[+-]?0[0-9]+")
_BRACKETS = {"[": "]", "(": ")"}
_INT64 = range(-(2**63), 2**63)
_FLOAT32_MAX = 3.4028234663852886e38
_SHOWN = 40
# In `input.labels.features`: all columns that have no role.
ALL = "*"


class FurtherColumns:
    """Reads them in two passes: `look` at every row, then `resolve_types`; then a `reader` gets the same rows again.

    Args:
        table: the table.
        wanted: `input.labels.features`: header -> type or `auto`, or `*` -> `auto`.
        taken: numbers of the columns that have a role.
        images: number of images.
        required: whether each row must have a number in each column of numbers.

    Raises:
        UsageError: a column is not there, has a role, or two make one feature.
    """

    def __init__(
        self, table: Table, wanted: Mapping[str, str], taken: Collection[int], images: int, *, required: bool = False
    ) -> None:
        self._table = table
        self._required = required
        self._columns = [
            _Column(number, table.header[number], name, kind, array("q", bytes(8 * images)), bytearray(images))
            for number, (name, kind) in _choose(table, wanted, taken).items()
        ]
        self._images = images
        # Whether there are any, and headers that the configuration itself names.
        self.given = bool(self._columns)
        self.named = [header for header in wanted if header != ALL]

    def look(self, image: int, row: TableRow) -> None:
        """Takes a sound row of an image in."""
        for column in self._columns:
            text = row.fields[column.number].strip()
            if not text:
                continue
            column.votes.add(text, f"row {row.line}")
            number = self._hash(column, text)
            if not column.first[image]:
                column.first[image] = number
            elif column.first[image] != number:
                column.differs[image] = 1

    def resolve_types(self) -> tuple[dict[str, str], list[str]]:
        """Decides on the types, after all rows.

        Returns:
            Name -> kind of the features, and notes for the user.

        Raises:
            UsageError: a column can be read in two ways.
        """
        notes = []
        for column in self._columns:
            reason = ""
            if column.wanted == AUTO:
                column.type, reason = column.votes.detect(f"{self._table.path}, column {column.header!r}")
            elif column.wanted == TEXTS:
                column.type = ValueType(TEXTS, column.votes.separator())
            why = f", since {reason}" if reason else ""
            notes.append(f"{column.feature} from column {column.header!r}: {column.type.name}{why}")
        return {column.feature: column.type.kind for column in self._columns}, notes

    def problem(self, row: TableRow) -> str:
        """Returns the problem of a row's values, or an empty text; only a type that was declared can be wrong."""
        for column in self._columns:
            text = row.fields[column.number].strip()
            try:
                values = column.type.read(text)
            except ValueError as error:
                by = "" if self._required else ", which input.labels.features requires"
                return f"column {column.header}: {error}{by}"
            if self._required and not values and column.type.kind != "bytes":
                return f"column {column.header} " + (f"is {text!r}, not a number" if text else "is empty")
        return ""

    def differing(self, image: int, row: TableRow) -> str:
        """Returns the first column in which a row differs from the first row about an image, or an empty text."""
        for column in self._columns:
            first, text = column.first[image], row.fields[column.number].strip()
            if first and text and first != self._hash(column, text):
                return column.header
        return ""

    def _hash(self, column: _Column, text: str) -> int:
        """Returns a hash of a value; of numbers where rows that repeat one must agree, however they are written."""
        if self._required and column.type.kind != "bytes":
            text = str([number or 0 for number in column.type.read(text)])  # No negative zero.
        return text_number(text)

    def reader(self) -> Callable[[int, TableRow], Values]:
        """Returns a function from an image and a row to what the row adds to its features, for one pass."""
        passed = [(column, bytearray(self._images)) for column in self._columns]

        def values(image: int, row: TableRow) -> Values:
            found: dict[str, list[int] | list[float] | list[str]] = {}
            for column, done in passed:
                if done[image] and not column.differs[image]:
                    continue
                read = column.type.read(row.fields[column.number])
                if read:
                    done[image] = 1
                    found[column.feature] = read
            return found

        return values


def _choose(table: Table, wanted: Mapping[str, str], taken: Collection[int]) -> dict[int, tuple[str, str]]:
    """Returns, for each chosen column, the name of its feature, and its type or `auto`."""
    chosen: dict[int, tuple[str, str]] = {}
    if ALL in wanted:
        # A column without a header is the index that pandas writes.
        free = (i for i, header in enumerate(table.header) if i not in taken and header)
        chosen = {i: (feature_name(table.header[i]), AUTO) for i in free}
    for header, kind in wanted.items():
        path = f"input.labels.features.{header}"
        number = table.find_column(path, header) if header != ALL else -1
        if number in taken:
            raise ConfigError(path, "the column is read as image, class, mask or caption", "Leave it out.")
        if header != ALL:
            chosen[number] = (feature_name(header), kind)
    first: dict[str, int] = {}
    for number, (name, _) in chosen.items():
        header, other = table.header[number], table.header[first.setdefault(name, number)]
        if name == PREFIX:
            raise UsageError(f"{table.path}: the column {header!r} has no letter or digit for a feature. Rename it.")
        if first[name] != number:
            raise UsageError(
                f"{table.path}: the columns {other!r} and {header!r} would both be the feature {name}. Rename one, or "
                "name those that you want in input.labels.features."
            )
    return chosen


@dataclass
class _Column:
    """A column, what it may be, and per image the hash of its first value and whether others differ."""

    number: int
    header: str
    feature: str
    wanted: str
    first: array[int]
    differs: bytearray

    def __post_init__(self) -> None:
        self.votes = TypeVotes()
        self.type = ValueType(TEXT if self.wanted in (AUTO, TEXTS) else self.wanted)


class ValueType(NamedTuple):
    """How the fields of a column are read.

    Attributes:
        name: one of `VALUE_TYPES`.
        separator: what splits a list; empty for types that are not lists, and for lists of numbers, where each field
            is split by the separator that it contains.
    """

    name: str
    separator: str = ""

    @property
    def kind(self) -> str:
        """Kind of the feature: `int64`, `float32` or `bytes`."""
        return KINDS[self.name]

    def read(self, field: str) -> List:
        """Returns the values of a field; none for an empty one.

        Raises:
            ValueError: it is not of the type.
        """
        text = field.strip()
        if not text:
            return []
        if self.name == TEXT:
            return [text]
        if self.name == TEXTS:
            return split_list(text, self.separator, blank=False)
        if text.lower() == "nan":
            return []
        listed = self.name in (INTS, FLOATS)
        parts = split_list(text, self.separator or _first_separator(text)) if listed else [text]
        if self.name in (INT, INTS):
            for part in parts:
                if not re.fullmatch(r"[+-]?[0-9]{1,30}", part) or int(part) not in _INT64:
                    raise ValueError(f"{part[:_SHOWN]!r} is not a whole number of 64 bits")
            return [int(part) for part in parts]
        for part in parts:
            if not _NUMBER.fullmatch(part) or abs(float(part)) > _FLOAT32_MAX:
                raise ValueError(f"{part[:_SHOWN]!r} is not a number within float32")
        return [float(part) for part in parts]


class TypeVotes:
    """The types that the values of a column fit so far."""

    def __init__(self) -> None:
        self.seen = False
        self._whole = True
        self._single = True
        # Separator -> whether all lists that it splits are of whole numbers; none where one is of something else.
        self._lists = dict.fromkeys(SEPARATORS, True)
        self._split_by: set[str] = set()
        self._pairs_only = True
        self._contrary = ""

    def add(self, field: str, where: str) -> None:
        """Takes a field in.

        Args:
            field: as the table has it.
            where: its position, for the reason.
        """
        text = field.strip()
        if not text or text.lower() == "nan":
            return
        self.seen = True
        self._split_by.update(separator for separator in SEPARATORS if separator in text)
        if not self._lists or _is_integer(text):
            return
        if is_number(text):
            self._whole = False
            return
        self._single = False
        for separator, whole in list(self._lists.items()):
            parts = split_list(text, separator)
            if not all(map(is_number, parts)):
                del self._lists[separator]
            elif whole:
                self._lists[separator] = all(map(_is_integer, parts))
        if "," in text:
            self._pairs_only &= re.fullmatch(r"-?[0-9]+,[0-9]+", text) is not None
        if not self._lists:
            self._contrary = f"{where} holds {text[:_SHOWN]!r}"

    def separator(self) -> str:
        """Returns the separator of the values where they are lists: the first of `SEPARATORS` that occurs."""
        return _first_separator(self._split_by)

    def detect(self, column: str) -> tuple[ValueType, str]:
        """Returns the type of the column, and why it is that one where a value decided it; empty where none did.

        Args:
            column: what errors call it.

        Raises:
            UsageError: the values are decimal numbers with a comma, or lists of two; both fit.
        """
        separator = self.separator()
        if not self.seen:
            return ValueType(TEXT), "it is empty"
        if separator not in self._lists and not (self._single and self._lists):
            return ValueType(TEXT), self._contrary
        if self._single:
            return ValueType(INT if self._whole else FLOAT), ""
        if separator == "," and "," in self._split_by and self._pairs_only:
            raise UsageError(
                f"{column}: its values with a comma may be decimal numbers or lists of two. Name the column with its "
                "type in input.labels.features: {NAME: ints}, or text to keep it as it is."
            )
        whole = self._whole and self._lists[separator]
        return ValueType(INTS if whole else FLOATS, separator), f"{separator_name(separator)} splits its values"


def split_list(text: str, separator: str, *, blank: bool = True) -> list[str]:
    """Splits a list, without the brackets around it, into stripped parts.

    Args:
        text: the list.
        separator: its separator.
        blank: whether blank parts are kept; there are none between spaces.
    """
    bracketed = len(text) > 1 and _BRACKETS.get(text[0]) == text[-1]
    if bracketed:
        text = text[1:-1]
    parts = text.split() if separator == " " or not text.strip() else text.split(separator)
    parts = [stripped for part in parts if (stripped := part.strip()) or blank]
    # Lists as Python and JSON write them.
    quoted = bracketed and all(len(part) > 1 and part[0] == part[-1] and part[0] in "'\"" for part in parts)
    return [part[1:-1] for part in parts] if quoted else parts


def _first_separator(found: Container[str]) -> str:
    return next((separator for separator in SEPARATORS if separator in found), SEPARATORS[-1])


def separator_name(separator: str) -> str:
    """Returns the name of a separator in messages."""
    return "a space" if separator == " " else repr(separator)


def _is_integer(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and int(text) in _INT64


def is_number(text: str) -> bool:
    """Returns whether a text is a number within float32; one with leading zeros is a code."""
    if _CODE.fullmatch(text) or not _NUMBER.fullmatch(text):
        return False
    # A whole number beyond 64 bits is an identifier.
    return abs(float(text)) <= _FLOAT32_MAX and ("." in text or "e" in text.lower() or _is_integer(text))
