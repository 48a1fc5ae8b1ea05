"""What Pillow's `resize` makes of grey levels with its Lanczos kernel, the same values in half the time.

Pillow (libImaging/Resample.c) works out the kernel's weights for every picture anew, rounds them to whole numbers of 22
bits and adds up products for one pixel after the other. Here weights are kept by size, and a picture's rows are summed
by a matrix product: all sums are whole numbers far below 2**53, so that float64 holds each of them exactly.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image

_REACH = 3
_BITS = 22
_LEVELS = 255
# Pillow resamples the columns of a strip first when it is as many times as high as it is wide.
_STRIP = 100
# So many multiplications at a time: for more OpenBLAS would start threads.
_AT_ONCE = 1 << 18


def lanczos(luma: Image.Image, size: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Resizes a picture.

    Args:
        luma: of mode `L`.
        size: width and height to make of it.

    Returns:
        Whole numbers from 0 to 255, float64 (height, width).
    """
    if luma.height > _STRIP * luma.width:
        return np.asarray(luma.resize(size, Image.Resampling.LANCZOS), np.float64)
    levels = np.frombuffer(luma.tobytes(), np.uint8).reshape(luma.height, luma.width)
    rows = _resized(levels.astype(np.float64), size[0])
    return _resized(np.ascontiguousarray(rows.T), size[1]).T


def _resized(rows: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Makes `count` levels of each row's."""
    weights = _weights(rows.shape[1], count)
    sums = np.empty((len(rows), count))
    step = max(1, _AT_ONCE // weights.size)
    for begin in range(0, len(rows), step):
        np.matmul(rows[begin : begin + step], weights, out=sums[begin : begin + step])
    levels: npt.NDArray[np.float64] = np.clip(np.floor((sums + (1 << _BITS - 1)) * 2.0**-_BITS), 0, _LEVELS)
    return levels


@lru_cache(maxsize=256)
def _weights(side: int, count: int) -> npt.NDArray[np.float64]:
    """Weights of `side` levels for `count` new ones, in units of 2**-22, (side, count)."""
    scale = side / count
    stretch = max(scale, 1.0)
    centres = (np.arange(count) + 0.5) * scale
    first = np.maximum((centres - _REACH * stretch + 0.5).astype(np.int64), 0)
    end = np.minimum((centres + _REACH * stretch + 0.5).astype(np.int64), side)
    places = np.arange(side)[:, None]
    x = (places - centres + 0.5) * (1.0 / stretch)
    inside = (places >= first) & (places < end) & (x >= -_REACH) & (x < _REACH)
    weights = np.where(inside, _sinc(x) * _sinc(x / _REACH), 0.0)
    weights /= weights.sum(axis=0)
    whole: npt.NDArray[np.float64] = np.trunc(weights * (1 << _BITS) + np.copysign(0.5, weights))
    return whole


def _sinc(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    x = x * np.pi
    values: npt.NDArray[np.float64] = np.divide(np.sin(x), x, out=np.ones_like(x), where=x != 0)
    return values
