"""VIA (VGG Image Annotator) 2: a JSON object with an entry for each file, alone or as `_via_img_metadata` of a project.

"Annotations as csv" has the same in a table with a row for each region; an image without regions has one row.

Rectangles are boxes; polygons, circles and ellipses have an outline; points and lines are left out, with their count.
The class of a region is its only attribute, or the one that is called `class`, `label`, `name`, `category` or `type`;
`input.labels.columns.label` names another one. Regions without any attribute are of one class, that of `input.classes`
or else `object`. File attributes of such a name are the classes of the whole image. Source: the annotation format
(www.robots.ox.ac.uk/~vgg/software/via).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from shardwright.errors import UsageError
from shardwright.formats.base import Request, shorten
from shardwright.formats.object_agreement import stated_beside
from shardwright.formats.object_content import Content, Entry, Thing, corner_box, ellipse, polygon, rectangle
from shardwright.formats.object_values import Fields, ObjectError, load_json, read_mapping, read_points
from shardwright.formats.objects import ObjectTable
from shardwright.formats.signs import VIA_REGION_COLUMNS, is_via_table
from shardwright.formats.tables import Table
from shardwright.untrusted.json_text import parse_untrusted_json

_PROJECT = "_via_img_metadata"
_CLASS_NAMES = ("class", "label", "name", "category", "type", "classes", "labels")
_WITHOUT_AREA = {"point": "points", "polyline": "lines"}
_OBJECT = "object"


class ViaJson(ObjectTable):
    """The file, JSON or CSV."""

    format, tool = "via_json", "VIA"

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self._asked = given.options.columns.get("label")
        self._attribute: str | None = None
        names = list(given.classes or ())
        self._only = names[0] if len(names) == 1 else _OBJECT

    def _entries(self) -> Iterator[Entry]:
        if self._path.lower().endswith(".csv"):
            entries: Any = _read_table(Table.open(self._path, self._bytes))
        else:
            document = load_json(self._path, self.tool, self._bytes)
            entries = document.get(_PROJECT, document) if isinstance(document, dict) else None
        if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
            raise UsageError(f"{self._path}: is not VIA's. Export 'Annotations as json' from VIA 2.")
        self._attribute = self._class_attribute(entries)
        for i, (key, entry) in enumerate(entries.items()):
            name = entry.get("filename")
            yield Entry([name if isinstance(name, str) and name else key], f"{self.name}, entry {i + 1}", entry)

    def _class_attribute(self, entries: Mapping[str, Any]) -> str | None:
        names: Counter[str] = Counter()
        for entry in entries.values():
            for region in _regions(entry):
                attributes = region.get("region_attributes") if isinstance(region, dict) else None
                names.update(list(attributes) if isinstance(attributes, dict) else ())
        if self._asked is not None:
            if self._asked not in names:
                known = f"there are: {shorten(sorted(names))}" if names else "there are none"
                raise UsageError(f"input.labels.columns.label: {self._asked!r} is not a region attribute; {known}.")
            return self._asked
        if len(names) < 2:
            return next(iter(names), None)
        found = [name for word in _CLASS_NAMES for name in names if name.lower() == word]
        if not found:
            raise UsageError(
                f"{self._path}: regions have several attributes: {shorten(sorted(names))}. Name the one of the class: "
                f"input.labels.columns: {{label: {sorted(names)[0]}}}."
            )
        return found[0]

    def _content(self, raw: Mapping[str, Any]) -> Content:
        content, entry = Content(), Fields({"regions": _regions(raw), "file_attributes": raw.get("file_attributes")})
        for region in entry.each("regions", "region", []):
            attributes = read_mapping(region.get("region_attributes") or {}, region.where)
            drawn = region.inside("shape_attributes")
            content.left_out["further attributes of regions"] += sum(name != self._attribute for name in attributes)
            kind = str(drawn.get("name"))
            if kind in _WITHOUT_AREA:
                content.left_out[_WITHOUT_AREA[kind]] += 1
                continue
            labels = [self._only] if self._attribute is None else _values(attributes.get(self._attribute))
            if not labels:
                name = ascii(self._attribute)[:40]
                raise ObjectError(f"{region.where}: has no {name}, the attribute of its class")
            beside = stated_beside(drawn.members) or stated_beside(region.members)
            content.things += [_thing(kind, label, drawn)._replace(beside=beside) for label in labels]
        for name, value in entry.inside("file_attributes", {}).members.items():
            if name.lower() in _CLASS_NAMES:
                content.tags += _values(value)
            elif value:
                content.left_out["further attributes of files"] += 1
        return content


def _read_table(table: Table) -> dict[str, Any]:
    """Returns the rows of a CSV as the entries of a JSON file."""
    if not is_via_table(table.header):
        raise UsageError(f"{table.path}: is not VIA's. Export 'Annotations as csv' or 'as json' from VIA 2.")
    header = [name.lstrip("#") for name in table.header]
    entries: dict[str, Any] = {}
    for row in table.rows():
        fields = dict(zip(header, row.fields, strict=False))
        name = fields["filename"].strip()
        entry = entries.setdefault(name, {"filename": name, "regions": []})
        region = {name: _parsed(fields.get(column, "")) for column, name in VIA_REGION_COLUMNS.items()}
        entry["file_attributes"] = _parsed(fields.get("file_attributes", ""))
        if any(region.values()):
            entry["regions"].append(region)
    return entries


def _parsed(text: str) -> Any:
    """Returns the value of JSON in a field; the text itself where it is not JSON, which its reader refuses."""
    try:
        return parse_untrusted_json(text) if text.strip() else {}
    except ValueError:
        return text


def _regions(entry: Mapping[str, Any]) -> list[Any]:
    """Returns the regions: a list, in VIA 1 a mapping of numbers."""
    regions = entry.get("regions") or []
    return list(regions.values()) if isinstance(regions, dict) else regions if isinstance(regions, list) else []


def _values(value: object) -> list[str]:
    """Returns the classes in an attribute: a text, or for check boxes a mapping of names to true."""
    if isinstance(value, dict):
        return [name for name, chosen in value.items() if chosen is True]
    return [value.strip()] if isinstance(value, str) and value.strip() else []


def _thing(kind: str, label: str, drawn: Fields) -> Thing:
    if kind == "polygon":
        columns, rows = drawn.listed("all_points_x"), drawn.listed("all_points_y")
        if len(columns) != len(rows):
            raise ObjectError(f"{drawn.where}: has {len(columns)} x and {len(rows)} y")
        points = list(zip(columns, rows, strict=True))
        return Thing(label, polygon(read_points(points, drawn.place("all_points"))))
    if kind == "rect":
        return rectangle(label, corner_box(*drawn.numbers("x", "y", "width", "height")))
    if kind not in ("circle", "ellipse"):
        raise ObjectError(f"{drawn.where}: {ascii(kind)[:40]} is not a shape of VIA")
    x, y, across, down = drawn.numbers("cx", "cy", *(("r", "r") if kind == "circle" else ("rx", "ry")))
    return ellipse(label, x, y, across, down, 0 if kind == "circle" else math.degrees(drawn.number("theta", 0)))
