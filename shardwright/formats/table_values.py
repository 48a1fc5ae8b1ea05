"""Finds the roles of a table's columns by their values, where the headers do not state them.

A header such as `Dateiname` or `id_code` is in no list of known names, but its values are the names of the images.
A column may have the classes where its values repeat.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from shardwright.errors import Reading, UsageError
from shardwright.formats.classes import as_integer
from shardwright.formats.columns import is_number
from shardwright.formats.image_names import NameIndex
from shardwright.formats.tables import IMAGE, IMAGE_LABEL, LABEL, MASK, Table, has_known_names, reduce_header
from shardwright.masks.rle import read_numbers

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
    return most[0] if len(most) == 1 else None


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
