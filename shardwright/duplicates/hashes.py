"""Four hashes of 64 bits that look at pixels: pictures that look alike have hashes a few bits apart.

Average hash, perceptual hash (DCT) and difference hash are those of N. Krawetz ("Looks Like It", 2011; "Kind of Like
That", 2013); the wavelet hash takes the Haar wavelet's lowest 8x8 band, which is a block mean. Bits are numbered row by
row from the most significant one, so that a hash printed as 16 hex digits reads like those of the package ImageHash.

All arithmetic is on integers, up to the comparison that makes a bit: the same pixels have the same hash on every
machine. Blocks are means over areas. Only the difference hash is interpolated (Lanczos). It states which of two
neighbors is brighter, which depends on the kernel: means over areas would give other hashes than other programs
compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

BITS = 64
_SIDE = 8
_FINE = 64
_DCT = 32
# Cosines are whole numbers in this unit. It is large enough that their rounding changes no visible bit. It is small
# enough for sums of 32 * 32 products with gray levels (up to 4 * 255): below 2**48, float64 is exact.
_UNIT = 1 << 14
# The first 8 rows of the DCT-II's matrix for 32 samples, (8, 32), as whole multiples of 1 / `_UNIT`.
_COSINES: npt.NDArray[np.float64] = np.array(
    [[round(_UNIT * math.cos(math.pi * k * (2 * n + 1) / (2 * _DCT))) for n in range(_DCT)] for k in range(_SIDE)],
    dtype=np.float64,
)


class ImageHashes(NamedTuple):
    """The hashes of one picture, each a number below 2**64.

    Attributes:
        average: a bit an 8x8 block: brighter than the mean of all.
        perceptual: a bit for each of the 8x8 lowest frequencies of the picture at 32x32: above their median.
        difference: a bit for each two neighbors in each row of the picture at 9x8: the right one is brighter.
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
    return hashes_of([luma])[0]


def hashes_of(lumas: Sequence[Image.Image]) -> list[ImageHashes]:
    """Returns the hashes of several pictures of any sizes, in a third of the calls."""
    fine = np.stack([np.asarray(luma.resize((_FINE, _FINE), Image.Resampling.BOX)) for luma in lumas])
    middle = _blocks(fine.astype(np.int64), _DCT)
    coarse = _blocks(middle, _SIDE)
    # Whole numbers below 2**53.
    frequencies = _COSINES @ middle.astype(np.float64) @ _COSINES.T
    columns = np.stack([np.asarray(luma.resize((_SIDE + 1, _SIDE), Image.Resampling.LANCZOS)) for luma in lumas])
    average = coarse * (_SIDE * _SIDE) > coarse.sum(axis=(1, 2), keepdims=True)
    found = (average, _above_median(frequencies), columns[..., 1:] > columns[..., :-1], _above_median(coarse))
    return [ImageHashes(*of_one) for of_one in zip(*map(_numbers, found), strict=True)]


def as_int64(value: int) -> int:
    """Returns a hash as the signed number with the same bits, which an int64 feature can hold."""
    return value - (1 << BITS) if value >> (BITS - 1) else value


def distance(one: int, other: int) -> int:
    """Returns the number of bits in which two hashes differ, 0 to 64. Hashes may also be signed numbers."""
    return ((one ^ other) & (1 << BITS) - 1).bit_count()


def _blocks(values: npt.NDArray[np.int64], side: int) -> npt.NDArray[np.int64]:
    """Returns sums of equal blocks: (pictures, n, n) to (pictures, side, side)."""
    step = values.shape[1] // side
    # Whole rows are added up quicker than the pieces of one.
    rows = values.reshape(len(values), side, step, -1).sum(axis=2)
    blocks: npt.NDArray[np.int64] = rows.reshape(len(values), side, side, step).sum(axis=3)
    return blocks


def _above_median(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Returns which of 64 numbers of a picture are above their median, the mean of the two in the middle."""
    ordered = np.sort(values.reshape(-1, BITS), axis=1)
    middle = ordered[:, BITS // 2 - 1] + ordered[:, BITS // 2]
    above: npt.NDArray[np.bool_] = 2 * values > middle[:, None, None]
    return above


def _numbers(bits: npt.NDArray[np.bool_]) -> list[int]:
    """Returns the bits of pictures, (pictures, 8, 8), as a number each."""
    return [int(number) for number in np.packbits(bits.reshape(-1, BITS), axis=1).view(">u8").ravel().tolist()]
