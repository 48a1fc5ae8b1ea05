"""One geometry for pixels and masks: which part of the source goes where in an image of the wanted size.

The pixel ops and the run-length masks both follow a `Geometry`, so they cannot drift apart. Everything is integer
arithmetic: the same plan on every machine, in Python, in numpy and in a TensorFlow graph.

Sampling is nearest neighbor with half-pixel centers: output i of n takes source floor((i + 0.5) * N / n) of N. This is
the convention of OpenCV's and PIL's area-aligned grids and of `tf.image.resize`.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

POLICIES = ("stretch", "fill_crop", "letterbox")
# Divisors of a JPEG's sides while it is decoded (libjpeg computes a smaller inverse DCT then).
DCT_RATIOS = (8, 4, 2, 1)


@dataclass(frozen=True)
class Geometry:
    """A crop of the source, resized, and placed in an output that may have borders. All figures are pixels.

    The steps in this order: take rows `crop_top` to `crop_top + crop_height` and columns `crop_left` to `crop_left +
    crop_width` of a source of `source_height` x `source_width`; resize them to `resized_height` x `resized_width`; put
    the result at (`pad_top`, `pad_left`) of an empty image of `height` x `width`.
    """

    source_height: int
    source_width: int
    crop_top: int
    crop_left: int
    crop_height: int
    crop_width: int
    resized_height: int
    resized_width: int
    pad_top: int
    pad_left: int
    height: int
    width: int

    def __post_init__(self) -> None:
        for name in ("crop_height", "crop_width", "resized_height", "resized_width"):
            if getattr(self, name) < 1:
                raise ValueError(f"geometry: {name} is {getattr(self, name)}, it must be at least 1")
        for offset, extent, limit in (
            ("crop_top", "crop_height", "source_height"),
            ("crop_left", "crop_width", "source_width"),
            ("pad_top", "resized_height", "height"),
            ("pad_left", "resized_width", "width"),
        ):
            begin, size, whole = getattr(self, offset), getattr(self, extent), getattr(self, limit)
            if begin < 0 or begin + size > whole:
                raise ValueError(f"geometry: {offset} {begin} + {extent} {size} is not within {limit} {whole}")


@lru_cache(maxsize=256)  # Data sets have few sizes.
def plan_geometry(policy: str, source_height: int, source_width: int, height: int, width: int) -> Geometry:
    """Plans how a source of any size becomes an output of `height` x `width`.

    Args:
        policy: `stretch` takes the whole source and gives up its aspect; `fill_crop` takes the largest centered part
            that has the output's aspect; `letterbox` takes the whole source, keeps its aspect and leaves centered
            borders.
        source_height: rows of the source, at least 1.
        source_width: columns of the source, at least 1.
        height: rows of the output, at least 1.
        width: columns of the output, at least 1.

    Returns:
        The plan. A derived side (of the crop, of the resized picture) is the exact quotient rounded half up, at least
        1; where a centered margin is odd, the smaller half is at the top or the left.

    Raises:
        ValueError: the policy is not known, or a side is less than 1.
    """
    if policy not in POLICIES:
        raise ValueError(f"resize policy {policy!r} is not known; use one of {', '.join(POLICIES)}")
    sides = {"source height": source_height, "source width": source_width, "height": height, "width": width}
    for name, side in sides.items():
        if side < 1:
            raise ValueError(f"geometry: {name} is {side}, it must be at least 1")
    crop_height, crop_width = source_height, source_width
    resized_height, resized_width = height, width
    source_is_taller = source_height * width > source_width * height
    if policy == "fill_crop":
        if source_is_taller:
            crop_height = min(source_height, _rounded(source_width * height, width))
        else:
            crop_width = min(source_width, _rounded(source_height * width, height))
    elif policy == "letterbox":
        if source_is_taller:
            resized_width = min(width, _rounded(source_width * height, source_height))
        else:
            resized_height = min(height, _rounded(source_height * width, source_width))
    return Geometry(
        source_height=source_height,
        source_width=source_width,
        crop_top=(source_height - crop_height) // 2,
        crop_left=(source_width - crop_width) // 2,
        crop_height=crop_height,
        crop_width=crop_width,
        resized_height=resized_height,
        resized_width=resized_width,
        pad_top=(height - resized_height) // 2,
        pad_left=(width - resized_width) // 2,
        height=height,
        width=width,
    )


def plan_longest_side(source_height: int, source_width: int, longest: int) -> Geometry:
    """Plans how a source of any size becomes one whose longer side is `longest`, in its own aspect.

    Args:
        source_height: rows of the source, at least 1.
        source_width: columns of the source, at least 1.
        longest: the longer side of the output, at least 1; a smaller source is enlarged.

    Returns:
        The plan. The shorter side is the exact quotient rounded half up, at least 1.

    Raises:
        ValueError: a side is less than 1.
    """
    height, width = longest, longest
    if source_height > source_width:
        width = _rounded(source_width * longest, source_height)
    elif source_width > source_height:
        height = _rounded(source_height * longest, max(1, source_width))
    return plan_geometry("stretch", source_height, source_width, height, width)


def dct_ratio(geometry: Geometry) -> int:
    """Returns the largest of `DCT_RATIOS` with which a JPEG still has all wanted pixels, so that none is enlarged."""
    g = geometry
    fits = (r for r in DCT_RATIOS if g.crop_height >= r * g.resized_height and g.crop_width >= r * g.resized_width)
    return next(fits, 1)


def source_rows(geometry: Geometry) -> IntArray:
    """Returns the source row that every output row shows.

    Args:
        geometry: the plan.

    Returns:
        int64 of length `geometry.height`: the source row, counted in the whole source; -1 in the border. Read-only.
    """
    return _sampled(geometry.crop_top, geometry.crop_height, geometry.resized_height, geometry.pad_top, geometry.height)


def source_columns(geometry: Geometry) -> IntArray:
    """Returns the source column that every output column shows.

    Args:
        geometry: the plan.

    Returns:
        int64 of length `geometry.width`: the source column, counted in the whole source; -1 in the border. Read-only.
    """
    return _sampled(geometry.crop_left, geometry.crop_width, geometry.resized_width, geometry.pad_left, geometry.width)


# An image has several masks and a data set few sizes.
@lru_cache(maxsize=256)
def _sampled(crop_begin: int, crop_size: int, resized: int, pad: int, size: int) -> IntArray:
    positions = np.full(size, -1, np.int64)
    centers_doubled = 2 * np.arange(resized, dtype=np.int64) + 1
    positions[pad : pad + resized] = crop_begin + centers_doubled * crop_size // (2 * resized)
    positions.setflags(write=False)
    return positions


class VisibleArea(NamedTuple):
    """The output positions of the source's rows, or of its columns. Read-only.

    Attributes:
        first: for each of them, and one more after the last: the first output row that shows it or a later one, counted
            without the border; int64.
        is_shown: 1 where there is a row that shows it, else 0; int64.
    """

    first: IntArray
    is_shown: IntArray


def output_rows(geometry: Geometry) -> VisibleArea:
    """Returns the output rows that show every source row: the inverse of `source_rows`."""
    return _shown(geometry.crop_top, geometry.crop_height, geometry.resized_height, geometry.source_height)


def output_columns(geometry: Geometry) -> VisibleArea:
    """Returns the output columns that show every source column: the inverse of `source_columns`."""
    return _shown(geometry.crop_left, geometry.crop_width, geometry.resized_width, geometry.source_width)


@lru_cache(maxsize=256)
def _shown(crop_begin: int, crop_size: int, resized: int, source: int) -> VisibleArea:
    sampled = _sampled(crop_begin, crop_size, resized, 0, resized)
    every = np.arange(source + 1)
    first = np.searchsorted(sampled, every)
    shown = VisibleArea(first, (sampled[np.minimum(first, resized - 1)] == every).astype(np.int64))
    for values in shown:
        values.setflags(write=False)
    return shown


def _rounded(dividend: int, divisor: int) -> int:
    """Returns the quotient rounded half up, but at least 1: no picture vanishes, however extreme its aspect."""
    return max(1, (2 * dividend + divisor) // (2 * divisor))
