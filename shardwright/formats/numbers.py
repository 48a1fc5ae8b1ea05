"""Tables of numbers about images, such as the targets of a regression: `image,head_circumference`.

Each column of numbers becomes a feature `image/meta/<column>`, float32 unless `input.labels.features` gives its type.
Whole numbers are float32, too, since the next delivery may have a fraction. Images have no class. An image needs a
number in each of these columns, and rows that repeat it must agree; otherwise it is rejected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from shardwright.config.input import AUTO, FLOAT, LabelsConfig
from shardwright.dataset.manifest import NONE
from shardwright.formats.columns import ALL, is_number
from shardwright.formats.rows import CsvFormat, RawAnnotation, TableInput
from shardwright.formats.tables import Table

_NOT_FINITE = ("nan", "inf", "infinity")


class Numbers(CsvFormat):
    """A table of numbers."""

    format, kind = "numbers", NONE

    def __init__(self, given: TableInput, wanted: Mapping[str, str]) -> None:
        super().__init__(given)
        self._wanted = wanted

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        return replace(super().resolved(options), features=dict(self._wanted))

    def _look(self, image: int, annotation: RawAnnotation) -> str:
        assert annotation.row is not None
        assert self._further is not None, "there is a column of numbers"
        header = self._further.differing(image, annotation.row)
        return f"an earlier row has another number in column {header}; an image has one" if header else ""


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
        """Returns the columns to read, with their types."""
        columns = dict.fromkeys(self.numbers, FLOAT) if not features or ALL in features else {}
        named = {name: FLOAT if kind == AUTO else kind for name, kind in features.items() if name != ALL}
        return {**columns, **named}


def are_fractions(table: Table, column: int) -> bool:
    """Returns whether all values of a column are numbers, and one of them is not a whole number."""
    fraction = False
    # Those of most tables are words, as the first rows show.
    for row in chain(table.first_rows, table.rows()):
        text = row.fields[column].strip() if len(row.fields) == len(table.header) else ""
        if text and not is_number(text):
            return False
        fraction = fraction or (bool(text) and not float(text).is_integer())
    return fraction
