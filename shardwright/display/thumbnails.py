"""Thumbnails as `data:` URLs: a JPEG of the displayed image, and a transparent picture of its masks on top.

A JPEG is decoded at a reduced size (`shardwright.images.decode.decode`). Masks are sampled in run space, so none is
drawn larger than its thumbnail.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from shardwright.display.overlays import edge, overlay
from shardwright.images.colors import class_color, ramp
from shardwright.images.decode import apply_orientation, decode
from shardwright.images.encode_picture import encode_picture
from shardwright.images.geometry import DCT_RATIOS, plan_geometry
from shardwright.images.header import ImageError, ImageHeader
from shardwright.images.orientation import displayed_size
from shardwright.masks.coordinate_frame import orient_runs
from shardwright.masks.rle import Runs, draw, resample

WIDEST, TALLEST = 232, 176
_QUALITY = 74
_FILL, _EDGE = 105, 255


class StoredImage(Protocol):
    """The properties of a stored image that a picture needs; `dataset.example_view.ExampleView` has them."""

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the stored pixels; 0, 0 if they are not known."""
        ...

    @property
    def orientation(self) -> int:
        """1 to 8, as Exif numbers them."""
        ...

    @property
    def format(self) -> str:
        """`jpeg`, `png`, `raw`, `tensor`, or empty."""
        ...

    @property
    def header(self) -> ImageHeader | None:
        """The header of a JPEG or PNG."""
        ...

    @property
    def encoded(self) -> bytes:
        """The stored bytes."""
        ...

    @property
    def labels(self) -> Sequence[int]:
        """Numbers of its classes."""
        ...

    def runs(self, label: int) -> Runs:
        """Returns the mask of a class in the stored frame, int64 (n, 2)."""
        ...


@dataclass(frozen=True)
class Picture:
    """A small picture.

    Attributes:
        image: the picture as a `data:` URL; empty if the image cannot be decoded.
        overlay: its masks as a `data:` URL; empty if it has none.
        width: width of both, in pixels.
        height: height of both, in pixels.
    """

    image: str
    overlay: str
    width: int
    height: int

    @property
    def bytes(self) -> int:
        """Number of bytes that it adds to the page."""
        return len(self.image) + len(self.overlay)


def picture_of(stored: StoredImage, labels: Sequence[int] = (), masks: Sequence[Runs] | None = None) -> Picture:
    """Makes the small picture of an image.

    Args:
        stored: the image.
        labels: the classes whose masks are shown.
        masks: the masks of all classes in the stored frame; by default those that are stored.
    """
    height, width = stored.size
    if not height or not width:
        return Picture("", "", TALLEST, TALLEST)
    orientation = stored.orientation
    shape = displayed_size(height, width, orientation)
    rows, columns = fitted(*shape)
    # A browser enlarges more smoothly, and for fewer bytes.
    small = displayed(stored, *fitted(*shape, most=1))
    image = "" if small is None else data_url("jpeg", small, quality=_QUALITY)
    drawn = [(label, stored.runs(label) if masks is None else masks[label]) for label in labels]
    overlay = _overlay(
        [(label, runs) for label, runs in drawn if len(runs)], (height, width), orientation, rows, columns
    )
    return Picture(image, overlay, columns, rows)


def file_picture(data: bytes, header: ImageHeader) -> Picture:
    """Makes the small picture of a file, a JPEG or PNG."""
    shape = displayed_size(header.height, header.width, header.orientation)
    rows, columns = fitted(*shape)
    small = shrunk(data, header, *fitted(*shape, most=1))
    return Picture("" if small is None else data_url("jpeg", small, quality=_QUALITY), "", columns, rows)


def heat_picture(heat: npt.NDArray[np.int64]) -> str:
    """Returns a heat map as a `data:` URL: pale where no mask is, dark where most masks are.

    Args:
        heat: counts, int64 (rows, columns).
    """
    most = max(int(heat.max()), 1)
    levels = [ramp(int(value) / most) for value in heat.reshape(-1)]
    pixels = np.array(levels, np.uint8).reshape(*heat.shape, 3)
    return data_url("png", Image.fromarray(pixels))


def overlaid(stored: StoredImage, widest: int = WIDEST, tallest: int = TALLEST) -> str:
    """Returns an image with the masks of its classes drawn in, as a `data:` URL; empty if it cannot be decoded.

    Args:
        stored: the image.
        widest: columns at most.
        tallest: rows at most.
    """
    height, width = stored.size
    if not height or not width:
        return ""
    shape = displayed_size(height, width, stored.orientation)
    rows, columns = fitted(*shape, widest, tallest)
    picture = displayed(stored, rows, columns)
    if picture is None:
        return ""
    plan = plan_geometry("stretch", *shape, rows, columns)
    masks = np.zeros((rows, columns, len(stored.labels)), np.bool_)
    for place, label in enumerate(stored.labels):
        turned = orient_runs(stored.runs(label), height, width, stored.orientation)
        masks[..., place] = draw(resample(turned, plan), rows, columns)
    drawn = overlay(np.asarray(picture, np.uint8), masks, stored.labels)
    return data_url("jpeg", Image.fromarray(drawn), quality=_QUALITY)


def fitted(
    height: int, width: int, widest: int = WIDEST, tallest: int = TALLEST, most: float = math.inf
) -> tuple[int, int]:
    """Returns rows and columns of the thumbnail of an image; a smaller image is enlarged by at most `most`."""
    scale = min(widest / width, tallest / height, most)
    return max(1, round(height * scale)), max(1, round(width * scale))


def displayed(stored: StoredImage, rows: int, columns: int) -> Image.Image | None:
    """Returns an image as it is displayed, in mode `RGB` and of that size; `None` if it cannot be decoded."""
    if stored.format == "raw":
        pixels, shape = np.frombuffer(stored.encoded, np.uint8), (*stored.size, 3)
        if len(pixels) != math.prod(shape):
            return None
        return apply_orientation(Image.fromarray(pixels.reshape(shape)), stored.orientation).resize((columns, rows))
    return None if stored.header is None else shrunk(stored.encoded, stored.header, rows, columns)


def shrunk(data: bytes, header: ImageHeader, rows: int, columns: int) -> Image.Image | None:
    """Returns a JPEG or PNG as it is displayed, in mode `RGB` and of that size; `None` if it cannot be decoded."""
    longest = max(header.height, header.width)
    wanted = max(rows, columns)
    ratio = next((r for r in DCT_RATIOS if longest // r >= wanted and min(header.height, header.width) >= r), 1)
    try:
        picture = decode(data, header, ratio if header.format == "jpeg" else 1)
    except ImageError:
        return None
    turned = apply_orientation(picture, header.orientation).convert("RGB")
    enlarged = turned.width < columns
    return turned.resize((columns, rows), Image.Resampling.NEAREST if enlarged else Image.Resampling.BOX)


def _overlay(
    masks: Sequence[tuple[int, Runs]], size: tuple[int, int], orientation: int, rows: int, columns: int
) -> str:
    if not masks:
        return ""
    shape = displayed_size(*size, orientation)
    plan = plan_geometry("stretch", *shape, rows, columns)
    pixels = np.zeros((rows, columns, 4), np.uint8)
    stripes = np.add.outer(np.arange(rows), np.arange(columns)) // 4
    for place, (label, runs) in enumerate(masks):
        mask = draw(resample(orient_runs(runs, *size, orientation), plan), rows, columns).astype(bool)
        color = class_color(label)
        # Overlapping classes alternate in stripes.
        fill = mask & ((pixels[..., 3] == 0) | (stripes % len(masks) == place))
        pixels[fill] = (*color, _FILL)
        pixels[edge(mask)] = (*color, _EDGE)
    return data_url("png", Image.fromarray(pixels, "RGBA").quantize(32, Image.Quantize.FASTOCTREE))


def data_url(form: str, picture: Image.Image, **options: int) -> str:
    """Encodes a picture as a `data:` URL."""
    encoded = encode_picture(picture, form, optimize=True, **options)
    return f"data:image/{form};base64,{base64.b64encode(encoded).decode('ascii')}"
