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

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from shardwright.dataset.manifest import MULTI
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import Request, Survey
from shardwright.formats.object_content import FRACTIONS, Content, Entry, Thing
from shardwright.formats.object_values import (
    AREA,
    BoxUnit,
    ObjectError,
    check_fraction,
    one_size,
    read_text_number,
    whole_row,
)
from shardwright.formats.objects import ObjectTable
from shardwright.formats.table_values import (
    BOX_HEADER,
    CENTER_FORM,
    CORNER_FORM,
    EDGE_FORM,
    class_readings,
    find_box_columns,
    find_image_column,
    is_first_box,
)
from shardwright.formats.tables import Table, rows_by_name, shown_header
from shardwright.images.boxes import Box
from shardwright.running.progress import counted

_FOUR = ("first", "second", "third", "fourth")
_ONE_CLASS = "object"
_SCORES = ("score", "confidence", "conf", "probability")


class BoxCsv(ObjectTable):
    """A table of boxes."""

    format, tool, finds_unit = "box_csv", "the table", True

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        table = Table.open(given.path, given.content)
        if is_first_box(table.header):
            table = replace(table, header=BOX_HEADER, headless=True)
        self._table = table
        columns = find_box_columns(table.header, given.options.columns)
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
        if columns.form == CORNER_FORM:
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
                edges = self._edges(fields, one.where)
                beside = (None, _number_in(fields, (AREA,)))
                self._scored += 0 < (_number_in(fields, _SCORES) or 0) < 1
                things.append(Thing(label if columns.label else self._only, None, edges, beside=beside))
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
        if self._columns.form == EDGE_FORM:
            return Box(*edges)
        x, y, width, height = edges
        if self._columns.form == CENTER_FORM:
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


def _number_in(fields: Mapping[str, str], names: Sequence[str]) -> float | None:
    """Returns the number in the first of some columns that is there; `None` without one."""
    with suppress(ValueError):
        return next((float(fields[name]) for name in names if fields.get(name)), None)
    return None
