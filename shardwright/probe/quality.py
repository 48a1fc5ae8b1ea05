"""What can be measured of a picture without knowing what it shows: brightness, contrast, sharpness, colour.

Sums are whole numbers; only the last root and division are floats, and they are rounded to six digits. So the same
pixels give the same figures on every machine. All are parts of the full range of 8 bits, so that they do not depend on
how levels are counted; they are meant to be followed over time (drift), not to judge one picture.

Sharpness is the variance of the Laplacian (Pech-Pacheco et al., 2000), as its root; colourfulness is M of Hasler and
Süsstrunk (2003). Grey levels are those of ITU-R BT.601.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

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
    total, squares = _moments(luma.histogram())
    by_channel = picture.histogram()
    (red, _), (green, _), (blue, _) = (_moments(by_channel[first : first + 256]) for first in (0, 256, 512))
    red_green, yellow_blue, laplacian = _Sums(), _Sums(), _Sums()
    pixels, levels = np.asarray(picture), np.asarray(luma)
    step = max(1, _AT_ONCE // picture.width)
    for top in range(0, picture.height, step):
        wide = pixels[top : top + step].astype(np.int16)
        r, g, b = wide[..., 0], wide[..., 1], wide[..., 2]
        # The opponent axes: red against green, and yellow (twice, to keep whole numbers) against blue.
        red_green.add(r - g)
        yellow_blue.add(r + g - 2 * b)
        laplacian.add(_laplacian(levels[max(0, top - 1) : top + step + 1].astype(np.int16)))
    spread = math.sqrt(4 * red_green.variance + yellow_blue.variance) / 2 / count
    shift = math.sqrt(4 * (red - green) ** 2 + (red + green - 2 * blue) ** 2) / 2 / count
    return Quality(
        brightness=_part(total / count),
        contrast=_part(math.sqrt(count * squares - total * total) / count),
        sharpness=_part(math.sqrt(laplacian.variance) / max(laplacian.count, 1)),
        colorfulness=_part(spread + 0.3 * shift),
        red=_part(red / count),
        green=_part(green / count),
        blue=_part(blue / count),
    )


@dataclass
class _Sums:
    """Sums over whole numbers below 2**15, exact however many there are."""

    count: int = 0
    total: int = 0
    squares: int = 0

    def add(self, values: npt.NDArray[np.int16]) -> None:
        wide = values.astype(np.int32)
        self.count += values.size
        self.total += int(wide.sum(dtype=np.int64))
        wide *= wide
        self.squares += int(wide.sum(dtype=np.int64))

    @property
    def variance(self) -> int:
        """The variance times the square of the count."""
        return self.count * self.squares - self.total * self.total


def _laplacian(levels: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """The sum of the four neighbours less four times the pixel, of the pixels that have four."""
    edges = -4 * levels[1:-1, 1:-1]
    edges += levels[:-2, 1:-1]
    edges += levels[2:, 1:-1]
    edges += levels[1:-1, :-2]
    edges += levels[1:-1, 2:]
    return edges


def _moments(histogram: Sequence[int]) -> tuple[int, int]:
    """Sum of the levels and of their squares."""
    counts = np.array(histogram, dtype=np.int64)
    return int(counts @ _EVERY_LEVEL), int(counts @ (_EVERY_LEVEL * _EVERY_LEVEL))


def _part(value: float) -> float:
    return round(value / _LEVELS, _DIGITS)
