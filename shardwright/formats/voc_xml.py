"""Pascal VOC's annotation of one image: an XML file with the image's size and the boxes of its objects.

VOC counts pixels from 1 and means the last ones too: a box of the whole image is 1, 1, width, height. Here it becomes
the edges 0, 0, width, height (`shardwright.images.boxes.Box`), so 1 is taken off `xmin` and `ymin`. Source: the VOC2012
development kit, section 8 (host.robots.ox.ac.uk/pascal/VOC). `part` elements (heads, hands, feet) are passed over.

The file may come from anyone: its size is limited, and see `safe_xml`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shardwright.errors import UsageError
from shardwright.formats.head import Head
from shardwright.formats.image_names import key_stem
from shardwright.formats.object_values import ObjectError, read_text_size
from shardwright.formats.objects import Content, ObjectFiles, ObjectInput, Thing
from shardwright.formats.safe_xml import XmlError, parse_xml
from shardwright.images.boxes import Box
from shardwright.masks.rle import RleError
from shardwright.storage import list_inputs

MOST_XML_BYTES = 4 << 20
_SHOWN = 40
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
