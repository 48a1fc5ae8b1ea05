"""From the numbers and colors in mask images to classes, the background and what is to be ignored.

0 (black, in colors) is the background unless a class has it. 255 is ignored unless a class has it, it is the only
value other than 0, or numbers above it occur. A class called `ignore` names another value to be ignored.

`MaskFiles` reads masks that are separate files, for the writer of a shard.
The text of a mask is its file's name, or checksum and name (`pin_mask`): then the file must be what it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from shardwright.config.input import REFUSE
from shardwright.dataset.manifest import IGNORED
from shardwright.errors import CheckFailed, ConfigError, Reading, UsageError
from shardwright.formats.base import IGNORE, NO_LABEL, MaskCode, shorten
from shardwright.formats.classes import BACKGROUND_NAMES, as_integer, map_classes
from shardwright.images.colors import COLOR, show_value
from shardwright.masks.mask_images import (
    MaskFileError,
    MaskImage,
    gray_of,
    label_runs,
    mask_size,
    png_size,
    read_mask,
    value_runs,
)
from shardwright.masks.rle import RleError, Runs
from shardwright.storage import check_not_encrypted, matches_listed, read_bytes, read_start

WHITE, _WHITE_16 = 255, 65535
# Numbers of classes begin below; gray levels may not.
_GRAY = 32

_ONE_CLASS = "mask"
_LARGEST = 0xFFFF
# Value 0 of a mask is the background, whatever a list of classes calls it.
_BACKGROUNDS = BACKGROUND_NAMES | {"void", "unlabeled", "unlabelled"}
_START = 64
_SHOWN = 4


class ValueMap(NamedTuple):
    """The meaning of the values of masks.

    Attributes:
        names: class names in the order of their indices.
        labels: value -> index of the class, `IGNORE`, or `None` for the background.
        notes: what was detected in the data.
    """

    names: tuple[str, ...]
    labels: dict[int, int | None]
    notes: tuple[str, ...] = ()

    @property
    def ignore(self) -> bool:
        """Returns whether a value is to be ignored."""
        return IGNORE in self.labels.values()

    def values(self) -> dict[str, int]:
        """Returns class -> value, where masks have a value for each class."""
        return {self.names[label]: value for value, label in self.labels.items() if label is not None and label >= 0}


def have_ids(classes: Mapping[str, int | None] | None) -> bool:
    """Returns whether `input.classes` states the values itself, so that no mask has to be read."""
    return classes is not None and any(number is not None for number in classes.values())


def map_ids(classes: Mapping[str, int | None]) -> ValueMap:
    """Returns the values of a mapping `{name: id}` or `{name: "#rrggbb"}`.

    Raises:
        ConfigError: ids beyond 16 bits, numbers and colors mixed, or no class.
    """
    ids = {name: number for name, number in classes.items() if number is not None}
    for name, number in ids.items():
        if not (0 <= number <= _LARGEST or COLOR <= number < 2 * COLOR):
            raise ConfigError(f"input.classes.{name}", f"{number} is not a value of a mask", f"Use 0 to {_LARGEST}.")
    colored = {number >= COLOR for number in ids.values()}
    if len(colored) > 1:
        raise ConfigError("input.classes", "some classes have numbers and some colors", "Give one kind to all.")
    ignored = ids.pop(IGNORED, None)
    if not ids:
        raise ConfigError("input.classes", "it contains only ignored values", "Name at least one class.")
    if ignored is None and colored == {False} and WHITE not in ids.values():
        ignored = WHITE
    return _map(ids, ignored, COLOR if colored == {True} else 0)


def map_values(values: Mapping[int, str], classes: Mapping[str, int | None] | None, *, refuse: bool = True) -> ValueMap:
    """Returns the meaning of values, where `input.classes` is a plain list of names, or not given.

    Args:
        values: every number that occurs -> the first mask with it.
        classes: name -> `None`, or nothing to take the numbers themselves as names.
        refuse: whether a number that is not a class is an error.

    Raises:
        UsageError: a number is not a class, or there is none.
        ConfigError: a class without an id is called `ignore`.
    """
    if classes is not None and IGNORED in classes:
        raise ConfigError(
            "input.classes", f"{IGNORED!r} cannot be the name of a class of masks", "Write {name: id}, or leave it out."
        )
    shown = {value: where for value, where in values.items() if value}
    if set(shown) == {_WHITE_16} and classes is None:
        note = f"masks: {_WHITE_16} is {_ONE_CLASS}, since 0 and {_WHITE_16} are the only values"
        return _map({_ONE_CLASS: _WHITE_16}, None, 0, (note,))
    if set(shown) == {WHITE} and (classes is None or len(classes) == 1):
        name = _ONE_CLASS if classes is None else next(iter(classes))
        note = f"masks: 255 is {name}, since 0 and 255 are the only values; write classes: {{{name}: 1}} to ignore it"
        return _map({name: WHITE}, None, 0, (note,))
    ids, note = listed_ids(tuple(classes)) if classes is not None else ({}, "")
    ignored = WHITE if WHITE in shown and max(shown) == WHITE and WHITE not in ids.values() else None
    meant = [value for value in shown if value != ignored and (refuse or value in ids.values())]
    if ignored is not None and classes is None and meant and min(meant) >= _GRAY:
        raise _gray_levels(meant, shown[meant[0]])
    texts = {str(value): shown[value] for value in meant}
    mapped = map_classes(texts, ids or None)
    if classes is None:
        ids = {name: int(name) for name in mapped.names}
    notes = [note] if note else list(mapped.notes)
    if ignored is not None:
        notes.append(f"masks: {ignored} is ignored; write classes as {{name: id}} to make it a class")
    if classes is None and 0 in values and len(meant) > 1:
        notes.append("masks: 0 is the background; add {name: 0} to input.classes if it is a class")
    return _map(ids, ignored, 0, tuple(notes))


def _gray_levels(values: Sequence[int], where: str) -> UsageError:
    """Returns the error for gray levels, of which 255 may be the class that matters, as in trimaps."""
    as_class = {str(value): value for value in (*sorted(values), WHITE)}
    as_ignored = {name: value for name, value in as_class.items() if value != WHITE} | {IGNORED: WHITE}
    shown = ", ".join(map(str, [0, *sorted(values)]))
    return UsageError(
        f"masks: {shown} and {WHITE} are gray levels rather than numbers of classes ({where}), so {WHITE} may be a "
        "class or pixels to ignore. Write input.classes as {name: value}."
    ).with_readings(
        Reading(f"{WHITE} is a class", {"input.classes": as_class}),
        Reading(f"{WHITE} is ignored", {"input.classes": as_ignored}),
    )


def listed_ids(names: tuple[str, ...]) -> tuple[dict[str, int], str]:
    """Returns the values of a plain list of names, and a note why.

    Names that are numbers stand for themselves; others count from 1, or from 0 where the first is the background.
    """
    numbers = [as_integer(name) for name in names]
    if all(number is not None for number in numbers):
        return {name: int(name) for name in names}, ""
    base = 0 if names[0].lower() in _BACKGROUNDS else 1
    why = f"the first is {names[0]!r}" if base == 0 else "0 is the background"
    note = f"masks: values count from {base} ({why}): {base} is {names[0]}; write classes as {{name: id}} otherwise"
    return {name: base + i for i, name in enumerate(names)}, note


def _map(ids: Mapping[str, int], ignored: int | None, background: int, notes: tuple[str, ...] = ()) -> ValueMap:
    labels: dict[int, int | None] = {background: None}
    labels |= {number: i for i, number in enumerate(ids.values())}
    if ignored is not None:
        labels[ignored] = IGNORE
    return ValueMap(tuple(ids), labels, notes)


def colors_error(mask: str, colors: list[int]) -> ConfigError:
    """Returns the error for masks of colors that are not explained; names those that cover most pixels."""
    shown = ", ".join(map(show_value, colors))
    return ConfigError(
        "input.classes",
        f"the mask {mask} holds colors ({shown})",
        'Give each a class, e.g. classes: {road: "#804080", car: "#00008e"}; black is the background, and a class '
        "called ignore is not counted",
    )


class MaskSizeError(RleError):
    """A mask does not have the size of its image."""

    code = "size_mismatch"


class FetchedFiles:
    """Files that were read already, by their names. `files` is empty of those that cannot be read."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    def read(self, name: str) -> bytes:
        """Returns the bytes of a file. `OSError` if it could not be read."""
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]


@runtime_checkable
class ReadsFiles(Protocol):
    """A code of masks whose texts name files, attachments of the annotations, which the writers read."""

    @property
    def files(self) -> MaskFiles:
        """Reads the files."""

    def file_of(self, text: str) -> str | None:
        """Returns the text of a mask's file, for `files`; `None` where the text names none."""

    def with_fetched(self, fetched: FetchedFiles) -> MaskCode:
        """Returns the same code for an image whose files were read already."""


@dataclass(frozen=True)
class MaskFiles:
    """Reads mask files; see `shardwright.formats.base.MaskCode`.

    Attributes:
        root: folder that the texts, names of files, start from.
        labels: value -> label, see `mask_values.ValueMap`; for files that hold all classes.
        max_pixels: the most pixels a mask may have.
        others: `input.labels.unlisted_values`: what a value is that is not in `labels`.
        fetched: the files, where they were read already.
    """

    root: str
    labels: Mapping[int, int | None]
    max_pixels: int
    others: str = REFUSE
    fetched: FetchedFiles | None = None

    @property
    def files(self) -> MaskFiles:
        """See `ReadsFiles.files`."""
        return self

    def file_of(self, text: str) -> str | None:
        """See `ReadsFiles.file_of`."""
        return text

    def with_fetched(self, fetched: FetchedFiles) -> MaskFiles:
        """See `ReadsFiles.with_fetched`."""
        return replace(self, fetched=fetched)

    def size(self, text: str) -> tuple[int, int] | None:
        """Returns the height and width of a mask by its header; `None` where it has none that can be read."""
        try:
            if self.fetched is not None:
                return mask_size(self.read_data(text), max_pixels=self.max_pixels)
            start = read_start(os.path.join(self.root, self.name(text)), _START)
            return png_size(start) or mask_size(self.read_data(text), max_pixels=self.max_pixels)
        except (OSError, MaskFileError):
            return None  # `masks` reports why.

    def classes(self, text: str) -> tuple[int, ...]:
        """Returns the indices of the classes that occur in a file; none where it cannot be read."""
        try:
            values, _ = value_runs(self.read(text).values)
        except MaskFileError:
            return ()
        labels = {self.labels.get(value) for value in np.unique(values).tolist()}
        return tuple(sorted(label for label in labels if label is not None and label >= 0))

    def masks(self, label: int, text: str, *, height: int, width: int) -> Iterable[tuple[int, Runs]]:
        """Reads a file: all classes by their values, or the one that `label` names by all that is not 0.

        Raises:
            RleError: the file cannot be read, has another size, or holds a value that is not a class.
        """
        try:
            mask = self.read(text)
            rows, columns = mask.values.shape
            if (rows, columns) == (height, width):
                return self._by_value(mask) if label == NO_LABEL else [(label, _one_class(mask))]
        except MaskFileError as error:
            raise type(error)(f"{self.shown(text)}: {error}") from None
        check_size(self.shown(text), "the mask", (rows, columns), height, width)
        return ()

    def name(self, text: str) -> str:
        """Returns the file that a text means."""
        return text.rpartition("\0")[2]

    def _by_value(self, mask: MaskImage) -> Iterable[tuple[int, Runs]]:
        others = IGNORE if self.others == IGNORED else None
        # Colors instead of numbers, or numbers instead of colors, are another kind of mask.
        other_kind = not any((value >= COLOR) == mask.colored for value in self.labels)
        return label_runs(mask, self.labels, others=others, refuse=other_kind or self.others == REFUSE).items()

    def shown(self, text: str) -> str:
        """Returns the name of a mask in messages."""
        return self.name(text)

    def read_data(self, text: str) -> bytes:
        """Reads a file.

        Raises:
            OSError: it cannot be read.
            CheckFailed: it is not what it was.
        """
        name = self.name(text)
        file = os.path.join(self.root, name)
        data = self.fetched.read(name) if self.fetched is not None else read_bytes(file)
        if name != text and not matches_listed(data, text[: -len(name) - 1]):
            check_not_encrypted(file)
            problem = "the mask has changed while the run was reading the input"
            raise CheckFailed(f"{self.shown(text)}: {problem}. Run it again.")
        return data

    def read(self, text: str) -> MaskImage:
        """Decodes a file, colors of three equal parts as gray unless classes are colors.

        Raises:
            MaskFileError: it cannot be read.
            CheckFailed: it is not what it was.
        """
        try:
            data = self.read_data(text)
        except OSError:
            raise MaskFileError("the file cannot be read; check its permissions") from None
        mask = read_mask(data, max_pixels=self.max_pixels)
        if mask.colored and not any(value >= COLOR for value in self.labels):
            return gray_of(mask) or mask
        if mask.bits == 1 and 1 not in self.labels and WHITE in self.labels:
            return MaskImage(mask.values * np.uint8(WHITE), 8)
        return mask


def pin_mask(name: str, crc32c: int, listed: str = "") -> str:
    """Returns the text of a mask that must have a checksum, if possible the listed one. No file's name holds a NUL."""
    return f"{listed or f'crc32c:{crc32c:08x}'}\0{name}"


def _one_class(mask: MaskImage) -> Runs:
    """Returns the runs of all that is not 0, where that is one value."""
    found, runs = value_runs(mask.values & np.uint32(COLOR - 1) if mask.colored else mask.values)
    values = np.unique(found[found != 0]).tolist()
    if len(values) > 1:
        shown = shorten([str(value) for value in values], _SHOWN)
        raise MaskFileError(
            f"it holds the {len(values)} values {shown} besides 0; a mask of one class has one (was it smoothed or "
            "compressed with loss?)"
        )
    return runs[found != 0]


def check_size(name: str, what: str, size: tuple[int, int], height: int, width: int) -> None:
    """Checks that an annotation has the size of its image.

    Args:
        name: the file, for messages.
        what: what it is, for messages.
        size: height and width that it states.
        height: rows of the image.
        width: columns of the image.

    Raises:
        MaskSizeError: the sizes differ.
    """
    if size != (height, width):
        turned = "; was it drawn on the turned image?" if size == (width, height) else ""
        raise MaskSizeError(
            f"{name}: {what} has {size[0]}x{size[1]} (height x width), the image {height}x{width}{turned}"
        )
