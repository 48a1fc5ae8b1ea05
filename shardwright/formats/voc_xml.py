"""Pascal VOC's annotation of one image: an XML file with the image's size and the boxes of its objects.

VOC counts pixels from 1 and means the last ones too: a box of the whole image is 1, 1, width, height. Here it becomes
the edges 0, 0, width, height (`shardwright.images.boxes.Box`), so 1 is taken off `xmin` and `ymin`. Many tools count
from 0 instead, which `find_base` sees. Source: the VOC2012
development kit, section 8 (host.robots.ox.ac.uk/pascal/VOC). `part` elements (heads, hands, feet) are passed over.

The file may come from anyone: its size is limited, and see `safe_xml`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from shardwright.errors import UsageError
from shardwright.formats.base import Survey
from shardwright.formats.head import Head
from shardwright.formats.image_names import key_stem
from shardwright.formats.object_values import ObjectError, read_text_size
from shardwright.formats.objects import Content, ObjectFiles, ObjectInput, Thing
from shardwright.formats.safe_xml import XmlError, parse_xml
from shardwright.images.boxes import Box
from shardwright.masks.rle import RleError
from shardwright.running.progress import counted
from shardwright.storage import list_inputs

MOST_XML_BYTES = 4 << 20
_SHOWN = 40
_FILE_NAME = re.compile(rb"<filename>([^<]{1,1000})</filename>")
_SIZE = ("annotation", "size")
_OBJECT = ("annotation", "object")
_BOX = (*_OBJECT, "bndbox")
_EDGES = ("xmin", "ymin", "xmax", "ymax")
FLAGS = ("difficult", "truncated")


class VocError(RleError):
    """An XML file is not an annotation of an image; the message states what is wrong and where."""

    code = "bad_xml"


class VocObject(NamedTuple):
    """One object.

    Attributes:
        name: its class.
        box: its edges.
        flags: 0 or 1 for each of `FLAGS`; 0 where the file does not state it.
    """

    name: str
    box: Box
    flags: dict[str, int]


class VocImage(NamedTuple):
    """The content of an annotation file.

    Attributes:
        size: height and width that it states for the image, or `None`.
        objects: in the order of the file.
    """

    size: tuple[int, int] | None
    objects: tuple[VocObject, ...]


def read_voc(data: bytes) -> VocImage:
    """Reads an annotation file.

    Args:
        data: the whole file.

    Raises:
        VocError: too large, no XML, with a document type, or without an edge.
    """
    if len(data) > MOST_XML_BYTES:
        raise VocError(f"it has {len(data)} bytes; an annotation has at most {MOST_XML_BYTES}")
    reader = _Reader()
    try:
        parse_xml([data], reader)
    except XmlError as error:
        raise VocError(str(error)) from None
    try:
        size = read_text_size(reader.size.get("height", ""), reader.size.get("width", ""), "size: ")
    except ObjectError as error:
        raise VocError(str(error)) from None
    return VocImage(size, tuple(_object(fields, i) for i, fields in enumerate(reader.objects)))


def find_base(boxes: Iterable[Box]) -> tuple[bool, list[str]]:
    """Returns whether the edges of a set count from 0, which many tools write, and notes if some do.

    Args:
        boxes: as `read_voc` reads them. Where more of their first edges are 0 in the files than 1, they count from 0.
    """
    begins = Counter(edge for box in boxes for edge in (box.xmin, box.ymin))
    zeros, ones = begins[-1], begins[0]
    if not zeros:
        return False, []
    found = f"{counted(zeros, 'edge of a box is', 'edges of boxes are')} 0 and {ones} are 1, so edges count from"
    return zeros > ones, [f"{found} {'0' if zeros > ones else '1, as those of Pascal VOC do'}"]


def from_zero(box: Box) -> Box:
    """Returns the box of edges that count from 0, as `read_voc` reads it."""
    return Box(box.xmin + 1, box.ymin + 1, box.xmax, box.ymax)


class VocBoxes(ObjectFiles):
    """Boxes in a folder of such files, without masks; see `ObjectFormat`. For VOC's whole tree see `pascal_voc`."""

    format, tool, flags = "voc_boxes", "Pascal VOC", FLAGS

    @staticmethod
    def sniff(head: Head) -> str:
        """See `AnnotationFormat.sniff`."""
        return "Pascal VOC XML files of boxes" if head.xml_root == "annotation" else ""

    def __init__(self, given: ObjectInput) -> None:
        super().__init__(given)
        listing = list_inputs(given.path)
        chosen = [i for i, key in enumerate(listing.keys) if key.lower().endswith(".xml")]
        if not chosen:
            raise UsageError(f"input.labels.path: {given.path} contains no XML file. Give the folder Annotations.")
        self._files = listing.part(chosen)

    def _names_in(self, number: int, data: bytes) -> Sequence[str]:
        stem = key_stem(self._files.keys[number])
        return [stem, stem.rpartition("/")[2]]

    def _other_name(self, number: int, data: bytes) -> str:
        found = _FILE_NAME.search(data)
        return found[1].decode("utf-8", "replace").strip() if found else ""

    def survey(self) -> Survey:
        """See `ObjectFormat.survey`; where more boxes begin at 0 than at 1, edges count from 0."""
        survey = super().survey()
        zero, notes = find_base(thing.box for _, content in self._kept for thing in content.things if thing.box)
        for i, kept in enumerate(self._kept if zero else ()):
            things = [thing._replace(box=from_zero(thing.box)) for thing in kept.content.things if thing.box]
            self._kept[i] = kept._replace(content=replace(kept.content, things=things))
        survey.notes = (*survey.notes, *(f"{self.name}: {note}" for note in notes))
        return survey

    def _content(self, raw: Any) -> Content:
        image = read_voc(raw)
        return Content([Thing(thing.name, None, thing.box, thing.flags) for thing in image.objects], size=image.size)


class _Reader:
    """Notes the texts of the elements that are wanted."""

    def __init__(self) -> None:
        self.size: dict[str, str] = {}
        self.objects: list[dict[str, str]] = []

    def start(self, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        del attributes
        if path == _OBJECT:
            self.objects.append({})

    def end(self, path: tuple[str, ...], text: str) -> None:
        folder, name = path[:-1], path[-1]
        if folder == _SIZE:
            self.size[name] = text
        elif folder in (_OBJECT, _BOX) and self.objects:
            self.objects[-1][name] = text


def _object(fields: dict[str, str], number: int) -> VocObject:
    where = f"object {number + 1}"
    name = fields.get("name", "")
    if not name:
        raise VocError(f"{where} has no name")
    xmin, ymin, xmax, ymax = (_number(fields, edge, where) for edge in _EDGES)
    flags = {flag: int(fields.get(flag, "0") in ("1", "true", "True")) for flag in FLAGS}
    return VocObject(name, Box(xmin - 1, ymin - 1, xmax, ymax), flags)


def _number(fields: dict[str, str], name: str, where: str) -> float:
    text = fields.get(name, "")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        problem = f"is {text[:_SHOWN]!r}, not a number" if text else "is missing"
        raise VocError(f"{where}: {name} {problem}")
    return number
