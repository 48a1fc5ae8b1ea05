"""Classes of images as columns: `image,cat,dog` with 1 where the image is of the class, else 0 (or -1, as in CelebA).

If every row has one 1, an image has one class; otherwise any number of them. The classes are those of `input.classes`
where all of them are headers; else all columns but the image's and those that are named for something else, and then
every value must be 0 or 1. They come in the order of the columns. A column `Unlabeled` is no class.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from shardwright.config.input import LabelsConfig
from shardwright.dataset.manifest import MULTI, SINGLE
from shardwright.errors import UsageError
from shardwright.formats.base import shorten
from shardwright.formats.classes import SHOWN_CLASSES, ClassMap, as_integer, check_names
from shardwright.formats.label_csv import LabelTable
from shardwright.formats.rows import RawAnnotation, TableInput
from shardwright.formats.tables import IMAGE, Table, TableRow, shown_header
from shardwright.running.progress import counted

_FLAGS = {"true": 1, "false": 0}
_UNLABELED = ("unlabeled", "unlabelled")
_SHOWN = 40


class OneHotCsv(LabelTable):
    """A table with a column for each class."""

    def __init__(self, given: TableInput, one_hot: OneHot) -> None:
        super().__init__(given)
        self._one_hot = one_hot
        self.kind = MULTI if one_hot.multi else SINGLE

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        return replace(super().resolved(options), multi_label=self._one_hot.multi)

    def _take_apart(self, row: TableRow) -> RawAnnotation:
        name = row.fields[self._columns[IMAGE]]
        problem = "names no image" if not name.strip() else ""
        labels = []
        for i, label in self._one_hot.columns.items():
            value = flag(row.fields[i])
            if value == 1:
                labels.append(label)
            elif value != self._one_hot.zero:
                found = f"column {label} holds {row.fields[i][:_SHOWN]!r}, neither 1 nor {self._one_hot.zero}"
                problem = problem or found
        if not self._one_hot.multi and len(labels) != 1:
            problem = problem or f"names {'several classes' if labels else 'no class'}"
        return RawAnnotation(row.line, name, self._names.find(name), tuple(labels), problem=problem)

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        del values
        headers = tuple(self._one_hot.columns.values())
        check_names(dict.fromkeys(headers, f"{self._path}, header"))
        names = headers if self._classes is None else tuple(self._classes)
        shown = shorten([repr(name) for name in names], SHOWN_CLASSES)
        note = (f"{counted(len(names), 'class', 'classes')} detected, in the order of the columns: {shown}",)
        return ClassMap(names, {name: i for i, name in enumerate(names)}, note if self._classes is None else ())


@dataclass(frozen=True)
class OneHot:
    """Which columns are classes, and how they are read.

    Attributes:
        columns: number of the column -> class.
        zero: the value where an image is not of the class: 0 or -1.
        multi: whether an image may have any number of classes.
        reason: how that was detected.
    """

    columns: Mapping[int, str]
    zero: int
    multi: bool
    reason: str


def detect_one_hot(
    table: Table, taken: Collection[int], classes: Collection[str] | None, multi: bool | None
) -> OneHot | None:
    """Detects whether the columns of a table are classes, by all rows.

    Args:
        table: the table.
        taken: columns that are something else.
        classes: names of `input.classes`, if given.
        multi: `input.labels.multi_label`.

    Returns:
        The classes, or `None` where the columns are not classes.

    Raises:
        UsageError: some columns hold 0 and 1 only, others do not; or there is no header that names the classes.
    """
    # Roboflow's `Unlabeled` is of images without a class.
    known = [i for i, name in enumerate(table.header) if name in (classes or ()) or name.lower() not in _UNLABELED]
    free = {i: table.header[i] for i in known if i not in taken and table.header[i]}
    named = classes is not None and set(classes) <= set(free.values())
    columns = {i: header for i, header in free.items() if not named or header in (classes or ())}
    flags = [i for i in columns if all(flag(row.fields[i]) in (-1, 0, 1) for row in table.first_rows)]
    if not named and len(flags) < 2:
        return None
    seen: dict[int, set[int]] = {i: set() for i in columns}
    contrary: dict[int, str] = {}
    one_each = True
    for row in table.rows():
        if len(row.fields) != len(table.header):
            continue
        ones = 0
        for i in columns:
            value = flag(row.fields[i])
            if value in (-1, 0, 1):
                seen[i].add(value)
                ones += value == 1
            else:
                contrary.setdefault(i, f"row {row.line} holds {row.fields[i][:_SHOWN]!r}")
        one_each = one_each and ones == 1
    values = set().union(*seen.values())
    mixed = {-1, 0} <= values
    sound = [i for i in columns if seen[i] and i not in contrary]
    if not named and (len(sound) < 2 or mixed or len(set(columns.values())) < len(columns)):
        return None
    if not named and contrary:
        column, found = next(iter(contrary.items()))
        raise UsageError(
            f"{table.path}: no column of classes was found. The columns "
            f"{shown_header([columns[i] for i in sound[:3]])} may be one class each, but {columns[column]!r} is not "
            f"({found}). Name the classes in input.classes, or the column of classes in input.labels.columns.label."
        )
    counted = "every row has one 1" if one_each else "not every row has one 1"
    if table.headless and classes is None:
        raise UsageError(
            f"{table.path}: its first line is a row, and its columns of 0 and 1 may be a class each, which only a "
            "header names. Write the header above it: image, and the names of the classes."
        )
    reason = f"the columns {'of input.classes' if named else 'hold 0 and 1 only'}; {counted}"
    return OneHot(columns, -1 if -1 in values and not mixed else 0, not one_each if multi is None else multi, reason)


def flag(field: str) -> int | None:
    """Returns the number in a field of a column of classes: `1`, `1.0`, `true`; `None` where it is not a number."""
    text = field.strip()
    return _FLAGS.get(text.lower(), as_integer(text))
