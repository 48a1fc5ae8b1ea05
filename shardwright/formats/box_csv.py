"""Boxes in a CSV with a row for each box: a column of images, one of classes, and four of edges or sizes.

| columns | a box is |
|---|---|
| `xmin`, `ymin`, `xmax`, `ymax`; `x1`, `y1`, `x2`, `y2`; `left`, `top`, `right`, `bottom` | its edges |
| `x`, `y`, `w`, `h`; `x`, `y`, `width`, `height`; `left`, `top`, `width`, `height` | its first corner and its size |
| `x_center`, `y_center`, `width`, `height`; `cx`, `cy`, `w`, `h` | its center and its size |
| `bbox` or `bounding_box`, four numbers in one field: `[834.0, 222.0, 56.0, 36.0]` (Global Wheat) | the same |
| no header, and rows of `path,x1,y1,x2,y2,class` (keras-retinanet) | its edges |

The names may begin with `bbox` or `box`.

Edges are in pixels from the left and the top border, as the TensorFlow Object Detection API reads such files. They are
fractions of the image where most boxes are within one pixel, see `BoxUnit`. `width` and `height` next to four edges are
the size of the image, which must be that of the file. A row without edges is an image without objects, if it has no
class, or one that no row with edges has (VinBigData's `No finding`, RSNA's `0`). Without a column of classes, all boxes
are of the only class in `input.classes`. Sources: datitran/raccoon_dataset (xml_to_csv.py), fizyr/keras-retinanet
(README, CSV datasets), makesense.ai.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from shardwright.dataset.manifest import MULTI
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import Request, Survey
from shardwright.formats.head import Head
from shardwright.formats.object_content import FRACTIONS, Content, Entry, Thing
from shardwright.formats.object_values import (
    BoxUnit,
    ObjectError,
    check_fraction,
    one_size,
    read_text_number,
    whole_row,
)
from shardwright.formats.objects import ObjectTable
from shardwright.formats.table_values import class_readings, find_image_column
from shardwright.formats.tables import (
    IMAGE,
    LABEL,
    MASK,
    Table,
    by_reduced,
    choose_role,
    reduce_header,
    rows_by_name,
    shown_header,
    size_columns,
)
from shardwright.images.boxes import Box
from shardwright.images.header import IMAGE_ENDINGS
from shardwright.running.progress import counted

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
_EDGE_FORM, _CORNER_FORM, _CENTER_FORM = "the edges", "a corner and the size", "the center and the size"
_PREFIX = re.compile(r"^(?:bbox|box)(?=.)")
_DELIMITERS = (",", ";", "\t")
_WITHOUT_HEADER = ("image", "x1", "y1", "x2", "y2", "class")
_FOUR = ("first", "second", "third", "fourth")
_ONE_CLASS = "object"
_NOT_WRITTEN = ("", "nan", "none", "null")


class BoxCsv(ObjectTable):
    """A table of boxes."""

    format, tool, finds_unit = "box_csv", "the table", True

    @staticmethod
    def sniff(head: Head) -> str:
        fields = list(head.header)
        if head.ending == ".csv" and _find_columns(fields, {}) is None:
            delimiter = max(_DELIMITERS, key=head.line.count)
            with suppress(csv.Error):  # The reader of tables reports what is wrong.
                fields = [field.strip() for field in next(csv.reader([head.line], delimiter=delimiter), [])]
        boxes = _find_columns(fields, {}) is not None or (head.ending == ".csv" and _is_first_box(fields))
        return "a CSV of boxes" if boxes else ""

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        table = Table.open(given.path, given.content)
        if _is_first_box(table.header):
            table = replace(table, header=_WITHOUT_HEADER, headless=True)
        self._table = table
        columns = _find_columns(table.header, given.options.columns)
        if columns is not None and not columns.image:
            named = find_image_column(table, {}, self._names)
            columns = None if named is None else replace(columns, image=table.header[named])
        if columns is None:
            raise UsageError(
                f"{given.path}: columns {shown_header(table.header)} were found, but boxes need one for the image, one "
                "for the class, and four such as xmin,ymin,xmax,ymax or x,y,width,height. Name the first two by "
                "input.labels.columns."
            )
        names = list(given.classes or ())
        if not columns.label and len(names) != 1:
            shown = shown_header(columns.edges)
            raise UsageError(
                f"{given.path}: {shown} holds boxes, and no column has their classes. Name it by "
                "input.labels.columns.label, or write the only class there is into input.classes. For numbers that "
                "are not boxes, set input.labels.format: numbers."
            ).with_readings(
                Reading(
                    "all boxes are of one class",
                    {"task": "classification", "input.labels.boxes": True, "input.classes": [_ONE_CLASS]},
                ),
                *class_readings(table, {table.header.index(name) for name in columns.used if name}),
            )
        self._only = names[0] if names else ""
        for role, name in given.options.columns.items():
            table.find_column(f"input.labels.columns.{role}", name)
        self._columns = columns
        self._fractions = False
        # Classes of rows without edges, and of others.
        self._without: Counter[str] = Counter()
        self._with: set[str] = set()

    def survey(self) -> Survey:
        survey, columns = super().survey(), self._columns
        unit = "fractions of the image" if self._fractions else "pixels"
        where = f"{shown_header(columns.edges)} are {columns.form} of a box"
        if self._table.headless:
            where = "no header: image, 4 edges, class"
        survey.notes = (*survey.notes, f"{self.name}: {where}, in {unit}")
        if none := {label: count for label, count in self._without.items() if label not in self._with}:
            shown = ", ".join(f"{label!r} ({counted(count, 'row')})" for label, count in none.items())
            survey.notes = (*survey.notes, f"{self.name}: no objects where the class is {shown}, which has no edges")
        if columns.form == _CORNER_FORM:
            read_as = f"as corners and sizes, by the names of {shown_header(columns.edges)},"
            self._check_corners(survey, read_as, "Rename the columns.")
        return survey

    def _entries(self) -> Iterator[Entry]:
        unit, columns = BoxUnit(), self._columns
        images = rows_by_name(self._table, columns.image)
        for _, fields in (row for rows in images.values() for row in rows):
            label = fields.get(columns.label, "")
            if columns.are_written(fields):
                self._with.add(label)
            elif label:
                self._without[label] += 1
            with suppress(ObjectError):  # A broken row costs its image, and decides nothing.
                unit.add([read_text_number(text, "") for text in columns.numbers(fields)])
        self._fractions = unit.fractions
        for name, rows in images.items():
            yield Entry([name], f"{self.name}, row {rows[0][0]}", rows)

    def _content(self, raw: Any) -> Content:
        columns, things, left_out = self._columns, list[Thing](), Counter[str]()
        sizes: list[tuple[int, int] | None] = []
        for line, fields in raw:
            one = whole_row(line, fields)
            left_out.update(f"values of column {name!r}" for name in fields if name and name not in columns.used)
            sizes += [one.size(*columns.size)] if columns.size else []
            label = fields[columns.label] if columns.label else ""
            if columns.are_written(fields) or label in self._with:
                things.append(Thing(label if columns.label else self._only, None, self._edges(fields, one.where)))
        in_fractions = FRACTIONS if self._fractions else None
        return Content(things, size=one_size(sizes, "rows"), boxes_in=in_fractions, left_out=left_out)

    def _edges(self, fields: Mapping[str, str], where: str) -> Box:
        numbers, names = self._columns.numbers(fields), self._columns.edges
        if len(numbers) != len(_FOUR):
            raise ObjectError(f"{where}: {names[0]} has {len(numbers)} numbers, not 4")
        places = names if len(names) > 1 else [f"{names[0]}, {which} number" for which in _FOUR]
        edges = [read_text_number(text, f"{where}: {place}") for text, place in zip(numbers, places, strict=True)]
        for edge, place in zip(edges, places, strict=True) if self._fractions else ():
            check_fraction(edge, f"{where}: {place}")
        if self._columns.form == _EDGE_FORM:
            return Box(*edges)
        x, y, width, height = edges
        if self._columns.form == _CENTER_FORM:
            x, y = x - width / 2, y - height / 2
        return Box(x, y, x + width, y + height)

    def _check_task(self, survey: Survey) -> list[str]:
        if not self._boxes:
            things = counted(sum(len(content.things) for _, content in self._kept), "box", "boxes")
            options = {"task": "classification", "input.labels.boxes": True}
            raise UsageError(
                f"{self._path}: holds {things}. Use task: classification with input.labels.boxes: true, or "
                "input.labels.format: label_csv for the classes alone."
            ).with_readings(Reading("the boxes of images", options))
        survey.labels = MULTI
        return []


@dataclass(frozen=True)
class _Columns:
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


def _find_columns(header: Sequence[str], given: Mapping[str, str]) -> _Columns | None:
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
    form = _EDGE_FORM if usual in _EDGES else _CENTER_FORM if usual in _CENTERS else _CORNER_FORM
    return _Columns(image, label, found, form, size_columns(rest))


def _is_first_box(fields: Sequence[str]) -> bool:
    """Returns whether the first row of a file is a box, not a header: an image, four numbers and a class, or blanks."""
    if len(fields) != len(_WITHOUT_HEADER) or not fields[0].lower().endswith(tuple(IMAGE_ENDINGS)):
        return False
    numbers = [re.fullmatch(r"-?\d+(?:\.\d+)?", field) is not None for field in fields[1:5]]
    return (all(numbers) and bool(fields[5])) or not any(fields[1:])
