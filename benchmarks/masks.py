"""Measures how fast masks are read, resized and drawn, compared with other packages; all on one core."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module, util
from typing import Any

import numpy as np

from benchmarks.figures import AT_LEAST, AT_MOST, Figure, seconds
from benchmarks.photographs import HEIGHT, WIDTH
from shardwright.images.geometry import Geometry, plan_geometry, source_columns, source_rows
from shardwright.masks import rle
from shardwright.masks.dialects import Dialect, to_counts
from shardwright.masks.rle import Runs
from shardwright.sample.scene import draw_masks

ROWS = 10_000
_DRAWN_IMAGES, _ROWS_PER_IMAGE = 25, 4
_SMALL_HEIGHT, _SMALL_WIDTH = 350, 525
_COMPARED = 200
_REPEATS = 3
_CLOCK = time.process_time


def mask_figures() -> list[Figure]:
    """Measures on drawn masks of the size of "Understanding Clouds from Satellite Images", 1400x2100."""
    rows = [rle.encode(mask) for image in range(_DRAWN_IMAGES) for mask in draw_masks(0, image, HEIGHT, WIDTH)]
    texts = [rle.to_pairs(one) for one in rows]
    # As in the original table, of an image's four rows some are empty; what is compared below is the others.
    runs = [one for one in rows if len(one)]
    note = f"{sum(map(len, runs)) / len(runs):.0f} runs a mask"
    small = plan_geometry("stretch", HEIGHT, WIDTH, _SMALL_HEIGHT, _SMALL_WIDTH)
    some = [runs[i % len(runs)] for i in range(_COMPARED)]
    in_runs = seconds(lambda: [rle.resample(one, small) for one in some], _REPEATS, _CLOCK)
    in_pixels = seconds(lambda: [_through_pixels(one, small) for one in some], clock=_CLOCK)
    reading = seconds(lambda: _read(texts), _REPEATS, _CLOCK)
    return [
        Figure(f"{ROWS:,} RLE rows read and merged", reading, "s", AT_MOST, 2, f"masks in {len(runs)} of {len(rows)}"),
        Figure("masks resized in runs: draw, sample, encode", in_pixels / in_runs, "x", AT_LEAST, 8, note),
        _drawing(some, note),
    ]


def _read(texts: list[str]) -> None:
    dialect = Dialect()
    for first in range(0, ROWS, _ROWS_PER_IMAGE):
        rows = [texts[row % len(texts)] for row in range(first, first + _ROWS_PER_IMAGE)]
        rle.union([dialect.parse(text, height=HEIGHT, width=WIDTH) for text in rows])


def _through_pixels(runs: Runs, geometry: Geometry) -> Runs:
    drawn = rle.draw(runs, geometry.source_height, geometry.source_width)
    return rle.encode(drawn[source_rows(geometry)][:, source_columns(geometry)])


def _drawing(runs: list[Runs], note: str) -> Figure:
    name = "masks drawn: pycocotools"
    if util.find_spec("pycocotools") is None:
        return Figure(name, None, "x", AT_LEAST, 1, "pycocotools is not installed")
    decode: Callable[..., Any] = import_module("pycocotools.mask").decode
    frombytes: Callable[..., Any] = import_module("pycocotools.mask").frPyObjects
    size = [HEIGHT, WIDTH]
    encoded = [frombytes({"size": size, "counts": to_counts(one, HEIGHT * WIDTH)}, *size) for one in runs]
    assert all(
        np.array_equal(decode(theirs), rle.draw(ours, HEIGHT, WIDTH))
        for theirs, ours in zip(encoded[:20], runs, strict=False)
    )
    theirs = seconds(lambda: [decode(one) for one in encoded], _REPEATS, _CLOCK)
    ours = seconds(lambda: [rle.draw(one, HEIGHT, WIDTH) for one in runs], _REPEATS, _CLOCK)
    return Figure(name, theirs / ours, "x", AT_LEAST, 1, note)
