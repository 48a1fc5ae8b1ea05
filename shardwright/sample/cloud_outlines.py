"""Plans the regions of the clouds: one smooth, irregular outline per kind, in integer arithmetic.

Masks and the CSV must be the same on every stack, so nothing here depends on the rounding of a library. Random numbers
are integers, cosines come from a rounded table, and outlines have integer coordinates in a frame of area `FRAME`
squared. The frame does not depend on the size of the picture, so pictures of equal proportions have the same regions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

KINDS = ("Fish", "Flower", "Gravel", "Sugar")
FRAME = 1 << 13
"""Square root of the frame's area, in units of an outline."""

_POINTS = 96
_ONE = 1 << 12
_COSINES = [round(_ONE * math.cos(2 * math.pi * k / _POINTS)) for k in range(_POINTS)]
_PROBE = 96
"""Square root of the area, in pixels, of the small drawing on which areas are measured."""

_TARGETS = {1: (26, 42), 2: (20, 36), 3: (16, 30)}
"""Area of a region in hundredths of the picture, by the number of regions."""

_LEAST, _MOST = 11, 44
_TRIES = 24

Mask = NDArray[np.uint8]
Outline = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Region:
    """One kind of cloud and the outline around it.

    Attributes:
        kind: index into `KINDS`.
        outline: corners (x, y) in the frame's units; they may be outside the picture.
    """

    kind: int
    outline: Outline


def stream(seed: int, *path: int) -> np.random.Generator:
    """Returns a separate random stream for every seed and path, for example (image index, purpose)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *path])))


def frame_size(height: int, width: int) -> tuple[int, int]:
    """Returns height and width of a picture in the frame's units; their product is about `FRAME` squared."""
    return math.isqrt(FRAME * FRAME * height // width), math.isqrt(FRAME * FRAME * width // height)


def draw_outline(outline: Outline, height: int, width: int) -> Mask:
    """Fills an outline.

    Args:
        outline: corners (x, y) in the frame's units.
        height: rows of the picture.
        width: columns of the picture.

    Returns:
        uint8 (height, width), 1 inside.
    """
    rows, columns = frame_size(height, width)
    corners = [(x * width // columns, y * height // rows) for x, y in outline]
    canvas = Image.new("L", (width, height))
    ImageDraw.Draw(canvas).polygon(corners, fill=1, outline=1)
    return np.asarray(canvas).copy()


def _blob(rng: np.random.Generator, percent: int, rows: int, columns: int) -> Outline:
    """Returns an outline of about `percent` hundredths of the frame: a circle with waves on it, stretched and bent."""
    radius = math.isqrt(FRAME * FRAME * percent * 10 // 3142)
    waves = [(order, int(rng.integers(0, _POINTS)), int(rng.integers(0, 1200)) // order) for order in range(2, 11)]
    stretch = int(rng.integers(256, 360))
    bend = int(rng.integers(-90, 91))
    turn = int(rng.integers(0, _POINTS))
    cosine, sine = _COSINES[turn], _COSINES[(turn - _POINTS // 4) % _POINTS]
    margin = radius // 2
    center_x = int(rng.integers(margin, max(columns - margin, margin + 1)))
    center_y = int(rng.integers(margin, max(rows - margin, margin + 1)))
    corners = []
    for k in range(_POINTS):
        wave = sum(size * _COSINES[(order * k + phase) % _POINTS] for order, phase, size in waves)
        reach = radius + radius * wave // (_ONE * _ONE)
        x = reach * _COSINES[k] * stretch // (_ONE * 256)
        y = reach * _COSINES[(k - _POINTS // 4) % _POINTS] * 256 // (_ONE * stretch)
        y += bend * x * x // (256 * radius)
        corners.append((center_x + (x * cosine - y * sine) // _ONE, center_y + (x * sine + y * cosine) // _ONE))
    return tuple(corners)


def _kinds(rng: np.random.Generator, seed: int, index: int) -> list[int]:
    """Draws one to three kinds. The first kinds of each four consecutive images differ, for balance."""
    first = int(stream(seed, index // 4, 0).permutation(len(KINDS))[index % 4])
    others = [int(kind) for kind in rng.permutation(len(KINDS)) if kind != first]
    count = (1, 2, 2, 3)[int(rng.integers(0, 4))]
    return [first, *others[: count - 1]]


def plan_regions(seed: int, index: int, height: int, width: int) -> list[Region]:
    """Plans the regions of one image: one to three kinds, each about 11 to 44 hundredths of the picture.

    About half of the later regions are placed so that they overlap an earlier one, the others where they overlap least.

    Args:
        seed: of the data set.
        index: of the image, from 0.
        height: rows of the picture.
        width: columns of the picture.

    Returns:
        The regions in order of their kind.
    """
    rng = stream(seed, index, 1)
    rows, columns = frame_size(height, width)
    probe_height, probe_width = rows * _PROBE // FRAME + 1, columns * _PROBE // FRAME + 1
    kinds = _kinds(rng, seed, index)
    low, high = _TARGETS[len(kinds)]
    taken = np.zeros((probe_height, probe_width), np.uint8)
    regions: list[Region] = []
    for kind in kinds:
        wanted = int(rng.integers(8, 30)) if rng.integers(0, 2) else 0
        best: tuple[tuple[int, int], Outline, Mask] | None = None
        for _ in range(_TRIES):
            outline = _blob(rng, int(rng.integers(low, high)), rows, columns)
            mask = draw_outline(outline, probe_height, probe_width)
            area = int(np.count_nonzero(mask))
            # In a very long picture no area may fit; then the nearest one is used.
            wrong = max(0, _LEAST * mask.size - 100 * area, 100 * area - _MOST * mask.size)
            miss = abs(100 * int(np.count_nonzero(mask & taken)) // max(area, 1) - wanted) if regions else 0
            if best is None or (wrong, miss) < best[0]:
                best = ((wrong, miss), outline, mask)
            if wrong == 0 and miss <= 3:
                break
        assert best is not None
        taken |= best[2]
        regions.append(Region(kind, best[1]))
    return sorted(regions, key=lambda region: region.kind)
