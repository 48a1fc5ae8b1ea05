"""Open Images: CSV files of boxes, of classes of whole images, or of masks in PNG files.

| columns next to `ImageID` and `LabelName` | a row is |
|---|---|
| `XMin`, `XMax`, `YMin`, `YMax` | a box, in fractions of the image |
| `Confidence` alone | a class of the whole image where it is 1; others are left out, with their count |
| `MaskPath` | a mask: a PNG below the folder of the CSV or next to it, whose pixels other than 0 belong to the object |

`LabelName` is an identifier such as `/m/0k4j`; its name is in a file `class-descriptions*.csv` in the folder of the
CSV, or in `../metadata/classes.csv`, where FiftyOne puts it. A mask must have the size of its image. Source: the
description of the data (storage.googleapis.com/openimages/web/download_v7.html).
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from typing import Any

from shardwright.errors import UsageError
from shardwright.formats.base import Request
from shardwright.formats.image_names import FileEnds
from shardwright.formats.mask_values import MaskFiles
from shardwright.formats.object_content import FRACTIONS, Content, Entry, Thing
from shardwright.formats.object_values import ObjectError, whole_row
from shardwright.formats.objects import ObjectTable
from shardwright.formats.panoptic import FileMasks
from shardwright.formats.signs import OPEN_IMAGES_COLUMNS, OPEN_IMAGES_KINDS, is_open_images
from shardwright.formats.tables import Table, rows_by_name
from shardwright.images.boxes import Box
from shardwright.storage import Listing, is_folder, list_inputs, list_names, open_table
from shardwright.storage.limits import MOST_LIST_BYTES

(IMAGE, CLASS), (CONFIDENCE, MASK, _) = OPEN_IMAGES_COLUMNS, OPEN_IMAGES_KINDS
EDGES = ("XMin", "YMin", "XMax", "YMax")
_MASK_EDGES = tuple(f"Box{edge}" for edge in EDGES)
# Column -> name of the flag, as in the TensorFlow Object Detection API.
_FLAGS = {
    "IsOccluded": "occluded",
    "IsTruncated": "truncated",
    "IsGroupOf": "group_of",
    "IsDepiction": "depiction",
    "IsInside": "inside",
}
_DESCRIPTIONS = "class-descriptions"
# FiftyOne downloads the tables into the folder `labels`, and the names into the folder next to it.
_FIFTYONE_FOLDER, _FIFTYONE_CLASSES = "metadata", "classes.csv"


class OpenImages(ObjectTable):
    """Boxes, classes of images, or masks, a row each."""

    format, tool, flags = "open_images", "Open Images", tuple(_FLAGS.values())

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self._table = Table.open(given.path, given.content)
        if not is_open_images(self._table.header):
            raise UsageError(f"{given.path}: has no columns {IMAGE} and {CLASS}. Give a CSV of Open Images.")
        folder = os.path.dirname(given.path)
        self._described = _descriptions(folder)
        self._ends = FileEnds((), folder)
        if MASK in self._table.header:
            files = _masks(folder, given.images.root) or _masks(os.path.dirname(folder), given.images.root)
            if files is None:
                raise UsageError(
                    f"{given.path}: no PNG file of a mask is below {folder} or next to it. Put them there."
                )
            self._attached = files
            self._ends = FileEnds(files.names, files.root)
            masks = MaskFiles(files.root, {}, given.images.max_pixels)
            self.dialect = FileMasks(self.dialect.centers, self.dialect.clip, files=masks)

    def _entries(self) -> Iterator[Entry]:
        for name, rows in rows_by_name(self._table, IMAGE).items():
            yield Entry([name] if name else [], f"{self.name}, row {rows[0][0]}", rows)

    def _content(self, raw: Any) -> Content:
        content = Content(boxes_in=FRACTIONS)
        for line, fields in raw:
            one = whole_row(line, fields)
            label = fields[CLASS].strip()
            label = self._described.get(label, label)
            if MASK in fields:
                name = self._ends.find(str(one.get(MASK)))
                if name is None:
                    raise ObjectError(f"{one.where}: there is no file {ascii(one.get(MASK))[:80]} near {self.name}")
                edges = Box(*one.numbers(*_MASK_EDGES)) if one.get(_MASK_EDGES[0], "").strip() else None
                content.things.append(Thing(label, None, edges, file=name))
            elif EDGES[0] in fields:
                flags = {flag: int(fields.get(column, "0").strip() == "1") for column, flag in _FLAGS.items()}
                content.things.append(Thing(label, None, Box(*one.numbers(*EDGES)), flags))
            elif one.number(CONFIDENCE) == 1:
                content.tags.append(label)
            else:
                content.left_out["classes of images with a confidence below 1"] += 1
        return content


def _masks(folder: str, images: str) -> Listing | None:
    """Returns the PNG files below a folder, without those of the images; `None` where there are none."""
    listing, inside = list_inputs(folder), images.rstrip("/") + "/"
    apart = not folder.startswith(images.rstrip("/"))
    chosen = [
        i
        for i, key in enumerate(listing.keys)
        if key.lower().endswith(".png") and not (apart and listing.path(i).startswith(inside))
    ]
    return listing.part(chosen) if chosen else None


def _descriptions(folder: str) -> dict[str, str]:
    """Returns the names of the classes by their identifiers, from a file in the folder."""
    named = (name for name in list_names(folder) if _DESCRIPTIONS in name.lower() and name.lower().endswith(".csv"))
    path = os.path.join(folder, next(named, ""))
    if path.endswith("/"):
        near = os.path.join(os.path.dirname(folder), _FIFTYONE_FOLDER)
        if not is_folder(near) or _FIFTYONE_CLASSES not in list_names(near):
            return {}
        path = os.path.join(near, _FIFTYONE_CLASSES)
    with open_table(path, MOST_LIST_BYTES) as file:
        try:
            return {row[0].strip(): row[1].strip() for row in csv.reader(file) if len(row) > 1 and row[1].strip()}
        except (csv.Error, UnicodeDecodeError) as error:
            raise UsageError(f"{path}: is not a CSV in UTF-8 ({error}).") from None
