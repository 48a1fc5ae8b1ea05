"""Datumaro JSON, as CVAT ("Datumaro 1.0") and Intel's tools export it: one file for each subset, in `annotations`.

`items` has the images, `categories.label.labels` the names of the classes in the order of their numbers. An image is
named from the folder `images/SUBSET` on, where the subset is the name of the file, or from `images` on; without a path
it has the `id` as its name. Objects are drawn in the order of their `z_order`. Points, polylines and cuboids are left
out. Sources: openvinotoolkit.github.io/datumaro (Datumaro format), docs.cvat.ai (Datumaro).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from shardwright.errors import UsageError
from shardwright.formats.head import Head
from shardwright.formats.mask_values import have_ids
from shardwright.formats.object_content import Content, Entry, Thing, ellipse, polygon, shape
from shardwright.formats.object_values import (
    ObjectError,
    each,
    load_json,
    read_id,
    read_list,
    read_mapping,
    read_name,
    read_number,
    read_points,
    read_size,
)
from shardwright.formats.objects import ObjectTable
from shardwright.images.boxes import Box

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

    @staticmethod
    def sniff(head: Head) -> str:
        return "Datumaro JSON" if head.has("items", "categories") else ""

    def _entries(self) -> Iterator[Entry]:
        document = load_json(self._path, "Datumaro", self._bytes)
        try:
            found = read_mapping(document, "the file")
            items = read_list(found.get("items"), "items")
            of_labels = read_mapping(found.get("categories"), "categories").get("label") or {"labels": []}
            labels = each(read_mapping(of_labels, "categories.label").get("labels"), "categories.label.labels")
            self.declared = [read_name(one.get("name"), "the name of a label") for _, one in labels]
        except ObjectError as error:
            raise UsageError(f"{self._path}: {error}. Export Datumaro again.") from None
        subset = os.path.splitext(self.name)[0]
        for i, item in enumerate(items):
            yield Entry(_names(item, subset), f"{self.name}, items[{i}]", item)

    def _content(self, raw: Any) -> Content:
        item = read_mapping(raw, "the item")
        if item.get("image") is None and {"point_cloud", "video", "video_frame"} & item.keys():
            raise ObjectError("is not an image")
        sides = read_list(read_mapping(item.get("image") or {}, "image").get("size") or [0, 0], "image: size")
        if len(sides) != 2:
            raise ObjectError(f"image: size has {len(sides)} numbers, not height and width")
        content = Content(size=read_size(sides[0], sides[1], "image: "))
        for where, one in each(item.get("annotations") or [], "annotations", "annotation"):
            kind = read_name(one.get("type"), f"{where}: type")
            if kind in _WITHOUT_AREA:
                content.left_out[_WITHOUT_AREA[kind]] += 1
            elif kind == "label":
                content.tags.append(self._label(one, where))
            else:
                depth = read_number(one.get("z_order") or 0, f"{where}: z_order")
                content.things.append(_thing(kind, one, self._label(one, where), where)._replace(depth=depth))
            content.left_out["attributes of objects"] += len(read_mapping(one.get("attributes") or {}, where))
        return content.sort_layers()

    def _label(self, one: Mapping[str, Any], where: str) -> str:
        number = read_id(one.get("label_id"))
        if not number.isdecimal() or int(number) >= len(self.declared):
            shown = ascii(one.get("label_id"))[:40]
            raise ObjectError(f"{where}: the label id {shown} is not one of the {len(self.declared)} labels, from 0")
        return number if have_ids(self._classes) else self.declared[int(number)]


def _names(item: Any, subset: str) -> list[str]:
    """Returns what may be the name of an item's image."""
    found = item if isinstance(item, dict) else {}
    image = found.get("image")
    name = (image.get("path") if isinstance(image, dict) else None) or found.get("id")
    return [f"{subset}/{name}", name] if isinstance(name, str) and name.strip() else []


def _thing(kind: str, one: Mapping[str, Any], label: str, where: str) -> Thing:
    if kind == "mask":
        code = read_mapping(one.get("rle"), f"{where}: rle")
        return Thing(label, shape(size=code.get("size"), counts=code.get("counts")))
    numbers = [
        read_number(number, where) for number in read_list(one.get("bbox" if kind == "bbox" else "points"), where)
    ]
    if kind == "polygon":
        if len(numbers) % 2:
            raise ObjectError(f"{where}: the polygon has {len(numbers)} numbers, not pairs")
        points = [list(pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
        return Thing(label, polygon(read_points(points, f"{where}: polygon")))
    if kind not in ("bbox", "ellipse"):
        raise ObjectError(f"{where}: {ascii(kind)[:40]} is no shape that is read")
    if len(numbers) != 4:
        raise ObjectError(f"{where}: the {kind} has {len(numbers)} numbers, not 4")
    left, top, third, fourth = numbers
    if kind == "ellipse":
        return ellipse(label, (left + third) / 2, (top + fourth) / 2, (third - left) / 2, (fourth - top) / 2)
    return Thing(label, None, Box(left, top, left + third, top + fourth))
