"""Label Studio: a JSON list of tasks, each with an image and its annotations.

| result | is read as |
|---|---|
| `rectanglelabels` | a box; turned, a polygon |
| `polygonlabels`, `ellipselabels` | an outline |
| `brushlabels` | a brush stroke, see `shardwright.masks.brush` |
| `choices` | classes of the whole image; those of a region are left out, with their count |
| other results | left out, with their count |

Coordinates are percents of the image. Regions whose classes are in a separate result (`labels`) of the same id are
read, too. A task that was skipped is not annotated; one with several annotations needs one of them as its ground truth.
Results of several images in one task are refused. Uploaded files are found without the eight characters that Label
Studio puts before their names. Source: the documentation (labelstud.io/guide/export, /guide/task_format).
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from shardwright.errors import UsageError
from shardwright.formats.candidates import IMAGE_ENDINGS
from shardwright.formats.object_values import (
    ObjectError,
    load_json,
    read_list,
    read_mapping,
    read_name,
    read_number,
    read_points,
    read_side,
)
from shardwright.formats.objects import Content, Entry, ObjectTable, Thing, ellipse, polygon, rectangle, shape
from shardwright.images.boxes import Box

_UPLOADED = re.compile(r"[0-9a-f]{8}-(?=.)")
_SHAPES = ("rectangle", "polygon", "ellipse", "brush")
_CHOICES, _LABELS = "choices", "labels"
# Members of a value that has a place in the image.
_PLACED = frozenset(("x", "points", "rle"))


class LabelStudio(ObjectTable):
    """See `ObjectFormat`."""

    format, tool = "label_studio", "Label Studio"

    def _entries(self) -> Iterator[Entry]:
        tasks = load_json(self._path, self.tool)
        if not isinstance(tasks, list):
            raise UsageError(f"{self._path}: is not a list of tasks. Export 'JSON' from Label Studio.")
        skipped = 0
        for i, task in enumerate(tasks):
            where = f"{self.name}, task {i + 1}"
            if not isinstance(task, dict) or not isinstance(task.get("annotations"), list):
                raise UsageError(f"{where}: has no annotations. Export 'JSON' from Label Studio, not 'JSON-MIN'.")
            done = [one for one in task["annotations"] if not (isinstance(one, dict) and one.get("was_cancelled"))]
            if done:
                yield Entry(_names(task), where, done)
            skipped += not done
        if skipped:
            self._notes += (f"labels: {skipped} tasks of {self.name} were skipped, or are not annotated yet",)

    def _content(self, raw: list[Any]) -> Content:
        chosen = [one for one in raw if isinstance(one, dict) and one.get("ground_truth")] or raw
        if len(chosen) > 1:
            raise ObjectError(f"it has {len(chosen)} annotations; keep one, or mark one as ground truth")
        results = [
            read_mapping(one, f"result {i + 1}")
            for i, one in enumerate(read_list(read_mapping(chosen[0], "the annotation").get("result"), "result"))
        ]
        _check_one_image(results)
        named = {one.get("id"): one for one in results if one.get("type") == _LABELS}
        regions = {str(one.get("id")) for one in results if str(one.get("type")).removesuffix(_LABELS) in _SHAPES}
        things: list[Thing] = []
        tags: list[str] = []
        left_out: Counter[str] = Counter()
        sizes: list[tuple[int, int]] = []
        for i, one in enumerate(results):
            where, kind = f"result {i + 1}", str(one.get("type"))
            if kind not in (_CHOICES, _LABELS) and kind.removesuffix(_LABELS) not in _SHAPES:
                left_out[f"results of the type {ascii(kind)[:40]}"] += 1  # Relations have no value.
                continue
            value = read_mapping(one.get("value"), f"{where}: value")
            if kind == _CHOICES and (str(one.get("id")) in regions or not _PLACED.isdisjoint(value)):
                left_out["choices of regions"] += 1
            elif kind == _CHOICES:
                tags += [read_name(choice, f"{where}: a choice") for choice in read_list(value.get(_CHOICES), where)]
            elif kind.removesuffix(_LABELS) in _SHAPES:
                height, width = (read_side(one.get(f"original_{side}"), where) for side in ("height", "width"))
                sizes.append((height, width))
                if one.get("image_rotation"):
                    raise ObjectError(f"{where}: was drawn on a picture turned by {one['image_rotation']} degrees")
                classes = value if kind in value else named.get(one.get("id"), one).get("value", {})
                labels = read_list(classes.get(kind, classes.get(_LABELS)), f"{where}: its classes")
                names = [read_name(label, where) for label in labels]
                things += [_thing(kind.removesuffix(_LABELS), name, value, height, width, where) for name in names]
        if len(set(sizes)) > 1:
            raise ObjectError(f"its results are of pictures of {len(set(sizes))} different sizes")
        return Content(things, list(dict.fromkeys(tags)), sizes[0] if sizes else None, left_out=left_out)


def _check_one_image(results: Sequence[Mapping[str, Any]]) -> None:
    places = {(str(one.get("to_name")), str(one.get("item_index") or 0)) for one in results if "to_name" in one}
    if len(places) > 1:
        raise ObjectError(f"its results are of {len(places)} images; export a task for each image")


def _thing(kind: str, label: str, value: Mapping[str, Any], height: int, width: int, where: str) -> Thing:
    x_of, y_of = width / 100, height / 100

    def number(name: str, factor: float) -> float:
        return read_number(value.get(name), f"{where}: {name}") * factor

    turn = read_number(value.get("rotation") or 0, f"{where}: rotation")
    if kind == "polygon":
        points = read_points(value.get("points"), f"{where}: points")
        return Thing(label, polygon((x * x_of, y * y_of) for x, y in points))
    if kind == "brush":
        if value.get("format") != "rle":
            raise ObjectError(f"{where}: its format is {ascii(value.get('format'))[:40]}, not 'rle'")
        return Thing(label, shape(brush=read_list(value.get("rle"), f"{where}: rle")))
    x, y = number("x", x_of), number("y", y_of)
    if kind == "ellipse":
        return ellipse(label, x, y, number("radiusX", x_of), number("radiusY", y_of), turn)
    # A box is turned around its first corner.
    return rectangle(label, Box(x, y, x + number("width", x_of), y + number("height", y_of)), turn, (x, y))


def _names(task: Mapping[str, Any]) -> list[str]:
    """Returns possible names of a task's image: the ends of its address, and the last one without upload prefix."""
    data = task.get("data")
    texts = [text for text in data.values() if isinstance(text, str)] if isinstance(data, dict) else []
    named = data.get("image") if isinstance(data, dict) else None
    found = [named] if isinstance(named, str) else [text for text in texts if _ending(text) in IMAGE_ENDINGS]
    names: list[str] = []
    # If there are several images, only the one under the usual name can be meant.
    for text in found if len(found) == 1 else ():
        parts = urlsplit(text.replace("\\", "/"))
        # Local files are addressed as /data/local-files/?d=folder/name.
        path = parse_qs(parts.query).get("d", [unquote(parts.path)])[0].lstrip("/")
        pieces = path.split("/")
        names += ["/".join(pieces[i:]) for i in range(len(pieces))]
        names.append(_UPLOADED.sub("", pieces[-1], count=1))
    return list(dict.fromkeys(names))


def _ending(text: str) -> str:
    return posixpath.splitext(text)[1].lower()
