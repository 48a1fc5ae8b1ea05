"""LabelMe: a JSON file for each image, next to it or in a separate folder.

`shapes` holds polygons, rectangles (turned ones, too), circles and masks; points and lines have no area and are left
out, with their count. Polygons and rectangles of one label and one `group_id` are parts of one object, as labelme2coco
reads them. `flags` of the file that are set are the classes of the whole image. The image is the one of `imagePath`, or
the one that has the name of the file; where both are images, see `objects`. The copy of it in `imageData` is not used.
Source: the file format of wkentaro/labelme (labelme/_label_file.py, labelme/shape.py).
"""

from __future__ import annotations

import base64
import json
import math
import os
import posixpath
from collections import Counter
from collections.abc import Sequence

from shardwright.formats.image_names import key_stem
from shardwright.formats.object_agreement import stated_beside
from shardwright.formats.object_content import Content, Thing, ellipse, polygon, shape, to_json
from shardwright.formats.object_values import Fields, ObjectError, parse_json
from shardwright.formats.objects import ObjectFiles
from shardwright.images.boxes import Box
from shardwright.masks.mask_pixels import png_size

_POLYGONS = ("polygon", "oriented_rectangle")
# Characters of base64 that hold the size of a PNG.
_START = 64
_WITHOUT_AREA = {"point": "points", "points": "points", "line": "lines", "linestrip": "lines"}


class LabelMe(ObjectFiles):
    """A folder of JSON files."""

    format, tool, states_name = "labelme", "LabelMe", True
    folder = "of LabelMe's"

    def _names_in(self, number: int, data: bytes) -> Sequence[str]:
        key = self._files.keys[number]
        try:
            path = parse_json(data).get("imagePath") if data else None
        except (ObjectError, AttributeError):
            path = None
        if not isinstance(path, str) or not path.strip():
            return [key_stem(key)]
        path = path.replace("\\", "/")
        near = posixpath.normpath(posixpath.join(os.path.dirname(key), path))
        return [near, path, posixpath.basename(path), key_stem(key)]

    def _other_name(self, number: int, data: bytes) -> str:
        return key_stem(self._files.keys[number])

    def _content(self, raw: bytes) -> Content:
        document = Fields(parse_json(raw))
        if "shapes" not in document.members:
            raise ObjectError("has no `shapes`, so it is not LabelMe's")
        flags = document.inside("flags", {}).members
        size = document.size("imageHeight", "imageWidth")
        content = Content(tags=[name for name, value in flags.items() if value is True], size=size)
        things = content.things
        groups: dict[tuple[str, int], int] = {}
        for one in document.each("shapes", default=[]):
            found, group = _thing(one, content.left_out), one.get("group_id")
            if found is None:
                continue
            before = groups.setdefault((found.label, group), len(things)) if type(group) is int else len(things)
            parts = [_outlines(part) for part in (*things[before : before + 1], found)]
            if len(parts) > 1 and all(parts):
                things[before] = Thing(found.label, to_json([*parts[0], *parts[1]]))
            else:
                things.append(found._replace(beside=stated_beside(one.members)))
        return content


def _outlines(thing: Thing) -> list[list[float]]:
    """Returns the outlines of an object; none where it is not of polygons or a rectangle."""
    if thing.shape is None and thing.box is not None:
        left, top, right, bottom = thing.box
        return [[left, top, right, top, right, bottom, left, bottom]]
    outlines = json.loads(thing.shape or "[]")
    return outlines if isinstance(outlines, list) else []


def _thing(one: Fields, left_out: Counter[str]) -> Thing | None:
    label, kind = one.name("label"), one.name("shape_type", "polygon")
    if kind in _WITHOUT_AREA:
        left_out[_WITHOUT_AREA[kind]] += 1
        return None
    points = one.points("points", 3 if kind in _POLYGONS else 2)
    if kind in _POLYGONS:
        return Thing(label, polygon(points))
    if kind not in ("rectangle", "circle", "mask") or len(points) != 2:
        raise ObjectError(f"{one.where}: {ascii(kind)[:40]} with {len(points)} points is not a shape that is read")
    (ax, ay), (bx, by) = points
    if kind == "circle":
        radius = math.hypot(bx - ax, by - ay)
        return ellipse(label, ax, ay, radius, radius)
    box = Box(min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))
    if kind == "rectangle":
        return Thing(label, None, box)
    mask = one.get("mask")
    if not isinstance(mask, str):
        raise ObjectError(f"{one.where}: mask is not a PNG in base64")
    around = Box(round(box.xmin), round(box.ymin), round(box.xmax) + 1, round(box.ymax) + 1)
    rows, columns = png_size(_start_of(mask)) or (0, 0)
    width, height = around.xmax - around.xmin, around.ymax - around.ymin
    if rows and max(abs(rows - height), abs(columns - width)) > 1:
        raise ObjectError(f"{one.where}: its mask has {rows}x{columns} (height x width), its points {height}x{width}")
    return Thing(label, shape(png=mask, at=[around.xmin, around.ymin]), around)


def _start_of(text: str) -> bytes:
    """Returns the first bytes of a text in base64; none where it is something else."""
    try:
        return base64.b64decode(text[:_START], validate=True)
    except ValueError:
        return b""
