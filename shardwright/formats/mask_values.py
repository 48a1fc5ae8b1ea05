"""From the numbers and colors in mask images to classes, the background and what is to be ignored.

0 (black, in colors) is the background unless a class has it. 255 is ignored where it is drawn around the classes
below it (`mask_evidence`), unless a class has it. A class called `ignore` names another value to be ignored.

`MaskFiles` reads masks that are separate files, for the writer of a shard.
The text of a mask is its file's name, or checksum and name (`pin_mask`): then the file must be what it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from shardwright.config.input import AUTO, DISPLAYED, REFUSE, STORED
from shardwright.dataset.manifest import IGNORED
from shardwright.errors import CheckFailed, ConfigError
from shardwright.formats.base import IGNORE, NO_LABEL, MaskCode, shorten
from shardwright.formats.classes import BACKGROUND_NAMES, IGNORE_NAMES, as_integer, map_classes
from shardwright.images.colors import COLOR
from shardwright.masks.mask_pixels import (
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

WHITE, WHITE_16 = 255, 65535
ONE_CLASS = "mask"
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
        displayed: whether the values are those that a viewer shows; see `input.labels.values`.
        threshold: the least value of the only class, or 0.
    """

    names: tuple[str, ...]
    labels: dict[int, int | None]
    notes: tuple[str, ...] = ()
    displayed: bool = False
    threshold: int = 0

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
    if len(shown) == 1 and (classes is None or len(classes) == 1):
        (white,), name = shown, ONE_CLASS if classes is None else next(iter(classes))
        if white in (WHITE, WHITE_16) and as_integer(name) is None:
            return _map({name: white}, None, 0, (f"masks: {white} is {name}, since 0 and {white} are the only values",))
    ids, note = listed_ids(tuple(classes)) if classes is not None else ({}, "")
    ignored = WHITE if WHITE in shown and max(shown) == WHITE and WHITE not in ids.values() else None
    meant = [value for value in shown if value != ignored and (refuse or value in ids.values())]
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


def listed_ids(names: tuple[str, ...]) -> tuple[dict[str, int], str]:
    """Returns the values of a plain list of names, and a note why.

    Names that are numbers stand for themselves; others count from 1, or from 0 where the first is the background.
    """
    while len(names) > 1 and names[0].lower() == "__ignore__":
        names = names[1:]  # LabelMe's -1, which is 255 in its masks.
    numbers = [as_integer(name) for name in names]
    if all(number is not None for number in numbers):
        return {name: int(name) for name in names}, ""
    base = 0 if names[0].lower() in _BACKGROUNDS else 1
    why = f"the first is {names[0]!r}" if base == 0 else "0 is the background"
    note = f"masks: values count from {base} ({why}): {base} is {names[0]}; write classes as {{name: id}} otherwise"
    return {name: base + i for i, name in enumerate(names)}, note


def special_value(name: str, number: int) -> int | None:
    """Returns `None` for a name of the background, `IGNORE` for one of what is not counted, and 0 for a class.

    What is called void or unlabeled is the background where it is 0 or black. A list may call it `background` itself to
    make it a class.
    """
    folded = name.strip().lower()
    if folded in BACKGROUND_NAMES and folded.startswith("_"):
        return None
    if folded in IGNORE_NAMES:
        return None if number in (0, COLOR) else IGNORE
    return 0


def _map(ids: Mapping[str, int], ignored: int | None, background: int, notes: tuple[str, ...] = ()) -> ValueMap:
    """Returns the meaning of values. Names of tools for the background, and for what is ignored, are no classes."""
    meanings = {name: special_value(name, number) for name, number in ids.items()}
    special = {name: meaning for name, meaning in meanings.items() if meaning != 0}
    names = tuple(name for name in ids if name not in special)
    labels: dict[int, int | None] = {background: None}
    labels |= {ids[name]: label for name, label in special.items()}
    labels |= {ids[name]: i for i, name in enumerate(names)}
    if ignored is not None:
        labels[ignored] = IGNORE
    words = [f"{name} is {'background' if label is None else 'ignored'}" for name, label in special.items()]
    return ValueMap(names, labels, (*notes, *([f"masks: {', '.join(words)}, no class"] if words else [])))


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
        values: `input.labels.values`: whether pixels are what is stored or what a viewer shows.
        thresholds: label, `NO_LABEL` for files that hold all classes -> the least value of its pixels.
    """

    root: str
    labels: Mapping[int, int | None]
    max_pixels: int
    others: str = REFUSE
    fetched: FetchedFiles | None = None
    values: str = AUTO
    thresholds: Mapping[int, int] = field(default_factory=dict)

    def meaning(self, mapped: ValueMap) -> MaskFiles:
        """Returns the same files with what was detected of their values."""
        values = DISPLAYED if mapped.displayed else self.values
        thresholds = {NO_LABEL: mapped.threshold} if mapped.threshold else self.thresholds
        return replace(self, labels=mapped.labels, values=values, thresholds=thresholds)

    @property
    def files(self) -> MaskFiles:
        return self

    def file_of(self, text: str) -> str | None:
        return text

    def with_fetched(self, fetched: FetchedFiles) -> MaskFiles:
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
            mask = self.read(text)
            if NO_LABEL in self.thresholds:
                return (0,) if is_above(mask, self.thresholds[NO_LABEL]).any() else ()
            values, _ = value_runs(mask.values)
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
                if label in self.thresholds:
                    found, runs = value_runs(is_above(mask, self.thresholds[label]))
                    return [(max(label, 0), runs[found])]
                if label != NO_LABEL:
                    return [(label, _one_class(mask))]
                others = IGNORE if self.others == IGNORED else None
                # Colors instead of numbers, or numbers instead of colors, are another kind of mask.
                refuse = self.others == REFUSE or not any((value >= COLOR) == mask.colored for value in self.labels)
                return label_runs(mask, self.labels, others=others, refuse=refuse).items()
        except MaskFileError as error:
            raise MaskFileError(f"{self.shown(text)}: {error}", error.code) from None
        check_size(self.shown(text), "the mask", (rows, columns), height, width)
        return ()

    def name(self, text: str) -> str:
        """Returns the file that a text means."""
        return text.rpartition("\0")[2]

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
        """Decodes a file: of the pixels that are stored and those that a viewer shows, those that are meant.

        Colors of three equal parts are gray unless classes are colors.

        Raises:
            MaskFileError: it cannot be read.
            CheckFailed: it is not what it was.
        """
        mask = self.decode(text, lossy=bool(self.thresholds))
        if self.labels and all(value >= COLOR for value in self.labels):
            return mask.as_colors()
        mask = mask.stored() if self.values == STORED else mask.displayed() if self.values == DISPLAYED else mask
        if mask.colored and not any(value >= COLOR for value in self.labels):
            return gray_of(mask) or mask
        if mask.bits == 1 and 1 not in self.labels and WHITE in self.labels:
            return MaskImage(mask.values * np.uint8(WHITE), 8)
        return mask

    def decode(self, text: str, *, lossy: bool = True) -> MaskImage:
        """Decodes a file as it is, also one that was compressed with loss if that is accepted; errors as in `read`."""
        try:
            return read_mask(self.read_data(text), max_pixels=self.max_pixels, lossy=lossy)
        except OSError:
            raise MaskFileError("the file cannot be read; check its permissions") from None


def pin_mask(name: str, crc32c: int, listed: str = "") -> str:
    """Returns the text of a mask that must have a checksum, if possible the listed one. No file's name holds a NUL."""
    return f"{listed or f'crc32c:{crc32c:08x}'}\0{name}"


def _one_class(mask: MaskImage) -> Runs:
    """Returns the runs of all that is not 0, where that is one value."""
    if mask.inverted or black_is_not_0(mask):
        raise MaskFileError(
            "it stores black as another number than 0, so either may be the background; set input.labels.values to "
            "stored or displayed"
        )
    found, runs = value_runs(mask.values & np.uint32(COLOR - 1) if mask.colored else mask.values)
    values = np.unique(found[found != 0]).tolist()
    if len(values) > 1:
        shown = shorten([str(value) for value in values], _SHOWN)
        raise MaskFileError(
            f"it holds the {len(values)} values {shown} besides 0; a mask of one class has one. If it was smoothed or "
            "compressed with loss, set input.labels.threshold, e.g. to 128"
        )
    return runs[found != 0]


def black_is_not_0(mask: MaskImage) -> bool:
    """Returns whether the palette of a mask shows 0 in another color than black, and another number as black."""
    if not mask.palette or mask.palette[0] == COLOR or COLOR not in mask.palette:
        return False
    used = np.unique(mask.values).tolist()
    return 0 in used and any(value < len(mask.palette) and mask.palette[value] == COLOR for value in used)


def is_above(mask: MaskImage, threshold: int) -> npt.NDArray[np.bool_]:
    """Returns which pixels are a threshold or more: gray values, of colors the largest part.

    Files of fewer bits than 8 have 255 for white, and so have those of 16 bits for a threshold of 8 bits.
    """
    mask = mask.displayed() if mask.palette else mask
    if mask.bits < 8:
        mask = gray_of(mask.as_colors()) or mask
    if mask.colored:
        parts = [mask.values >> shift & np.uint32(WHITE) for shift in (16, 8, 0)]
        return np.maximum.reduce(parts) >= threshold
    if mask.bits == 16 and threshold <= WHITE and mask.values.max() > WHITE:
        threshold *= WHITE_16 // WHITE
    return mask.values >= threshold


def check_size(name: str, what: str, size: tuple[int, int], height: int, width: int) -> None:
    """Checks that an annotation has the size of its image.

    Args:
        name: the file, for messages.
        what: what it is, for messages.
        size: height and width that it states.
        height: rows of the image.
        width: columns of the image.

    Raises:
        RleError: the sizes differ.
    """
    if size != (height, width):
        turned = "; was it drawn on the turned image?" if size == (width, height) else ""
        problem = f"{name}: {what} has {size[0]}x{size[1]} (height x width), the image {height}x{width}{turned}"
        raise RleError(problem, "size_mismatch")
