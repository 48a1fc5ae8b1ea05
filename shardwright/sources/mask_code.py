"""Masks that are files of their own: what a writer needs to read them.

The text of a mask is its file's name, or checksum and name (`pin_mask`): then the file must be what it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import google_crc32c
import numpy as np

from shardwright.config.labels import REFUSE
from shardwright.errors import CheckFailed
from shardwright.manifest import IGNORED
from shardwright.masks.colours import COLOUR
from shardwright.masks.mask_files import (
    MaskFileError,
    MaskImage,
    grey_of,
    label_runs,
    mask_size,
    png_size,
    read_mask,
    value_runs,
)
from shardwright.masks.rle import RleError, Runs
from shardwright.sources.base import IGNORE, NO_LABEL
from shardwright.sources.mask_values import WHITE
from shardwright.storage import read_bytes, read_start

_START = 64
_SHOWN = 4


class MaskSizeError(RleError):
    """A mask has not the size of its image."""

    code = "size_mismatch"


@dataclass(frozen=True)
class MaskFiles:
    """Reads mask files; see `shardwright.sources.base.MaskCode`.

    Attributes:
        root: folder that the texts, names of files, start from.
        labels: value -> label, see `mask_values.ValueMap`; for files that hold all classes.
        max_pixels: the most pixels a mask may have.
        others: `input.labels.others`: what a value is that is not in `labels`.
    """

    root: str
    labels: Mapping[int, int | None]
    max_pixels: int
    others: str = REFUSE

    def size(self, text: str) -> tuple[int, int] | None:
        """Height and width of a mask by its header; `None` where it has none that can be read."""
        path = os.path.join(self.root, self.name(text))
        try:
            return png_size(read_start(path, _START)) or mask_size(read_bytes(path), max_pixels=self.max_pixels)
        except (OSError, MaskFileError):
            return None  # Why, `masks` says.

    def classes(self, text: str) -> tuple[int, ...]:
        """Indices of the classes that occur in a file; none where it cannot be read."""
        try:
            values, _ = value_runs(self.read(text).values)
        except MaskFileError:
            return ()
        labels = {self.labels.get(value) for value in np.unique(values).tolist()}
        return tuple(sorted(label for label in labels if label is not None and label >= 0))

    def masks(self, label: int, text: str, *, height: int, width: int) -> Iterable[tuple[int, Runs]]:
        """Reads a file: all classes by their values, or the one that `label` names by all that is not 0.

        Raises:
            RleError: the file cannot be read, has another size, or holds a value that is no class.
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
        """The file that a text means."""
        return text.rpartition("\0")[2]

    def _by_value(self, mask: MaskImage) -> Iterable[tuple[int, Runs]]:
        others = IGNORE if self.others == IGNORED else None
        # Colours where numbers were said, or the other way round, are no other classes but another kind of mask.
        other_kind = not any((value >= COLOUR) == mask.coloured for value in self.labels)
        return label_runs(mask, self.labels, others=others, refuse=other_kind or self.others == REFUSE).items()

    def shown(self, text: str) -> str:
        """What messages call a mask."""
        return self.name(text)

    def read(self, text: str) -> MaskImage:
        """Decodes a file, colours of three equal parts as grey unless classes are colours.

        Raises:
            MaskFileError: it cannot be read.
            CheckFailed: it is not what it was.
        """
        name = self.name(text)
        try:
            data = read_bytes(os.path.join(self.root, name))
        except OSError:
            raise MaskFileError("the file cannot be read; check its permissions") from None
        if name != text and text != pin_mask(name, google_crc32c.value(data)):
            problem = "the mask has changed while the run was reading the input"
            raise CheckFailed(f"{self.shown(text)}: {problem}. Run it again.")
        mask = read_mask(data, max_pixels=self.max_pixels)
        if mask.coloured and not any(value >= COLOUR for value in self.labels):
            return grey_of(mask) or mask
        if mask.bits == 1 and 1 not in self.labels and WHITE in self.labels:
            return MaskImage(mask.values * np.uint8(WHITE), 8)
        return mask


def pin_mask(name: str, crc32c: int) -> str:
    """The text of a mask that must have a checksum. No file's name holds a NUL."""
    return f"{crc32c:08x}\0{name}"


def _one_class(mask: MaskImage) -> Runs:
    """All that is not 0, where that is one value."""
    found, runs = value_runs(mask.values & np.uint32(COLOUR - 1) if mask.coloured else mask.values)
    values = np.unique(found[found != 0]).tolist()
    if len(values) > 1:
        shown = ", ".join(map(str, values[:_SHOWN])) + (", …" if len(values) > _SHOWN else "")
        raise MaskFileError(
            f"it holds the {len(values)} values {shown} beside 0; a mask of one class has one (was it smoothed or "
            "compressed with loss?)"
        )
    return runs[found != 0]


def check_size(name: str, what: str, size: tuple[int, int], height: int, width: int) -> None:
    """Refuses what was made for an image of another size.

    Args:
        name: the file, for messages.
        what: what it is, for messages.
        size: height and width that it tells.
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
