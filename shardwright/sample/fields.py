"""Fractal noise and soft bumps, of which clouds are drawn; both are float32 over the whole picture.

Lengths are in *units*: the picture is as large as 350x525 of them in area. So a pattern's scale follows the size of the
picture, and a larger picture has more detail, not more clouds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

Field = NDArray[np.float32]

_UNITS = math.sqrt(350 * 525)
_FINEST_PIXELS = 1.6
_CALM_BELOW, _CALM = 1.8, 0.8


@dataclass(frozen=True)
class Canvas:
    """Size of the picture.

    Attributes:
        height: rows.
        width: columns.
    """

    height: int
    width: int

    @property
    def scale(self) -> float:
        """Pixels per unit of length."""
        return math.sqrt(self.height * self.width) / _UNITS

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.height, self.width

    def grid(self) -> tuple[Field, Field]:
        """Columns (1, width) and rows (height, 1) of the pixels' centers, in units."""
        x = (np.arange(self.width, dtype=np.float32) + np.float32(0.5)) / np.float32(self.scale)
        y = (np.arange(self.height, dtype=np.float32) + np.float32(0.5)) / np.float32(self.scale)
        return x[None, :], y[:, None]


def resize(field: Field, rows: int, columns: int) -> Field:
    """Resizes to (rows, columns) by bicubic interpolation."""
    if field.shape == (rows, columns):
        return field
    image = Image.fromarray(field).resize((columns, rows), Image.Resampling.BICUBIC)
    return np.array(image, dtype=np.float32)


def blur(field: Field, pixels: float) -> Field:
    """Blurs values in 0..1 by a Gaussian, in steps of 1/255."""
    image = Image.fromarray((np.clip(field, 0, 1) * 255).astype(np.uint8))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(pixels))).astype(np.float32) / np.float32(255)


def smooth(field: Field, low: float, high: float) -> Field:
    """Returns a smooth step: 0 up to `low`, 1 from `high` on."""
    t = np.clip((field - np.float32(low)) * np.float32(1 / (high - low)), 0, 1)
    return cast(Field, t * t * (np.float32(3) - np.float32(2) * t))


def fractal(
    rng: np.random.Generator, canvas: Canvas, coarse: float, fine: float, *, gain: float = 0.6, stretch: float = 1.0
) -> Field:
    """Returns noise with detail from `coarse` to `fine` units, each octave `gain` times as strong as the one before.

    Each octave is drawn on its own grid and enlarged together with the coarser ones, so the cost is that of the last.

    Args:
        rng: random stream.
        canvas: size of the picture.
        coarse: largest grid cell, in units.
        fine: smallest grid cell, in units; nothing finer than about a pixel is drawn.
        gain: strength of an octave relative to the coarser one.
        stretch: how much longer than high the cells are.

    Returns:
        float32 (height, width), mean 0, standard deviation 1.
    """
    cell = coarse * canvas.scale
    last = max(fine * canvas.scale, _FINEST_PIXELS)

    def draw() -> Field:
        rows = max(2, round(canvas.height / cell) + 1)
        columns = max(2, round(canvas.width / (cell * stretch)) + 1)
        return rng.standard_normal((rows, columns), dtype=np.float32)

    field = draw()
    strength = 1.0
    while cell / 2 >= last:
        cell /= 2
        # Air is viscous: below some size, which only large pictures show, eddies weaken faster.
        strength *= gain if cell > _CALM_BELOW * canvas.scale else gain * _CALM
        octave = draw()
        field = resize(field, *octave.shape) + np.float32(strength) * octave
    field = resize(field, *canvas.shape)
    field -= field.mean()
    field /= max(float(field.std()), 1e-6)
    return field


def bumps(canvas: Canvas, x: Field, y: Field, radius: Field, top: Field) -> Field:
    """Draws paraboloids that begin at 0; of overlapping ones the highest is used.

    Args:
        canvas: size of the picture.
        x: centers, in units, (n,).
        y: centers, in units, (n,).
        radius: distance at which each is 0, in units, (n,).
        top: height of each, (n,).

    Returns:
        float32 (height, width).
    """
    field = np.zeros(canvas.shape, np.float32)
    columns, rows = np.arange(canvas.width, dtype=np.float32), np.arange(canvas.height, dtype=np.float32)
    scale = canvas.scale
    # Under a pixel a bump would fall between the samples.
    reach = np.maximum(radius * scale, 0.75)
    for cx, cy, r, t in zip(
        (x * scale - 0.5).tolist(), (y * scale - 0.5).tolist(), reach.tolist(), top.tolist(), strict=True
    ):
        left, right = max(0, math.ceil(cx - r)), min(canvas.width, math.floor(cx + r) + 1)
        above, below = max(0, math.ceil(cy - r)), min(canvas.height, math.floor(cy + r) + 1)
        if left >= right or above >= below:
            continue
        across = (columns[left:right] - cx) ** 2
        down = t - (rows[above:below] - cy) ** 2 * (t / (r * r))
        window = field[above:below, left:right]
        np.maximum(window, down[:, None] - across * (t / (r * r)), out=window)
    return field


def sample_at(field: Field, canvas: Canvas, x: Field, y: Field) -> Field:
    """Returns the values of a field at points given in units; points outside have the nearest pixel's value."""
    columns = np.clip((x * canvas.scale).astype(np.int64), 0, canvas.width - 1)
    rows = np.clip((y * canvas.scale).astype(np.int64), 0, canvas.height - 1)
    return field[rows, columns]


def shifted(field: Field, right: int, down: int) -> Field:
    """Returns the field moved by whole pixels, with its border repeated."""
    rows = np.clip(np.arange(field.shape[0]) - down, 0, field.shape[0] - 1)
    columns = np.clip(np.arange(field.shape[1]) - right, 0, field.shape[1] - 1)
    return field[rows][:, columns]


class Wind:
    """A turbulent displacement, which deforms regular structures.

    Args:
        rng: random stream.
        canvas: size of the picture.
        strength: typical displacement, in units.
    """

    def __init__(self, rng: np.random.Generator, canvas: Canvas, strength: float) -> None:
        step = np.float32(strength * canvas.scale)
        right = fractal(rng, canvas, 40, 1.2, gain=0.45) * step
        down = fractal(rng, canvas, 40, 1.2, gain=0.45) * step
        columns = np.arange(canvas.width, dtype=np.float32)[None, :] + right
        rows = np.arange(canvas.height, dtype=np.float32)[:, None] + down
        columns = np.clip(columns + np.float32(0.5), 0, canvas.width - 1).astype(np.int64)
        rows = np.clip(rows + np.float32(0.5), 0, canvas.height - 1).astype(np.int64)
        self._from = rows * canvas.width + columns

    def carry(self, field: Field) -> Field:
        """Returns the displaced field, sampled at the nearest pixel."""
        return cast(Field, field.ravel()[self._from])
