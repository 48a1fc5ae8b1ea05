"""Formats without a file of labels: the key of an image states its class, by a folder or by the name of the file.

File names: `cat_0.png` and `cat.0.png` are cats, also where only those in a folder `train` are called so and others
in `test`; or a pattern with a group `label` finds the class.

Class folders: one folder of the key is the class, the first one unless the first ones are splits.

| tree | class |
|---|---|
| `daisy/1.jpg`, `rose/2.jpg` | the first folder |
| `train/daisy/1.jpg`, `val/rose/2.jpg`, also `train2017/` | the folder below the split |
| `seg_train/seg_train/daisy/1.jpg`, `seg_test/…` | likewise; the names differ in the words for splits alone |
| `images/train/daisy/1.jpg` | likewise; a folder `images` around everything is passed over |
| `train/1.jpg`, `car/2.jpg`, `bus/3.jpg` | the first folder: one class among others may be called `train` |
| `train/1.jpg`, `val/2.jpg`; `train/a/1.jpg`, `car/b/2.jpg` | both readings fit: an error |

If `input.classes` has the names of one reading only, that reading is taken.

`detect_key_format` decides which of the two states the classes with `format: auto`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from shardwright.config.limited_pattern import LimitedPattern
from shardwright.config.split import split_folders, split_word, stated_split
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import SHOWN_NAMES, Annotation, AnnotationFormat, Request, Survey, shorten
from shardwright.formats.classes import as_integer, check_any, check_spellings, map_classes
from shardwright.storage import Refusal

# All before the last `_<number>` or `.<number>`.
_LABEL_NUMBER = re.compile(r"(?:^|/)(?P<label>[^/]+)[_.][0-9]+(?:\.[^./]*)?\Z")
# What splits may have before or behind the name of a class: a number, as lists have it, and the plural.
_NUMBERED, _PLURAL = r"(?:[0-9]+[_ .-]+)?", r"(?:s|es)?"
_AROUND = "images"
# Folders next to those of classes that are called after images without one.
_NO_CLASS = re.compile(
    r"(?:un|not[_ -]?|to[_ -]?(?:be[_ -]?)?)(?:label|annotat)\w*|unsup(?:ervised)?|predict(?:ions?)?|inference|"
    r"submissions?|hold[_ -]?out|"
    r"(?:test|val|valid|validation|eval)(?:ing)?[_ -]?(?:set|images?|imgs?|photos?|pictures?|data)",
    re.IGNORECASE,
)
_FORMAT, _PATTERN = "input.labels.format", "input.labels.regex"
CLASS_FOLDERS, FILE_NAME = "class_folders", "file_name"
BY_FOLDER = Reading("the folder of an image is its class", {_FORMAT: CLASS_FOLDERS})
IMAGES_ALONE = Reading("the images have no classes", {_FORMAT: "none"})
_BY_NAME = Reading("the name of an image's file states its class", {_FORMAT: FILE_NAME})
_EITHER = "Set input.labels.format: class_folders or file_name."


class KeyFormat(AnnotationFormat):
    """A source without a table."""

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self._keys = given.images.keys
        self._index: Mapping[str, int] = {}

    @abstractmethod
    def _label(self, key: str) -> str:
        """Returns the class that a key states, or an empty text."""

    @abstractmethod
    def _place(self, key: str, label: str) -> str:
        """Returns the position of the class in the key, for messages."""

    @abstractmethod
    def _unlabeled(self) -> tuple[str, str]:
        """Returns the code and reason of an image whose key states no class."""

    def survey(self) -> Survey:
        survey = Survey(classes=(), listed=bytearray(len(self._keys)), names=list(self._keys[:SHOWN_NAMES]))
        values: dict[str, str] = {}
        for i, label in self._labels():
            survey.listed[i] = 1
            if not label:
                survey.rejected[i] = Refusal(self._keys[i], *self._unlabeled())
            elif label not in values:
                values[label] = self._place(self._keys[i], label)
        check_any(values, self._classes, survey.rejected.values())
        mapped = map_classes(values, self._classes)
        self._index = mapped.index
        survey.classes = mapped.names
        survey.notes = (*self._notes, *mapped.notes)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        for i, label in self._labels():
            if label:
                yield Annotation(i, self._index[label], None, 0)

    def _labels(self) -> Iterator[tuple[int, str]]:
        for i, key in enumerate(self._keys):
            if i not in self._images.skip:
                yield i, self._label(key)


class FileNames(KeyFormat):
    """The name of an image's file states its class.

    With `input.labels.regex`, a regular expression with a group `label`, it is searched in the key; else the class is
    the text before the last `_<number>` of the file name.
    """

    format = FILE_NAME

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        pattern = given.options.regex
        self._pattern = _LABEL_NUMBER if pattern is None else LimitedPattern(pattern, "input.labels.regex")

    def _label(self, key: str) -> str:
        return _find(self._pattern, key)

    def _place(self, key: str, label: str) -> str:
        return f"{key}, in its name"

    def _unlabeled(self) -> tuple[str, str]:
        if self._pattern is _LABEL_NUMBER:
            return "no_label", "the file's name is not label_number, as cat_0.png; see input.labels.regex"
        return "no_label", f"input.labels.regex {self._pattern.pattern!r} finds no label in it"


def name_label(key: str) -> str:
    """Returns the text before the last `_<number>` of a key's file name, or an empty text."""
    return _find(_LABEL_NUMBER, key)


def _find(pattern: re.Pattern[str] | LimitedPattern, key: str) -> str:
    match = pattern.search(key)
    return (match["label"] or "") if match else ""


class FolderLevel(NamedTuple):
    """Which folder of a key is the class.

    Attributes:
        level: its number, from 0.
        note: how that was detected, for the user, or empty.
        error: why the tree has no single reading, with those that fit; `None` where it has one.
    """

    level: int
    note: str = ""
    error: UsageError | None = None


class ClassFolders(KeyFormat):
    """A folder of an image is its class.

    Args:
        given: what is asked.
        level: which folder is the class; see `class_level`.
        folders: of an export, folder -> class, an empty text for images without one.
    """

    format = CLASS_FOLDERS

    def __init__(self, given: Request, level: int = 0, folders: Mapping[str, str] | None = None) -> None:
        super().__init__(given)
        self._level = level
        self._folders = folders or {}

    def _label(self, key: str) -> str:
        folder = class_folder(key, self._level)
        return self._folders.get(folder, folder)

    def _labels(self) -> Iterator[tuple[int, str]]:
        for i, label in super()._labels():
            if label or class_folder(self._keys[i], self._level) not in self._folders:
                yield i, label

    def survey(self) -> Survey:
        survey = super().survey()
        if self._classes is None and not self._folders:
            self._check_splits()
        return survey

    def _check_splits(self) -> None:
        """Raises `UsageError` where another split than `train` has folders that `train` lacks; with the readings."""
        folders: dict[str, dict[str, str]] = {}
        for key, label in ((self._keys[i], label) for i, label in self._labels() if label):
            above, _, _ = key.rpartition("/")
            around = above.split("/")
            # In `test/test/1.jpg`, the folder that is called after a split may be a class; the one above is a split.
            del around[self._level : self._level + 1]
            if split := stated_split("/".join(around)):
                folders.setdefault(split, {}).setdefault(label, above)
        learned = folders.pop("train", {})
        further = {label: above for others in folders.values() for label, above in others.items()}
        further = {label: above for label, above in further.items() if label not in learned}
        if not learned or not further:
            return
        check_spellings([*learned, *further], self._images.root)
        without = {"input.exclude": sorted(further.values())}
        readings = [
            Reading("train has no image of these classes", {"input.classes": sorted({*learned, *further})}),
            Reading(f"{shorten(without['input.exclude'])} is no part of the set", without),
        ]
        # `test/unknown` holds images to predict.
        readings = readings[::-1] if len(further) == 1 else readings
        if pattern := _common_names(learned, further):
            readings.insert(0, Reading("numbers before the names, and plurals, are no part of them", pattern))
        raise UsageError(
            f"input.labels: the folders of the splits are not the same classes: train has {shorten(sorted(learned))}, "
            f"but no {shorten(sorted(further))}. Rename the folders, or choose what they are."
        ).with_readings(*readings)

    def _place(self, key: str, label: str) -> str:
        return f"{key}, folder {label}"

    def _unlabeled(self) -> tuple[str, str]:
        return "no_class_folder", "the image is not in a class folder; move it into one"


def _common_names(learned: Collection[str], further: Collection[str]) -> dict[str, str]:
    """Returns the options by which splits that spell the same classes in two ways have one name for each, if they do.

    Args:
        learned: the folders of the split to learn from, which are different classes.
        further: those of other splits that it lacks.
    """
    plain = {label: re.sub(f"^{_NUMBERED}", "", label) for label in (*learned, *further)}
    names = {name for name in plain.values() if not any(_is_plural(name, other) for other in plain.values())}
    name_of = {
        label: next(one for one in names if one == name or _is_plural(name, one)) for label, name in plain.items()
    }
    known = {name_of[label] for label in learned}
    if len(known) < len(learned) or not {name_of[label] for label in further} <= known:
        return {}
    # Of two names that one label may begin with, the longer one.
    either = "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))
    return {_FORMAT: FILE_NAME, _PATTERN: f"(?:^|/){_NUMBERED}(?P<label>{either}){_PLURAL}/[^/]+$"}


def _is_plural(name: str, other: str) -> bool:
    return name != other and re.fullmatch(re.escape(other) + _PLURAL, name) is not None


def class_folder(key: str, level: int = 0) -> str:
    """Returns the folder of a key at a level, or an empty text."""
    folders = key.split("/", level + 1)
    return folders[level] if len(folders) > level + 1 else ""


def class_level(
    keys: Sequence[str], skip: frozenset[int], classes: Mapping[str, int | None] | None, *, asked: bool
) -> FolderLevel:
    """Detects which folder of the keys is the class.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are not images.
        classes: `input.classes`.
        asked: whether `format: class_folders` is set.
    """
    folders = [key.split("/")[:-1] for i, key in enumerate(keys) if i not in skip]
    level = int(_is_around(folders, 0))
    first = {path[level] for path in folders if len(path) > level}
    splits = split_folders(first).keys()
    if not splits:
        unlabeled = set(filter(_NO_CLASS.fullmatch, first)) if fit(first, classes) < 2 else set()
        several = unlabeled and len(first - unlabeled) > 1
        return FolderLevel(level, error=_may_be_no_class(unlabeled, first - unlabeled, level) if several else None)
    inner = level + 1
    while (below := {path[inner] for path in folders if len(path) > inner and path[level] in splits}) and (
        below <= splits and all(path[inner : inner + 1] in ([], [path[level]]) for path in folders)
    ):
        inner += 1  # An archive `train` is unpacked into a folder `train`.
    by_first, by_below = fit(first, classes), fit(below, classes)
    if by_first > by_below:
        return FolderLevel(level)
    others = first - splits
    if below and (not others or by_below > by_first):
        inner += int(_is_around([path for path in folders if path[level : level + 1]], inner))
        note = f"folders: {shorten(sorted(splits))} are splits, and the folders below are the classes"
        return FolderLevel(inner, note)
    if not below and not others and asked:
        return FolderLevel(level)
    train_alone = set(split_folders(first).values()) == {"train"}
    if not below and others and len(splits) == 1 and (train_alone or any(map(_names_splits, others))):
        names = f"{shorten(sorted(others))}, next to it, {'are not splits' if len(others) > 1 else 'is not a split'}"
        return FolderLevel(level, f"folders: {shorten(sorted(splits))} is a class, since {names}")
    if not below and others and len(splits) == 1:
        return FolderLevel(level, error=_may_be_no_class(splits, others, level))
    return FolderLevel(level, error=_either(splits, others, below, level, inner))


def fit(values: Iterable[str], classes: Mapping[str, int | None] | None) -> int:
    """Returns how well values fit `input.classes`: 2 by name, 1 as numbers, which it may know, 0 not at all."""
    found = set(values)
    if not found or classes is None:
        return 0
    if found <= set(classes):
        return 2
    return int(all(value in classes or as_integer(value) is not None for value in found))


def _is_around(folders: Sequence[Sequence[str]], level: int) -> bool:
    """Returns whether every image is in a folder `images` at a level, and some in a further folder below."""
    around = bool(folders) and all([part.lower() for part in path[level : level + 1]] == [_AROUND] for path in folders)
    return around and any(len(path) > level + 1 for path in folders)


def _either(splits: Set[str], others: Set[str], below: Set[str], level: int, inner: int) -> UsageError:
    """Returns the error of folders that may be splits or classes, with the configuration of each reading."""
    above, names, left = "[^/]+/" * level, shorten(sorted(splits)), shorten(sorted(others))
    by_class: dict[str, Any] = {_FORMAT: CLASS_FOLDERS}
    by_split: dict[str, Any] = {_FORMAT: "none"}
    if others:
        by_class = {_FORMAT: FILE_NAME, _PATTERN: f"^{above}(?P<label>[^/]+)/"}
    if below:
        between = "[^/]+/" * (inner - level - 1)
        pattern = f"^{above}(?:{'|'.join(sorted(splits))})/{between}(?P<label>[^/]+)/"
        by_split = {_FORMAT: FILE_NAME, _PATTERN: pattern}
    readings = [
        Reading("The folders are splits", {**by_split, "split.method": "predefined"}),
        Reading("The folders are classes", by_class),
    ]
    shown = []
    for options in (by_split, by_class):
        pattern = f", regex: '{options[_PATTERN]}'" if _PATTERN in options else ""
        shown.append(f"  input: {{labels: {{format: {options[_FORMAT]}{pattern}}}}}")
    if below and others:
        excluded = {"input.exclude": ["*/" * level + name for name in sorted(others)], "split.method": "predefined"}
        readings.insert(0, Reading(f"The folders are splits, and {left} is no part of the set", excluded))
    among = f", next to {left}," if others else ""
    direct = "" if below else " with the images directly in them"
    labels = "" if below else " (without labels; or give their file by input.labels.path)"
    return UsageError(
        f"input.labels: the folders ({names}){among} may be splits or classes{direct}. Paste one of these:\n\n"
        f"# The folders are splits{labels}.\n{shown[0]}\n  split: {{method: predefined}}\n\n"
        f"# The folders are classes.\n{shown[1]}"
    ).with_readings(*readings)


def _may_be_no_class(folders: Set[str], others: Set[str], level: int) -> UsageError:
    """Returns the error of folders next to those of classes that may hold images to predict."""
    names, left = shorten(sorted(folders)), shorten(sorted(others))
    excluded, pattern = ["*/" * level + name for name in sorted(folders)], f"^{'[^/]+/' * level}(?P<label>[^/]+)/"
    return UsageError(
        f"input.labels: {names}, next to {left}, may hold images to predict, or be a class. Set input.exclude: "
        f"{excluded}, or input.labels: {{format: file_name, regex: '{pattern}'}}."
    ).with_readings(
        Reading(f"{names} is no part of the set", {"input.exclude": excluded}),
        Reading("The folders are classes", {_FORMAT: FILE_NAME, _PATTERN: pattern}),
    )


def _names_splits(folder: str) -> bool:
    """Returns whether a part of a folder's name is that of a split, as in `train_val2018`."""
    return any(map(split_word, re.findall(r"[^\W_]+", folder)))


def is_split_folder(name: str) -> bool:
    """Returns whether a folder is named for the use of images (`train`, `images`), not for a class."""
    return split_word(name) is not None or name.lower() == "images"


def detect_key_format(
    keys: Sequence[str], skip: frozenset[int], classes: Mapping[str, int | None] | None, found: FolderLevel
) -> tuple[str, str]:
    """Detects whether folders or file names state the classes.

    Folders come first: files called `IMG_0001.jpg` fit `label_number` as well as `cat_1.jpg` does. File names are used
    where no image is in a folder, or where `input.classes` knows them and not the folders. If both fit, it is an error.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are not images.
        classes: `input.classes`.
        found: which folder may be the class.

    Returns:
        `class_folders` or `file_name`, and why, for the user.

    Raises:
        UsageError: folders and names state different classes, and either may be meant.
    """
    no_path = "no file of annotations is given"
    both = [(class_folder(key, found.level), name_label(key), key) for i, key in enumerate(keys) if i not in skip]
    folders = {folder for folder, _, _ in both if folder}
    labels = {label for _, label, _ in both if label}
    named = sum(bool(label) for _, label, _ in both)
    # One label alone is a camera's prefix, unless it is known to be a class.
    by_folder_only = 2 * named <= len(both) or (len(labels) < 2 and fit(labels, classes) < 2)
    if both and not folders and by_folder_only:
        raise UsageError(
            f"input.labels: no folder and no file name contains a class, e.g. {both[0][2]}. Give a file of labels by "
            "input.labels.path, or set input.labels.format: none for images alone."
        ).with_readings(IMAGES_ALONE)
    if found.error and (stated := _only_of_train(both)):
        return FILE_NAME, f"{no_path}, and only the images in {stated} have a label in their names"
    if by_folder_only:
        if found.error:
            raise found.error
        return CLASS_FOLDERS, no_path
    if not folders:
        return FILE_NAME, f"{no_path}, no image is in a folder, and {named} of {len(both)} names hold a label"
    if found.error and not all(is_split_folder(folder) for folder in folders):
        raise found.error
    contrary = next((entry for entry in both if all(entry[:2]) and entry[0] != entry[1]), None)
    if contrary is None:
        return CLASS_FOLDERS, f"{no_path}; the file names agree"
    folder, label, key = contrary
    differ = f"{key} is {folder!r} by its folder and {label!r} by its name"
    by_folder, by_name = fit(folders, classes), fit(labels, classes)
    if by_name > by_folder:
        return FILE_NAME, f"{no_path}, and input.classes knows the labels in the names, not the folders: {differ}"
    if classes is None and (len(folders) == 1 or all(map(is_split_folder, folders))):
        shown = shorten(sorted(folders))
        problem = f"{differ}, and the folders ({shown}) may not be classes"
        other = BY_FOLDER if len(folders) > 1 else IMAGES_ALONE  # A single class is nothing to learn.
        raise UsageError(f"input.labels: {problem}. {_EITHER}").with_readings(_BY_NAME, other)
    if by_name == by_folder and by_name > 0:
        raise UsageError(f"input.labels: {differ}, and input.classes knows both. {_EITHER}").with_readings(
            BY_FOLDER, _BY_NAME
        )
    return CLASS_FOLDERS, f"{no_path} ({differ}; input.labels.format: file_name takes the names)"


def _only_of_train(both: Sequence[tuple[str, str, str]]) -> str:
    """Returns the folder of the split `train`, if the names of its images, and not of the others, state classes."""
    labels: dict[str, set[str]] = {}
    for folder, label, _ in both:
        labels.setdefault(folder, set()).add(label)
    named = [folder for folder, found in labels.items() if any(found)]
    alone = len(labels) > len(named) == 1 and split_word(named[0]) == "train" and "" not in labels[named[0]]
    return named[0] if alone and len(labels[named[0]]) > 1 else ""
