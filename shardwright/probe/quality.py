"""What can be measured of a picture without knowing what it shows: brightness, contrast, sharpness, colour.

Sums are whole numbers; only the last root and division are floats, and they are rounded to six digits. So the same
pixels give the same figures on every machine. All are parts of the full range of 8 bits, so that they do not depend on
how levels are counted; they are meant to be followed over time (drift), not to judge one picture.

Sharpness is the variance of the Laplacian (Pech-Pacheco et al., 2000), as its root; colourfulness is M of Hasler and
Süsstrunk (2003). Grey levels are those of ITU-R BT.601.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageChops

_LEVELS = 255
_DIGITS = 6
_EVERY_LEVEL = np.arange(_LEVELS + 1)
# Pixels at a time, so that the arrays stay in the processor's cache and need no fresh memory.
_AT_ONCE = 1 << 14


class Quality(NamedTuple):
    """Measures of one picture, rounded to six digits.

    Attributes:
        brightness: mean grey level, 0 to 1.
        contrast: standard deviation of the grey levels, 0 to 0.5.
        sharpness: standard deviation of the Laplacian (four neighbours) of the grey levels; 0 where nothing changes,
            about 0.1 for a photograph in focus. Of a reduced picture it is small only when the blur is coarse.
        colorfulness: 0 for grey, about 0.4 for strong colours.
        red: mean of the red channel, 0 to 1.
        green: likewise.
        blue: likewise.
    """

    brightness: float
    contrast: float
    sharpness: float
    colorfulness: float
    red: float
    green: float
    blue: float


def measure(picture: Image.Image, luma: Image.Image) -> Quality:
    """Measures a picture.

    Args:
        picture: of mode `RGB`.
        luma: the same in mode `L`.
    """
    count = picture.width * picture.height
    levels = _moments(luma)
    channels = red, green, blue = picture.split()
    (r, rr), (g, gg), (b, bb) = (_moments(channel) for channel in channels)
    # Sums of products of two channels, by way of their differences: (rr + gg - (r - g)^2) / 2. Doubled, to keep whole.
    rg, rb, gb = (
        one + other - _moments(ImageChops.difference(*pair)).squares
        for one, other, pair in ((rr, gg, (red, green)), (rr, bb, (red, blue)), (gg, bb, (green, blue)))
    )
    # The opponent axes: red against green, and yellow (twice, to keep whole) against blue.
    red_green = _variance(count, r - g, rr + gg - rg)
    yellow_blue = _variance(count, r + g - 2 * b, rr + gg + 4 * bb + rg - 2 * rb - 2 * gb)
    spread = math.sqrt(4 * red_green + yellow_blue) / 2 / count
    shift = math.sqrt(4 * (r - g) ** 2 + (r + g - 2 * b) ** 2) / 2 / count
    return Quality(
        brightness=_part(levels.total / count),
        contrast=_part(math.sqrt(_variance(count, *levels)) / count),
        sharpness=_part(_sharpness(np.asarray(luma))),
        colorfulness=_part(spread + 0.3 * shift),
        red=_part(r / count),
        green=_part(g / count),
        blue=_part(b / count),
    )


class _Moments(NamedTuple):
    total: int
    squares: int


def _moments(channel: Image.Image) -> _Moments:
    """Sum of a channel's levels and of their squares."""
    counts = np.array(channel.histogram(), dtype=np.int64)
    return _Moments(int(counts @ _EVERY_LEVEL), int(counts @ (_EVERY_LEVEL * _EVERY_LEVEL)))


def _variance(count: int, total: int, squares: int) -> int:
    """The variance times the square of the count, exactly."""
    return count * squares - total * total


def _sharpness(levels: npt.NDArray[np.uint8]) -> float:
    """Standard deviation of the Laplacian over all pixels that have four neighbours; 0 where there are none."""
    count = total = squares = 0
    step = max(1, _AT_ONCE // levels.shape[1])
    for top in range(0, len(levels), step):
        edges = _laplacian(levels[max(0, top - 1) : top + step + 1].astype(np.int32))
        count += edges.size
        total += int(edges.sum(dtype=np.int64))
        edges *= edges
        squares += int(edges.sum(dtype=np.int64))
    return math.sqrt(_variance(count, total, squares)) / max(count, 1)


def _laplacian(levels: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The sum of the four neighbours less four times the pixel, of the pixels that have four."""
    edges = -4 * levels[1:-1, 1:-1]
    edges += levels[:-2, 1:-1]
    edges += levels[2:, 1:-1]
    edges += levels[1:-1, :-2]
    edges += levels[1:-1, 2:]
    return edges


def _part(value: float) -> float:
    return round(value / _LEVELS, _DIGITS)
