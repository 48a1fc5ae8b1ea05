"""Masks drawn over images, and a confusion matrix as a picture; numpy and Pillow only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from shardwright.report.colours import class_colour

Pixels = npt.NDArray[np.uint8]

_OPACITY = 0.45
_GAP = 4
_CELL = 44
_DARK = np.array((0, 68, 136), np.float64)


def overlay(image: Pixels, masks: npt.NDArray[Any], labels: Sequence[int] | None = None) -> Pixels:
    """Draws masks over an image: tinted inside, with a full-coloured edge.

    Args:
        image: uint8 [H, W, 3].
        masks: [H, W, C], 0 or 1; later classes lie over earlier ones.
        labels: numbers of their classes, which tell the colours; by default from 0.

    Returns:
        uint8 [H, W, 3].
    """
    drawn = image.astype(np.float64)
    for c, label in enumerate(range(masks.shape[-1]) if labels is None else labels):
        inside = masks[..., c].astype(bool)
        colour = np.array(class_colour(label), np.float64)
        drawn[inside] = (1 - _OPACITY) * drawn[inside] + _OPACITY * colour
        drawn[edge(inside)] = colour
    return np.floor(drawn + 0.5).astype(np.uint8)


def side_by_side(images: Sequence[Pixels]) -> Pixels:
    """Puts images of one size beside each other, with white gaps."""
    height = images[0].shape[0]
    gap = np.full((height, _GAP, 3), 255, np.uint8)
    parts = [part for image in images for part in (gap, image)][1:]
    return np.concatenate(parts, axis=1)


def confusion_picture(matrix: npt.ArrayLike, classes: Sequence[str]) -> Pixels:
    """Draws a confusion matrix: truth by row, prediction by column, darker for a larger share of the row.

    Args:
        matrix: counts, [K, K].
        classes: names of the classes; non-ASCII letters are drawn as question marks.

    Returns:
        uint8 [h, w, 3].
    """
    counts = np.asarray(matrix, np.int64)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    names = [name.encode("ascii", "replace").decode()[:16] for name in classes]
    margin = 12 + 6 * max(len(name) for name in names)
    side = _CELL * len(names)
    picture = Image.new("RGB", (margin + side + 8, margin + side + 8), "white")
    draw = ImageDraw.Draw(picture)
    for row, name in enumerate(names):
        top = margin + row * _CELL
        draw.text((4, top + _CELL // 2 - 6), name, fill="black")
        # Column names stand sideways, so that long ones do not meet.
        label = Image.new("RGB", (margin, 12), "white")
        ImageDraw.Draw(label).text((2, 0), name, fill="black")
        picture.paste(label.rotate(90, expand=True), (top + _CELL // 2 - 6, 0))
        for column in range(len(names)):
            share = shares[row, column]
            fill = tuple(int(v) for v in (1 - share) * 255 + share * _DARK)
            left = margin + column * _CELL
            draw.rectangle((left, top, left + _CELL - 2, top + _CELL - 2), fill=fill)
            text = str(counts[row, column])
            draw.text((left + 4, top + _CELL // 2 - 6), text, fill="white" if share > 0.5 else "black")
    return np.asarray(picture, np.uint8)


def edge(inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Pixels of a mask with a neighbour, above, below or beside, that is not in it; the image's border is none."""
    padded = np.pad(inside, 1, mode="edge")
    middle = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return inside & ~middle
