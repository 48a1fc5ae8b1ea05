"""Annotations of images as drawing tools have them: objects with an outline or a box, and tags of whole images.

A format of a tool is an `ObjectTable` or `ObjectFiles`: it finds its entries and reads one of them; the rest is here:
matching images and classes, masks, boxes, what is rejected and what is left out, with the reason.

- `task: segmentation`: outlines become masks. If some objects of a set have outlines, boxes are drawn as masks, too.
- `task: classification`: an image has its tags as classes. With `input.labels.boxes`, it has the classes of its objects
  as well, and their boxes; an object without one has the box around its outline.

An image with several classes, or with none where others have some, makes the set one of several classes an image.
"""

from __future__ import annotations

import gc
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from shardwright.config.input import CENTER_RULE, CLIP, PREDICTIONS, THIS_FRAME
from shardwright.dataset.ledger import MISSING_IMAGE
from shardwright.dataset.manifest import MULTI, SINGLE
from shardwright.errors import AnnotationError, Reading, UsageError
from shardwright.formats.base import (
    BACKGROUND,
    IGNORE,
    NO_ROW,
    SEGMENTATION,
    SHOWN_NAMES,
    Annotation,
    AnnotationFormat,
    Request,
    Survey,
    Values,
    shorten,
)
from shardwright.formats.classes import (
    MOST_CLASSES,
    SHOWN_CLASSES,
    ClassMap,
    check_names,
    check_spellings,
    map_classes,
    special_label,
)
from shardwright.formats.image_names import is_text
from shardwright.formats.listed_boxes import SIZES, misread
from shardwright.formats.object_agreement import ObjectAgreement, box_around
from shardwright.formats.object_content import FRACTIONS, Content, Entry, Thing
from shardwright.formats.object_frame import Placed, check_frame
from shardwright.formats.object_values import ObjectError, check_pixels, may_be_fractions
from shardwright.images.boxes import BAD_BOX, BEYOND_IMAGE, Box, box_features, box_values
from shardwright.masks.coco_segmentation import CocoMasks, mask_text
from shardwright.masks.drawn import DrawnMasks
from shardwright.masks.rle import area
from shardwright.running.progress import counted
from shardwright.storage import Listing, Refusal, list_inputs, map_threads, read_bytes, readers
from shardwright.storage.limits import TooLarge

# A file of one image; LabelMe puts the whole picture into it.
MOST_FILE_BYTES = 64 << 20
# Bytes of memory for each byte of JSON.
_MEMORY_EACH = 8
_SHOWN = 60
# Stands for the size of an image whose boxes are fractions.
_ANY_SIZE = (1000, 1000)
# So many files of masks are compared with the boxes that are stated for them.
_FILES = 64
# So many images are read to compare their sizes with the coordinates of their objects.
_SOME_IMAGES = 32
_NONE = float("nan")
# So many images without objects are listed on purpose: those that are not listed are not annotated.
_STATED = 3
_MEANINGS = {BACKGROUND: "no class, also where another object was drawn before", IGNORE: "not counted"}


class ObjectFormat(AnnotationFormat):
    """A format of objects.

    Attributes:
        flags: names of the flags of boxes.
        tool: what messages call the annotations.
        finds_unit: whether the numbers of a set decide whether they are pixels.
        by_file: whether each entry is a file of its own.
        states_name: whether the image of an entry is the one that it states, and not that of its file's name.
        counted_by: the tool if its classes are numbers that count from 0, or empty.
        declared: classes in the order that the tool itself gives them, where it does; known once all entries were read.
        ids: class -> the number that the tool gives it, for messages.
    """

    finds_unit: ClassVar[bool] = False
    by_file: ClassVar[bool] = False
    states_name: ClassVar[bool] = False
    flags: ClassVar[tuple[str, ...]] = ()
    tool: ClassVar[str] = ""
    counted_by = ""
    declared: Sequence[str] = ()
    ids: Mapping[str, str] = MappingProxyType({})
    dialect: CocoMasks
    _attached: Listing | None = None

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self.name, self._options = given.name, given.options
        self._clip = given.options.beyond_image == CLIP
        self.dialect = DrawnMasks(centers=given.options.polygons == CENTER_RULE, clip=self._clip)
        self._path = given.path
        self._bytes = given.content
        self._names = given.names()
        self._masks = given.task == SEGMENTATION
        self._boxes = given.options.boxes
        self._map = ClassMap((), {})
        self._special: dict[str, int] = {}
        self._kept: list[_Kept] = []
        self._where: dict[int, str] = {}
        self._rejected: Mapping[int, Refusal] = {}
        self._by_other = False
        self._agreement = ObjectAgreement()
        # Objects with a score that is no whole number.
        self._scored = 0

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

    def survey(self) -> Survey:
        # What is read is kept, and has no cycles: to look for some takes a third of the time.
        collected = gc.isenabled()
        gc.disable()
        try:
            return self._survey()
        finally:
            if collected:
                gc.enable()

    def _survey(self) -> Survey:
        survey = Survey(classes=(), listed=bytearray(len(self._images.keys)), rejected={})
        self._rejected = survey.rejected
        used: dict[str, str] = {}
        left_out: Counter[str] = Counter()
        missing: dict[str, Refusal] = {}
        images, self._agreement, self._scored = _Images(), ObjectAgreement(), 0
        for entry, content in self._read():
            position, other = self._position(entry), None
            with suppress(UsageError):  # Several images have the name, so that it says nothing.
                other = self._names.find(entry.other) if entry.other else None
            if position is None and self.excludes(entry.names):
                continue
            images.add(entry.where, position, other)
            position = other if self._by_other and other is not None else position
            name = entry.names[0] if entry.names else ""
            if name and len(survey.names) < SHOWN_NAMES and name not in survey.names:
                survey.names.append(name)
            if position is not None:
                survey.listed[position] = 1
            if isinstance(content, AnnotationError):
                self._reject(survey, position, entry.where, content.code, f"{entry.where}: {content}")
                continue
            if content.left_out:
                left_out.update(content.left_out)
            self._note_classes(used, content, entry.where)
            if position is None:
                reason = f"{entry.where} names {name!a}, but there is no such image{self._names.alike(name)}"
                key = name if name and not self.by_file and is_text(name) else entry.where
                missing.setdefault(key, Refusal(key, MISSING_IMAGE, reason if name else "names no image"))
            elif position in self._where:
                reason = f"{self._where[position]} and {entry.where} are both annotations of it; remove one"
                self._reject(survey, position, entry.where, "annotated_twice", reason)
            else:
                self._where[position] = entry.where
                if self._boxes:
                    left_out["objects that another one of the image repeats"] += content.drop_repeats()
                self._kept.append(_Kept(position, content))
                if content.split:
                    survey.splits[position] = content.split
        survey.refused += missing.values()
        if images.differ and not self._by_other and images.choose_other(self._path, self._images.keys):
            self._by_other, self._kept, self._where = True, [], {}
            return self._survey()
        self._note_all(survey, images, used, left_out)
        self._where = {}
        return survey

    def _compare(self) -> None:
        """Compares the descriptions of each object that has several.

        Raises:
            UsageError: they contradict each other; see `ObjectAgreement`.
        """
        pixels = (content for _, content in self._kept if content.boxes_in is None)
        for thing in (thing for content in pixels for thing in content.things if thing.beside is not None):
            assert thing.beside is not None
            box, stated = thing.beside
            if box is None and thing.box is not None:
                box = [*thing.box[:2], thing.box.xmax - thing.box.xmin, thing.box.ymax - thing.box.ymin]
            self._agreement.look(json.loads(thing.shape) if thing.shape else None, box, stated)
        # Masks in files take a while to read.
        filed = [(one, thing) for one in self._kept for thing in one.content.things if thing.file and thing.box]
        for (_, content), thing in filed[:: max(1, len(filed) // _FILES)]:
            assert thing.box is not None
            with suppress(AnnotationError):  # Reported when its image is written.
                height, width = self.dialect.size(thing.file) or (0, 0)
                runs = self.dialect.masks(0, thing.file, height=height, width=width)[0][1]
                box = thing.box.scaled(height, width) if content.boxes_in == FRACTIONS else thing.box
                if len(runs):
                    self._agreement.add(box_around(runs, height), area(runs), box, (thing.beside or (0, 0))[1] or _NONE)
        self._agreement.check(self._path, self._options, masks=self._masks)
        self._check_frame()
        if 2 * self._scored > sum(len(content.things) for _, content in self._kept) and (
            PREDICTIONS not in self._options.confirmed
        ):
            raise UsageError(
                f"{self._path}: {self._scored:,} objects have scores below 1, as a "
                f"model's predictions have. If they are the annotations, set input.labels.confirmed: [{PREDICTIONS}]."
            ).with_readings(self._options.confirming(PREDICTIONS, "objects with scores are the annotations"))

    def _check_frame(self) -> None:
        if THIS_FRAME in self._options.confirmed or not (self._masks or self._boxes):
            return
        drawn = [i for i, (_, content) in enumerate(self._kept) if content.things and content.size is None]
        some = [self._kept[i] for i in drawn[:: max(1, len(drawn) // _SOME_IMAGES)]]
        sizes = ((one.content, self._images.size_of(one.position)) for one in some)
        check_frame((Placed(content, size) for content, size in sizes if size), self._path, self._options)

    def _note_all(self, survey: Survey, images: _Images, used: Mapping[str, str], left_out: Mapping[str, int]) -> None:
        """Decides, when all was read, on classes, boxes and notes.

        Raises:
            UsageError: all is broken, or of another task.
        """
        if images.differ:
            files = counted(images.differ, "file names", "files name")
            rule = "the names of the files count" if self._by_other == self.states_name else "what is in them counts"
            self._notes += (f"{self.name}: {files} the image of another one; {rule}, by which fewer have none",)
        self._kept = [one for one in self._kept if one.position not in survey.rejected]
        # A message about missing classes would not help where all is broken.
        broken = sorted(survey.rejected.items())
        if broken and not any(content.things or content.tags for _, content in self._kept):
            _, (key, _, reason) = broken[0]
            every = f"all {len(broken)} annotations" if len(broken) > 1 else "the only annotation"
            raise UsageError(f"{self._path}: {every} cannot be used. The first, of {key}: {reason}.")
        empty = sum(not (content.things or content.tags) for _, content in self._kept)
        survey.empty, survey.states_empty = empty == len(self._kept), empty >= _STATED
        notes = [f"left out: {count} {what}" for what, count in sorted(left_out.items()) if count]
        notes += self._check_task(survey)
        self._map = self._map_classes(used)
        survey.classes = self._map.names
        survey.ignore = self._masks and IGNORE in self._special.values()
        for name, label in sorted(self._special.items()):
            meaning = _MEANINGS[label] if self._masks else "no box"
            notes.append(f"{self.name}: {name!r} is {meaning}; name it in input.classes if it is a class")
        survey.notes = (*self._notes, *self._map.notes, *notes)
        if self._boxes:
            survey.features = box_features(self.flags)
            self._check_boxes(survey)
        self._compare()

    def annotations(self) -> Iterator[Annotation]:
        labels = {**self._map.index, **(self._special if self._masks else {})}
        for position, content in self._kept:
            if position in self._rejected:
                continue
            if not self._masks:
                for tag in content.tags:
                    yield Annotation(position, labels[tag], None, 0)
            size = content.size if self._boxes and not self._masks else None
            for i, thing in enumerate(content.things if self._masks or self._boxes else ()):
                label = labels.get(thing.label)
                if label is None:
                    continue
                text = None
                if self._masks:
                    text = thing.file or mask_text(content.size, content.outline(thing))
                row = NO_ROW if text and thing.file else i if thing.row == NO_ROW else thing.row
                if self._boxes and label >= 0:
                    yield Annotation(position, label, text, row, self._box(position, content, thing), size)
                else:
                    yield Annotation(position, label, text, row, stated_size=size)

    def attachments(self) -> Listing | None:
        return self._attached

    def _try(self, raw: Any) -> Content | AnnotationError:
        try:
            if isinstance(raw, AnnotationError):
                raise raw
            content = self._content(raw)
            content.tags = list(dict.fromkeys(content.tags))
            for label in {*content.tags, *(thing.label for thing in content.things)}:
                if not label.strip() or not is_text(label):
                    raise ObjectError(f"an object or a tag has no class, but {ascii(label)[:_SHOWN]}")
            for thing in content.things if content.boxes_in is None and not self.finds_unit else ():
                if thing.shape is None or may_be_fractions(thing.shape):
                    check_pixels(thing.shape, thing.box)
        except AnnotationError as error:
            # Its frames hold the file, and its text, for as long as the error is kept.
            error.__traceback__ = error.__context__ = None
            return error
        return content

    def _position(self, entry: Entry) -> int | None:
        """Returns the position of an entry's image: the first that one of its names means, or else ends with."""
        ways = (self._names.find, self._names.find_end)
        places = (find(name) for find in ways for name in entry.names if name)
        return next((place for place in places if place is not None), None)

    def _note_classes(self, used: dict[str, str], content: Content, where: str) -> None:
        for thing in content.things if self._masks or self._boxes else ():
            if thing.label in used or thing.label in self._special:
                continue
            special = special_label(thing.label, self._classes)
            if special is None:
                used[thing.label] = self._place(thing, where)
            else:
                self._special[thing.label] = special
        for tag in content.tags if not self._masks else ():
            used.setdefault(tag, where)
        if len(used) > MOST_CLASSES:
            raise UsageError(
                f"{self._path}: more than {MOST_CLASSES} different classes, e.g. {next(reversed(used))!a}."
            )

    def _place(self, thing: Thing, where: str) -> str:
        return where if thing.row == NO_ROW else f"{self.name}, annotations[{thing.row}]"

    def _check_task(self, survey: Survey) -> list[str]:
        """Compares what is annotated with what is wanted; returns notes about what is left out.

        Raises:
            UsageError: there is nothing for the task; with the reading that fits.
        """
        things = sum(len(content.things) for _, content in self._kept)
        boxed = len([1 for _, one in self._kept for thing in one.things if thing.shape is None and not thing.file])
        outlines = things - boxed
        tags = [len(content.tags) for _, content in self._kept]
        tagged = counted(sum(tags), "tag of an image", "tags of images")
        held = f"{counted(things, 'object')} ({outlines} with an outline), {tagged}"
        boxes = Reading("the boxes of images", {"task": "classification", "input.labels.boxes": True})
        if self._masks:
            if not outlines and (things or any(tags)):
                fix = " with input.labels.boxes: true to ingest boxes" if things else ""
                reading = boxes if things else Reading("the classes of images", {"task": "classification"})
                problem = f"{self._path}: holds {held}, so there are no masks. Use task: classification{fix}."
                raise UsageError(problem).with_readings(reading)
            drawn = counted(boxed, "box is drawn as a mask", "boxes are drawn as masks")
            others = counted(outlines, "other object has", "other objects have")
            notes = [f"{drawn}, since {others} an outline"] if boxed else []
            return notes + ([f"left out: {tagged}, which task: classification reads"] if any(tags) else [])
        if self._boxes:
            survey.labels = MULTI
            return []
        if self._kept and not any(tags):
            fix = "Use task: segmentation, or input.labels.boxes: true for boxes without masks."
            error = UsageError(f"{self._path}: holds {held}, and task is classification. {fix}")
            readings = [Reading("the masks of images", {"task": "segmentation"})] if outlines else []
            raise error.with_readings(*readings, boxes) if things else error
        survey.labels = SINGLE if max(tags, default=0) <= 1 else MULTI
        if survey.labels == SINGLE:
            # An image without its one class is not annotated; `input.unlisted_images` decides what happens to it.
            for position, content in self._kept:
                survey.listed[position] = bool(content.tags)
        read = "input.labels.boxes: true reads boxes, task: segmentation masks"
        return [f"left out: {counted(things, 'object')} ({read})"] if things else []

    def _map_classes(self, used: Mapping[str, str]) -> ClassMap:
        declared = [name for name in dict.fromkeys(self.declared) if special_label(name, self._classes) is None]
        tags = {tag for _, content in self._kept for tag in content.tags}
        further = [name for name in used if name not in declared and name not in tags]
        if declared and further and self._classes is None:
            check_spellings([*declared, *further], self._path)
            raise UsageError(
                f"{self._path}: has objects of {shorten(further)} ({used[further[0]]}), and its own list of classes is "
                f"{shorten(declared, SHOWN_CLASSES)}. Add them there, or list all in input.classes."
            ).with_readings(Reading("all are classes", {"input.classes": [*declared, *further]}, asked=True))
        if self._classes is not None or not declared or not used.keys() <= {*declared}:
            return map_classes(used, self._classes, self.counted_by)
        check_names(dict.fromkeys(declared, self._path))
        shown = {name: f"{name} ({self.ids[name]})" if name in self.ids else name for name in declared}
        found = counted(len(declared), "class", "classes")
        notes = [f"{found}, in the order of {self.tool}: {shorten(shown.values(), SHOWN_CLASSES)}"]
        unused = [text for name, text in shown.items() if name not in used]
        if unused:
            notes.append(f"without annotations: {shorten(unused, SHOWN_CLASSES)}; input.classes leaves them out")
        return ClassMap(tuple(declared), {name: i for i, name in enumerate(declared)}, tuple(notes))

    def _check_boxes(self, survey: Survey) -> None:
        for position, content in self._kept:
            for i, thing in enumerate(content.things):
                try:
                    if thing.label not in self._special:
                        self._box(position, content, thing)
                except AnnotationError as error:
                    where = self._place(thing, f"{self._where[position]}, object {i + 1}")
                    self._reject(survey, position, "", error.code, f"{where}: {error}")
                    break

    def _check_corners(self, survey: Survey, named: str, fix: str, read_as: str = SIZES) -> None:
        """Checks boxes that leave their images as they are read.

        Args:
            survey: with the rejected ones.
            named: by what they are read so, the beginning of a sentence about the boxes.
            fix: what to do.
            read_as: `SIZES` or `CENTERS`.

        Raises:
            UsageError: nearly all fit as something else.
        """
        if any(refusal.code == BEYOND_IMAGE for refusal in survey.rejected.values()):
            used = ((one, thing.box) for one in self._kept for thing in one.content.things if thing.box)
            meaning = misread((self._in_pixels(one, box) for one, box in used), read_as)
            if meaning:
                raise UsageError(f"{self._path}: {named} boxes leave their images, and as {meaning} they fit. {fix}")

    def _in_pixels(self, kept: _Kept, box: Box) -> tuple[Box, tuple[int, int] | None]:
        if kept.content.boxes_in is not None:
            return box.scaled(*_ANY_SIZE), _ANY_SIZE
        return box, kept.content.size or self._images.size_of(kept.position)

    def _box(self, position: int, content: Content, thing: Thing) -> Values:
        """Returns the features of an object's box."""
        size = content.boxes_in or content.size or self._images.size_of(position)
        if size is None:
            unknown = "the size of the image is unknown: it is not stated, and the image cannot be read"
            raise AnnotationError(unknown, BAD_BOX)
        if thing.box is None and thing.file:
            raise AnnotationError("its mask is in a file, and there is no box", BAD_BOX)
        box = thing.box or self._around(thing, size, content)
        if content.boxes_in is not None and not (min(box.xmin, box.ymin) >= 0 and max(box.xmax, box.ymax) <= 1):
            # How far it may reach beyond the image is a number of pixels.
            size = content.size or self._images.size_of(position) or _ANY_SIZE
            box = box.scaled(*size)
        index = self._map.index[thing.label]
        flags, text = {name: thing.flags.get(name, 0) for name in self.flags}, self._map.names[index]
        height, width = size
        return box_values(box, height=height, width=width, label=index, text=text, flags=flags, clip=self._clip)

    def _around(self, thing: Thing, size: tuple[int, int], content: Content) -> Box:
        """Returns the box around an outline."""
        shape = json.loads(thing.shape or "[]")
        corners = shape.get("fractions") if isinstance(shape, dict) else shape
        if corners:
            if not all(corners):
                raise AnnotationError("its outline has no points", BAD_BOX)
            x, y = ([number for one in corners for number in one[i::2]] for i in (0, 1))
            return Box(min(x), min(y), max(x), max(y))
        height, width = size
        runs = self.dialect.parse(mask_text(content.size, thing.shape or ""), height=height, width=width)
        if not len(runs):
            raise AnnotationError("its mask is empty", BAD_BOX)
        return box_around(runs, height)


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
    """A format with a file for each image. `_content` takes the bytes of one.

    Args:
        given: what is asked.
        files: its files; by default those of `path` that have the ending.

    Attributes:
        ending: how their names end, lower case.
        folder: what errors call the folder that they are in.
    """

    by_file = True
    ending: ClassVar[str] = ".json"
    folder: ClassVar[str] = ""

    def __init__(self, given: Request, files: Listing | None = None) -> None:
        super().__init__(given)
        listing = ending_with(list_inputs(given.path), self.ending) if files is None else files
        left_out = given.images.paths
        kept = [i for i in range(len(listing.keys)) if listing.path(i) not in left_out] if left_out else ()
        self._files = listing.part(kept) if len(kept) else listing
        self._attached = self._files
        if files is None and not self._files.keys:
            kind = self.ending.strip(".").upper()
            raise UsageError(f"input.labels.path: {given.path} contains no {kind} file. Give the folder {self.folder}.")

    def _below_images(self, parts: Sequence[str]) -> list[str]:
        """Returns a path below the folder of the files as one below that of the images; nothing where it is not."""
        root, whole = self._images.root.rstrip("/") + "/", "/".join([self._files.root.rstrip("/"), *parts])
        return [whole.removeprefix(root)] if whole.startswith(root) else []

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
        data, problem = b"", ""
        try:
            data = read_bytes(self._files.path(number), self._files.pin(number), MOST_FILE_BYTES)
        except TooLarge as error:
            problem = str(error.strerror)
        except OSError:
            problem = "the file cannot be read; check its permissions"
        entry = Entry(self._names_in(number, data), self._files.keys[number], None, self._other_name(number, data))
        return entry, ObjectError(problem) if problem else self._try(data)


class _Kept(NamedTuple):
    """An image of the listing and its annotations."""

    position: int
    content: Content


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


def ending_with(listing: Listing, ending: str) -> Listing:
    """Returns the files of a listing that have an ending, in upper case too."""
    return listing.part([i for i, key in enumerate(listing.keys) if key.lower().endswith(ending)])
