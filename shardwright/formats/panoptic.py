"""COCO panoptic: a JSON file of segments, and a PNG for each image whose colors are their ids.

The id of a segment is `red + 256 * green + 65536 * blue`. A segment is an object of its category; pixels of no segment
are background. PNG files are in the folder that has the name of the JSON file, or elsewhere next to it. Classes are the
categories in the order of their ids. Source: the COCO data format (cocodataset.org/#format-data, 4).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from shardwright.errors import UsageError
from shardwright.formats.head import Head
from shardwright.formats.image_names import FileEnds
from shardwright.formats.mask_values import FetchedFiles, MaskFiles, check_size
from shardwright.formats.object_values import (
    ObjectError,
    load_json,
    read_id,
    read_list,
    read_mapping,
    read_name,
    read_number,
    read_size,
)
from shardwright.formats.objects import Content, Entry, ObjectInput, ObjectTable, Thing
from shardwright.images.boxes import Box
from shardwright.images.colors import COLOR
from shardwright.masks.drawn import DrawnMasks
from shardwright.masks.mask_pixels import MaskFileError, value_runs
from shardwright.masks.rle import Runs, normalize
from shardwright.storage import Listing, list_inputs

_PARTS = ("images", "annotations", "categories")
_CROWD = "is_crowd"
_MOST_ID = 256**3
# Between the id of a segment and the name of its file; no file's name holds a NUL.
_MARK = "\0"


@dataclass(frozen=True)
class PanopticMasks(DrawnMasks):
    """Reads the segments of PNG files.

    Attributes:
        files: reads the files.
    """

    files: MaskFiles = field(default_factory=lambda: MaskFiles("", {}, 0))

    def size(self, text: str) -> tuple[int, int] | None:
        """See `MaskCode.size`."""
        return self.files.size(text.partition(_MARK)[2])

    def masks(self, label: int, text: str, *, height: int, width: int) -> list[tuple[int, Runs]]:
        """See `MaskCode.masks`."""
        segment, _, name = text.partition(_MARK)
        (rows, columns), runs = _segments(self.files.root, self.files.max_pixels, name, self.files.fetched)
        check_size(self.files.shown(name), "the mask", (rows, columns), height, width)
        if int(segment) not in runs:
            raise MaskFileError(f"{self.files.shown(name)}: has no pixel of the segment {segment}")
        return [(label, runs[int(segment)])]

    def file_of(self, text: str) -> str:
        """See `ReadsFiles.file_of`."""
        return text.partition(_MARK)[2]

    def with_fetched(self, fetched: FetchedFiles) -> PanopticMasks:
        """See `ReadsFiles.with_fetched`."""
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
    rows, columns = mask.values.shape
    values, runs = value_runs(mask.values)
    found = {}
    for value in np.unique(values).tolist():
        color = int(value) - COLOR
        number = color >> 16 | color & 0xFF00 | (color & 0xFF) << 16
        found[number] = normalize(runs[values == value])
    return (rows, columns), found


class Panoptic(ObjectTable):
    """See `ObjectFormat`."""

    format, tool, flags = "panoptic", "the category ids", (_CROWD,)

    @staticmethod
    def sniff(head: Head) -> str:
        """See `AnnotationFormat.sniff`."""
        return "COCO panoptic JSON" if head.has_annotations_with("segments_info") else ""

    def __init__(self, given: ObjectInput) -> None:
        super().__init__(given)
        folder, name = os.path.split(given.path)
        listing = list_inputs(folder)
        inside = os.path.splitext(name)[0] + "/"
        chosen = [i for i, key in enumerate(listing.keys) if key.lower().endswith(".png")]
        near = [i for i in chosen if listing.keys[i].startswith(inside)] or chosen
        self._files = listing.part(near)
        self._ends = FileEnds(self._files.names, folder)
        files = MaskFiles(listing.root, {}, given.images.max_pixels)
        self.dialect = PanopticMasks(self.dialect.centers, self.dialect.clip, files=files)
        self._categories: dict[str, str] = {}

    def attachments(self) -> Listing:
        """See `AnnotationFormat.attachments`."""
        return self._files

    def _entries(self) -> Iterator[Entry]:
        document = load_json(self._path, "COCO panoptic")
        found = document if isinstance(document, dict) else {}
        missing = [part for part in _PARTS if not isinstance(found.get(part), list)]
        if missing:
            raise UsageError(f"{self._path}: has no list {missing[0]!r}. Give the JSON of COCO panoptic.")
        images = {read_id(one.get("id")): one for one in found["images"] if isinstance(one, dict)}
        named = [one for one in found["categories"] if isinstance(one, dict) and isinstance(one.get("name"), str)]
        ordered = sorted(named, key=lambda one: one["id"] if isinstance(one.get("id"), int) else 0)
        ids = [(read_id(one.get("id")), one["name"]) for one in ordered]
        self._categories = {number: number if self._has_ids() else name for number, name in ids if number}
        for i, annotation in enumerate(found["annotations"]):
            number = read_id(annotation.get("image_id")) if isinstance(annotation, dict) else ""
            image = images.get(number) if number else None
            name = image.get("file_name") if image is not None else None
            names = [name] if isinstance(name, str) and name.strip() else []
            yield Entry(names, f"{self.name}, annotations[{i}]", (image, annotation))

    def _declared(self) -> Sequence[str]:
        return () if self._has_ids() else list(self._categories.values())

    def _content(self, raw: tuple[Any, Any]) -> Content:
        image = read_mapping(raw[0], "its image in images")
        annotation = read_mapping(raw[1], "the annotation")
        name = read_name(annotation.get("file_name"), "file_name")
        file = self._ends.find(name)
        if file is None:
            raise ObjectError(f"there is no file {ascii(name)[:80]} next to {self.name}")
        size = read_size(image.get("height"), image.get("width"), "")
        segments = read_list(annotation.get("segments_info"), "segments_info")
        things = [
            self._segment(read_mapping(one, f"segment {i + 1}"), f"segment {i + 1}", file)
            for i, one in enumerate(segments)
        ]
        return Content(things, size=size)

    def _segment(self, one: Mapping[str, Any], where: str, file: str) -> Thing:
        number, category = one.get("id"), read_id(one.get("category_id"))
        if type(number) is not int or not 0 < number < _MOST_ID:
            raise ObjectError(f"{where}: the id is {ascii(number)[:40]}, not a color as a number")
        if category not in self._categories:
            raise ObjectError(f"{where}: the category id {ascii(one.get('category_id'))[:40]} is not in categories")
        box = None
        if one.get("bbox") is not None:
            sides = [read_number(side, f"{where}: bbox") for side in read_list(one["bbox"], f"{where}: bbox")]
            if len(sides) != 4:
                raise ObjectError(f"{where}: bbox has {len(sides)} numbers, not [x, y, width, height]")
            box = Box(sides[0], sides[1], sides[0] + sides[2], sides[1] + sides[3])
        flags = {_CROWD: int(one.get("iscrowd") in (1, True))}
        return Thing(self._categories[category], None, box, flags, f"{number}{_MARK}{file}")
