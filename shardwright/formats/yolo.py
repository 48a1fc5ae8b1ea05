"""YOLO: a text file for each image, with a line for each object.

A line is `class x y width height`, a box by its center, or `class x y x y x y ...`, a polygon. All are fractions of the
image. Commas may be between them, and NumPy writes the class as `1.0`. Class numbers are those of `names` in
`data.yaml`, or of the lines of `classes.txt` or `obj.names`. An image without a file, or with an empty one, has no
objects.

`input.labels.path` is the YAML file of the data set, or the folder of the text files. The text file of an image has
the image's path, with the folder `labels` in place of `images`, or it is in the folder of the image. With `kpt_shape`
in the YAML file (key points), boxes are read and key points are left out. Source: the Ultralytics documentation
(docs.ultralytics.com/datasets).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from shardwright.config.yaml_text import MOST_BYTES, parse_yaml
from shardwright.errors import AnnotationError, Reading, UsageError
from shardwright.formats.base import Request, Survey, shorten
from shardwright.formats.classes import names_by_line
from shardwright.formats.image_names import key_stem
from shardwright.formats.listed_boxes import CENTERS
from shardwright.formats.mask_values import have_ids
from shardwright.formats.object_content import FRACTIONS, Content, Entry, Thing, fractions
from shardwright.formats.object_values import ObjectError, check_fraction, read_text_number
from shardwright.formats.objects import ObjectFiles
from shardwright.formats.signs import YAML_ENDINGS
from shardwright.images.boxes import Box
from shardwright.running.progress import counted
from shardwright.storage import Listing, is_folder, list_inputs, list_names, read_bytes
from shardwright.untrusted.budget import Budget, OverBudget

# 100,000 boxes are 4 MiB. A corner of four bytes becomes objects of 120.
BUDGET = Budget(header=16 << 20)
_NAME_LISTS = ("classes.txt", "obj.names", "predefined_classes.txt")
# labelImg's own list of examples, which counts only where there is no other.
_EXAMPLES = _NAME_LISTS[-1]
_LABELS, _IMAGES = "labels", "images"
_BOX = 5
_SHOWN = 60
_BETWEEN = re.compile(r"[\s,]+")
# Fewer further points do not show that they are key points; shares of lines that do.
_LEAST_POINTS = 3
_NEARLY_ALL, _CLEARLY = 0.9, 0.25
# Numbers have no two letters, but for `nan` and `inf`, which are no labels either.
_WORD = re.compile(r"[^\W\d_]{2}")


class Yolo(ObjectFiles):
    """The text files of a set."""

    format, tool, unlisted = "yolo", "YOLO's names", "empty"

    def __init__(self, given: Request) -> None:
        path = given.path.rstrip("/")
        folder = path if is_folder(path) else os.path.dirname(path)
        self._below = ""
        described = "" if is_folder(path) else os.path.basename(path)
        if not described:
            described = _yaml_in(folder)
            above = "" if described else _yaml_in(os.path.dirname(folder))
            if above:
                described, self._below, folder = above, os.path.basename(folder) + "/", os.path.dirname(folder)
        listing = list_inputs(folder)
        data = _read_yaml(os.path.join(folder, described)) if described else {}
        stated = [data.get(key) for key in ("train", "val", "test")]
        paths = [path for value in stated for path in (value if isinstance(value, list) else [value])]
        lists = {_base(path) for path in paths if isinstance(path, str)}
        texts = []
        for i, key in enumerate(listing.keys):
            name = _base(key).lower()
            if key.startswith(self._below) and name.endswith(".txt") and not name.startswith(("readme", "license")):
                texts += [i] if name not in _NAME_LISTS and _base(key) not in lists else []
        if not texts:
            raise UsageError(
                f"input.labels.path: {given.path}: there are no YOLO text files below {folder}. Give the folder "
                "`labels`, or the YAML file of the data set."
            )
        super().__init__(given, listing.part(texts))
        named = [i for i, key in enumerate(listing.keys) if _base(key) in _NAME_LISTS and key.startswith(self._below)]
        extra = [i for i, key in enumerate(listing.keys) if key == described]
        self._attached = listing.part(sorted([*texts, *named, *extra]))
        self._points = "kpt_shape" in data
        self._about_none: list[str] = []
        if not have_ids(given.classes):
            file = os.path.join(folder, described)
            names = {file: _names(data["names"], file)} if "names" in data else {}
            if names and isinstance(data.get("nc"), int) and data["nc"] != len(names[file]):
                problem = f"nc is {data['nc']}, and names has {counted(len(names[file]), 'class', 'classes')}"
                raise UsageError(f"{file}: {problem}. Correct the one that is wrong.")
            self.declared = _agreed(names | _read_lists(listing, named))
        self.counted_by = "" if self.declared else self.format.upper()

    def survey(self) -> Survey:
        self._about_none.clear()
        survey = super().survey()
        if self._about_none:
            files = counted(len(self._about_none), "text file has", "text files have")
            note = f"YOLO: {files} no labels and the name of no image, so left out: {shorten(self._about_none)}"
            survey.notes = (*survey.notes, note)
        return survey

    def _read(self) -> Iterator[tuple[Entry, Content | AnnotationError]]:
        outlines, boxed, far, numbers = 0, 0, 0, set[int]()
        # A text that is no image's is about something else where it has words, or, apart from those of images, no line
        # that could be an object.
        stems = {key_stem(_base(key)) for key in self._images.keys}
        folders = {_folder(key) for key in self._files.keys if key_stem(_base(key)) in stems}
        for entry, content in super()._read():
            is_plain = isinstance(content, AnnotationError) or not content.things
            stray = isinstance(content, _NoLabels) or (is_plain and _folder(entry.where) not in folders)
            if stray and self._position(entry) is None:
                self._about_none.append(entry.where)
                continue
            yield entry, content
            if isinstance(content, _Lines):
                outlines, boxed, far = outlines + content.outlines, boxed + content.boxed, far + content.far
                numbers |= content.numbers
            elif isinstance(content, _NoClass):
                numbers |= content.numbers
        if boxed >= _NEARLY_ALL * outlines and far > _CLEARLY * outlines:
            raise UsageError(
                f"{self._path}: {boxed} of {outlines} lines of more than a box are a box and points in it, "
                "so key points and no outlines. Write kpt_shape: [POINTS, 2] into data.yaml to read the boxes, or "
                "remove the points."
            )
        names = len(self.declared)
        if names and max(numbers, default=0) == names and 0 not in numbers:
            raise UsageError(
                f"{self._path}: the classes of objects are {min(numbers)} to {names}, and there are {names} "
                "names: do they count from 1? Set input.classes to {name: number}."
            ).with_readings(
                Reading("classes count from 1", {"input.classes": {name: i for i, name in enumerate(self.declared, 1)}})
            )

    def _check_boxes(self, survey: Survey) -> None:
        super()._check_boxes(survey)
        named = "as YOLO's [x, y, width, height], the center and the size, its"
        self._check_corners(survey, named, "Write them as YOLO does.", CENTERS)

    def _names_in(self, number: int, data: bytes) -> Sequence[str]:
        """Returns the image's path, as it follows from that of the text file, without extension."""
        key = key_stem(self._files.keys[number])
        root = self._images.root.rstrip("/") + "/"
        parts = [*self._files.root.strip("/").split("/"), *key.split("/")]
        places = [i for i, part in enumerate(parts[:-1]) if part.lower() == _LABELS]
        found = []
        for swapped in [*reversed(places), None]:
            at = [*parts]
            if swapped is not None:
                written = parts[swapped]  # `Images` for `Labels`.
                at[swapped] = (
                    _IMAGES.upper() if written.isupper() else _IMAGES.title() if written[0].isupper() else _IMAGES
                )
            whole = "/" + "/".join(at)
            if whole.startswith(root):
                found.append(whole.removeprefix(root))
        below = key.removeprefix(self._below)
        return [*found, below] if below == _base(below) or not found else found

    def _content(self, raw: Any) -> Content:
        try:
            BUDGET.check_header(len(raw), "file of one image")
            text = raw.decode("utf-8-sig")
        except OverBudget as error:
            raise ObjectError(str(error)) from None
        except UnicodeDecodeError:
            raise ObjectError("it is not text in UTF-8") from None
        content = _Lines(boxes_in=FRACTIONS)
        for i, line in enumerate(text.splitlines()):
            fields = list(filter(None, _BETWEEN.split(line)))
            if fields:
                try:
                    content.things.append(self._thing(fields, f"line {i + 1}", content))
                except ObjectError as error:
                    raise (_NoLabels(str(error)) if _WORD.search(text) else error) from None
                content.left_out["sets of key points"] += self._points
        return content

    def _thing(self, fields: list[str], where: str, content: _Lines) -> Thing:
        label = read_text_number(fields[0], f"{where}: the class") if len(fields[0]) < _SHOWN else -1
        if not 0 <= label == int(label):
            raise ObjectError(f"{where}: the class is {ascii(fields[0])[:_SHOWN]}, not a number from 0")
        if len(fields) < _BOX or (len(fields) % 2 == 0 and not self._points):
            fix = "it needs 5 (a box), or 7, 9, ... (a polygon)"
            if len(fields) == _BOX + 1:
                fix += "; is the last one the confidence of a prediction?"
            elif len(fields) > _BOX and len(fields) % 3 == _BOX % 3:
                fix += "; key points need kpt_shape in data.yaml"
            raise ObjectError(f"{where}: has {len(fields)} numbers; {fix}")
        numbers = [read_text_number(text, where) for text in fields[1 : _BOX if self._points else None]]
        for number in numbers:
            check_fraction(number, where)
        content.numbers.add(int(label))
        name = str(int(label))
        if self.declared:
            if label >= len(self.declared):
                problem = f"the class {name} is not one of the {len(self.declared)} names, from 0"
                raise _NoClass(f"{where}: {problem}", content)
            name = self.declared[int(label)]
        if len(numbers) > _BOX - 1:
            boxed, far = _may_be_key_points(numbers)
            content.outlines += 1
            content.boxed += boxed
            content.far += far
            return Thing(name, fractions(zip(numbers[::2], numbers[1::2], strict=True)))
        x, y, width, height = numbers
        return Thing(name, None, Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2))


def _may_be_key_points(numbers: Sequence[float]) -> tuple[bool, bool]:
    """Returns whether an outline may be the center and the size of a box, and points in it; and whether it must be.

    The second corner of an outline is near the others; the size of a box is near its points by chance alone.
    """
    x, y, width, height = numbers[: _BOX - 1]
    across, down = numbers[_BOX - 1 :: 2], numbers[_BOX::2]
    if len(down) < _LEAST_POINTS or 2 * max(abs(one - x) for one in across) > width:
        return False, False
    if 2 * max(abs(one - y) for one in down) > height:
        return False, False
    left, right, top, bottom = min(x, *across), max(x, *across), min(y, *down), max(y, *down)
    side = max(right - left, bottom - top)
    return True, not (left - side <= width <= right + side and top - side <= height <= bottom + side)


@dataclass(slots=True)
class _Lines(Content):
    """The lines of a file.

    Attributes:
        numbers: of their classes.
        outlines: how many lines are an outline.
        boxed: how many of these may be a box and key points in it.
        far: how many of these are hardly anything else.
    """

    numbers: set[int] = field(default_factory=set)
    outlines: int = 0
    boxed: int = 0
    far: int = 0


class _NoClass(ObjectError):
    """The number of a class, of those of a file, is beyond the names."""

    def __init__(self, problem: str, content: _Lines) -> None:
        super().__init__(problem)
        self.numbers = content.numbers


class _NoLabels(ObjectError):
    """A file is text with words: of an image, it is a broken one; of none, it is about something else."""


def _yaml_in(folder: str) -> str:
    """Returns the file of a folder that describes a data set, or an empty text."""
    for name in list_names(folder):
        if name.lower().endswith(YAML_ENDINGS) and "names" in _read_yaml(os.path.join(folder, name), strict=False):
            return name
    return ""


def _read_yaml(path: str, *, strict: bool = True, as_written: bool = False) -> Mapping[Any, Any]:
    try:
        document = parse_yaml(read_bytes(path, most=MOST_BYTES).decode("utf-8-sig"), as_written=as_written)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        if strict:
            problem = str(getattr(error, "problem", None) or error).split("\n")[0]
            raise UsageError(f"input.labels.path: {path}: cannot be read as YAML ({problem[:_SHOWN]}).") from None
        return {}
    return document if isinstance(document, dict) else {}


def _names(value: object, path: str) -> tuple[str, ...]:
    """Returns the names of the classes, if YAML reads each as it is written."""
    written: object = _read_yaml(path, as_written=True)["names"]
    if isinstance(value, dict) and isinstance(written, dict) and set(value) == set(range(len(value))):
        texts = dict(zip(value, written.values(), strict=True))
        value, written = ([names[i] for i in range(len(names))] for names in (value, texts))
    if not isinstance(value, list) or not isinstance(written, list) or not value:
        raise UsageError(f"{path}: names is not a list of classes, nor a mapping of the numbers from 0 to classes.")
    names: dict[str, None] = {}
    for number, (name, text) in enumerate(zip(value, written, strict=True)):
        if isinstance(name, (list, dict)) or not isinstance(text, str):
            raise UsageError(f"{path}: names: the class of number {number} is {name!r}, not a text. Give its name.")
        # Most tools write whole numbers without quotes.
        if not isinstance(name, str) and (isinstance(name, bool) or not isinstance(name, int) or str(name) != text):
            raise UsageError(
                f"{path}: names has the class {name}, since YAML reads {text or 'nothing'} so. Put the name in quotes: "
                f"{text!r}."
            )
        if not text.strip() or text in names:
            problem = f"names the class {text!r} twice" if text in names else f"has no name for class {number}"
            raise UsageError(f"{path}: names: {problem}. Give every number another name.")
        names[text] = None
    return tuple(names)


def _read_lists(listing: Listing, found: list[int]) -> dict[str, tuple[str, ...]]:
    """Returns the names of each list of classes, by its path."""
    own = [i for i in found if _base(listing.keys[i]) != _EXAMPLES]
    lists = {}
    for i in own or found:
        try:
            text = read_bytes(listing.path(i), listing.pin(i), MOST_BYTES).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"{listing.path(i)}: is not a list of classes in UTF-8.") from None
        lists[listing.path(i)] = names_by_line(text, listing.path(i))
    return lists


def _agreed(lists: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the longest of some lists of classes; labelImg adds a class to the list of a folder when it is used.

    Raises:
        UsageError: two lists give a number to different classes.
    """
    path, names = max(lists.items(), key=lambda entry: len(entry[1]), default=("", ()))
    for other, shorter in lists.items():
        for number, (one, two) in enumerate(zip(names, shorter, strict=False)):
            if one != two:
                raise UsageError(
                    f"input.labels.path: the class {number} is {one!r} by {path}, but {two!r} by {other}. Remove the "
                    "list that is wrong, or set input.classes to {name: number}."
                )
    return names


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
