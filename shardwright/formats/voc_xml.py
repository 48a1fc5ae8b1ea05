"""Pascal VOC's annotation of one image: an XML file with the image's size and the boxes of its objects.

VOC counts pixels from 1 and means the last ones too: a box of the whole image is 1, 1, width, height. Here it becomes
the edges 0, 0, width, height (`shardwright.images.boxes.Box`), so 1 is taken off `xmin` and `ymin`. Many tools count
from 0 instead, which the edges of the whole set show. Source: the VOC2012 development kit, section 8
(host.robots.ox.ac.uk/pascal/VOC). `part` elements (heads, hands, feet) are passed over.

The file may come from anyone: see `safe_xml`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shardwright.errors import AnnotationError
from shardwright.formats.base import Survey
from shardwright.formats.image_names import key_stem
from shardwright.formats.object_content import Content, Thing
from shardwright.formats.object_values import Fields, check_pixels
from shardwright.formats.objects import ObjectFiles
from shardwright.formats.safe_xml import BAD_XML, parse_xml
from shardwright.images.boxes import Box
from shardwright.running.progress import counted

_FILE_NAME = re.compile(rb"<filename>([^<]{1,1000})</filename>")
_SIZE = ("annotation", "size")
_OBJECT = ("annotation", "object")
_BOX = (*_OBJECT, "bndbox")
_EDGES = ("xmin", "ymin", "xmax", "ymax")
_FLAGS = ("difficult", "truncated")


class VocBoxes(ObjectFiles):
    """Boxes in a folder of such files, without masks. For VOC's whole tree see `pascal_voc`."""

    format, tool, flags = "voc_boxes", "Pascal VOC", _FLAGS
    ending, folder = ".xml", "Annotations"

    def _names_in(self, number: int, data: bytes) -> Sequence[str]:
        stem = key_stem(self._files.keys[number])
        return [stem, stem.rpartition("/")[2]]

    def _other_name(self, number: int, data: bytes) -> str:
        found = _FILE_NAME.search(data)
        return found[1].decode("utf-8", "replace").strip() if found else ""

    def _content(self, raw: bytes) -> Content:
        return read_voc(raw)

    def _check_boxes(self, survey: Survey) -> None:
        """Decides first whether edges count from 0, where more boxes begin at 0 than at 1."""
        boxes = [thing.box for _, content in self._kept for thing in content.things if thing.box]
        begins = Counter(edge for box in boxes for edge in (box.xmin, box.ymin))
        zeros, ones = begins[-1], begins[0]
        if zeros:
            edges = counted(zeros, "edge of a box is", "edges of boxes are")
            rule = "0" if zeros > ones else "1, as those of Pascal VOC do"
            survey.notes = (*survey.notes, f"{self.name}: {edges} 0 and {ones} are 1, so edges count from {rule}")
        for i, one in enumerate(self._kept if zeros > ones else ()):
            boxed = [(thing, thing.box) for thing in one.content.things if thing.box]
            things = [thing._replace(box=Box(box.xmin + 1, box.ymin + 1, *box[2:])) for thing, box in boxed]
            self._kept[i] = one._replace(content=replace(one.content, things=things))
        super()._check_boxes(survey)


def read_voc(data: bytes) -> Content:
    """Reads an annotation file; edges are taken to count from 1.

    Args:
        data: the whole file.

    Raises:
        AnnotationError: no XML, with a document type, or without an edge (code `bad_xml`).
    """
    reader = _Reader()
    try:
        parse_xml([data], reader)
        things = []
        for i, members in enumerate(reader.objects):
            one = Fields(members, f"object {i + 1}", texts=True)
            xmin, ymin, xmax, ymax = edges = one.numbers(*_EDGES)
            check_pixels(None, edges)
            flags = {flag: int(one.get(flag) in ("1", "true", "True")) for flag in _FLAGS}
            things.append(Thing(one.name("name"), None, Box(xmin - 1, ymin - 1, xmax, ymax), flags))
        return Content(things, size=Fields(reader.size, "size", texts=True).size())
    except AnnotationError as error:
        raise AnnotationError(str(error), BAD_XML) from None


class _Reader:
    """Notes the texts of the elements that are wanted."""

    def __init__(self) -> None:
        self.size: dict[str, str] = {}
        self.objects: list[dict[str, str]] = []

    def start(self, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        if path == _OBJECT:
            self.objects.append({})

    def end(self, path: tuple[str, ...], text: str) -> None:
        folder, name = path[:-1], path[-1]
        if folder == _SIZE:
            self.size[name] = text
        elif folder in (_OBJECT, _BOX) and self.objects:
            self.objects[-1][name] = text
