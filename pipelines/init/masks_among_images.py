"""Finds masks among files that would all be images: a folder or a suffix that no rule knows has them.

A mask is stored without loss and has few colors. Photographs have hundreds, also in a small sample of their pixels.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from shardwright.images.decode import convert, decode
from shardwright.images.header import ImageError
from shardwright.images.read_header import read_header
from shardwright.ingest.survey import SurveyedInput
from shardwright.storage import map_threads, read_bytes, readers

_LOOKED_AT = 32
_LOSSLESS = (".png", ".gif", ".bmp", ".tif", ".tiff")
# Colors of a mask at most, and of a photograph at least, among the pixels of a grid.
_FEW, _MANY, _GRID = 16, 48, 64
# Share of the files that each of the two kinds has at least.
_SHARE = 0.15
_ENDING = re.compile(r"[_.-][^_./-]+$")


class MasksAmong(NamedTuple):
    """Masks among images.

    Attributes:
        masks: keys of files that look like masks.
        photographs: keys of files that do not.
        suffix: what the names of most of these masks end with and no photograph's does, or empty.
    """

    masks: tuple[str, ...]
    photographs: tuple[str, ...]
    suffix: str


def find_masks(surveyed: SurveyedInput, max_pixels: int) -> MasksAmong | None:
    """Looks at some files at even distances; returns `None` where they are of one kind.

    Args:
        surveyed: the input, without annotations.
        max_pixels: `images.max_pixels`.
    """
    listing = surveyed.listing
    good = [i for i in range(len(listing.keys)) if i not in surveyed.rejected]
    if not any(listing.keys[i].lower().endswith(_LOSSLESS) for i in good):
        return None
    chosen = sorted({good[at * len(good) // _LOOKED_AT] for at in range(_LOOKED_AT)})
    counts = map_threads(lambda i: _colors(listing.path(i), listing.pin(i), max_pixels), chosen, readers(listing.root))
    masks, photographs = [], []
    for i, count in zip(chosen, counts, strict=True):
        if 0 < count <= _FEW and listing.keys[i].lower().endswith(_LOSSLESS):
            masks.append(listing.keys[i])
        elif count >= _MANY:
            photographs.append(listing.keys[i])
    if min(len(masks), len(photographs)) < max(2, _SHARE * len(chosen)):
        return None
    return MasksAmong(tuple(masks), tuple(photographs), _common_suffix(masks, photographs))


def _colors(path: str, pin: str, max_pixels: int) -> int:
    """Returns how many colors a grid of pixels of a file has, 0 where it cannot be read."""
    with suppress(OSError, ImageError):
        data = read_bytes(path, pin)
        try:
            picture = decode(data, read_header(data, max_pixels=max_pixels))
        except ImageError:
            picture, _ = convert(data, max_pixels=max_pixels)
        pixels = np.asarray(picture)
        rows, columns = (max(1, side // _GRID) for side in pixels.shape[:2])
        grid = pixels[::rows, ::columns]
        return len(np.unique(grid.reshape(-1, *grid.shape[2:]), axis=0))
    return 0


def _common_suffix(masks: Sequence[str], photographs: Sequence[str]) -> str:
    endings = Counter(found[0] for key in masks if (found := _ENDING.search(os.path.splitext(key)[0])))
    suffix, count = max(endings.items(), key=lambda entry: entry[1], default=("", 0))
    others = any(os.path.splitext(key)[0].endswith(suffix) for key in photographs)
    return suffix if suffix and 2 * count >= len(masks) and not others and not suffix[1:].isdigit() else ""
