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

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from shardwright.dataset.ledger import MISSING_IMAGE
from shardwright.errors import AnnotationError, Reading, UsageError
from shardwright.formats.base import Request, Survey, shorten
from shardwright.formats.classes import SHOWN_CLASSES, as_integer, special_label
from shardwright.formats.image_names import is_text
from shardwright.formats.json_rows import is_flat
from shardwright.formats.mask_values import have_ids
from shardwright.formats.object_agreement import is_box
from shardwright.formats.object_content import Content, Entry, Thing, corner_box, to_json
from shardwright.formats.object_values import ObjectError, load_json, one_size, read_id, read_text_size
from shardwright.formats.objects import ObjectTable
from shardwright.images.boxes import BAD_BOX, Box
from shardwright.masks.coco_segmentation import CocoMasks, SegmentationError

_SHOWN_BOX, _SHOWN_ID = 80, 40
CROWD = "is_crowd"
_NOT_CROWD, _IS_CROWD = ({CROWD: value} for value in (0, 1))
_NO_MASKS = ("null", "[]")
# Entries of `images` may have a further member `image_id`, and annotations the name of their image.
_OF_ANNOTATIONS = {"category_id", "segmentation", "bbox"}
_PARTS = ("images", "annotations", "categories")
_AS_ROWS = {"task": "classification", "input.labels.format": "label_jsonl"}


class CocoTable(ObjectTable):
    """What instances and panoptic segments have in common: the parts of the file, and categories as classes."""

    tool, flags = "the category ids", (CROWD,)

    def _load(self, hook: Callable[[dict[str, Any]], Any] | None = None) -> dict[str, Any]:
        """Reads the file, and the categories: the label of objects by its id, in the order of the ids.

        Raises:
            UsageError: it is not COCO's, or categories contradict each other or `input.classes`.
        """
        document = load_json(self._path, "the tool that wrote it", self._bytes, hook)
        found = document if isinstance(document, dict) else {}
        missing = [part for part in _PARTS if not isinstance(found.get(part), list)]
        if missing:
            holds = ", ".join(map(ascii, list(found)[:10])) if found else type(document).__name__
            flat = [Reading("it has a class for each name of an image", _AS_ROWS)] if is_flat(document) else []
            raise UsageError(
                f"{self._path}: is JSON, but has no list {missing[0]!r} (it holds {holds}). COCO's are an object with "
                f"the lists {', '.join(_PARTS)}."
            ).with_readings(*flat)
        if not found["images"]:
            raise UsageError(f"{self._path}: 'images' is empty. Give a file with annotated images.")
        self._names_by_id = self._read_categories(found["categories"])
        by_id = have_ids(self._classes)
        self._labels = {
            number: number if by_id and special_label(name, self._classes) is None else name
            for number, name in self._names_by_id.items()
        }
        self.declared = list(self._names_by_id.values())
        self.ids = {name: number for number, name in self._names_by_id.items()}
        self._check_classes()
        return found

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

    def _check_classes(self) -> None:
        names = self._names_by_id
        if self._classes is None:
            if not names:
                raise UsageError(f"{self._path}: 'categories' is empty. Add the categories of the annotations.")
            times = Counter(names.values())
            twice = [f"{name!r} ({number})" for number, name in names.items() if times[name] > 1]
            if twice:
                raise UsageError(
                    f"{self._path}: two categories have one name: {', '.join(twice[:2])}. Write input.classes: as a "
                    "list of names to join them, or as {name: id} to choose one."
                )
        for name, number in (self._classes or {}).items():
            other = names.get(str(number), name)
            if name in self.ids and other != name:
                raise UsageError(
                    f"input.classes: {name!r} has the id {number}, but in {self._path} that is {other!r}, and {name!r} "
                    f"has {self.ids[name]}. Write the file's ids, or a plain list of names."
                )


class CocoJson(CocoTable):
    """Objects with polygons, run lengths or boxes."""

    format = "coco_json"

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        # What else tools draw, COCO has not.
        self.dialect = CocoMasks(self.dialect.centers, self.dialect.clip)

    def _entries(self) -> Iterator[Entry]:
        document = self._load(self._slim)
        found = [one for one in document["categories"] if isinstance(one, dict)]
        if any(one.get("keypoints") for one in found):
            self._notes += ("left out: key points of annotations",)
        by_id, broken = self._read_images(document["images"])
        yield from broken
        annotations = document["annotations"]
        # Categories that others name as theirs, such as Roboflow's root, are no classes without annotations.
        owners = {str(one.get("supercategory")) for one in found if one.get("supercategory") != one.get("name")}
        above = owners & self.ids.keys()
        unknown: set[str] = set()
        for i, one in enumerate(annotations):
            annotations[i] = None
            number = read_id(one.image) if isinstance(one, _Instance) else ""
            image = by_id.get(number)
            label = None if image is None else self._labels.get(read_id(one.category))
            shape = None if label is None or one.segmentation in _NO_MASKS else one.segmentation
            box: Box | None = None
            if label is not None and is_box(one.box):
                box = corner_box(*one.box)
            problem: AnnotationError | None = None
            if image is None or label is None or (box is None and (shape is None or self._boxes)):
                problem = None if number in unknown else self._problem(i, one, image)
                if problem is not None:
                    yield Entry((image.name,) if image else (), f"{self.name}, annotations[{i}]", problem)
                unknown |= {number} if number and not image else set()
            if image is None or label is None or problem is not None:
                continue
            above.discard(label)
            image.things.append(Thing(label, shape, box, _IS_CROWD if one.crowd else _NOT_CROWD, "", i))
        if above:
            self.declared = [name for name in self.declared if name not in above]
            self._notes += (f"left out: categories of others, without annotations: {shorten(sorted(above))}",)
        for image in {id(image): image for image in by_id.values()}.values():
            yield Entry((image.name,), f"{self.name}, images[{image.number}]", image)

    def _read_images(self, entries: list[Any]) -> tuple[dict[str, _Image], list[Entry]]:
        """Returns the images by their ids, and what is no image.

        Raises:
            UsageError: two have one id.
        """
        images: dict[str | int, _Image] = {}
        by_id: dict[str, _Image] = {}
        broken = []
        for i, entry in enumerate(entries):
            found = entry if isinstance(entry, dict) else {}
            # LVIS has addresses alone.
            number, name = read_id(found.get("id")), found.get("file_name") or found.get("coco_url")
            if not number or not isinstance(name, str) or not name.strip() or not is_text(name):
                wrong = AnnotationError("has no id, or no file_name that a file can have", "bad_row")
                broken.append(Entry((), f"{self.name}, images[{i}]", wrong))
                continue
            if number in by_id:
                raise UsageError(
                    f"{self._path}, images[{i}]: the id {number} is also that of {by_id[number].name!r}. "
                    "Give every image its own id."
                )
            # Two entries may be of one image, in two spellings of its name.
            position = self._names.find(name)
            by_id[number] = images.setdefault(name if position is None else position, _Image(name, i, [], []))
            by_id[number].entries.append(found)
        return by_id, broken

    def _problem(self, position: int, one: Any, image: _Image | None) -> AnnotationError | None:
        """Returns what is wrong with an annotation that is incomplete; what is of no class needs no box.

        Raises:
            UsageError: it has a category of its own.
        """
        stated = one.image if isinstance(one, _Instance) else None
        if stated is None or not read_id(stated):
            shown = f"the image id is {ascii(stated)[:_SHOWN_ID]}, not a whole number or a text"
            return AnnotationError("names no image" if stated is None else shown, "bad_row")
        if image is None:
            return AnnotationError(f"names the image id {read_id(stated)!a}, which is not in images", MISSING_IMAGE)
        category = read_id(one.category)
        if not category:
            return AnnotationError("names no category", "bad_row")
        if category not in self._labels:
            shown = shorten([f"{name} ({number})" for number, name in self._names_by_id.items()], SHOWN_CLASSES)
            raise UsageError(
                f"{self._path}, annotations[{position}]: the category id {category!a} is not in categories. Known are: "
                f"{shown}. Add it or fix the annotation."
            )
        if self._boxes and special_label(self._labels[category], self._classes) is None:
            return AnnotationError(f"the bbox is {ascii(one.box)[:_SHOWN_BOX]}, not [x, y, width, height]", BAD_BOX)
        if not self._masks or one.segmentation not in _NO_MASKS:
            return None
        return SegmentationError(f"the segmentation is {one.segmentation}; write polygons [[x, y, ...]] or run lengths")

    def _content(self, raw: _Image) -> Content:
        sizes: list[tuple[int, int] | None] = []
        for entry in raw.entries:
            with suppress(ObjectError):
                sizes.append(read_text_size(str(entry.get("height")), str(entry.get("width")), ""))
        return Content(raw.things, size=one_size(sizes, "entries"))

    def _check_boxes(self, survey: Survey) -> None:
        super()._check_boxes(survey)
        self._check_corners(
            survey, "as [x, y, width, height], which COCO's bbox are, its", "Write them as COCO does, and area too."
        )

    def _slim(self, entry: dict[str, Any]) -> object:
        """Reduces an object as soon as it is read, so that the numbers of a polygon are freed."""
        if "segments_info" in entry:
            # The detection looks at the start of a large file only.
            raise UsageError(
                f"{self._path}: holds COCO panoptic JSON. Set input.labels.format: panoptic."
            ).with_readings(Reading("the segments of COCO panoptic", {"input.labels.format": "panoptic"}))
        if "image_id" in entry and not ("file_name" in entry and _OF_ANNOTATIONS.isdisjoint(entry)):
            drawn, box = entry.get("segmentation"), entry.get("bbox")
            if isinstance(drawn, list) and len(drawn) == 1 and isinstance(drawn[0], dict):
                drawn = drawn[0]  # COCO-Stuff has a list of one run length.
            self._agreement.look(drawn, box, entry.get("area"))
            score = entry.get("score")
            self._scored += isinstance(score, float) and 0 < score < 1
            # Without either, the message about the task counts what has an outline.
            segmentation = to_json(drawn) if self._masks or not self._boxes else "null"
            box = box if self._boxes or segmentation in _NO_MASKS else None
            crowd = entry.get("iscrowd") in (1, True)
            return _Instance(entry["image_id"], entry.get("category_id"), segmentation, box, crowd)
        if "file_name" in entry:
            return {name: entry[name] for name in ("id", "file_name", "height", "width") if name in entry}
        return entry


class _Image(NamedTuple):
    """An image of the file, with the position of its first entry there, and the objects of all its entries."""

    name: str
    number: int
    entries: list[dict[str, Any]]
    things: list[Thing]


class _Instance(NamedTuple):
    """The needed part of an annotation; the segmentation as JSON, `null` where there is none or masks are unwanted."""

    image: object
    category: object
    segmentation: str
    box: Any
    crowd: bool
