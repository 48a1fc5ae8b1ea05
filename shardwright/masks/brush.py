"""Brush strokes of Label Studio: bits that hold the RGBA pixels of an image, run-length coded.

The code is the one of rle-pack (thi.ng/umbrella, packages/rle-pack), which Label Studio uses: 32 bits with the count of
words, 5 bits with the size of a word less 1, four times 4 bits with a size of counts less 1. Then runs follow. A run
has a bit that states whether one word is repeated, 2 bits that choose the size of the count, and the count less 1. The
repeated word follows, or as many words as the count. A word is a byte of a pixel, row by row: red, green, blue, alpha.
A pixel belongs to the stroke if its alpha is not 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shardwright.masks.rle import RleError, Runs, encode

_CHANNELS, _ALPHA = 4, 3
_HEADER = 32 + 5 + 4 * 4


def brush_runs(data: list[int], height: int, width: int) -> Runs:
    """Reads a brush stroke on an image of `height` x `width`.

    Args:
        data: the bytes, as numbers.
        height: rows of the image.
        width: columns.

    Raises:
        RleError: the bytes are not a code of as many pixels.
    """
    try:
        bits = np.unpackbits(np.frombuffer(bytes(data), np.uint8))
    except (TypeError, ValueError):
        raise RleError("the brush stroke is not a list of bytes, numbers from 0 to 255") from None
    words = _CHANNELS * height * width
    if len(bits) < _HEADER or _number(bits, 0, 32) != words:
        count = _number(bits, 0, 32) if len(bits) >= _HEADER else 0
        raise RleError(f"the brush stroke has {count:,} values; four for each pixel of {height}x{width} are {words:,}")
    word = _number(bits, 32, 5) + 1
    sizes = [_number(bits, 37 + 4 * i, 4) + 1 for i in range(4)]
    values = np.zeros(words, np.bool_)
    place, done = _HEADER, 0
    while done < words:
        if place + 3 > len(bits):
            raise RleError(f"the brush stroke ends after {done:,} of {words:,} values")
        repeated, size = bits[place], sizes[_number(bits, place + 1, 2)]
        count = _number(bits, place + 3, size) + 1
        place += 3 + size
        stored = word if repeated else word * count
        if place + stored > len(bits) or done + count > words:
            raise RleError(f"the brush stroke is broken after {done:,} of {words:,} values")
        if repeated:
            values[done : done + count] = bits[place : place + word].any()
        else:
            values[done : done + count] = bits[place : place + stored].reshape(count, word).any(axis=1)
        place += stored
        done += count
    return encode(values.reshape(height, width, _CHANNELS)[:, :, _ALPHA].astype(np.uint8))


def _number(bits: npt.NDArray[np.uint8], place: int, size: int) -> int:
    """Reads a number, its highest bit first."""
    number = 0
    for bit in bits[place : place + size].tolist():
        number = number << 1 | bit
    return number
