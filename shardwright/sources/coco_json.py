"""COCO instances: a JSON object with `images`, `annotations` and `categories`.

Images are found by `file_name`; an image in `images` without annotations has no masks. Every annotation is a mask of
its category, crowds (`iscrowd`) too, and masks of one category in one image are joined. Classes are the categories in
the order of their ids, unless `input.classes` says otherwise: as a list, by name; as a mapping, by id.

The file is read whole, but of an annotation only image, category and the segmentation's text are kept: the peak is two
to three times the size of the file (200 MB for one of 90 MB with 120,000 polygons). Shards' writers draw the masks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from shardwright.coco import CocoMasks, mask_text
from shardwright.errors import UsageError
from shardwright.sources.base import Annotation, Survey
from shardwright.sources.classes import ClassMap, as_integer, check_names, map_classes
from shardwright.sources.names import NameIndex
from shardwright.storage import Listing, Refusal, open_table

_SHOWN_NAMES = 3
_SHOWN_CLASSES = 20
_PARTS = ("images", "annotations", "categories")


class _Instance(NamedTuple):
    """What is kept of an annotation; the segmentation as JSON."""

    image: object
    category: object
    segmentation: str


class _Image(NamedTuple):
    """An image of `images`: its position in the listing, if it is there, and the size that the file tells."""

    position: int | None
    size: tuple[int, int] | None
    name: str


class CocoJson:
    """See `shardwright.sources.base.Source`.

    Args:
        path: the file.
        keys: sorted keys of the listing.
        skip: positions that are no images.
        classes: `input.classes`.
        notes: what was told so far.
    """

    unlisted = "fail"
    mask_column = ""
    dialect = CocoMasks()

    def __init__(
        self,
        path: str,
        keys: list[str],
        skip: frozenset[int],
        classes: Mapping[str, int | None] | None,
        notes: tuple[str, ...],
    ) -> None:
        self.name = os.path.basename(path)
        self._path = path
        self._keys = keys
        self._names = NameIndex(keys, skip)
        self._classes = classes
        self._notes = notes
        self._annotations: list[Annotation] = []

    def survey(self) -> Survey:
        """See `Source.survey`."""
        document = _load(self._path)
        survey = Survey(classes=(), listed=bytearray(len(self._keys)))
        images = self._read_images(document["images"], survey)
        categories = self._read_categories(document["categories"])
        sound = list(self._sound(document["annotations"], images, categories, survey))
        used: dict[str, str] = {}
        for i, _, category, _ in sound:
            used.setdefault(category, f"{self._path}, annotations[{i}]")
        mapped = self._map(categories, used)
        survey.classes = mapped.names
        survey.notes = (*self._notes, *mapped.notes)
        self._annotations = [
            Annotation(image.position, mapped.index[category], mask_text(image.size, segmentation), i)
            for i, image, category, segmentation in sound
            if image.position is not None
        ]
        return survey

    def annotations(self) -> Iterator[Annotation]:
        """See `Source.annotations`."""
        yield from self._annotations

    def attachments(self) -> Listing | None:
        """See `Source.attachments`."""
        return None

    def _read_images(self, entries: list[Any], survey: Survey) -> dict[str, _Image]:
        """Id -> image. Tells what is wrong with `images`."""
        images: dict[str, _Image] = {}
        missing: dict[str, int] = {}
        for i, entry in enumerate(entries):
            number, name = (_identity(entry.get("id")), entry.get("file_name")) if _is_image(entry) else ("", None)
            if not number or not isinstance(name, str) or not name.strip() or not _is_text(name):
                reason = f"{self.name}, images[{i}]: has no id, or no file_name that a file can have"
                survey.refused.append(Refusal(f"{self.name}:images[{i}]", "bad_row", reason))
                continue
            if number in images:
                raise UsageError(
                    f"{self._path}, images[{i}]: the id {number} is that of {images[number].name!r}, too. "
                    "Give every image an id of its own."
                )
            position = self._names.find(name)
            images[number] = _Image(position, _size_of(entry), name)
            if len(survey.names) < _SHOWN_NAMES:
                survey.names.append(name)
            if position is None:
                missing.setdefault(name, i)
            else:
                survey.listed[position] = 1
        if not entries:
            raise UsageError(f"{self._path}: 'images' is empty. Give a file with annotated images.")
        survey.refused += [
            Refusal(name, "missing_image", f"{self.name}, images[{i}] names it, but there is no such image")
            for name, i in missing.items()
        ]
        return images

    def _read_categories(self, entries: list[Any]) -> dict[str, str]:
        """Id -> name, in the order of the ids: by number where all are numbers."""
        categories: dict[str, str] = {}
        for i, entry in enumerate(entries):
            number, name = (_identity(entry.get("id")), entry.get("name")) if isinstance(entry, dict) else ("", None)
            where = f"{self._path}, categories[{i}]"
            if not number or not isinstance(name, str) or not name.strip() or not _is_text(name):
                raise UsageError(f"{where}: has no id or no name. Write {{'id': 1, 'name': 'cat'}}.")
            if number in categories:
                raise UsageError(f"{where}: the id {number} stands there twice. Give every category its own.")
            categories[number] = name
        numeric = all(as_integer(number) is not None for number in categories)
        return dict(sorted(categories.items(), key=lambda item: ((numeric and as_integer(item[0])) or 0, item[0])))

    def _sound(
        self, entries: list[Any], images: Mapping[str, _Image], categories: Mapping[str, str], survey: Survey
    ) -> Iterator[tuple[int, _Image, str, str]]:
        """Annotations that name an image and a category; tells what is wrong with the others."""
        unknown: set[str] = set()
        for i, entry in enumerate(entries):
            number = _identity(entry.image) if isinstance(entry, _Instance) else ""
            if not number:
                reason = f"{self.name}, annotations[{i}]: names no image"
                survey.refused.append(Refusal(f"{self.name}:annotations[{i}]", "bad_row", reason))
                continue
            if number not in images:
                if number not in unknown:
                    reason = f"{self.name}, annotations[{i}] names the image id {number!a}, which is not in images"
                    survey.refused.append(Refusal(f"{self.name}:annotations[{i}]", "missing_image", reason))
                unknown.add(number)
                continue
            category = _identity(entry.category)
            if category and category not in categories:
                raise UsageError(
                    f"{self._path}, annotations[{i}]: the category id {category!a} is not in categories. Known are: "
                    f"{_shown(categories)}. Add it or mend the annotation."
                )
            if category:
                yield i, images[number], category, entry.segmentation
                continue
            position = images[number].position
            if position is not None and position not in survey.rejected:
                reason = f"{self.name}, annotations[{i}]: names no category"
                survey.rejected[position] = Refusal(self._keys[position], "bad_row", reason)

    def _map(self, categories: Mapping[str, str], used: Mapping[str, str]) -> ClassMap:
        """Category id -> index of the class, for the ids that are used."""
        if self._classes is None:
            return self._told(categories, used)
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

    def _told(self, categories: Mapping[str, str], used: Mapping[str, str]) -> ClassMap:
        if not categories:
            raise UsageError(f"{self._path}: 'categories' is empty. Add the categories of the annotations.")
        names = tuple(categories.values())
        twice = [f"{name!r} ({number})" for number, name in categories.items() if names.count(name) > 1]
        if twice:
            raise UsageError(
                f"{self._path}: two categories have one name: {', '.join(twice[:2])}. Write input.classes: as a list "
                "of names to join them, as {name: id} to say which is meant."
            )
        check_names({name: f"{self._path}, category {number}" for number, name in categories.items()})
        notes = [f"{len(names)} classes told, in the order of the category ids: {_shown(categories)}"]
        unused = {number: name for number, name in categories.items() if number not in used}
        if unused:
            notes.append(f"without annotations: {_shown(unused)}; input.classes leaves them out")
        return ClassMap(names, {number: i for i, number in enumerate(categories)}, tuple(notes))


def _load(path: str) -> dict[str, Any]:
    """Reads the file.

    Raises:
        UsageError: it is not JSON, or not COCO's.
    """
    try:
        with open_table(path) as file:
            document = json.load(file, object_hook=_slim)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is no JSON in UTF-8 ({error}). Mend the file, or give a CSV.") from None
    found = document if isinstance(document, dict) else {}
    missing = [part for part in _PARTS if not isinstance(found.get(part), list)]
    if missing:
        holds = ", ".join(map(ascii, list(found)[:10])) if found else type(document).__name__
        raise UsageError(
            f"{path}: is JSON, but has no list {missing[0]!r} (it holds {holds}). COCO instances are an object with "
            f"the lists {', '.join(_PARTS)}."
        )
    return found


def _slim(entry: dict[str, Any]) -> object:
    """Called for each object as it is read, so that the numbers of a polygon are freed before the next one's come."""
    if "image_id" in entry:
        segmentation = json.dumps(entry.get("segmentation"), separators=(",", ":"))
        return _Instance(entry["image_id"], entry.get("category_id"), segmentation)
    if "file_name" in entry:
        return {name: entry[name] for name in ("id", "file_name", "height", "width") if name in entry}
    return entry


def _is_image(entry: object) -> bool:
    return isinstance(entry, dict) and "file_name" in entry


def _identity(value: object) -> str:
    """An id as text, since some exporters write numbers in quotes; empty where it is none."""
    return str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""


def _is_text(name: str) -> bool:
    """Whether UTF-8 can hold it: JSON can escape halves of characters."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _size_of(entry: Mapping[str, Any]) -> tuple[int, int] | None:
    height, width = entry.get("height"), entry.get("width")
    return (height, width) if type(height) is int and type(width) is int else None


def _shown(categories: Mapping[str, str]) -> str:
    shown = [f"{name} ({number})" for number, name in list(categories.items())[:_SHOWN_CLASSES]]
    return ", ".join(shown) + (", …" if len(categories) > _SHOWN_CLASSES else "")
