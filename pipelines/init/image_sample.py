"""Looks into some images of an input: their sizes, which cannot be stored as they are, and whether some are masks.

A mask is stored without loss and has few colors. Photographs have hundreds, also in a small sample of their pixels.
"""

from __future__ import annotations

import os
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from shardwright.config import ImagesConfig
from shardwright.dataset.stored_image import prepare
from shardwright.images.decode import convert, decode
from shardwright.images.header import UNSUPPORTED_FORMAT, ImageError, ImageHeader
from shardwright.images.orientation import displayed_size
from shardwright.images.read_header import other_format, read_header
from shardwright.ingest.survey import SurveyedInput
from shardwright.pipelines.init.inventory import LOSSLESS
from shardwright.storage import map_threads, read_bytes, readers
from shardwright.storage.listing import Refusal

# Enough for a median, and read in a moment; pixels of a few are enough to tell masks from photographs.
_LOOKED_AT, _DECODED = 256, 32
# Colors of a mask at most, and of a photograph at least, among the pixels of a grid.
_FEW, _MANY, _GRID = 16, 48, 64
# Share of the files that each of the two kinds has at least.
_SHARE = 0.15
_ENDING = re.compile(r"[_.-][^_./-]+$")

_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class ImageSample:
    """Some images of an input.

    Attributes:
        looked_at: how many.
        size: height and width, as displayed, of the median image; `None` where none can be read.
        sizes: how many different sizes there are.
        other_formats: names of formats that only `images.unsupported_formats` accepts.
        unusable: those that cannot be stored with that, either.
    """

    looked_at: int
    size: tuple[int, int] | None
    sizes: int
    other_formats: tuple[str, ...]
    unusable: tuple[Refusal, ...]


class MasksAmong(NamedTuple):
    """Masks among images.

    Attributes:
        masks: keys of files that look like masks.
        photographs: keys of files that do not.
        suffix: what the names of most of these masks end with and no photograph's does, or empty.
    """

    masks: tuple[str, ...]
    photographs: tuple[str, ...]
    suffix: str


@dataclass(frozen=True)
class _Image:
    size: tuple[int, int] | None = None
    format: str = ""
    problem: tuple[str, str] | None = None


def look_at_images(surveyed: SurveyedInput, options: ImagesConfig) -> ImageSample:
    """Reads images at even distances.

    Args:
        surveyed: the input.
        options: `images`.
    """
    looked = _each(surveyed, _LOOKED_AT, lambda path, pin: _look(path, pin, options))
    images = [image for _, image in looked]
    sizes = [image.size for image in images if image.size is not None]
    problems = [Refusal(key, *image.problem) for key, image in looked if image.problem]
    return ImageSample(
        looked_at=len(looked),
        size=(_median([size[0] for size in sizes]), _median([size[1] for size in sizes])) if sizes else None,
        sizes=len(set(sizes)),
        other_formats=tuple(sorted({image.format for image in images if image.format and not image.problem})),
        unusable=tuple(problems),
    )


def find_masks(surveyed: SurveyedInput, max_pixels: int) -> MasksAmong | None:
    """Looks at some files at even distances; returns `None` where they are of one kind.

    Args:
        surveyed: the input, without annotations.
        max_pixels: `images.max_pixels`.
    """
    if not any(key.lower().endswith(LOSSLESS) for key in surveyed.listing.keys):
        return None
    looked = _each(surveyed, _DECODED, lambda path, pin: _colors(path, pin, max_pixels))
    masks = [key for key, count in looked if 0 < count <= _FEW and key.lower().endswith(LOSSLESS)]
    photographs = [key for key, count in looked if count >= _MANY]
    if min(len(masks), len(photographs)) < max(2, _SHARE * len(looked)):
        return None
    return MasksAmong(tuple(masks), tuple(photographs), _common_suffix(masks, photographs))


def _each(surveyed: SurveyedInput, most: int, look: Callable[[str, str], _Seen]) -> list[tuple[str, _Seen]]:
    """Looks at images at even distances; returns the key and the result of each."""
    listing = surveyed.listing
    good = [i for i in range(len(listing.keys)) if i not in surveyed.rejected]
    chosen = sorted({good[at * len(good) // most] for at in range(most)}) if good else []
    seen = map_threads(lambda i: look(listing.path(i), listing.pin(i)), chosen, readers(listing.root))
    return [(listing.keys[i], one) for i, one in zip(chosen, seen, strict=True)]


def _median(sides: list[int]) -> int:
    return int(statistics.median_low(sides))


def _look(path: str, pin: str, options: ImagesConfig) -> _Image:
    try:
        data = read_bytes(path, pin)
    except OSError as error:
        return _Image(problem=("unreadable", error.strerror or str(error)))
    try:
        return _Image(_displayed(prepare(data, replace(options, unsupported_formats="reject"))[1]))
    except ImageError as error:
        kind = other_format(data) if error.code == UNSUPPORTED_FORMAT else ""
        if not kind:
            return _Image(problem=(error.code, error.reason))
    try:
        picture, header = convert(data, max_pixels=options.max_pixels)
    except ImageError as error:
        return _Image(problem=(error.code, error.reason))
    picture.close()
    return _Image(_displayed(header), kind)


def _displayed(header: ImageHeader) -> tuple[int, int]:
    return displayed_size(header.height, header.width, header.orientation)


def _colors(path: str, pin: str, max_pixels: int) -> int:
    """Returns how many colors a grid of pixels of a file has, 0 where it cannot be read."""
    with suppress(OSError, ImageError):
        data = read_bytes(path, pin)
        try:
            picture = decode(data, read_header(data, max_pixels=max_pixels))
        except ImageError:
            picture, _ = convert(data, max_pixels=max_pixels)
        pixels = np.asarray(picture)
        rows, columns = (max(1, side // _GRID) for side in pixels.shape[:2])
        grid = pixels[::rows, ::columns]
        return len(np.unique(grid.reshape(-1, *grid.shape[2:]), axis=0))
    return 0


def _common_suffix(masks: Sequence[str], photographs: Sequence[str]) -> str:
    endings = Counter(found[0] for key in masks if (found := _ENDING.search(os.path.splitext(key)[0])))
    suffix, count = max(endings.items(), key=lambda entry: entry[1], default=("", 0))
    others = any(os.path.splitext(key)[0].endswith(suffix) for key in photographs)
    return suffix if suffix and 2 * count >= len(masks) and not others and not suffix[1:].isdigit() else ""
