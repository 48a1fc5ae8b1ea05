"""The header of an image, and the reasons to refuse an image."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from shardwright.untrusted.budget import Budget, OverBudget

# Files with these endings count as images; of other files the header decides.
IMAGE_ENDINGS = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".gif", ".webp", ".bmp", ".tif", ".tiff"),
        *(".avif", ".heic", ".heif", ".jxl", ".jp2", ".mpo", ".ppm", ".pgm", ".pnm"),
    )
)
# Files that are next to images on purpose: annotations, lists, descriptions, folder views.
_SIDECARS = frozenset(
    (
        *(".txt", ".json", ".xml", ".csv", ".tsv", ".yaml", ".yml", ".jsonl", ".ndjson", ".names", ".data", ".cfg"),
        *(".md", ".rst", ".html", ".pdf", ".log", ".ini", ".db", ".toml", ".xmp", ".url"),
        *(".npy", ".npz", ".mat", ".pkl", ".pt", ".pth", ".h5", ".hdf5", ".parquet", ".xlsx", ".docx", ".pptx"),
        *(".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".py", ".ipynb", ".sh", ".m", ".r", ".bat"),
        *(".mp4", ".avi", ".mov", ".mkv", ".webm", ".wav", ".mp3"),
    )
)
EMPTY_FILE = "empty_file"
NOT_AN_IMAGE = "not_an_image"
UNSUPPORTED_FORMAT = "unsupported_format"
UNSUPPORTED_COLOR = "unsupported_color"
TOO_LARGE = "too_large"
TRUNCATED = "truncated"
DAMAGED = "damaged"
CODES = (EMPTY_FILE, NOT_AN_IMAGE, UNSUPPORTED_FORMAT, UNSUPPORTED_COLOR, TOO_LARGE, TRUNCATED, DAMAGED)

# TensorFlow refuses images of 2**29 pixels or more, libjpeg sides over 65,500, libpng sides over a million.
MOST_PIXELS = 2**29 - 1
_LONGEST_SIDE = {"jpeg": 65_500, "png": 1_000_000}
# The name of the property in XMP, which may be an element or an attribute.
XMP_GPS = b"exif:GPSLatitude"


def has_image_ending(name: str) -> bool:
    """Returns whether a file is named like an image."""
    return os.path.splitext(name)[1].lower() in IMAGE_ENDINGS


def is_sidecar(name: str) -> bool:
    """Returns whether a file that is not an image is named like one that people and tools keep next to images."""
    name = os.path.basename(name).lower()
    return os.path.splitext(name)[1] in _SIDECARS or name.startswith(("readme", "license"))


class ImageError(ValueError):
    """An image is refused.

    Args:
        code: one of `CODES`, for counting.
        reason: the finding and the fix, for people.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason

    def __reduce__(self) -> tuple[type[ImageError], tuple[str, str]]:
        return (type(self), (self.code, self.reason))


@dataclass(frozen=True)
class ImageHeader:
    """The facts that are known of an image without decoding it.

    Args:
        format: `jpeg` or `png`.
        height: rows of the stored pixels, before any turning by `orientation`.
        width: columns of the stored pixels.
        channels: 1 gray, 2 gray and alpha, 3 color (a palette's also), 4 color and alpha, or CMYK.
        orientation: 1-8 as Exif numbers them; 1 (upright) when there is none or it cannot be read.
        located: Exif or XMP contains the location where it was taken.
        plain: a JPEG without segments that only some readers understand, so that the decoder can have it as it is.
    """

    format: str
    height: int
    width: int
    channels: int
    orientation: int
    located: bool = False
    plain: bool = field(default=False, compare=False)


def check_number(budget: Budget, count: int, size: int) -> None:
    """Raises `ImageError` for a file of `size` bytes with more parts than its format's budget allows."""
    try:
        budget.check_objects(count, size)
    except OverBudget as error:
        raise ImageError(TOO_LARGE, str(error)) from None


def check_size(image_format: str, height: int, width: int, max_pixels: int) -> None:
    """Raises `ImageError` for an image without pixels, or with more than `max_pixels` or than decoders take."""
    if height < 1 or width < 1:
        raise ImageError(DAMAGED, f"the header states {width}x{height} (width x height): there are no pixels")
    longest = _LONGEST_SIDE.get(image_format, _LONGEST_SIDE["png"])
    if max(height, width) > longest:
        raise ImageError(TOO_LARGE, f"{width}x{height} (width x height): decoders take sides of at most {longest}")
    if height * width > min(max_pixels, MOST_PIXELS):
        limit = (
            f"images.max_pixels is {max_pixels}"
            if max_pixels <= MOST_PIXELS
            else f"TensorFlow decodes at most {MOST_PIXELS}"
        )
        raise ImageError(TOO_LARGE, f"{width}x{height} (width x height) are {height * width} pixels; {limit}")
