"""Label Studio: a JSON list of tasks, each with an image and its annotations.

| result | is read as |
|---|---|
| `rectanglelabels` | a box; turned, a polygon |
| `polygonlabels`, `ellipselabels` | an outline |
| `brushlabels` | a brush stroke, see `shardwright.masks.brush` |
| `choices` | classes of the whole image; those of a region are left out |
| other results | left out, with their count |

Coordinates are percents of the image. Regions whose classes are in a separate result (`labels`) of the same id are
read, too. A task that was skipped is not annotated; one with several annotations needs one of them as its ground
truth. Uploaded files are found without the eight characters that Label Studio puts before their names.

A task may show several images. A result belongs to the member of the task's data that its `to_name` names. In a list
of pages, it belongs to the one at `item_index`. Source: the documentation (labelstud.io/guide/export,
/guide/task_format, /tags/image).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from shardwright.errors import UsageError
from shardwright.formats.base import Request, Survey
from shardwright.formats.image_names import address_path
from shardwright.formats.object_agreement import stated_beside
from shardwright.formats.object_content import Content, Entry, Thing, ellipse, polygon, rectangle, shape
from shardwright.formats.object_values import (
    BoxUnit,
    Fields,
    ObjectError,
    load_json,
    one_size,
    read_list,
    read_name,
    read_side,
)
from shardwright.formats.objects import ObjectTable
from shardwright.images.boxes import Box
from shardwright.images.header import IMAGE_ENDINGS

_UPLOADED = re.compile(r"[0-9a-f]{8}-(?=.)")
_SHAPES = ("rectangle", "polygon", "ellipse", "brush")
_CHOICES, _LABELS = "choices", "labels"
_SHOWN = 60
_IMAGE = "image"
# The value of a region has at least one of these members, and so have the attributes of the region.
_COORDINATES = {"x", "y", "points", "rle"}


class LabelStudio(ObjectTable):
    """The tasks of a project."""

    format, tool, finds_unit = "label_studio", "Label Studio", True

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self._unit = BoxUnit()

    def survey(self) -> Survey:
        """Coordinates must be percents."""
        survey = super().survey()
        if self._unit.fractions:
            raise UsageError(
                f"{self._path}: {self._unit.fractional} of its regions have coordinates below 1 alone, so they are "
                "fractions of the image, and Label Studio's are percents. Multiply them by 100."
            )
        return survey

    def _entries(self) -> Iterator[Entry]:
        tasks = load_json(self._path, self.tool, self._bytes)
        if not isinstance(tasks, list):
            raise UsageError(f"{self._path}: is not a list of tasks. Export 'JSON' from Label Studio.")
        skipped = 0
        tags = {tag for task in tasks if isinstance(task, dict) for tag in _tags(task.get("annotations"))}
        for i, task in enumerate(tasks):
            where = f"{self.name}, task {i + 1}"
            if isinstance(task, dict) and "annotations" not in task and "predictions" in task:
                raise UsageError(f"{where}: has predictions and no annotations. Submit them in Label Studio first.")
            if not isinstance(task, dict) or not isinstance(task.get("annotations"), list):
                raise UsageError(f"{where}: has no annotations. Export 'JSON' from Label Studio, not 'JSON-MIN'.")
            done = [one for one in task["annotations"] if not (isinstance(one, dict) and one.get("was_cancelled"))]
            if done:
                data = task.get("data")
                parts = self._parts(data if isinstance(data, dict) else {}, done, tags)
                yield from (Entry(_names(address), where, part) for address, part in parts)
            skipped += not done
        if skipped == len(tasks) > 0:
            raise UsageError(f"{self._path}: all {skipped} tasks were skipped, or are not annotated. Export others.")
        if skipped:
            self._notes += (f"labels: {skipped} tasks of {self.name} were skipped, or are not annotated yet",)

    def _parts(
        self, data: Mapping[str, Any], done: list[Any], tags: set[str]
    ) -> Iterator[tuple[str, _Part | ObjectError]]:
        """Yields the address of each image of a task, and what may be its results.

        Args:
            data: the task's data.
            done: the task's annotations.
            tags: each `to_name` of the whole file: a page without results is annotated if others like it have some.
        """
        pictures = _pictures(data)
        used = {tag for tag in _tags(done) if tag in pictures or tag not in data}
        named = [member for member in pictures if member in tags]
        if len(pictures) < 2:
            chosen = dict.fromkeys(pictures, "")
        elif named and used <= pictures.keys():
            chosen = {member: member if len(named) > 1 else "" for member in named}
        elif len(tags - data.keys()) < 2 and (member := self._likely(pictures)):
            chosen = {member: ""}
        else:
            members, found = (", ".join(map(ascii, sorted(names)))[:_SHOWN] for names in (pictures, used))
            problem = (
                f"the task has the images {members}, and its results are of {found or 'none of them'}; name each Image "
                "tag like the member of the data that it shows"
            )
            for address in (address for addresses in pictures.values() for address in addresses):
                yield address, ObjectError(problem)
            return
        if not chosen:
            yield "", _Part(done)
        first = True
        for member, tag in chosen.items():
            addresses = pictures[member]
            for page, address in enumerate(addresses):
                part = _Part(done, tag, frozenset(chosen.values()), first=first)
                several = len(addresses) > 1
                yield address, part._replace(page=page, pages=len(addresses)) if several else part
                first = False

    def _likely(self, pictures: Mapping[str, list[str]]) -> str:
        """Returns the member with the image of a task with one image and further addresses; empty where unknown."""
        if _IMAGE in pictures:
            return _IMAGE
        known = [
            member
            for member, addresses in pictures.items()
            if any(self._names.find(name) is not None for name in _names(addresses[0]))
        ]
        return known[0] if len(known) == 1 else "" if known else next(iter(pictures))

    def _content(self, raw: _Part) -> Content:
        chosen = [one for one in raw.annotations if isinstance(one, dict) and one.get("ground_truth")]
        chosen = chosen or raw.annotations
        if len(chosen) > 1:
            raise ObjectError(f"it has {len(chosen)} annotations; keep one, or mark one as ground truth")
        annotation = Fields(chosen[0], "the annotation")
        annotation.where = ""
        results = list(annotation.each("result", "result"))
        named = {str(one.get("id")): one for one in results if one.get("type") == _LABELS}
        drawn = [one for one in results if one.get("type") != _CHOICES and _has_coordinates(one.members)]
        regions = {str(one.get("id")) for one in drawn if "id" in one.members}
        content = Content()
        sizes: list[tuple[int, int] | None] = []
        for one in results:
            kind, mine = str(one.get("type")), _is_of(raw, one)
            if mine is False or (mine is None and not raw.first):
                continue
            if mine and kind == _CHOICES and (str(one.get("id")) in regions or _has_coordinates(one.members)):
                content.left_out["attributes of objects"] += 1
                continue
            if mine is None or _is_left_out(one):
                content.left_out[f"results of the type {ascii(kind)[:40]}"] += 1  # Relations have no value.
                continue
            value = one.inside("value")
            self._unit.add(_coordinates(value.members))
            if kind == _CHOICES:
                content.tags += [read_name(choice, one.place("a choice")) for choice in value.listed(_CHOICES)]
            if kind in (_CHOICES, _LABELS):
                continue
            height, width = (read_side(one.get(f"original_{side}"), one.where) for side in ("height", "width"))
            sizes.append((height, width))
            if one.get("image_rotation"):
                raise ObjectError(f"{one.where}: was drawn on a picture turned by {one.get('image_rotation')} degrees")
            separate = named.get(str(one.get("id")), one).get("value")
            classes = value if kind in value.members else Fields(separate, one.place("its classes"))
            listed = read_list(classes.get(kind, classes.get(_LABELS)) or [], one.place("its classes"))
            names = [read_name(label, one.where) for label in listed]
            if not names:
                raise ObjectError(f"{one.where}: the region has no class")
            thing = _thing(kind.removesuffix(_LABELS), "", value, height, width)
            beside = stated_beside(value.members) or stated_beside(one.members)
            content.things += [thing._replace(label=name, beside=beside) for name in names]
        content.size = one_size(sizes, "results")
        return content


class _Part(NamedTuple):
    """The annotations of a task that may be of one of its images.

    Attributes:
        annotations: the task's annotations.
        tag: `to_name` of the image's results; empty where the task has one image.
        tags: `to_name` of the results of all images.
        page: position of the image in a list of pages; `None` where it is not in a list.
        pages: length of the list.
        first: whether this is the task's first image, which counts what is left out of no image.
    """

    annotations: list[Any]
    tag: str = ""
    tags: frozenset[str] = frozenset()
    page: int | None = None
    pages: int = 1
    first: bool = True


def _thing(kind: str, label: str, value: Fields, height: int, width: int) -> Thing:
    x_of, y_of = width / 100, height / 100
    turn = value.number("rotation", 0)
    if kind == "polygon":
        return Thing(label, polygon((x * x_of, y * y_of) for x, y in value.points("points")))
    if kind == "brush":
        if value.get("format") != "rle":
            raise ObjectError(f"{value.where}: its format is {ascii(value.get('format'))[:40]}, not 'rle'")
        return Thing(label, shape(brush=value.listed("rle")))
    x, y, across, down = value.numbers(
        "x", "y", *(("radiusX", "radiusY") if kind == "ellipse" else ("width", "height"))
    )
    x, y, across, down = x * x_of, y * y_of, across * x_of, down * y_of
    if kind == "ellipse":
        return ellipse(label, x, y, across, down, turn)
    # A box is turned around its first corner.
    return rectangle(label, Box(x, y, x + across, y + down), turn, (x, y))


def _coordinates(value: Mapping[str, Any]) -> list[float]:
    """Returns the numbers of a region that are percents."""
    points = value.get("points")
    numbers: list[Any] = [value.get(name) for name in ("x", "y", "width", "height", "radiusX", "radiusY")]
    for point in points if isinstance(points, list) else ():
        numbers += point if isinstance(point, list) else []
    return [float(number) for number in numbers if type(number) in (int, float)]


def _is_of(part: _Part, result: Fields) -> bool | None:
    """Returns whether a result is of the image of a part; `None` where it is of no image of the task.

    Raises:
        ObjectError: it may be of any of several images.
    """
    tag, page = result.get("to_name"), result.get("item_index")
    if part.tag and tag != part.tag:
        if isinstance(tag, str) or _is_left_out(result):
            return False if str(tag) in part.tags else None
        raise ObjectError(f"{result.where}: has no to_name, and the task has several images")
    if part.page is None:
        return True
    if type(page) is int and 0 <= page < part.pages:
        return page == part.page
    if _is_left_out(result):
        return None
    shown = f"{ascii(page)[:_SHOWN]}, not one of the task's {part.pages} images"
    raise ObjectError(f"{result.where}: its item_index is {shown}")


def _is_left_out(result: Fields) -> bool:
    kind = str(result.get("type"))
    return kind not in (_CHOICES, _LABELS) and kind.removesuffix(_LABELS) not in _SHAPES


def _has_coordinates(result: Mapping[str, Any]) -> bool:
    value = result.get("value")
    return isinstance(value, dict) and not _COORDINATES.isdisjoint(value)


def _tags(annotations: Any) -> Iterator[str]:
    """Yields `to_name` of each result."""
    for one in annotations if isinstance(annotations, list) else ():
        results = one.get("result") if isinstance(one, dict) else None
        for result in results if isinstance(results, list) else ():
            tag = result.get("to_name") if isinstance(result, dict) else None
            if isinstance(tag, str):
                yield tag


def _pictures(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the members of a task's data that are images: the address, or those of a list of pages."""
    found = {member: value if isinstance(value, list) else [value] for member, value in data.items()}

    def is_image(member: str, text: Any) -> bool:
        return isinstance(text, str) and (member == _IMAGE or posixpath.splitext(text)[1].lower() in IMAGE_ENDINGS)

    return {member: texts for member, texts in found.items() if texts and all(is_image(member, one) for one in texts)}


def _names(address: str) -> list[str]:
    """Returns possible names of an image: the path of its address, and the last part of it without upload prefix."""
    # Local files are addressed as /data/local-files/?d=folder/name.
    local = parse_qs(urlsplit(address).query).get("d", [])
    name = f"/{local[0]}" if local else address_path(address)
    return [name, _UPLOADED.sub("", name.rpartition("/")[2], count=1)]
