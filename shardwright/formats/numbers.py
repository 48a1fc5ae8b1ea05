"""Tables of numbers about images, such as the targets of a regression: `image,head_circumference`.

Each column of numbers becomes a feature `image/meta/<column>`, float32 unless `input.labels.features` gives its type.
Whole numbers are float32, too, since the next delivery may have a fraction. Images have no class. An image needs a
number in each of these columns, and rows that repeat it must agree; otherwise it is rejected.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from shardwright.config.input import AUTO, FLOAT, LabelsConfig
from shardwright.dataset.manifest import NONE
from shardwright.errors import UsageError
from shardwright.formats.classes import ClassMap
from shardwright.formats.columns import ALL, is_number
from shardwright.formats.rows import CsvFormat, RawAnnotation, TableInput
from shardwright.formats.tables import IMAGE, Table, TableRow
from shardwright.storage import limits, open_table
from shardwright.untrusted.json_text import parse_untrusted_json

_NOT_FINITE = ("nan", "inf", "infinity")


class Numbers(CsvFormat):
    """See `CsvFormat`."""

    format, kind = "numbers", NONE

    def __init__(self, given: TableInput, wanted: Mapping[str, str]) -> None:
        super().__init__(given)
        self._wanted = wanted

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        """See `AnnotationFormat.resolved`."""
        return replace(super().resolved(options), features=dict(self._wanted))

    def _take_apart(self, row: TableRow) -> RawAnnotation:
        name = row.fields[self._columns[IMAGE]]
        problem = "" if name.strip() else "names no image"
        return RawAnnotation(row.line, name, self._names.find(name), problem=problem)

    def _conflict(self, image: int, annotation: RawAnnotation) -> str:
        assert annotation.row is not None, "there is a column of numbers"
        header = self._further.differing(image, annotation.row)
        return f"an earlier row has another number in column {header}; an image has one" if header else ""

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        return ClassMap((), {})


@dataclass(frozen=True)
class FoundNumbers:
    """The columns of a table that have no role.

    Attributes:
        numbers: headers of those of which most values are numbers.
        others: headers of the others, empty columns aside.
        flags: whether all of the numbers are -1, 0 and 1, which may be classes.
    """

    numbers: tuple[str, ...]
    others: tuple[str, ...]
    flags: bool

    def wanted(self, features: Mapping[str, str]) -> dict[str, str]:
        """Returns the columns to read, with their types.

        Args:
            features: `input.labels.features`.
        """
        columns = dict.fromkeys(self.numbers, FLOAT) if not features or ALL in features else {}
        named = {name: FLOAT if kind == AUTO else kind for name, kind in features.items() if name != ALL}
        return {**columns, **named}


def find_numbers(table: Table, taken: Collection[int]) -> FoundNumbers:
    """Looks for columns of numbers, by all rows."""
    free = {i: header for i, header in enumerate(table.header) if i not in taken and header}
    numbers: Counter[int] = Counter()
    others: Counter[int] = Counter()
    flags = True
    for row in table.rows():
        for i in free if len(row.fields) == len(table.header) else ():
            text = row.fields[i].strip()
            if is_number(text):
                numbers[i] += 1
                flags = flags and float(text) in (-1, 0, 1)
            elif text and text.lower().lstrip("+-") not in _NOT_FINITE:
                others[i] += 1
    good = [i for i in free if numbers[i] > others[i]]
    bad = [i for i in free if others[i] and i not in good]
    return FoundNumbers(tuple(free[i] for i in good), tuple(free[i] for i in bad), flags)


def are_fractions(table: Table, column: int) -> bool:
    """Returns whether all values of a column are numbers, and one of them is not a whole number."""
    fraction = False
    for row in table.rows():
        text = row.fields[column].strip() if len(row.fields) == len(table.header) else ""
        if text and not is_number(text):
            return False
        fraction = fraction or (bool(text) and not float(text).is_integer())
    return fraction


@dataclass(frozen=True)
class LinesTable(Table):
    """JSON lines as a table: the members of the first line are the columns, and a row has the texts of their values."""

    @staticmethod
    def of(path: str) -> LinesTable:
        """Reads the members of the first line.

        Raises:
            UsageError: it is not a JSON object.
        """
        for _, entry in _entries(path):
            if not isinstance(entry, dict) or not entry:
                break
            return LinesTable(path, tuple(entry), "")
        raise UsageError(f"{path}: line 1 is not a JSON object with members. Fix the file.")

    def rows(self) -> Iterator[TableRow]:
        """See `Table.rows`; a line that is not an object has no fields."""
        for number, entry in _entries(self.path):
            fields = [_text(entry.get(name)) for name in self.header] if isinstance(entry, dict) else []
            yield TableRow(number, fields)


def _entries(path: str) -> Iterator[tuple[int, object]]:
    """Yields the number and the content of each line, `None` of one that is not JSON; numbers stay texts."""
    with open_table(path) as file:
        try:
            for number, line in enumerate(limits.bounded_lines(file), 1):
                if line.strip():
                    try:
                        yield number, parse_untrusted_json(line, parse_float=str, parse_int=str, parse_constant=str)
                    except ValueError:
                        yield number, None
        except UnicodeDecodeError:
            raise UsageError(f"{path}: is not UTF-8 text. Save the file in UTF-8.") from None
        except limits.LineTooLong as error:
            raise UsageError(f"{path}: {error}. Give a file with line ends.") from None


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)
