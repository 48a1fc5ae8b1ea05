"""Class folders: one folder of an image's key is its class, the first one unless the first ones are splits.

| tree | class |
|---|---|
| `daisy/1.jpg`, `rose/2.jpg` | the first folder |
| `train/daisy/1.jpg`, `val/rose/2.jpg`, also `train2017/` | the folder below the split |
| `images/train/daisy/1.jpg` | likewise; a folder `images` around everything is passed over |
| `train/1.jpg`, `car/2.jpg`, `bus/3.jpg` | the first folder: one class among others may be called `train` |
| `train/1.jpg`, `val/2.jpg`; `train/a/1.jpg`, `car/b/2.jpg` | both readings fit, so the input is refused |

Where `input.classes` has the names of one reading only, that reading is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from shardwright.config.split import split_word
from shardwright.errors import UsageError
from shardwright.sources.classes import as_integer
from shardwright.sources.key_source import KeySource

_AROUND = "images"
_SHOWN = 3
_PREDEFINED = "  split: {by: predefined}"
_NO_LABELS = "  input: {labels: {format: none}}"


class FolderLevel(NamedTuple):
    """Which folder of a key is the class.

    Attributes:
        level: its number, from 0.
        note: how that was detected, for the user, or empty.
        problem: why the tree has no single reading, as a message, or empty.
    """

    level: int
    note: str = ""
    problem: str = ""


class ClassFolders(KeySource):
    """See `KeySource`.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are not images.
        classes: `input.classes`.
        notes: what was detected so far.
        level: which folder is the class; see `class_level`.
        folders: of an export, folder -> class, an empty text for images without one.
    """

    def __init__(
        self,
        keys: Sequence[str],
        skip: frozenset[int],
        classes: Mapping[str, int | None] | None,
        notes: tuple[str, ...],
        level: int = 0,
        folders: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(keys, skip, classes, notes)
        self._level = level
        self._folders = folders or {}

    def _label(self, key: str) -> str:
        folder = class_folder(key, self._level)
        return self._folders.get(folder, folder)

    def _labels(self) -> Iterator[tuple[int, str]]:
        for i, label in super()._labels():
            if label or class_folder(self._keys[i], self._level) not in self._folders:
                yield i, label

    def _place(self, key: str, label: str) -> str:
        return f"{key}, folder {label}"

    def _unlabelled(self) -> tuple[str, str]:
        return "no_class_folder", "the image lies in no class folder; move it into one"


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
        asked: whether the configuration says `format: class_folders`.
    """
    folders = [key.split("/")[:-1] for i, key in enumerate(keys) if i not in skip]
    level = int(_is_around(folders, 0))
    first = {path[level] for path in folders if len(path) > level}
    splits = {name for name in first if split_word(name)}
    below = {path[level + 1] for path in folders if len(path) > level + 1 and path[level] in splits}
    if not splits:
        return FolderLevel(level)
    by_first, by_below = fit(first, classes), fit(below, classes)
    if by_first > by_below:
        return FolderLevel(level)
    others = first - splits
    if below and (not others or by_below > by_first):
        inner = level + 1
        inner += int(_is_around([path for path in folders if path[level : level + 1]], inner))
        note = f"folders: {_shown(splits)} are splits, and the folders below are the classes"
        return FolderLevel(
            inner, f"{note}. split.by: predefined keeps these splits; any other divides the images again"
        )
    if not below and not others and asked:
        return FolderLevel(level)
    if not below and others and len(splits) == 1:
        names = f"{_shown(others)}, next to it, {'are not splits' if len(others) > 1 else 'is not a split'}"
        return FolderLevel(level, f"folders: {_shown(splits)} is a class, since {names}")
    return FolderLevel(level, problem=_either(splits, others, below, level))


def fit(values: Iterable[str], classes: Mapping[str, int | None] | None) -> int:
    """Returns how well values fit `input.classes`: 2 by name, 1 as numbers, which it may know, 0 not at all."""
    found = set(values)
    if not found or classes is None:
        return 0
    if found <= set(classes):
        return 2
    return int(all(value in classes or as_integer(value) is not None for value in found))


def refuse_either(found: FolderLevel) -> None:
    """Refuses a tree that has two readings.

    Raises:
        UsageError: it has; the message holds the configuration of each.
    """
    if found.problem:
        raise UsageError(found.problem)


def _is_around(folders: Sequence[Sequence[str]], level: int) -> bool:
    """Whether every image is in a folder `images` at a level, and some in a further folder below."""
    around = bool(folders) and all(path[level : level + 1] == [_AROUND] for path in folders)
    return around and any(len(path) > level + 1 for path in folders)


def _either(splits: set[str], others: set[str], below: set[str], level: int) -> str:
    above = "[^/]+/" * level
    as_class = "  input: {labels: {format: class_folders}}"
    as_split = _NO_LABELS
    if others:
        as_class = _pattern(f"^{above}(?P<label>[^/]+)/")
    if below:
        as_split = _pattern(f"^{above}(?:{'|'.join(sorted(splits))})/(?P<label>[^/]+)/")
    among = f", next to {_shown(others)}," if others else ""
    direct = "" if below else " with the images directly in them"
    labels = "" if below else " (without labels; or give their file by input.labels.path)"
    return (
        f"input.labels: the folders ({_shown(splits)}){among} may be splits or classes{direct}. Paste one of these:"
        f"\n\n# The folders are splits{labels}.\n{as_split}\n{_PREDEFINED}"
        f"\n\n# The folders are classes.\n{as_class}"
    )


def _pattern(pattern: str) -> str:
    return f"  input: {{labels: {{format: file_name, pattern: '{pattern}'}}}}"


def _shown(names: set[str]) -> str:
    return ", ".join(sorted(names)[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
