"""Annotations of images as drawing tools have them: objects with an outline or a box, and tags of whole images.

A format of a tool is an `ObjectTable` or `ObjectFiles`: it finds its entries and reads one of them; the rest is here:
matching images and classes, masks, boxes, what is rejected and what is left out, with the reason.

- `task: segmentation`: outlines become masks. If some objects of a set have outlines, boxes are drawn as masks, too.
- `task: classification`: an image has its tags as classes. With `input.labels.boxes`, it has the classes of its objects
  as well, and their boxes; an object without one has the box around its outline.

An image with several classes, or with none where others have some, makes the set one of several classes an image.
"""

from __future__ import annotations

import json
import math
import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shardwright.config.input import CENTER_RULE, CLIP, LabelsConfig
from shardwright.dataset.ledger import MISSING_IMAGE
from shardwright.dataset.manifest import MULTI, SINGLE
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import (
    BACKGROUND,
    IGNORE,
    NO_ROW,
    SHOWN_NAMES,
    Annotation,
    AnnotationFormat,
    FormatInput,
    Survey,
    Values,
    shorten,
)
from shardwright.formats.classes import MOST_CLASSES, SHOWN_CLASSES, ClassMap, check_names, map_classes, special_label
from shardwright.formats.image_names import NameIndex, is_text
from shardwright.formats.mask_values import have_ids
from shardwright.formats.object_values import ObjectError, check_pixels
from shardwright.images.boxes import AnnotationError, Box, BoxError, box_features, box_values
from shardwright.masks.coco_segmentation import mask_text
from shardwright.masks.drawn import DrawnMasks, ellipse_box
from shardwright.running.progress import counted
from shardwright.storage import Listing, Refusal, map_threads, read_bytes, readers
from shardwright.storage.limits import TooLarge

# A file of one image; LabelMe puts the whole picture into it.
MOST_FILE_BYTES = 64 << 20
# Bytes of memory for each byte of JSON.
_MEMORY_EACH = 8
_SHOWN = 60
_REPEATED = "objects that another one of the image repeats"


class Thing(NamedTuple):
    """One object of an image.

    Attributes:
        label: its class, as the tool writes it.
        shape: its outline as JSON, see `shardwright.masks.drawn`; `None` where it is only a box.
        box: its box, in the units of `Content.boxes_in`; `None` to take the one around the outline.
        flags: name of a flag -> 0 or 1.
        file: name of a file of its mask, from the root of the attachments on, or empty.
    """

    label: str
    shape: str | None
    box: Box | None = None
    flags: Mapping[str, int] = MappingProxyType({})
    file: str = ""


@dataclass(frozen=True)
class Content:
    """The annotations of an image.

    Attributes:
        things: its objects.
        tags: its own classes.
        size: height and width that the tool states.
        boxes_in: height and width that boxes are in; by default those of the image, in pixels.
        split: the split that the tool states, or empty.
        left_out: what else is there and is not read -> how many.
    """

    things: Sequence[Thing] = ()
    tags: Sequence[str] = ()
    size: tuple[int, int] | None = None
    boxes_in: tuple[int, int] | None = None
    split: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)


class Entry(NamedTuple):
    """The annotations of one image, not read yet.

    Attributes:
        names: what may be the name of its image; the first that is one counts.
        where: place in the annotations, for messages.
        raw: what `_content` takes.
        other: the name of its image by another rule, such as the name of its own file; see `_Images`.
    """

    names: Sequence[str]
    where: str
    raw: Any
    other: str = ""


@dataclass(frozen=True, kw_only=True)
class ObjectInput(FormatInput):
    """The arguments of these formats.

    Attributes:
        path: absolute path of the file or the folder.
        names: how they name images.
        options: `input.labels`.
        masks: whether masks are read.
        content: the bytes of the file, where they were read already.
    """

    path: str
    names: NameIndex
    options: LabelsConfig
    masks: bool
    content: bytes | None = None


class _Kept(NamedTuple):
    """An image of the listing and its annotations."""

    position: int
    content: Content


class ObjectFormat(AnnotationFormat):
    """See `shardwright.formats.base.AnnotationFormat`.

    Attributes:
        flags: names of the flags of boxes.
        tool: what messages call the annotations.
        finds_unit: whether the numbers of a set decide whether they are pixels.
        states_name: whether the image of an entry is the one that it states, and not that of its file's name.
    """

    finds_unit: ClassVar[bool] = False
    states_name: ClassVar[bool] = False
    flags: ClassVar[tuple[str, ...]] = ()
    tool: ClassVar[str] = ""
    dialect: DrawnMasks

    def __init__(self, given: ObjectInput) -> None:
        super().__init__(given)
        self.name = os.path.basename(given.path.rstrip("/"))
        self._clip = given.options.beyond_image == CLIP
        self.dialect = DrawnMasks(centers=given.options.polygons == CENTER_RULE, clip=self._clip)
        self._path = given.path
        self._names = given.names
        self._masks = given.masks
        self._boxes = given.options.boxes
        self._map: ClassMap | None = None
        self._special: dict[str, int] = {}
        self._kept: list[_Kept] = []
        self._by_other = False

    @abstractmethod
    def _read(self) -> Iterator[tuple[Entry, Content | AnnotationError]]:
        """Yields the annotations of each image once, read, or why they cannot be.

        Raises:
            UsageError: the file is not the tool's.
        """

    @abstractmethod
    def _content(self, raw: Any) -> Content:
        """Reads one entry.

        Raises:
            AnnotationError: it is broken; its image is rejected.
        """

    def _declared(self) -> Sequence[str]:
        """Classes in the order that the tool itself gives them, where it does; called after all entries were read."""
        return ()

    def _counted_by(self) -> str:
        """Returns the tool if its classes are numbers that count from 0, or an empty text."""
        return ""

    def survey(self) -> Survey:
        """See `AnnotationFormat.survey`."""
        survey = Survey(classes=(), listed=bytearray(len(self._images.keys)))
        used: dict[str, str] = {}
        left_out: Counter[str] = Counter()
        first: dict[int, str] = {}
        images = _Images()
        for entry, content in self._read():
            position, other = self._position(entry), self._other_position(entry)
            images.add(entry.where, position, other)
            position = other if self._by_other and other is not None else position
            if len(survey.names) < SHOWN_NAMES and entry.names:
                survey.names.append(entry.names[0])
            if isinstance(content, AnnotationError):
                self._reject(survey, position, entry.where, content.code, f"{entry.where}: {content}")
            elif position is None:
                name = entry.names[0] if entry.names else ""
                reason = f"{entry.where} names {name!a}, but there is no such image{self._names.alike(name)}"
                survey.refused.append(Refusal(entry.where, MISSING_IMAGE, reason if name else "names no image"))
            elif position in first:
                reason = f"{first[position]} and {entry.where} are both annotations of it; remove one"
                self._reject(survey, position, entry.where, "annotated_twice", reason)
            else:
                first[position] = entry.where
                content, repeated = _without_repeats(content) if self._boxes else (content, 0)
                left_out[_REPEATED] += repeated
                self._kept.append(_Kept(position, content))
                if content.split:
                    survey.splits[position] = content.split
            if isinstance(content, Content):
                left_out.update(content.left_out)
                self._note_classes(used, content, entry.where)
            if position is not None:
                survey.listed[position] = 1
        if images.differ and not self._by_other and images.choose_other(self._path, self._images.keys):
            self._by_other, self._kept = True, []
            return self.survey()
        if images.differ:
            files = counted(images.differ, "file names", "files name")
            rule = "the names of the files count" if self._by_other == self.states_name else "what is in them counts"
            self._notes += (f"{self.name}: {files} the image of another one; {rule}, by which fewer have none",)
        self._kept = [one for one in self._kept if one.position not in survey.rejected]
        self._check_any(survey)
        notes = [f"left out: {count} {what}" for what, count in sorted(left_out.items()) if count]
        notes += self._check_task(survey)
        self._map = self._map_classes(used)
        survey.classes = self._map.names
        survey.ignore = self._masks and IGNORE in self._special.values()
        notes += self._special_notes()
        survey.notes = (*self._notes, *self._map.notes, *notes)
        if self._boxes:
            survey.features = box_features(self.flags)
            self._check_boxes(survey)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        """See `AnnotationFormat.annotations`."""
        assert self._map is not None, "survey comes first"
        for position, content in self._kept:
            if not self._masks:
                for tag in content.tags:
                    yield Annotation(position, self._map.index[tag], None, 0)
            for i, thing in enumerate(content.things if self._masks or self._boxes else ()):
                special = self._special.get(thing.label)
                if special is not None and not self._masks:
                    continue
                text = None
                if self._masks:
                    text = thing.file or mask_text(content.size, thing.shape or _rectangle(thing, content))
                row = NO_ROW if text and thing.file else i
                try:
                    values = self._box(position, content, thing) if self._boxes and special is None else {}
                except AnnotationError:  # Its image was rejected.
                    values = {}
                stated_size = content.size if self._boxes and not self._masks else None
                label = self._map.index[thing.label] if special is None else special
                yield Annotation(position, label, text, row, values, stated_size)

    def _try(self, raw: Any) -> Content | AnnotationError:
        try:
            content = self._content(raw)
        except AnnotationError as error:
            # Its frames hold the file, and its text, for as long as the error is kept.
            error.__traceback__ = error.__context__ = None
            return error
        for label in (*content.tags, *(thing.label for thing in content.things)):
            if not label.strip() or not is_text(label):
                return ObjectError(f"an object or a tag has no class, but {ascii(label)[:_SHOWN]}")
        try:
            for thing in content.things if content.boxes_in is None and not self.finds_unit else ():
                check_pixels(thing.shape, thing.box)
        except ObjectError as error:
            return error
        return content

    def _position(self, entry: Entry) -> int | None:
        """Returns the position of an entry's image; names with more folders come first, ambiguous ones last."""
        return next((at for name in entry.names if name and (at := self._names.find(name)) is not None), None)

    def _other_position(self, entry: Entry) -> int | None:
        try:
            return self._names.find(entry.other) if entry.other else None
        except UsageError:  # Several images have the name, so that it says nothing.
            return None

    def _reject(self, survey: Survey, position: int | None, where: str, code: str, reason: str) -> None:
        if position is None:
            survey.refused.append(Refusal(where, code, reason))
        else:
            survey.rejected.setdefault(position, Refusal(self._images.keys[position], code, reason))

    def _note_classes(self, used: dict[str, str], content: Content, where: str) -> None:
        things = content.things if self._masks or self._boxes else ()
        names = dict.fromkeys(thing.label for thing in things if thing.label not in self._special)
        special = {name: special_label(name, self._classes) for name in names}
        self._special |= {name: meaning for name, meaning in special.items() if meaning is not None}
        for label in (*(name for name in names if special[name] is None), *(() if self._masks else content.tags)):
            if label not in used:
                used[label] = where
                if len(used) > MOST_CLASSES:
                    raise UsageError(f"{self._path}: more than {MOST_CLASSES} different classes, e.g. {label!a}.")

    def _special_notes(self) -> list[str]:
        meanings = {BACKGROUND: "no class, also where another object was drawn before", IGNORE: "not counted"}
        fix = "name it in input.classes if it is a class"
        found = [(name, meanings[label] if self._masks else "no box") for name, label in sorted(self._special.items())]
        return [f"{self.name}: {name!r} is {meaning}; {fix}" for name, meaning in found]

    def _check_any(self, survey: Survey) -> None:
        """Shows what is wrong where that is so of every image: a message about missing classes would not help.

        Raises:
            UsageError: all annotations of images of the listing are broken.
        """
        broken = sorted(survey.rejected.items())
        if broken and not any(content.things or content.tags for _, content in self._kept):
            _, (key, _, reason) = broken[0]
            every = f"all {len(broken)} annotations" if len(broken) > 1 else "the only annotation"
            raise UsageError(f"{self._path}: {every} cannot be used. The first, of {key}: {reason}.")

    def _check_task(self, survey: Survey) -> list[str]:
        """Compares what is annotated with what is wanted; returns notes about what is left out.

        Raises:
            UsageError: there is nothing for the task; with the reading that fits.
        """
        things = [thing for _, content in self._kept for thing in content.things]
        outlines = sum(thing.shape is not None or thing.file != "" for thing in things)
        tags = [len(content.tags) for _, content in self._kept]
        held = (
            f"{counted(len(things), 'object')} ({outlines} with an outline), "
            f"{counted(sum(tags), 'tag of an image', 'tags of images')}"
        )
        boxes = {"task": "classification", "input.labels.boxes": True}
        if self._masks:
            if self._kept and not outlines and (things or any(tags)):
                problem = f"{self._path}: holds {held}, so there are no masks. "
                if things:
                    raise UsageError(
                        f"{problem}Use task: classification with input.labels.boxes: true to ingest boxes."
                    ).with_readings(Reading("the boxes of images", boxes))
                raise UsageError(f"{problem}Use task: classification.").with_readings(
                    Reading("the classes of images", {"task": "classification"})
                )
            boxed = len(things) - outlines
            drawn = [
                f"{counted(boxed, 'box is drawn as a mask', 'boxes are drawn as masks')}, since "
                f"{counted(outlines, 'other object has', 'other objects have')} an outline"
            ]
            more = [
                f"left out: {counted(sum(tags), 'tag of an image', 'tags of images')}, which task: classification reads"
            ]
            return (drawn if boxed else []) + (more if any(tags) else [])
        if self._boxes:
            survey.labels = MULTI
            return []
        if self._kept and not any(tags):
            fix = "Use task: segmentation, or input.labels.boxes: true for boxes without masks."
            error = UsageError(f"{self._path}: holds {held}, and task is classification. {fix}")
            readings = [Reading("the masks of images", {"task": "segmentation"})] if outlines else []
            raise error.with_readings(*readings, Reading("the boxes of images", boxes)) if things else error
        survey.labels = SINGLE if max(tags, default=0) <= 1 else MULTI
        if survey.labels == SINGLE:
            # An image without its one class is not annotated; `input.unlisted_images` decides what happens to it.
            for position, content in self._kept:
                survey.listed[position] = bool(content.tags)
        read = "input.labels.boxes: true reads boxes, task: segmentation masks"
        return [f"left out: {counted(len(things), 'object')} ({read})"] if things else []

    def _map_classes(self, used: Mapping[str, str]) -> ClassMap:
        declared = tuple(name for name in dict.fromkeys(self._declared()) if special_label(name, self._classes) is None)
        if self._classes is not None or not declared or any(label not in declared for label in used):
            return map_classes(used, self._classes, self._counted_by())
        check_names(dict.fromkeys(declared, self._path))
        found = counted(len(declared), "class", "classes")
        notes = [f"{found}, in the order of {self.tool}: {shorten(declared, SHOWN_CLASSES)}"]
        unused = [name for name in declared if name not in used]
        if unused:
            notes.append(f"without annotations: {shorten(unused, SHOWN_CLASSES)}; input.classes leaves them out")
        return ClassMap(declared, {name: i for i, name in enumerate(declared)}, tuple(notes))

    def _has_ids(self) -> bool:
        """Returns whether `input.classes` gives the numbers of classes."""
        return self._classes is not None and have_ids(self._classes)

    def _check_boxes(self, survey: Survey) -> None:
        for position, content in self._kept:
            for i, thing in enumerate(content.things):
                if thing.label in self._special:
                    continue
                try:
                    self._box(position, content, thing)
                except AnnotationError as error:
                    self._reject(survey, position, "", error.code, f"{self.name}, object {i + 1}: {error}")
                    break

    def _box(self, position: int, content: Content, thing: Thing) -> Values:
        """Returns the features of an object's box."""
        assert self._map is not None
        size = content.boxes_in or content.size or self._images.size_of(position)
        if size is None:
            raise BoxError("the size of the image is unknown: it is not stated, and the image cannot be read")
        if thing.box is None and thing.file:
            raise BoxError("its mask is in a file, and there is no box")
        box = thing.box or self._around(thing, size, content)
        index = self._map.index[thing.label]
        flags = {name: thing.flags.get(name, 0) for name in self.flags}
        return box_values(
            box,
            height=size[0],
            width=size[1],
            label=index,
            text=self._map.names[index],
            flags=flags,
            clip=self._clip,
        )

    def _around(self, thing: Thing, size: tuple[int, int], content: Content) -> Box:
        """Returns the box around an outline."""
        shape = json.loads(thing.shape or "[]")
        corners = shape.get("fractions") if isinstance(shape, dict) else shape
        if corners:
            if not all(corners):
                raise BoxError("its outline has no points")
            x, y = ([number for one in corners for number in one[i::2]] for i in (0, 1))
            return Box(min(x), min(y), max(x), max(y))
        height, width = size
        runs = self.dialect.parse(mask_text(content.size, thing.shape or ""), height=height, width=width)
        if not len(runs):
            raise BoxError("its mask is empty")
        begins, ends = runs[:, 0], runs.sum(axis=1) - 1
        columns = begins // height, ends // height
        whole = bool(np.any(columns[0] != columns[1]))
        top, bottom = (0, height) if whole else (int((begins % height).min()), int((ends % height).max()) + 1)
        return Box(int(columns[0].min()), top, int(columns[1].max()) + 1, bottom)


@dataclass
class _Images:
    """The images of entries by two rules: what they state, and the names of their own files.

    Attributes:
        differ: how many mean two different images.
        example: the place of the first of these, and the positions of its images.
        found: positions of the images by each rule, `None` for none.
    """

    differ: int = 0
    example: tuple[str, int, int] = ("", 0, 0)
    found: tuple[list[int | None], list[int | None]] = field(default_factory=lambda: ([], []))

    def add(self, where: str, one: int | None, other: int | None) -> None:
        for positions, position in zip(self.found, (one, other), strict=True):
            positions.append(position)
        if one is not None and other is not None and one != other:
            self.differ += 1
            self.example = self.example if self.differ > 1 else (where, one, other)

    def choose_other(self, path: str, keys: Sequence[str]) -> bool:
        """Returns whether the second rule is right: fewer entries have no image by it, or that of another one.

        Raises:
            UsageError: they are as many by both, so that nothing tells which image is meant.
        """
        first, second = (len(found) - len({*found} - {None}) for found in self.found)
        if first == second:
            where, one, other = self.example
            raise UsageError(
                f"{path}: {counted(self.differ, 'file states', 'files state')} another image than by file name: "
                f"{where} may be of {keys[one]} or of {keys[other]}. Were files renamed? Correct the names that they "
                "state, or remove these."
            )
        return second < first


class ObjectTable(ObjectFormat):
    """A format with one file for all images."""

    @abstractmethod
    def _entries(self) -> Iterator[Entry]:
        """Yields the annotations of each image once, not read yet.

        Raises:
            UsageError: the file is not the tool's.
        """

    def _read(self) -> Iterator[tuple[Entry, Content | AnnotationError]]:
        return ((entry, self._try(entry.raw)) for entry in self._entries())


class ObjectFiles(ObjectFormat):
    """A format with a file for each image. `_content` takes the bytes of one."""

    _files: Listing

    def attachments(self) -> Listing | None:
        """See `AnnotationFormat.attachments`."""
        return self._files

    @abstractmethod
    def _names_in(self, number: int, data: bytes) -> Sequence[str]:
        """Names that the image of a file may have."""

    def _other_name(self, number: int, data: bytes) -> str:
        """Returns the name of the image by another rule; empty where there is none."""
        return ""

    def _read(self) -> Iterator[tuple[Entry, Content | AnnotationError]]:
        # The bytes of memory that reading each file takes, with its text and its values.
        memory = [_MEMORY_EACH * min(size, MOST_FILE_BYTES) for size in self._files.sizes]
        yield from map_threads(self._read_file, range(len(memory)), readers(self._files.root), memory.__getitem__)

    def _read_file(self, number: int) -> tuple[Entry, Content | AnnotationError]:
        key = self._files.keys[number]
        try:
            data = read_bytes(self._files.path(number), self._files.pin(number), MOST_FILE_BYTES)
        except TooLarge as error:
            return Entry(self._names_in(number, b""), key, None), ObjectError(str(error.strerror))
        except OSError:
            problem = ObjectError("the file cannot be read; check its permissions")
            return Entry(self._names_in(number, b""), key, None), problem
        return Entry(self._names_in(number, data), key, None, self._other_name(number, data)), self._try(data)


def _without_repeats(content: Content) -> tuple[Content, int]:
    """Returns an image's annotations without objects that are exactly another one, and how many these are."""
    things: dict[tuple[Any, ...], Thing] = {}
    for thing in content.things:
        things.setdefault((thing.label, thing.shape, thing.box, thing.file), thing)
    return replace(content, things=list(things.values())), len(content.things) - len(things)


def polygon(points: Iterable[tuple[float, float]]) -> str:
    """Returns one polygon in pixels as a shape."""
    return _json([[number for point in points for number in point]])


def fractions(points: Iterable[tuple[float, float]]) -> str:
    """Returns one polygon in fractions of the image as a shape."""
    return _json({"fractions": [[number for point in points for number in point]]})


def shape(**parts: Any) -> str:
    """Returns a shape of other parts; see `shardwright.masks.drawn`."""
    return _json(parts)


def ellipse(label: str, x: float, y: float, rx: float, ry: float, degrees: float = 0) -> Thing:
    """Returns an object that is an ellipse in pixels, turned clockwise around its center."""
    return Thing(label, shape(ellipse=[x, y, rx, ry, degrees]), ellipse_box(x, y, rx, ry, degrees))


def rectangle(label: str, box: Box, degrees: float = 0, around: tuple[float, float] | None = None) -> Thing:
    """Returns an object that is a box in pixels; turned, by default around its middle, it is a polygon."""
    if degrees % 360 == 0:
        return Thing(label, None, box)
    middle = ((box.xmin + box.xmax) / 2, (box.ymin + box.ymax) / 2)
    return Thing(label, polygon(_turned(box, degrees, around or middle)))


def _corners(box: Box) -> list[tuple[float, float]]:
    """Returns the corners of a box, clockwise."""
    return [(box.xmin, box.ymin), (box.xmax, box.ymin), (box.xmax, box.ymax), (box.xmin, box.ymax)]


def _turned(box: Box, degrees: float, around: tuple[float, float]) -> list[tuple[float, float]]:
    """Returns the corners of a box that is turned clockwise around a point."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    moved = [(x - around[0], y - around[1]) for x, y in _corners(box)]
    return [(around[0] + x * cos - y * sin, around[1] + x * sin + y * cos) for x, y in moved]


def _rectangle(thing: Thing, content: Content) -> str:
    assert thing.box is not None, "an object has an outline or a box"
    return fractions(_corners(thing.box)) if content.boxes_in == (1, 1) else polygon(_corners(thing.box))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
