"""Datumaro JSON, as CVAT ("Datumaro 1.0") and Intel's tools export it: one file for each subset, in `annotations`.

`items` has the images, `categories.label.labels` the names of the classes in the order of their numbers. An image is
named from the folder `images/SUBSET` on, where the subset is the name of the file, or from `images` on; without a path
it has the `id` as its name. Objects are drawn in the order of their `z_order`. Points, polylines and cuboids are left
out. Sources: openvinotoolkit.github.io/datumaro (Datumaro format), docs.cvat.ai (Datumaro).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from shardwright.errors import UsageError
from shardwright.formats.mask_values import have_ids
from shardwright.formats.object_agreement import stated_beside
from shardwright.formats.object_content import Content, Entry, Thing, corner_box, ellipse, polygon, shape
from shardwright.formats.object_values import (
    Fields,
    ObjectError,
    load_json,
    read_id,
    read_number,
    read_points,
    read_size,
)
from shardwright.formats.objects import ObjectTable

_WITHOUT_AREA = {
    "points": "sets of points",
    "polyline": "polylines",
    "skeleton": "skeletons",
    "caption": "captions",
    **dict.fromkeys(("cuboid_3d", "cuboid_2d"), "cuboids"),
    **dict.fromkeys(("hash_key", "feature_vector"), "features of programs"),
}


class Datumaro(ObjectTable):
    """The file of a subset."""

    format, tool = "datumaro", "Datumaro's labels"

    def _entries(self) -> Iterator[Entry]:
        document = load_json(self._path, "Datumaro", self._bytes)
        try:
            found = Fields(document)
            items = found.listed("items", [])
            labels = found.inside("categories", {}).inside("label", {"labels": []})
            self.declared = [one.name("name") for one in labels.each("labels", default=[])]
        except ObjectError as error:
            raise UsageError(f"{self._path}: {error}. Export Datumaro again.") from None
        subset = os.path.splitext(self.name)[0]
        for i, item in enumerate(items):
            members = item if isinstance(item, dict) else {}
            image = members.get("image")
            name = (image.get("path") if isinstance(image, dict) else None) or members.get("id")
            names = [f"{subset}/{name}", name] if isinstance(name, str) and name.strip() else []
            yield Entry(names, f"{self.name}, items[{i}]", item)

    def _content(self, raw: Any) -> Content:
        item = Fields(raw, "the item")
        if item.get("image") is None and {"point_cloud", "video", "video_frame"} & item.members.keys():
            raise ObjectError("is not an image")
        image = Fields(item.get("image") or {}, "image")
        sides = image.listed("size", [0, 0])
        if len(sides) != 2:
            raise ObjectError(f"image: size has {len(sides)} numbers, not height and width")
        content = Content(size=read_size(sides[0], sides[1], "image: "))
        item.where = ""
        for one in item.each("annotations", "annotation", []):
            kind = one.name("type")
            if kind in _WITHOUT_AREA:
                content.left_out[_WITHOUT_AREA[kind]] += 1
            elif kind == "label":
                content.tags.append(self._label(one))
            else:
                thing = _thing(kind, one, self._label(one))
                content.things.append(thing._replace(depth=one.number("z_order", 0), beside=stated_beside(one.members)))
            content.left_out["attributes of objects"] += len(one.inside("attributes", {}).members)
        return content.sort_layers()

    def _label(self, one: Fields) -> str:
        number = read_id(one.get("label_id"))
        if not number.isdecimal() or int(number) >= len(self.declared):
            shown, known = ascii(one.get("label_id"))[:40], len(self.declared)
            raise ObjectError(f"{one.where}: the label id {shown} is not one of the {known} labels, from 0")
        return number if have_ids(self._classes) else self.declared[int(number)]


def _thing(kind: str, one: Fields, label: str) -> Thing:
    if kind == "mask":
        code = one.inside("rle")
        return Thing(label, shape(size=code.get("size"), counts=code.get("counts")))
    numbers = [read_number(number, one.where) for number in one.listed("bbox" if kind == "bbox" else "points")]
    if kind == "polygon":
        if len(numbers) % 2:
            raise ObjectError(f"{one.where}: the polygon has {len(numbers)} numbers, not pairs")
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        return Thing(label, polygon(read_points(points, one.place("polygon"))))
    if kind not in ("bbox", "ellipse"):
        raise ObjectError(f"{one.where}: {ascii(kind)[:40]} is not a shape that can be read")
    if len(numbers) != 4:
        raise ObjectError(f"{one.where}: the {kind} has {len(numbers)} numbers, not 4")
    if kind == "bbox":
        return Thing(label, None, corner_box(*numbers))
    left, top, right, bottom = numbers
    return ellipse(label, (left + right) / 2, (top + bottom) / 2, (right - left) / 2, (bottom - top) / 2)
