"""Texts of Pascal VOC for a shard's writer: masks, and the sizes of the images that boxes were drawn on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shardwright.masks.colours import COLOUR
from shardwright.masks.rle import Runs
from shardwright.sources.mask_code import MaskFiles, check_size
from shardwright.sources.voc_xml import VocImage


@dataclass(frozen=True)
class VocFiles(MaskFiles):
    """Reads a mask, or holds an image to the size that its XML file tells.

    A text is the name of a mask below the root, or `<height> <width> <name of an XML file>`.
    """

    def size(self, text: str) -> tuple[int, int] | None:
        """See `MaskCode.size`."""
        told = _told_size(text)
        return super().size(text) if told is None else told[:2]

    def classes(self, text: str) -> tuple[int, ...]:
        """See `ClassesInText.classes`."""
        return super().classes(text) if _told_size(text) is None else ()

    def masks(self, label: int, text: str, *, height: int, width: int) -> Iterable[tuple[int, Runs]]:
        """See `MaskCode.masks`."""
        told = _told_size(text)
        if told is None:
            return super().masks(label, text, height=height, width=width)
        check_size(told[2], "the annotation", told[:2], height, width)
        return ()


def size_text(image: VocImage, name: str) -> str:
    """The text of an XML file: what its image's size must be."""
    return f"{image.height} {image.width} {name}"


def _told_size(text: str) -> tuple[int, int, str] | None:
    """Height, width and name of a text that `size_text` wrote; masks lie in a folder, whose name is no number."""
    parts = text.split(" ", 2)
    return (int(parts[0]), int(parts[1]), parts[2]) if parts[0].isdecimal() else None


def palette_colour(value: int) -> int:
    """The colour of an index: its bits from the lowest on go round red, green and blue, from their highest on."""
    red = green = blue = 0
    for bit in range(8):
        red |= (value >> (3 * bit) & 1) << (7 - bit)
        green |= (value >> (3 * bit + 1) & 1) << (7 - bit)
        blue |= (value >> (3 * bit + 2) & 1) << (7 - bit)
    return COLOUR + (red << 16 | green << 8 | blue)
