"""Four hashes of 64 bits that look at pixels: pictures that look alike have hashes a few bits apart.

Average hash, perceptual hash (DCT) and difference hash are those of N. Krawetz ("Looks Like It", 2011; "Kind of Like
That", 2013); the wavelet hash takes the Haar wavelet's lowest 8x8 band, which is a block mean. Bits are numbered row by
row from the most significant one, so that a hash printed as 16 hex digits reads like those of the package ImageHash.

All arithmetic is on integers, up to the comparison that makes a bit: the same pixels have the same hash on every
machine. Blocks are means over areas. Only the difference hash is interpolated (Lanczos): which of two neighbours is the
brighter one depends on the kernel so much that means over areas would part it from the hashes that others compute.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

BITS = 64
_SIDE = 8
_FINE = 64
_DCT = 32
# Cosines as whole numbers: large enough that their rounding changes no bit one could see, small enough that sums of
# 32 * 32 products with grey levels (up to 4 * 255) stay far below 2**63.
_UNIT = 1 << 14


class ImageHashes(NamedTuple):
    """The hashes of one picture, each a number below 2**64.

    Attributes:
        average: a bit an 8x8 block: brighter than the mean of all.
        perceptual: a bit for each of the 8x8 lowest frequencies of the picture at 32x32: above their median.
        difference: a bit for each two neighbours in a row of the picture at 9x8: the right one is brighter.
        wavelet: a bit an 8x8 block: brighter than the median block.
    """

    average: int
    perceptual: int
    difference: int
    wavelet: int


def image_hashes(luma: Image.Image) -> ImageHashes:
    """Hashes a picture.

    Args:
        luma: picture of mode `L`, as it is displayed.
    """
    fine = np.asarray(luma.resize((_FINE, _FINE), Image.Resampling.BOX), dtype=np.int64)
    middle = _blocks(fine, _DCT)
    coarse = _blocks(middle, _SIDE)
    frequencies = _COSINES @ middle @ _COSINES.T
    columns = np.asarray(luma.resize((_SIDE + 1, _SIDE), Image.Resampling.LANCZOS), dtype=np.int64)
    return ImageHashes(
        average=_number(coarse * coarse.size > coarse.sum()),
        perceptual=_number(_above_median(frequencies)),
        difference=_number(columns[:, 1:] > columns[:, :-1]),
        wavelet=_number(_above_median(coarse)),
    )


def as_int64(value: int) -> int:
    """A hash as the signed number with the same bits: what an int64 feature holds."""
    return value - (1 << BITS) if value >> (BITS - 1) else value


def distance(one: int, other: int) -> int:
    """Number of bits in which two hashes differ, 0 to 64. Either spelling of a hash will do, the signed one too."""
    return ((one ^ other) & (1 << BITS) - 1).bit_count()


def _cosines() -> npt.NDArray[np.int64]:
    """The first 8 rows of the DCT-II's matrix for 32 samples, int64 (8, 32), in units of 1 / `_UNIT`."""
    return np.array(
        [[round(_UNIT * math.cos(math.pi * k * (2 * n + 1) / (2 * _DCT))) for n in range(_DCT)] for k in range(_SIDE)],
        dtype=np.int64,
    )


_COSINES = _cosines()


def _blocks(values: npt.NDArray[np.int64], side: int) -> npt.NDArray[np.int64]:
    """Sums of equal blocks: (n, n) to (side, side)."""
    step = len(values) // side
    rows = values.reshape(side, step, -1).sum(axis=1)  # Whole rows are added up quicker than the pieces of one.
    return rows.reshape(side, side, step).sum(axis=2)


def _above_median(values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Tells which of 64 numbers lie above their median, the mean of the two in the middle."""
    ordered = np.sort(values, axis=None)
    return 2 * values > ordered[BITS // 2 - 1] + ordered[BITS // 2]


def _number(bits: npt.NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(bits).tobytes(), "big")
