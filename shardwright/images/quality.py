"""Measures pictures of any content: brightness, contrast, sharpness, color; and makes their thumbnails.

Sums are whole numbers; only the last root and division are floats, and they are rounded to six digits. So the same
pixels give the same figures on every machine. All are parts of the full range of 8 bits, so that they do not depend on
how levels are counted; they are meant to be followed over time (drift), not to judge one picture.

Sharpness is the variance of the Laplacian (Pech-Pacheco et al., 2000), as its root; colorfulness is M of Hasler and
Süsstrunk (2003). Gray levels are those of ITU-R BT.601.

Thumbnails serve hashes, measures and contact sheets: they are decoded at a reduced size and turned as displayed. A JPEG
is decoded at the smallest of 1/8, 1/4, 1/2 and 1 that leaves a short side of at least 64. Then libjpeg computes only
the lowest coefficients of each block, which is a mean over areas. It still reads all of the data, so damage shows.
Other formats are decoded whole and reduced by the same factor, again by means over areas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from shardwright.images.decode import apply_orientation, decode
from shardwright.images.geometry import DCT_RATIOS
from shardwright.images.header import ImageHeader
from shardwright.storage.checksum import new_checksum

_LEVELS = 255
_DIGITS = 6
# The sum of this many products of two levels is below 2**24, up to which float32 represents every whole number.
_EXACT = 256
# Pixels in one step, so that the arrays stay in the processor's cache and need no new memory.
_AT_ONCE = 1 << 16
SHORTEST_SIDE = 64
# A strip of many times its own width is reduced along its length, which nothing that is measured minds.
_LONGEST_SIDE = 4096


class Quality(NamedTuple):
    """Measures of one picture, rounded to six digits.

    Attributes:
        brightness: mean gray level, 0 to 1.
        contrast: standard deviation of the gray levels, 0 to 0.5.
        sharpness: standard deviation of the Laplacian (four neighbors) of the gray levels; 0 where nothing changes,
            about 0.1 for a photograph in focus. For a reduced picture it is small only if the blur is coarse.
        colorfulness: 0 for gray, about 0.4 for strong colors.
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
    # Each channel in one piece: numpy converts it in a quarter of the time that every third byte takes.
    channels = [*(picture.tobytes("raw", color) for color in "RGB"), luma.tobytes()]
    planes = [np.frombuffer(channel, np.uint8) for channel in channels]
    (r, g, b, level), (rr, gg, bb, squares), (rg, gb, rb) = _sums(planes)
    # The opponent axes: red against green, and yellow (twice, to keep whole) against blue.
    red_green = _variance(count, r - g, rr + gg - 2 * rg)
    yellow_blue = _variance(count, r + g - 2 * b, rr + gg + 4 * bb + 2 * rg - 4 * rb - 4 * gb)
    spread = math.sqrt(4 * red_green + yellow_blue) / 2 / count
    shift = math.sqrt(4 * (r - g) ** 2 + (r + g - 2 * b) ** 2) / 2 / count
    return Quality(
        brightness=_part(level / count),
        contrast=_part(math.sqrt(_variance(count, level, squares)) / count),
        sharpness=_part(_sharpness(planes[3].reshape(luma.height, luma.width))),
        colorfulness=_part(spread + 0.3 * shift),
        red=_part(r / count),
        green=_part(g / count),
        blue=_part(b / count),
    )


def _sums(planes: Sequence[npt.NDArray[np.uint8]]) -> tuple[list[int], list[int], list[int]]:
    """Returns the sums of levels and squares of four channels, and of the products of two of the first three.

    Products are in the order 0 and 1, 1 and 2, 0 and 2. All sums are exact in spite of the floats: no partial sum
    exceeds the whole numbers of its type.
    """
    totals, squares, products = (np.zeros(count) for count in (4, 4, 3))
    for begin in range(0, len(planes[0]), _AT_ONCE):
        pieces = [plane[begin : begin + _AT_ONCE] for plane in planes]
        size = len(pieces[0])
        blocks = -(-size // _EXACT)
        flat = np.empty((len(pieces), blocks * _EXACT), np.float32)
        flat[:, size:] = 0
        for row, piece in zip(flat, pieces, strict=True):
            row[:size] = piece
        levels = flat.reshape(len(pieces), blocks, _EXACT)
        totals += np.einsum("cij->ci", levels).sum(axis=1, dtype=np.float64)
        squares += _dots(levels, levels)
        products[:2] += _dots(levels[:2], levels[1:3])
        products[2:] += _dots(levels[:1], levels[2:3])
    levels_of, squares_of, products_of = (
        [int(value) for value in sums.tolist()] for sums in (totals, squares, products)
    )
    return levels_of, squares_of, products_of


def _dots(some: npt.NDArray[np.float32], others: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Returns the sums of the products of channels, each an array of blocks."""
    sums: npt.NDArray[np.float64] = np.einsum("cij,cij->ci", some, others).sum(axis=1, dtype=np.float64)
    return sums


def _variance(count: int, total: int, squares: int) -> int:
    """Returns the variance times the square of the count, exactly."""
    return count * squares - total * total


def _sharpness(levels: npt.NDArray[np.uint8]) -> float:
    """Returns the standard deviation of the Laplacian over all pixels with four neighbors; 0 where there are none."""
    count = total = squares = 0
    step = max(1, _AT_ONCE // levels.shape[1])
    for top in range(0, len(levels), step):
        rows = levels[max(0, top - 1) : top + step + 1].astype(np.int16)
        # The sum of the four neighbors less four times the pixel, for pixels with four neighbors.
        laplacian = rows[1:-1, 1:-1] * np.int16(-4)
        for neighbors in (rows[:-2, 1:-1], rows[2:, 1:-1], rows[1:-1, :-2], rows[1:-1, 2:]):
            laplacian += neighbors
        edges = laplacian.astype(np.float64)
        count += edges.size
        # Whole numbers below 2**53.
        total += int(edges.sum())
        squares += int(np.einsum("ij,ij->", edges, edges))
    return math.sqrt(_variance(count, total, squares)) / max(count, 1)


def _part(value: float) -> float:
    return round(value / _LEVELS, _DIGITS)


def reduction(height: int, width: int) -> int:
    """Returns the strongest of 8, 4, 2, 1 that leaves a short side of at least 64 pixels (rounded up as in libjpeg)."""
    short = min(height, width)
    return next((ratio for ratio in DCT_RATIOS if -(-short // ratio) >= SHORTEST_SIDE), 1)


def thumbnail(data: bytes, header: ImageHeader) -> Image.Image:
    """Decodes a JPEG or PNG at a reduced size.

    Args:
        data: the whole file.
        header: from `read_header`, which has checked the size.

    Returns:
        A picture of mode `RGB`, turned as it is displayed; transparency is dropped, as TensorFlow drops it.

    Raises:
        ImageError: the picture data are damaged.
    """
    if header.format != "jpeg":
        return reduced(decode(data, header), header)
    return _finished(decode(data, header, reduction(header.height, header.width)), header)


def reduced(picture: Image.Image, header: ImageHeader) -> Image.Image:
    """Returns the thumbnail of a picture that is already decoded, at full size in the stored frame."""
    return _finished(picture.reduce(reduction(header.height, header.width)), header)


def pixel_digest(picture: Image.Image, header: ImageHeader) -> bytes:
    """Returns BLAKE3 over size and all pixels of an image as displayed: equal for equal pixels in any format.

    Args:
        picture: at full size, in the stored frame.
        header: has the orientation.
    """
    displayed = apply_orientation(picture, header.orientation).convert("RGB")
    digest = new_checksum()
    digest.update(f"{displayed.width}x{displayed.height}:".encode())
    digest.update(np.asarray(displayed).data)
    return digest.digest()


def _finished(picture: Image.Image, header: ImageHeader) -> Image.Image:
    if max(picture.size) > _LONGEST_SIDE:
        picture = picture.reduce((-(-picture.width // _LONGEST_SIDE), -(-picture.height // _LONGEST_SIDE)))
    turned = apply_orientation(picture, header.orientation)
    return turned if turned.mode == "RGB" else turned.convert("RGB")
