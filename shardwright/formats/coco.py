"""COCO instances: a JSON object with `images`, `annotations` and `categories`.

Images are found by `file_name`; an image in `images` without annotations has no masks. Every annotation is a mask of
its category, crowds (`iscrowd`) too, and masks of one category in one image are joined. If some annotations have a
`segmentation`, the `bbox` of those without one is drawn. Key points are left out. Classes are the categories in
the order of their ids, unless `input.classes` is given: as a list, by name; as a mapping, by id.

If `input.labels.boxes` is set, `bbox` ([x, y, width, height] from the corner of the first pixel) and `iscrowd` become
the features of `shardwright.images.boxes`. For the task classification they come without masks, and an image has the
classes of all its annotations.

The file is read whole, but only image, category and the segmentation's text of an annotation are kept. The peak of
memory is two to three times the file's size: 200 MB for 90 MB with 120,000 polygons. Shards' writers draw the masks.
"""

from __future__ import annotations

import json
import os
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shardwright.config.input import CENTER_RULE, CLIP
from shardwright.dataset.ledger import MISSING_IMAGE
from shardwright.dataset.manifest import MULTI
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import (
    IGNORE,
    SHOWN_NAMES,
    Annotation,
    AnnotationFormat,
    Survey,
    Values,
    shorten,
)
from shardwright.formats.classes import SHOWN_CLASSES, ClassMap, as_integer, check_names, map_classes, special_label
from shardwright.formats.image_names import is_text
from shardwright.formats.listed_boxes import misread
from shardwright.formats.object_values import ObjectError, check_pixels, json_problem, read_id, read_text_size
from shardwright.formats.objects import ObjectInput
from shardwright.images.boxes import BEYOND_IMAGE, AnnotationError, Box, BoxError, box_features, box_values
from shardwright.masks.coco_segmentation import CocoMasks, mask_text
from shardwright.running.progress import counted
from shardwright.storage import Refusal, limits, open_table
from shardwright.untrusted.json_text import parse_untrusted_json

_SHOWN_BOX, _SHOWN_ID = 80, 40
# Outlines of a scale of their own: boxes of fewer pixels than this say nothing, and this share must differ by one
# factor, up to this part of it. One of so many is compared, which takes a hundredth of the time of reading them.
_LEAST_SIDE, _NEARLY_ALL, _STEADY, _COMPARED_OF = 5, 0.9, 0.1, 8
_CROWD = "is_crowd"
_FLAGS = (_CROWD,)
_NO_MASKS = ("null", "[]")
# Entries of `images` may have a further member `image_id`, and annotations the name of their image.
_OF_ANNOTATIONS = {"category_id", "segmentation", "bbox"}
_PARTS = ("images", "annotations", "categories")
# One encoder for all: `json.dumps` makes one for each call.
_to_json = json.JSONEncoder(separators=(",", ":")).encode


class _Instance(NamedTuple):
    """The needed part of an annotation; the segmentation as JSON, `null` where there is none or masks are unwanted."""

    image: object
    category: object
    segmentation: str
    box: Any
    crowd: bool


class _Image(NamedTuple):
    """An image of `images`: its position in the listing, if it is there, and the size that the file states."""

    position: int | None
    size: tuple[int, int] | None
    name: str


class CocoJson(AnnotationFormat):
    """See `shardwright.formats.base.AnnotationFormat`.

    Args:
        given: see `ObjectInput`.
    """

    format = "coco_json"

    def __init__(self, given: ObjectInput) -> None:
        super().__init__(given)
        self._clip = given.options.beyond_image == CLIP
        self.dialect = CocoMasks(centers=given.options.polygons == CENTER_RULE, clip=self._clip)
        self.name = os.path.basename(given.path)
        self._path = given.path
        self._keys = given.images.keys
        self._names = given.names
        self._boxes = given.options.boxes
        self._masks = given.masks
        self._map: ClassMap | None = None
        self._special: dict[str, int] = {}
        self._sound_ones: list[tuple[int, _Image, str, _Instance]] = []

    def survey(self) -> Survey:
        """See `AnnotationFormat.survey`."""
        sizes = _OutlineSizes()
        document = _load(self._path, masks=self._masks, boxes=self._boxes, sizes=sizes)
        sizes.check(self._path)
        survey = Survey(classes=(), listed=bytearray(len(self._keys)))
        images = self._read_images(document["images"], survey)
        categories = self._read_categories(document["categories"])
        special = {number: special_label(name, self._classes) for number, name in categories.items()}
        self._special = {number: label for number, label in special.items() if label is not None}
        sound = list(self._sound(document["annotations"], images, categories, survey))
        if not self._masks:
            sound = [entry for entry in sound if entry[2] not in self._special]
        notes: list[str] = []
        if self._masks:
            sound, notes = self._with_drawn_boxes(sound)
        if any(isinstance(category, dict) and category.get("keypoints") for category in document["categories"]):
            notes.append("left out: key points of annotations")
        used: dict[str, str] = {}
        for i, _, category, _ in sound:
            if category in self._special:
                survey.ignore |= self._special[category] == IGNORE
            else:
                used.setdefault(category, f"{self._path}, annotations[{i}]")
        for number, label in self._special.items():
            meaning = "not counted" if label == IGNORE else "no class"
            fix = "name it in input.classes if it is a class"
            notes.append(f"{self.name}: the category {categories[number]!r} is {meaning}; {fix}")
        self._map = self._map_categories(
            {number: name for number, name in categories.items() if number not in self._special}, used
        )
        survey.classes = self._map.names
        survey.notes = (*self._notes, *self._map.notes, *notes)
        self._sound_ones = [entry for entry in sound if entry[1].position is not None]
        if not self._masks:
            survey.labels = MULTI
        if self._boxes:
            survey.features = box_features(_FLAGS)
            self._check_boxes(survey)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        """See `AnnotationFormat.annotations`."""
        assert self._map is not None, "survey comes first"
        for i, image, category, instance in self._sound_ones:
            assert image.position is not None
            text = mask_text(image.size, instance.segmentation) if self._masks else None
            label = self._special.get(category)
            try:
                values = self._box(image, category, instance) if self._boxes and label is None else {}
            except AnnotationError:  # Its image was rejected.
                values = {}
            stated_size = None if self._masks else image.size
            label = self._map.index[category] if label is None else label
            yield Annotation(image.position, label, text, i, values, stated_size)

    def _box(self, image: _Image, category: str, instance: _Instance) -> Values:
        """Returns the features of an annotation's box."""
        assert self._map is not None
        assert image.position is not None
        sides = instance.box
        if not _is_box(sides):
            raise BoxError(f"the bbox is {ascii(sides)[:_SHOWN_BOX]}, not [x, y, width, height]")
        left, top, width, height = sides
        size = image.size or self._images.size_of(image.position)
        if size is None:
            raise BoxError("the size of the image is unknown: the file does not state it, and the image cannot be read")
        index = self._map.index[category]
        return box_values(
            Box(left, top, left + width, top + height),
            height=size[0],
            width=size[1],
            label=index,
            text=self._map.names[index],
            flags={_CROWD: int(instance.crowd)},
            clip=self._clip,
        )

    def _check_boxes(self, survey: Survey) -> None:
        for i, image, category, instance in self._sound_ones:
            if category in self._special:
                continue
            try:
                self._box(image, category, instance)
            except AnnotationError as error:
                self._reject(survey, image, error.code, f"annotations[{i}]: {error}")
        if any(refusal.code == BEYOND_IMAGE for refusal in survey.rejected.values()):
            self._check_meaning()

    def _check_meaning(self) -> None:
        meaning = misread(
            (box, image.size or self._images.size_of(image.position or 0))
            for _, image, _, entry in self._sound_ones
            if (box := _edges(entry.box)) is not None
        )
        if meaning:
            raise UsageError(
                f"{self._path}: as [x, y, width, height], which COCO's bbox are, its boxes leave their images, and as "
                f"{meaning} they fit. Write them as COCO does, and area too."
            )

    def _reject(self, survey: Survey, image: _Image, code: str, reason: str) -> None:
        if image.position is not None and image.position not in survey.rejected:
            key = self._keys[image.position]
            survey.rejected[image.position] = Refusal(key, code, f"{self.name}, {reason}")

    def _with_drawn_boxes(
        self, sound: list[tuple[int, _Image, str, _Instance]]
    ) -> tuple[list[tuple[int, _Image, str, _Instance]], list[str]]:
        """Draws boxes as masks where other annotations have a segmentation; returns them, and notes."""
        without = sum(instance.segmentation in _NO_MASKS for *_, instance in sound)
        if not without:
            return sound, []
        if without == len(sound):
            self._check_masks_present(sound)
            return sound, []
        drawn = [(i, image, category, _drawn(instance)) for i, image, category, instance in sound]
        boxes = without - sum(instance.segmentation in _NO_MASKS for *_, instance in drawn)
        outlines = len(sound) - without
        note = f"{boxes} boxes are drawn as masks, since {outlines} other annotations have a segmentation"
        return drawn, [note] if boxes else []

    def _check_masks_present(self, sound: list[tuple[int, _Image, str, _Instance]]) -> None:
        boxes = sum(instance.box is not None for *_, instance in sound)
        if boxes:
            raise UsageError(
                f"{self._path}: none of its {len(sound)} annotations has a segmentation, and {boxes} have a bbox: it "
                "holds boxes, no masks. Use task: classification with input.labels.boxes: true to ingest them."
            ).with_readings(Reading("the boxes of images", {"task": "classification", "input.labels.boxes": True}))

    def _read_images(self, entries: list[Any], survey: Survey) -> dict[str, _Image]:
        """Returns the images by their ids; adds what is wrong with `images` to the survey."""
        images: dict[str, _Image] = {}
        missing: dict[str, int] = {}
        for i, entry in enumerate(entries):
            number, name = (read_id(entry.get("id")), entry.get("file_name")) if _is_image(entry) else ("", None)
            if not number or not isinstance(name, str) or not name.strip() or not is_text(name):
                reason = f"{self.name}, images[{i}]: has no id, or no file_name that a file can have"
                survey.refused.append(Refusal(f"{self.name}:images[{i}]", "bad_row", reason))
                continue
            if number in images:
                raise UsageError(
                    f"{self._path}, images[{i}]: the id {number} is also that of {images[number].name!r}. "
                    "Give every image its own id."
                )
            position = self._names.find(name)
            images[number] = _Image(position, _size_of(entry), name)
            if len(survey.names) < SHOWN_NAMES:
                survey.names.append(name)
            if position is None:
                missing.setdefault(name, i)
            else:
                survey.listed[position] = 1
        if not entries:
            raise UsageError(f"{self._path}: 'images' is empty. Give a file with annotated images.")
        survey.refused += [
            Refusal(
                name,
                MISSING_IMAGE,
                f"{self.name}, images[{i}] names it, but there is no such image{self._names.alike(name)}",
            )
            for name, i in missing.items()
        ]
        return images

    def _read_categories(self, entries: list[Any]) -> dict[str, str]:
        """Returns the names by their ids, in the order of the ids: by number where all are numbers."""
        categories: dict[str, str] = {}
        for i, entry in enumerate(entries):
            number, name = (read_id(entry.get("id")), entry.get("name")) if isinstance(entry, dict) else ("", None)
            where = f"{self._path}, categories[{i}]"
            if not number or not isinstance(name, str) or not name.strip() or not is_text(name):
                raise UsageError(f"{where}: has no id or no name. Write {{'id': 1, 'name': 'cat'}}.")
            if number in categories:
                raise UsageError(f"{where}: the id {number} occurs twice. Give every category its own id.")
            categories[number] = name
        numeric = all(as_integer(number) is not None for number in categories)
        return dict(sorted(categories.items(), key=lambda item: ((numeric and as_integer(item[0])) or 0, item[0])))

    def _sound(
        self, entries: list[Any], images: Mapping[str, _Image], categories: Mapping[str, str], survey: Survey
    ) -> Iterator[tuple[int, _Image, str, _Instance]]:
        """Returns annotations that name an image and a category; adds what is wrong with the others to the survey."""
        unknown: set[str] = set()
        for i, entry in enumerate(entries):
            number = read_id(entry.image) if isinstance(entry, _Instance) else ""
            if not number:
                given = entry.image if isinstance(entry, _Instance) else None
                what = "names no image"
                if given is not None:
                    what = f"the image id is {ascii(given)[:_SHOWN_ID]}, not a whole number or a text"
                reason = f"{self.name}, annotations[{i}]: {what}"
                survey.refused.append(Refusal(f"{self.name}:annotations[{i}]", "bad_row", reason))
                continue
            if number not in images:
                if number not in unknown:
                    reason = f"{self.name}, annotations[{i}] names the image id {number!a}, which is not in images"
                    survey.refused.append(Refusal(f"{self.name}:annotations[{i}]", MISSING_IMAGE, reason))
                unknown.add(number)
                continue
            category = read_id(entry.category)
            if category and category not in categories:
                raise UsageError(
                    f"{self._path}, annotations[{i}]: the category id {category!a} is not in categories. Known are: "
                    f"{_shown(categories)}. Add it or fix the annotation."
                )
            try:
                if self._masks:
                    check_pixels(entry.segmentation)
                else:
                    check_pixels(None, _edges(entry.box))
            except ObjectError as error:
                self._reject(survey, images[number], error.code, f"annotations[{i}]: {error}")
            if category:
                yield i, images[number], category, entry
                continue
            self._reject(survey, images[number], "bad_row", f"annotations[{i}]: names no category")

    def _map_categories(self, categories: Mapping[str, str], used: Mapping[str, str]) -> ClassMap:
        """Returns the index of the class for each category id that is used."""
        if self._classes is None:
            return self._detect_categories(categories, used)
        ids = {name: number for name, number in self._classes.items() if number is not None}
        by_category = {name: number for number, name in categories.items()}
        for name, identity in ids.items():
            other = categories.get(str(identity), name)
            if name in by_category and other != name:
                raise UsageError(
                    f"input.classes: {name!r} has the id {identity}, but in {self._path} that is {other!r}, and "
                    f"{name!r} has {by_category[name]}. Write the file's ids, or a plain list of names."
                )
        if ids:
            return map_classes(used, self._classes)
        by_name = map_classes({categories[number]: where for number, where in used.items()}, self._classes)
        index = {number: by_name.index[categories[number]] for number in used}
        return ClassMap(by_name.names, index, by_name.notes)

    def _detect_categories(self, categories: Mapping[str, str], used: Mapping[str, str]) -> ClassMap:
        if not categories:
            raise UsageError(f"{self._path}: 'categories' is empty. Add the categories of the annotations.")
        names = tuple(categories.values())
        times = Counter(names)
        twice = [f"{name!r} ({number})" for number, name in categories.items() if times[name] > 1]
        if twice:
            raise UsageError(
                f"{self._path}: two categories have one name: {', '.join(twice[:2])}. Write input.classes: as a list "
                "of names to join them, or as {name: id} to choose one."
            )
        check_names({name: f"{self._path}, category {number}" for number, name in categories.items()})
        found = counted(len(names), "class", "classes")
        notes = [f"{found} detected, in the order of the category ids: {_shown(categories)}"]
        unused = {number: name for number, name in categories.items() if number not in used}
        if unused:
            notes.append(f"without annotations: {_shown(unused)}; input.classes leaves them out")
        return ClassMap(names, {number: i for i, number in enumerate(categories)}, tuple(notes))


class _PanopticEntry(Exception):
    """The file holds segments of PNG files, not instances."""


class _OutlineSizes:
    """The sizes of outlines, compared with those of the boxes beside them: of resized images both must be."""

    def __init__(self) -> None:
        self._across, self._down = array("f"), array("f")
        self._seen = 0

    def add(self, outlines: Any, box: Any) -> None:
        """Compares the polygons of an annotation with its `bbox`."""
        self._seen += 1
        if self._seen % _COMPARED_OF != 1:
            return
        if not (isinstance(outlines, list) and _is_box(box) and min(box[2], box[3]) >= _LEAST_SIDE):
            return
        try:
            across = max(max(ring[::2]) for ring in outlines) - min(min(ring[::2]) for ring in outlines)
            down = max(max(ring[1::2]) for ring in outlines) - min(min(ring[1::2]) for ring in outlines)
            self._across.append(across / box[2])
            self._down.append(down / box[3])
        except (TypeError, ValueError, OverflowError):
            return  # No polygons, or broken ones, which are reported where they are drawn.

    def check(self, path: str) -> None:
        """Checks that the outlines have the size of their boxes.

        Raises:
            UsageError: nearly all are larger or smaller by one factor. Where they differ by many, boxes may be around
                hidden parts, too.
        """
        if not self._across:
            return
        factors = [float(np.median(ratios)) for ratios in (self._across, self._down)]
        steady = [
            np.mean(np.abs(np.asarray(ratios) - factor) <= _STEADY * factor)
            for ratios, factor in zip((self._across, self._down), factors, strict=True)
        ]
        if min(steady) >= _NEARLY_ALL and max(abs(factor - 1) for factor in factors) > 2 * _STEADY:
            raise UsageError(
                f"{path}: the outlines are {factors[0]:.3g} times as wide and {factors[1]:.3g} times as high as the "
                "bbox beside them. Were images resized? Scale the one that does not fit the images."
            )


def _load(path: str, *, masks: bool, boxes: bool, sizes: _OutlineSizes) -> dict[str, Any]:
    """Reads the file; of annotations what is wanted.

    Raises:
        UsageError: it is not JSON, or not COCO's.
    """
    try:
        with open_table(path, limits.MOST_JSON_BYTES) as file:
            document = parse_untrusted_json(
                file.read(), object_hook=partial(_slim, masks=masks, boxes=boxes, sizes=sizes)
            )
    except _PanopticEntry:
        # The detection looks at the start of a large file only.
        problem = "holds COCO panoptic JSON. Set input.labels.format: panoptic"
        raise UsageError(f"{path}: {problem}.").with_readings(
            Reading("the segments of COCO panoptic", {"input.labels.format": "panoptic"})
        ) from None
    except ValueError as error:
        raise UsageError(f"{path}: {json_problem(error)}. Fix the file, or give a CSV.") from None
    found = document if isinstance(document, dict) else {}
    missing = [part for part in _PARTS if not isinstance(found.get(part), list)]
    if missing:
        holds = ", ".join(map(ascii, list(found)[:10])) if found else type(document).__name__
        raise UsageError(
            f"{path}: is JSON, but has no list {missing[0]!r} (it holds {holds}). COCO instances are an object with "
            f"the lists {', '.join(_PARTS)}."
        )
    return found


def _slim(entry: dict[str, Any], *, masks: bool, boxes: bool, sizes: _OutlineSizes) -> object:
    """Reduces each object as it is read, so that the numbers of a polygon are freed before the next one's come."""
    if "segments_info" in entry:
        raise _PanopticEntry
    if "image_id" in entry and not ("file_name" in entry and _OF_ANNOTATIONS.isdisjoint(entry)):
        segmentation = _to_json(entry.get("segmentation")) if masks else "null"
        if masks:
            sizes.add(entry.get("segmentation"), entry.get("bbox"))
        box = entry.get("bbox") if boxes or segmentation in _NO_MASKS else None
        return _Instance(
            entry["image_id"], entry.get("category_id"), segmentation, box, entry.get("iscrowd") in (1, True)
        )
    if "file_name" in entry:
        return {name: entry[name] for name in ("id", "file_name", "height", "width") if name in entry}
    return entry


def _drawn(instance: _Instance) -> _Instance:
    """Returns an annotation with its box as the segmentation, where it has none."""
    if instance.segmentation not in _NO_MASKS or not _is_box(instance.box):
        return instance
    left, top, width, height = instance.box
    right, bottom = left + width, top + height
    outline = [[left, top, right, top, right, bottom, left, bottom]]
    return instance._replace(segmentation=_to_json(outline))


def _is_box(sides: Any) -> bool:
    return isinstance(sides, list) and len(sides) == 4 and all(type(side) in (int, float) for side in sides)


def _edges(sides: Any) -> Box | None:
    """Returns the box of [x, y, width, height]; `None` if it is none."""
    return Box(sides[0], sides[1], sides[0] + sides[2], sides[1] + sides[3]) if _is_box(sides) else None


def _is_image(entry: object) -> bool:
    return isinstance(entry, dict) and "file_name" in entry


def _size_of(entry: Mapping[str, Any]) -> tuple[int, int] | None:
    try:
        return read_text_size(str(entry.get("height")), str(entry.get("width")), "")
    except ObjectError:
        return None


def _shown(categories: Mapping[str, str]) -> str:
    return shorten([f"{name} ({number})" for number, name in categories.items()], SHOWN_CLASSES)
