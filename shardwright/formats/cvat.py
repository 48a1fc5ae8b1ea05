"""CVAT for images 1.1: one XML file with an `image` element for each image, and its shapes in it.

| element | is read as |
|---|---|
| `box`, with `rotation` a polygon | a box |
| `polygon`, `ellipse` | an outline |
| `mask` | run lengths within a box: counts of pixels off, on, off, ..., row by row |
| `tag` | a class of the whole image |
| `polyline`, `points`, `skeleton`, `cuboid`, attributes | left out, with their count |

Objects are drawn in the order of their `z_order`. Classes are in the order of the labels in `meta`. The subset of an
image is its split. Source: the documentation of the format (docs.cvat.ai, formats/format-cvat).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardwright.errors import AnnotationError, UsageError
from shardwright.formats.object_content import Content, Entry, Thing, ellipse, polygon, rectangle, shape
from shardwright.formats.object_values import Fields, ObjectError, read_text_number
from shardwright.formats.objects import ObjectTable
from shardwright.formats.safe_xml import BAD_XML, parse_xml
from shardwright.images.boxes import Box
from shardwright.storage import check_table, open_file

_CHUNK = 1 << 20
_IMAGE = ("annotations", "image")
_WITHOUT_AREA = {"polyline": "polylines", "points": "sets of points", "skeleton": "skeletons", "cuboid": "cuboids"}
_SHAPES = ("box", "ellipse", "polygon", "mask")
_SIDES = ("left", "top", "width", "height")
_NO_SUBSET = ("", "default")

_Elements = list[tuple[str, Mapping[str, str]]]


class Cvat(ObjectTable):
    """The file of a task."""

    format, tool = "cvat_xml", "CVAT's labels"

    def _entries(self) -> Iterator[Entry]:
        found = _Images()
        try:
            if self._bytes is not None:
                parse_xml([self._bytes], found)
            else:
                check_table(self._path)
                with open_file(self._path) as file:
                    parse_xml(iter(lambda: file.read(_CHUNK), b""), found)
        except AnnotationError as error:
            raise UsageError(f"{self._path}: {error}. Export 'CVAT for images 1.1' again.") from None
        except OSError as error:
            raise UsageError(f"input.labels.path: {self._path} cannot be opened ({error.strerror}).") from None
        self.declared = found.labels
        if found.tracks and not found.images:
            raise UsageError(f"{self._path}: is 'CVAT for video'. Export 'CVAT for images 1.1'.")
        for i, (attributes, elements) in enumerate(found.images):
            where = f"{self.name}, image {attributes.get('id', i)}"
            yield Entry([attributes.get("name", "")], where, (attributes, elements))

    def _content(self, raw: tuple[Mapping[str, str], _Elements]) -> Content:
        attributes, elements = raw
        subset = attributes.get("subset", "")
        size = Fields(attributes, "image", texts=True).size()
        content = Content(size=size, split="" if subset.lower() in _NO_SUBSET else subset)
        for i, (kind, given) in enumerate(elements):
            one = Fields(given, f"{kind} {i + 1}", texts=True)
            if kind == "attribute":
                content.left_out["attributes of objects"] += 1
            elif kind in _WITHOUT_AREA:
                content.left_out[_WITHOUT_AREA[kind]] += 1
            elif kind == "tag":
                content.tags.append(one.name("label"))
            elif kind in _SHAPES:
                content.things.append(_thing(kind, one)._replace(depth=one.number("z_order", "0")))
            else:
                raise ObjectError(f"{one.where}: is not a shape of CVAT for images 1.1")
        return content.sort_layers()


class _Images:
    """Collects images, their shapes, and the labels of the task."""

    def __init__(self) -> None:
        self.images: list[tuple[Mapping[str, str], _Elements]] = []
        self.labels: list[str] = []
        self.tracks = 0

    def start(self, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        if path == _IMAGE:
            self.images.append((attributes, []))
        elif path[:2] == _IMAGE and len(path) > 2:
            # The points of a skeleton are part of it. What is outside of a frame of a track is not in the image.
            if (len(path) == 3 and attributes.get("outside") != "1") or path[-1] == "attribute":
                self.images[-1][1].append((path[-1], attributes))
        elif path == ("annotations", "track"):
            self.tracks += 1
        elif path[:1] != ("annotations",):
            raise AnnotationError(f"its root is <{path[0]}>, not CVAT's <annotations>", BAD_XML)

    def end(self, path: tuple[str, ...], text: str) -> None:
        # Sub-labels of skeletons have a parent, which comes after their name.
        if path[-3:] == ("labels", "label", "name") and path[1] == "meta":
            self.labels.append(text)
        elif path[-3:] == ("labels", "label", "parent") and text and self.labels:
            self.labels.pop()


def _thing(kind: str, one: Fields) -> Thing:
    label, turn = one.name("label"), one.number("rotation", "0")
    if kind == "box":
        return rectangle(label, Box(*one.numbers("xtl", "ytl", "xbr", "ybr")), turn)
    if kind == "ellipse":
        x, y, rx, ry = one.numbers("cx", "cy", "rx", "ry")
        return ellipse(label, x, y, rx, ry, turn)
    if kind == "mask":
        left, top, width, height = (_whole(one.get(side, ""), one.place(side)) for side in _SIDES)
        counts = [_whole(text.strip(), one.place("rle")) for text in one.get("rle", "").split(",")]
        text = shape(rows=counts, box=[left, top, width, height])
        return Thing(label, text, Box(left, top, left + width, top + height))
    points = []
    for text in one.get("points", "").split(";"):
        numbers = [read_text_number(number, one.place("points")) for number in text.split(",")]
        if len(numbers) != 2:
            raise ObjectError(f"{one.where}: the point {ascii(text)[:40]} is not x,y")
        points.append((numbers[0], numbers[1]))
    return Thing(label, polygon(points))


def _whole(text: str, place: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise ObjectError(f"{place} is {ascii(text)[:40]}, not a whole number")
    return int(text)
