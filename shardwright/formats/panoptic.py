"""COCO panoptic: a JSON file of segments, and a PNG for each image whose colors are their ids.

The id of a segment is `red + 256 * green + 65536 * blue`. A segment is an object of its category; pixels of no segment
are background. PNG files are in the folder that has the name of the JSON file, or elsewhere next to it. Classes are the
categories in the order of their ids. Source: the COCO data format (cocodataset.org/#format-data, 4).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from shardwright.formats.base import Request
from shardwright.formats.coco import CROWD, CocoTable
from shardwright.formats.image_names import FileEnds
from shardwright.formats.mask_values import FetchedFiles, MaskFiles, check_size
from shardwright.formats.object_agreement import stated_beside
from shardwright.formats.object_content import Content, Entry, Thing, corner_box
from shardwright.formats.object_values import Fields, ObjectError, read_id, read_name, read_number
from shardwright.images.colors import COLOR
from shardwright.masks.drawn import DrawnMasks
from shardwright.masks.mask_pixels import MaskFileError, value_runs
from shardwright.masks.rle import Runs, normalize
from shardwright.storage import list_inputs

_MOST_ID = 256**3
# Between the id of a segment and the name of its file; no file's name holds a NUL.
_MARK = "\0"


class Panoptic(CocoTable):
    """Segments of the colors of PNG files."""

    format = "panoptic"

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        folder, name = os.path.split(given.path)
        listing = list_inputs(folder)
        inside = os.path.splitext(name)[0] + "/"
        chosen = [i for i, key in enumerate(listing.keys) if key.lower().endswith(".png")]
        near = [i for i in chosen if listing.keys[i].startswith(inside)] or chosen
        self._attached = listing.part(near)
        self._ends = FileEnds(self._attached.names, folder)
        files = MaskFiles(listing.root, {}, given.images.max_pixels)
        self.dialect = FileMasks(self.dialect.centers, self.dialect.clip, files=files)

    def _entries(self) -> Iterator[Entry]:
        document = self._load()
        images = {read_id(one.get("id")): one for one in document["images"] if isinstance(one, dict)}
        for i, annotation in enumerate(document["annotations"]):
            number = read_id(annotation.get("image_id")) if isinstance(annotation, dict) else ""
            image = images.get(number) if number else None
            name = image.get("file_name") if image is not None else None
            names = [name] if isinstance(name, str) and name.strip() else []
            yield Entry(names, f"{self.name}, annotations[{i}]", (image, annotation))

    def _content(self, raw: tuple[Any, Any]) -> Content:
        image, annotation = Fields(raw[0], "its image in images"), Fields(raw[1], "the annotation")
        name = read_name(annotation.get("file_name"), "file_name")
        file = self._ends.find(name)
        if file is None:
            raise ObjectError(f"there is no file {ascii(name)[:80]} next to {self.name}")
        annotation.where = ""
        things = [self._segment(one, file) for one in annotation.each("segments_info", "segment", [])]
        return Content(things, size=image.size())

    def _segment(self, one: Fields, file: str) -> Thing:
        number, category = one.get("id"), read_id(one.get("category_id"))
        if type(number) is not int or not 0 < number < _MOST_ID:
            raise ObjectError(f"{one.where}: the id is {ascii(number)[:40]}, not a color as a number")
        if category not in self._labels:
            raise ObjectError(f"{one.where}: the category id {ascii(one.get('category_id'))[:40]} is not in categories")
        box = None
        if one.get("bbox") is not None:
            sides = [read_number(side, one.place("bbox")) for side in one.listed("bbox")]
            if len(sides) != 4:
                raise ObjectError(f"{one.place('bbox')} has {len(sides)} numbers, not [x, y, width, height]")
            box = corner_box(*sides)
        flags = {CROWD: int(one.get("iscrowd") in (1, True))}
        beside = stated_beside(one.members)
        return Thing(self._labels[category], None, box, flags, f"{number}{_MARK}{file}", beside=beside)


@dataclass(frozen=True)
class FileMasks(DrawnMasks):
    """Reads masks in files: whole ones, or a segment of the colors of one. Other texts are shapes.

    Attributes:
        files: reads the files.
    """

    files: MaskFiles = field(default_factory=lambda: MaskFiles("", {}, 0))

    def size(self, text: str) -> tuple[int, int] | None:
        name = self.file_of(text)
        return super().size(text) if name is None else self.files.size(name)

    def masks(self, label: int, text: str, *, height: int, width: int) -> list[tuple[int, Runs]]:
        name = self.file_of(text)
        if name is None:
            return super().masks(label, text, height=height, width=width)
        if name == text:
            return list(self.files.masks(label, text, height=height, width=width))
        segment = text.partition(_MARK)[0]
        (rows, columns), runs = _segments(self.files.root, self.files.max_pixels, name, self.files.fetched)
        check_size(self.files.shown(name), "the mask", (rows, columns), height, width)
        if int(segment) not in runs:
            raise MaskFileError(f"{self.files.shown(name)}: has no pixel of the segment {segment}")
        return [(label, runs[int(segment)])]

    def file_of(self, text: str) -> str | None:
        if text.startswith("["):
            return None
        segment, _, name = text.partition(_MARK)
        return name if segment.isdecimal() else text

    def with_fetched(self, fetched: FetchedFiles) -> FileMasks:
        return replace(self, files=self.files.with_fetched(fetched))


@lru_cache(maxsize=1)
def _segments(
    root: str, max_pixels: int, text: str, fetched: FetchedFiles | None
) -> tuple[tuple[int, int], dict[int, Runs]]:
    """Returns the size and the runs of each segment of a file. Segments are read one after the other."""
    # With a color as a value, colors of equal parts are not taken for gray.
    files = MaskFiles(root, {COLOR: None}, max_pixels, fetched=fetched)
    mask = files.read(text)
    if not mask.colored:
        raise MaskFileError(f"{files.shown(text)}: is not a PNG of RGB colors, which are the ids of segments")
    values, runs = value_runs(mask.values)
    found = {}
    for value in np.unique(values).tolist():
        color = int(value) - COLOR
        number = color >> 16 | color & 0xFF00 | (color & 0xFF) << 16
        found[number] = normalize(runs[values == value])
    rows, columns = mask.values.shape
    return (rows, columns), found
