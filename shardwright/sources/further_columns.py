"""Further columns of a table as features: `image/meta/<column>`, typed by all their values.

Where all rows of an image say the same in a column, the image has it once; where they differ, it has a list in the
order of the rows, without those that say nothing. Of an image only the hash of its first value is kept: nine bytes for
each column.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from shardwright.errors import ConfigError, UsageError
from shardwright.fingerprint import text_number
from shardwright.sources.base import Values
from shardwright.sources.tables import Row, Table, shown_header
from shardwright.sources.value_types import TEXT, TEXTS, Evidence, ValueType

PREFIX = "image/meta/"
# In `input.labels.features`: all columns that no role has; a column's type is told.
ALL, AUTO = "*", "auto"
_TEXT = ValueType(TEXT)
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


@dataclass
class _Column:
    """A column, what it may be, and per image the hash of its first value and whether others differ."""

    number: int
    header: str
    feature: str
    wanted: str
    first: array[int]
    differs: bytearray
    evidence: Evidence = field(default_factory=Evidence)
    type: ValueType = _TEXT

    def __post_init__(self) -> None:
        if self.wanted not in (AUTO, TEXTS):
            self.type = ValueType(self.wanted)


class FurtherColumns:
    """Reads them in two passes: `look` at every row, then `tell`; then give every row to a `reader`, in the same order.

    Args:
        table: the table.
        wanted: `input.labels.features`: header -> type or `auto`, or `*` -> `auto`.
        taken: numbers of the columns that have a role.
        images: number of images.

    Raises:
        UsageError: a column is not there, has a role, or two make one feature.
    """

    def __init__(self, table: Table, wanted: Mapping[str, str], taken: Collection[int], images: int) -> None:
        self._table = table
        self._columns = [
            _Column(number, table.header[number], name, kind, array("q", bytes(8 * images)), bytearray(images))
            for number, (name, kind) in _choose(table, wanted, taken).items()
        ]
        self._images = images
        # Headers that the configuration itself names.
        self.named = [header for header in wanted if header != ALL]

    @property
    def given(self) -> bool:
        """Whether there are any."""
        return bool(self._columns)

    def look(self, image: int, row: Row) -> None:
        """Takes a sound row of an image in."""
        for column in self._columns:
            text = row.fields[column.number].strip()
            if not text:
                continue
            column.evidence.add(text, f"row {row.line}")
            said = text_number(text)
            if not column.first[image]:
                column.first[image] = said
            elif column.first[image] != said:
                column.differs[image] = 1

    def tell(self) -> tuple[dict[str, str], list[str]]:
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
                column.type, reason = column.evidence.tell(f"{self._table.path}, column {column.header!r}")
            elif column.wanted == TEXTS:
                column.type = ValueType(TEXTS, column.evidence.separator())
            why = f", since {reason}" if reason else ""
            notes.append(f"{column.feature} from column {column.header!r}: {column.type.name}{why}")
        return {column.feature: column.type.kind for column in self._columns}, notes

    def problem(self, row: Row) -> str:
        """What is wrong with a row's values, or nothing; only a type that was declared can be wrong."""
        for column in self._columns:
            try:
                column.type.read(row.fields[column.number])
            except ValueError as error:
                return f"column {column.header}: {error}, as input.labels.features says"
        return ""

    def reader(self) -> Callable[[int, Row], Values]:
        """A function from an image and a row to what the row adds to its features; for one pass over all rows."""
        passed = [(column, bytearray(self._images)) for column in self._columns]

        def values(image: int, row: Row) -> Values:
            found: dict[str, list[int] | list[float] | list[str]] = {}
            for column, told in passed:
                if told[image] and not column.differs[image]:
                    continue
                read = column.type.read(row.fields[column.number])
                if read:
                    told[image] = 1
                    found[column.feature] = read
            return found

        return values


def _choose(table: Table, wanted: Mapping[str, str], taken: Collection[int]) -> dict[int, tuple[str, str]]:
    """Number of a column -> name of its feature, and its type or `auto`."""
    chosen: dict[int, tuple[str, str]] = {}
    if ALL in wanted:
        # A column without a header is the index that pandas writes.
        free = (i for i, header in enumerate(table.header) if i not in taken and header)
        chosen = {i: (feature_name(table.header[i]), AUTO) for i in free}
    for header, kind in wanted.items():
        if header == ALL:
            continue
        path = f"input.labels.features.{header}"
        if table.header.count(header) != 1:
            how_often = "no" if header not in table.header else "more than one"
            raise ConfigError(
                path, f"{table.path} has {how_often} such column", f"It has: {shown_header(table.header)}."
            )
        number = table.header.index(header)
        if number in taken:
            raise ConfigError(path, "the column is read as image, class, mask or caption", "Leave it out.")
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


def feature_name(header: str) -> str:
    """Name of a column's feature: whatever is no letter, digit, `_`, `.` or `-` becomes `_`."""
    return PREFIX + _NOT_IN_NAMES.sub("_", header).strip("_")
