"""Looks into some images of an input: their size, and how many cannot be stored as they are."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from shardwright.config import ImagesConfig
from shardwright.dataset.stored_image import prepare
from shardwright.images.decode import convert
from shardwright.images.header import UNSUPPORTED_FORMAT, ImageError, ImageHeader
from shardwright.images.orientation import displayed_size
from shardwright.images.read_header import other_format
from shardwright.ingest.survey import SurveyedInput
from shardwright.storage import map_threads, read_bytes, readers
from shardwright.storage.listing import Refusal

# Enough for a median, and read in a moment.
_LOOKED_AT = 256


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
    listing = surveyed.listing
    good = [i for i in range(len(listing.keys)) if i not in surveyed.rejected]
    chosen = good[:: max(1, len(good) // _LOOKED_AT)][:_LOOKED_AT]
    looked = list(map_threads(lambda i: _look(listing.path(i), listing.pin(i), options), chosen, readers(listing.root)))
    sizes = [image.size for image in looked if image.size is not None]
    problems = [
        Refusal(listing.keys[i], *image.problem) for i, image in zip(chosen, looked, strict=True) if image.problem
    ]
    return ImageSample(
        looked_at=len(looked),
        size=(_median([size[0] for size in sizes]), _median([size[1] for size in sizes])) if sizes else None,
        sizes=len(set(sizes)),
        other_formats=tuple(sorted({image.format for image in looked if image.format and not image.problem})),
        unusable=tuple(problems),
    )


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
