"""Supervisely: a JSON file for each image in `DATASET/ann/`, its image in `DATASET/img/`, the classes in `meta.json`.

| geometry | is read as |
|---|---|
| `polygon` | an outline, without its `interior` holes |
| `bitmap` | a PNG, compressed with zlib and in base64, from its `origin` on |
| `rectangle` | a box: the rows and columns of both corners belong to it |
| others | left out, with their count |

Tags of the file are the classes of the whole image; one with a value is `name=value`. Classes are in the order of
`meta.json`, which may be up to two folders above the files. The datasets of a project are its splits where they are
called so. Source: the Supervisely JSON format (docs.supervisely.com, Annotation format).
"""

from __future__ import annotations

import base64
import binascii
import os
import zlib
from collections import Counter
from collections.abc import Sequence

from shardwright.errors import UsageError
from shardwright.formats.base import Request
from shardwright.formats.object_agreement import stated_beside
from shardwright.formats.object_content import Content, Thing, polygon, shape
from shardwright.formats.object_values import Fields, ObjectError, parse_json, read_points
from shardwright.formats.objects import ObjectFiles
from shardwright.images.boxes import Box
from shardwright.storage import list_inputs, list_names, read_bytes
from shardwright.untrusted.budget import Budget, OverBudget

_META = "meta.json"
_ANNOTATIONS, _IMAGES = "ann", "img"
_ABOVE = 2
# A bitmap of one bit for each pixel; the PNG of a whole large image stays below this.
_MOST_PNG_BYTES = 64 << 20
# All bitmaps of an image: a PNG is compressed already.
BUDGET = Budget(unpacked=4 << 20, ratio=8)
_KNOWN_WITHOUT_AREA = {"point": "points", "line": "lines"}


class Supervisely(ObjectFiles):
    """A project, or a folder in it."""

    format, tool = "supervisely", "Supervisely"

    def __init__(self, given: Request) -> None:
        root, below = _project(given.path.rstrip("/"))
        listing = list_inputs(root)
        keys = [key for key in listing.keys if key.startswith(below) and key.lower().endswith(self.ending)]
        files = {key for key in keys if os.path.basename(key) != _META}
        if not files:
            raise UsageError(f"input.labels.path: {given.path} contains no JSON file. Give the folder of the project.")
        super().__init__(given, listing.part([i for i, key in enumerate(listing.keys) if key in files]))
        self._attached = listing.part([i for i, key in enumerate(listing.keys) if key in files or key == _META])
        self.declared = []
        if _META in self._attached.keys:
            number = list(self._attached.keys).index(_META)
            path, pin = self._attached.path(number), self._attached.pin(number)
            try:
                meta = Fields(parse_json(read_bytes(path, pin, _MOST_PNG_BYTES)))
                self.declared = [one.name("title") for one in meta.each("classes")]
            except (OSError, ObjectError) as error:
                problem = f"{path}: is not the meta.json of Supervisely. Export the project again."
                raise UsageError(f"{problem} ({error})") from None

    def _names_in(self, number: int, data: bytes) -> Sequence[str]:
        key = self._files.keys[number][: -len(self.ending)]
        parts = key.split("/")
        at = [_IMAGES if part == _ANNOTATIONS else part for part in parts[:-1]]
        return [*self._below_images([*at, parts[-1]]), "/".join([*at, parts[-1]]), parts[-1]]

    def _content(self, raw: bytes) -> Content:
        document = Fields(parse_json(raw))
        if "objects" not in document.members:
            raise ObjectError("has no `objects`, so it is not Supervisely's")
        content = Content(size=document.inside("size").size())
        unpacked = 0
        for one in document.each("objects", default=[]):
            found = _thing(one, content.left_out)
            if found is not None:
                content.things.append(found._replace(beside=stated_beside(one.members)))
                unpacked += len(found.shape or "")
                try:
                    BUDGET.check_unpacked(unpacked, len(raw))
                except OverBudget as error:
                    raise ObjectError(str(error)) from None
        for one in document.each("tags", default=[]):
            name, value = one.name("name"), one.get("value")
            content.tags.append(name if value is None else f"{name}={value}")
        return content


def _project(path: str) -> tuple[str, str]:
    """Returns the folder of the project, and what the keys of the files below it begin with."""
    root = path
    for _ in range(_ABOVE + 1):
        if _META in list_names(root):
            return root, "" if root == path else f"{path.removeprefix(root).lstrip('/')}/"
        root = os.path.dirname(root)
    return path, ""


def _thing(one: Fields, left_out: Counter[str]) -> Thing | None:
    label, kind = one.name("classTitle"), str(one.get("geometryType") or one.get("shape"))
    if kind == "bitmap":
        return _bitmap(label, one.inside("bitmap"))
    if kind not in ("polygon", "rectangle"):
        left_out[_KNOWN_WITHOUT_AREA.get(kind, f"objects of the geometry {ascii(kind)[:20]}")] += 1
        return None
    points = one.inside("points")
    outline = points.points("exterior", 3 if kind == "polygon" else 2)
    if kind == "rectangle":
        columns, rows = zip(*outline, strict=True)
        return Thing(label, None, Box(min(columns), min(rows), max(columns) + 1, max(rows) + 1))
    interior = points.listed("interior", [])
    holes = [read_points(hole, points.place(f"interior {i + 1}")) for i, hole in enumerate(interior)]
    if not holes:
        return Thing(label, polygon(outline))
    flat = [[number for point in corners for number in point] for corners in (outline, *holes)]
    across, down = flat[0][::2], flat[0][1::2]
    return Thing(label, shape(outline=flat[0], holes=flat[1:]), Box(min(across), min(down), max(across), max(down)))


def _bitmap(label: str, one: Fields) -> Thing:
    (left, top), *_ = read_points([one.get("origin")], one.place("origin"), 1)
    try:
        unpacked = zlib.decompressobj()
        data = unpacked.decompress(base64.b64decode(str(one.get("data")), validate=True), _MOST_PNG_BYTES)
    except (ValueError, binascii.Error, zlib.error):
        raise ObjectError(f"{one.where}: its data is not a PNG, compressed with zlib and in base64") from None
    if not unpacked.eof:
        raise ObjectError(f"{one.where}: its data is cut off, or has more than {_MOST_PNG_BYTES} bytes")
    return Thing(label, shape(png=base64.b64encode(data).decode(), at=[int(left), int(top)]))
