"""Finds the roles of a table's columns by their values, where the headers do not state them, and columns in groups.

A header such as `Dateiname` or `id_code` is in no list of known names, but its values are the names of the images.
A column may have the classes where its values repeat. Four columns are a box, or each column is a class, with 1 where
the image is of it, else 0 (or -1, as in CelebA): if every row has one 1, an image has one class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from shardwright.config.input import AUTO, FLOAT
from shardwright.errors import Reading, UsageError
from shardwright.formats.classes import as_integer
from shardwright.formats.columns import ALL, is_number
from shardwright.formats.image_names import NameIndex
from shardwright.formats.tables import (
    IMAGE,
    IMAGE_LABEL,
    LABEL,
    MASK,
    Table,
    by_reduced,
    choose_role,
    has_known_names,
    reduce_header,
    shown_header,
    size_columns,
)
from shardwright.images.header import IMAGE_ENDINGS, has_image_ending
from shardwright.masks.rle import read_numbers

_EDGES = (("xmin", "ymin", "xmax", "ymax"), ("x1", "y1", "x2", "y2"), ("left", "top", "right", "bottom"))
_SIDES = (
    *(("x", "y", "w", "h"), ("x", "y", "width", "height")),
    *(("left", "top", "width", "height"), ("xmin", "ymin", "width", "height")),
)
_CENTERS = tuple(
    (*center, *size)
    for center in (("xcenter", "ycenter"), ("centerx", "centery"), ("cx", "cy"))
    for size in (("width", "height"), ("w", "h"))
)
_LISTS = ("bbox", "boundingbox")
# The meaning of the four numbers of a box.
EDGE_FORM, CORNER_FORM, CENTER_FORM = "the edges", "a corner and the size", "the center and the size"
_PREFIX = re.compile(r"^(?:bbox|box)(?=.)")
BOX_HEADER = ("image", "x1", "y1", "x2", "y2", "class")
_FLAGS = {"true": 1, "false": 0}
_UNLABELED = ("unlabeled", "unlabelled")
_SHOWN = 40
_NOT_FINITE = ("nan", "inf", "infinity")
_NOT_WRITTEN = ("", "nan", "none", "null")
# More values than a column of classes has.
_MOST_VALUES = 1000
# Columns that divide the images, and are not their classes.
_DIVIDING = frozenset(("split", "subset", "set", "partition", "fold", "kfold", "usage"))
# What detectors and annotators say of an object, besides its class, without a leading `is`.
_OF_OBJECTS = re.compile(
    "conf(idence)?|scores?|prob(ability)?|certainty|difficult|truncated|truncation|occluded|occlusion|crowd|groupof|"
    "depiction|inside|outside|verified|reviewed|generated|pose|area|trackid|zorder|rotation|angle|annotator(id)?|"
    "worker(id)?|userid|source"
)
_CLASS_WORD = re.compile(r"class|label|categ|species|diagnos|disease|kind|type|target|tag", re.IGNORECASE)
_LABEL_OPTION = "input.labels.columns.label"
# A table of more columns than these holds more than classes, which nothing names without a header.
_MOST_UNNAMED = 4
# No name of a file is that long, and masks are.
_LONGEST = 1000
_MASK_CLASS = "mask"
# Columns next to image and mask that are not a class of the mask: those of Data Science Bowl's and Sartorius' tables.
_DESCRIBING = frozenset(
    ("height", "width", "usage", "celltype", "platetime", "sampledate", "sampleid", "elapsedtimedelta")
)


def find_image_column(table: Table, found: Mapping[str, int], names: NameIndex) -> int | None:
    """Returns the number of the column that names images, where the header does not state the one that does.

    Args:
        table: the table.
        found: role -> number of the column, by the headers.
        names: how tables name the images.

    Returns:
        The only column of which most values name images; `None` where there is none, or the header states it.
    """
    if IMAGE_LABEL in found:
        return None

    def rows_that_name(column: int) -> int:
        hits = 0
        for fields in (row.fields for row in table.first_rows if column < len(row.fields)):
            if fields[column].strip() and len(fields[column]) < _LONGEST:
                with suppress(UsageError):  # Several images have the name: the reader of the rows reports it.
                    hits += names.find(fields[column]) is not None
        return hits

    # A search for what names no image is long: the column that the header states is tried alone first.
    if IMAGE in found and rows_that_name(found[IMAGE]):
        return None
    width = max((len(row.fields) for row in table.first_rows), default=0)
    hits = {column: rows_that_name(column) for column in range(width) if column != found.get(IMAGE)}
    most = [i for i, count in hits.items() if 2 * count > len(table.first_rows)]
    # A number may be that of an image by chance, not a path.
    paths = [i for i in most if all(has_image_ending(row.fields[i]) for row in table.first_rows if i < len(row.fields))]
    return next((some[0] for some in (most, paths) if len(some) == 1), None)


def open_headless(table: Table, is_image: Callable[[str], bool]) -> Table:
    """Returns the table without a header, where its first line is a row: it names no column, but an image, or has runs.

    Args:
        table: the table as it was opened.
        is_image: whether a field names an image.
    """
    plain = type(table) is Table and len(table.header) > 1 and not has_known_names(table.header)
    # A header names no image, and has no run lengths and no fractions.
    runs = (read_numbers(field) for field in table.header)
    row = any(map(is_image, table.header)) or any(found is not None and len(found) > 4 for found in runs)
    row = row or any("." in field and is_number(field) for field in table.header)
    return table.without_header() if plain and row else table


def headless_roles(table: Table, image: int) -> dict[str, str]:
    """Returns the roles of the other columns of a table without a header: run lengths, or else the only classes."""
    roles: dict[str, str] = {}
    runs = run_columns(table, {image})
    classes = class_readings(table, {image, *runs})
    if len(runs) == 1:
        roles[MASK] = table.header[runs[0]]
    if len(classes) == 1 and len(runs) < 2 and len(table.header) <= _MOST_UNNAMED:
        roles[LABEL] = str(classes[0].options[_LABEL_OPTION])
    return roles


def run_columns(table: Table, taken: Collection[int]) -> list[int]:
    """Returns the numbers of the columns whose values look like run lengths: pairs of numbers, mostly several."""
    several: Counter[int] = Counter()
    possible = {i for i in range(len(table.header)) if i not in taken}
    for row in table.first_rows:
        for i in list(possible):
            text = row.fields[i].strip()
            numbers = read_numbers(text) if text else None
            if text and (numbers is None or len(numbers) % 2 or len(numbers) < 2):
                possible.discard(i)
            # Four numbers may be a box.
            several[i] += numbers is not None and len(numbers) > 4
    return sorted(i for i in possible if several[i])


def mask_readings(table: Table, taken: Collection[int]) -> list[Reading]:
    """Returns a reading for each column whose values look like run lengths."""
    return [
        Reading(
            f"the column {table.header[i]!r} has run lengths of masks",
            {"task": "segmentation", "input.labels.columns.mask": table.header[i]},
        )
        for i in run_columns(table, taken)
    ]


def class_readings(table: Table, taken: Collection[int]) -> list[Reading]:
    """Returns a reading for each column that may have the classes, the most likely first.

    Its values repeat, and are not fractions. What detectors and annotators say of an object comes last; numbers come
    after words, and values that repeat less after those that repeat more, unless the header calls them classes.
    """
    free = [i for i, name in enumerate(table.header) if name and i not in taken]
    values: dict[int, set[str]] = {i: set() for i in free if reduce_header(table.header[i]) not in _DIVIDING}
    counts: Counter[int] = Counter()
    for row in table.rows():
        for i in list(values) if len(row.fields) == len(table.header) else ():
            text = row.fields[i].strip()
            if is_number(text) and as_integer(text) is None:
                del values[i]
            elif text:
                counts[i] += 1
                values[i].add(text)
                if len(values[i]) > _MOST_VALUES:
                    del values[i]
    possible = [i for i, found in values.items() if 1 < len(found) <= counts[i] / 2]
    runs = set(run_columns(table, taken))

    def unlikely(i: int) -> tuple[bool, bool, bool, float]:
        header = table.header[i]
        return (
            i in runs or describes_object(table, i),
            _CLASS_WORD.search(header) is None,
            all(map(is_number, values[i])),
            len(values[i]) / counts[i],
        )

    headers = (table.header[i] for i in sorted(possible, key=unlikely))
    return [Reading(f"the column {name!r} has the classes", {_LABEL_OPTION: name}) for name in headers]


def describes_object(table: Table, column: int) -> bool:
    """Returns whether a column has numbers or flags, and is called after what they say of an object but its class."""
    if not _OF_OBJECTS.fullmatch(reduce_header(table.header[column]).removeprefix("is")):
        return False
    fields = (row.fields[column] for row in table.first_rows)
    return all(is_number(text) or text.strip().lower() in ("", "true", "false") for text in fields)


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


def flag(field: str) -> int | None:
    """Returns the number in a field of a column of classes: `1`, `1.0`, `true`; `None` where it is not a number."""
    text = field.strip()
    return _FLAGS.get(text.lower(), as_integer(text))


@dataclass(frozen=True)
class BoxColumns:
    """The columns of such a file.

    Attributes:
        image: name of the column of images; empty where no header states it.
        label: name of the column of classes; empty where there is none.
        edges: names of the four columns of a box, or of the one with all four numbers.
        form: their meaning.
        size: names of the columns of the image's height and width, or empty.
    """

    image: str
    label: str
    edges: tuple[str, ...]
    form: str
    size: tuple[str, ...] = ()

    @property
    def used(self) -> set[str]:
        """Names of all of them."""
        return {self.image, self.label, *self.edges, *self.size}

    def numbers(self, fields: Mapping[str, str]) -> list[str]:
        """Returns the four numbers of a box as they are written; more or fewer where a list is not one of four."""
        if len(self.edges) > 1:
            return [fields.get(name, "") for name in self.edges]
        text = fields.get(self.edges[0], "").strip("[]() ")
        return re.split(r"[\s,;]+", text) if text else [""] * 4

    def are_written(self, fields: Mapping[str, str]) -> bool:
        """Returns whether a row has a box."""
        return any(number.strip().lower() not in _NOT_WRITTEN for number in self.numbers(fields))


def find_box_columns(header: Sequence[str], given: Mapping[str, str]) -> BoxColumns | None:
    """Returns the columns, `None` where those of a box are not there. That of images may have an unknown name."""
    reduced = {_PREFIX.sub("", reduce_header(name)): name for name in reversed(header) if name}
    usual = next((names for names in (*_EDGES, *_CENTERS, *_SIDES) if reduced.keys() >= set(names)), ())
    found = tuple(reduced[name] for name in usual)
    if not found:
        whole = by_reduced(header)
        found = tuple(whole[name] for name in _LISTS if name in whole)[:1]
    rest = [name for name in header if name and name not in found]
    if not found or choose_role(MASK, rest, {}):
        return None
    label = choose_role(LABEL, rest, given) or by_reduced(rest).get("labelname", "")
    image = choose_role(IMAGE, [name for name in rest if name != label], given)
    form = EDGE_FORM if usual in _EDGES else CENTER_FORM if usual in _CENTERS else CORNER_FORM
    return BoxColumns(image, label, found, form, size_columns(rest))


def is_first_box(fields: Sequence[str]) -> bool:
    """Returns whether the first row of a file is a box, not a header: an image, four numbers and a class, or blanks."""
    if len(fields) != len(BOX_HEADER) or not fields[0].lower().endswith(tuple(IMAGE_ENDINGS)):
        return False
    numbers = [re.fullmatch(r"-?\d+(?:\.\d+)?", field) is not None for field in fields[1:5]]
    return (all(numbers) and bool(fields[5])) or not any(fields[1:])


def only_class(table: Table, known: Collection[str], classes: Mapping[str, int | None] | None) -> str:
    """Returns the class of all masks of a table that has no column of classes.

    Args:
        table: the table.
        known: headers of columns that are something else.
        classes: `input.classes`.

    Raises:
        UsageError: several classes are configured, or another column may well hold them.
    """
    if classes is not None and len(classes) == 1:
        return next(iter(classes))
    if classes is not None:
        raise UsageError(
            f"{table.path}: no column of classes was found, and input.classes names {len(classes)}. Name the column by "
            "input.labels.columns.label, or only one class."
        )
    unknown = [
        name
        for i, name in enumerate(table.header)
        if name not in known and reduce_header(name) not in _DESCRIBING and not describes_object(table, i)
    ]
    if unknown:
        taken = {i for i, name in enumerate(table.header) if name not in unknown}
        readings = class_readings(table, taken)
        likely = str(readings[0].options["input.labels.columns.label"]) if readings else unknown[0]
        raise UsageError(
            f"{table.path}: no column of classes was found; is it {likely!r}? Name it by "
            "input.labels.columns.label, or write the only class there is into input.classes."
        ).with_readings(
            readings[0]
            if readings
            else Reading(f"the column {likely!r} has the classes", {"input.labels.columns.label": likely}),
            Reading("all masks are of one class", {"input.classes": [_MASK_CLASS]}),
            *readings[1:],
        )
    return _MASK_CLASS
