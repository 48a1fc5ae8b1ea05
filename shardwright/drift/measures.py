"""Measures one image for drift: light, color, sharpness, size, coding, and a small embedding of its content.

Light and color are measured as the ingest does (`images.quality`). Sharpness is measured at full size in the middle of
the picture, because a slight blur does not show at a reduced size. The coding is described by bytes per pixel and by a
JPEG's luma quantization table. The embedding is the two-dimensional DCT of the picture at 8 x 8 pixels, of brightness
and of both color differences. It describes where the picture is bright and where its colors are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from shardwright.images.decode import decode
from shardwright.images.header import ImageHeader
from shardwright.images.jpeg import jpeg_segments
from shardwright.images.orientation import displayed_size
from shardwright.images.quality import measure, reduced

_SIDE = 8
_KEPT = 6
_MIDDLE = 384
_DQT = 0xDB

# Names of the numeric measures, in their order, with words for people.
NUMBERS = {
    "brightness": "brightness",
    "contrast": "contrast",
    "sharpness": "sharpness at full size",
    "colorfulness": "colorfulness",
    "warmth": "red against blue",
    "green": "green against red and blue",
    "pixels": "size in pixels",
    "aspect": "width by height",
    "bytes": "bytes a pixel",
    "steps": "coarseness of the JPEG",
}
EMBEDDING = 3 * _KEPT * _KEPT
# The first rows of the orthonormal DCT-II for 8 samples, float64 (6, 8), scaled to means.
_COSINES = (
    np.array([[math.cos(math.pi * k * (2 * n + 1) / (2 * _SIDE)) for n in range(_SIDE)] for k in range(_KEPT)]) / _SIDE
)


class ImageMeasures(NamedTuple):
    """The measures of one image.

    Attributes:
        numbers: in the order of `NUMBERS`, float64.
        embedding: float64 (`EMBEDDING`,).
    """

    numbers: npt.NDArray[np.float64]
    embedding: npt.NDArray[np.float64]


def measure_image(data: bytes, header: ImageHeader) -> ImageMeasures:
    """Measures an image.

    Args:
        data: a JPEG or PNG.
        header: its parsed header.

    Raises:
        ImageError: it cannot be decoded.
    """
    picture = decode(data, header)
    small = reduced(picture, header)
    quality = measure(small, small.convert("L"))
    left, top = (max(0, (side - _MIDDLE) // 2) for side in picture.size)
    middle = picture.crop((left, top, min(picture.width, left + _MIDDLE), min(picture.height, top + _MIDDLE)))
    middle = middle.convert("RGB")
    pixels = header.height * header.width
    height, width = displayed_size(header.height, header.width, header.orientation)
    numbers = [
        quality.brightness,
        quality.contrast,
        measure(middle, middle.convert("L")).sharpness,
        quality.colorfulness,
        quality.red - quality.blue,
        quality.green - (quality.red + quality.blue) / 2,
        float(pixels),
        width / height,
        len(data) / pixels,
        float(luma_steps(data) if header.format == "jpeg" else 0),
    ]
    return ImageMeasures(np.array(numbers), embed(small))


def embed(picture: Image.Image) -> npt.NDArray[np.float64]:
    """Returns the embedding of a picture in mode `RGB`: float64 (`EMBEDDING`,), values about 0 to 1."""
    tiny = np.asarray(picture.resize((_SIDE, _SIDE), Image.Resampling.BOX), np.float64) / 255
    red, green, blue = tiny[..., 0], tiny[..., 1], tiny[..., 2]
    planes = (0.299 * red + 0.587 * green + 0.114 * blue, red - green, (red + green) / 2 - blue)
    return np.concatenate([(_COSINES @ plane @ _COSINES.T).reshape(-1) for plane in planes])


def luma_steps(data: bytes) -> int:
    """Returns the sum of a JPEG's first quantization table, at least 64 (the finest); 0 without a table."""
    for segment in jpeg_segments(data):
        body = data[segment.body : segment.end]
        if segment.marker == _DQT and len(body) >= 65:
            wide = body[0] >> 4
            table = body[1 : 1 + 64 * (2 if wide else 1)]
            return int(np.frombuffer(table, ">u2" if wide else "u1").sum()) if len(table) % 64 == 0 else 0
    return 0
