"""Pictures of predictions: masks drawn over images, confusion matrices, captions, bars of classes.

They need numpy and Pillow only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from shardwright.images.colors import class_color

Pixels = npt.NDArray[np.uint8]

_OPACITY = 0.45
_GAP = 4
_CELL = 44
_DARK = np.array((0, 68, 136), np.float64)
_GRAY = (128, 128, 128)
_LEAST_WIDTH = 240
_LINE, _LETTER = 14, 6
_ROW, _BAR, _SPACE = 20, 220, 8
# Colors of the counts: true positives, false negatives, false positives.
_COLORS = ((0, 114, 178), (230, 159, 0), (160, 160, 160))
_MEANINGS = ("found", "missed", "false")


def overlay(image: Pixels, masks: npt.NDArray[Any], labels: Sequence[int] | None = None) -> Pixels:
    """Draws masks over an image: tinted inside, with a full-colored edge.

    Args:
        image: uint8 [H, W, 3].
        masks: [H, W, C], 0 or 1; later classes cover earlier ones.
        labels: numbers of their classes, which choose the colors; by default from 0. Below 0 is gray: not counted.

    Returns:
        uint8 [H, W, 3].
    """
    drawn = image.astype(np.float64)
    for c, label in enumerate(range(masks.shape[-1]) if labels is None else labels):
        inside = masks[..., c].astype(bool)
        color = np.array(class_color(label) if label >= 0 else _GRAY, np.float64)
        drawn[inside] = (1 - _OPACITY) * drawn[inside] + _OPACITY * color
        drawn[edge(inside)] = color
    return np.floor(drawn + 0.5).astype(np.uint8)


def side_by_side(images: Sequence[Pixels]) -> Pixels:
    """Joins images of one size horizontally, with white gaps."""
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
    names = [drawable(name, 16) for name in classes]
    margin = 12 + 6 * max(len(name) for name in names)
    side = _CELL * len(names)
    picture = Image.new("RGB", (margin + side + 8, margin + side + 8), "white")
    draw = ImageDraw.Draw(picture)
    for row, name in enumerate(names):
        top = margin + row * _CELL
        draw.text((4, top + _CELL // 2 - 6), name, fill="black")
        # Column names are rotated, so that long ones do not overlap.
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
    """Returns the pixels of a mask that have a direct neighbor outside it; the image's border does not count."""
    padded = np.pad(inside, 1, mode="edge")
    middle = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return inside & ~middle


def captioned(image: Pixels, lines: Sequence[str]) -> Pixels:
    """Writes lines of text below an image; a small image is enlarged first.

    Args:
        image: uint8 [H, W, 3].
        lines: lines that are too long are cut; non-ASCII letters become question marks.

    Returns:
        uint8 [h, w, 3].
    """
    factor = max(1, -(-_LEAST_WIDTH // image.shape[1]))
    large = image.repeat(factor, axis=0).repeat(factor, axis=1)
    height, width = large.shape[:2]
    picture = Image.new("RGB", (width, height + _LINE * len(lines) + 4), "white")
    picture.paste(Image.fromarray(large), (0, 0))
    draw = ImageDraw.Draw(picture)
    for number, line in enumerate(lines):
        draw.text((4, height + 2 + _LINE * number), drawable(line, (width - 8) // _LETTER), fill="black")
    return np.asarray(picture, np.uint8)


def class_bars(found: npt.ArrayLike, missed: npt.ArrayLike, false: npt.ArrayLike, classes: Sequence[str]) -> Pixels:
    """Draws for every class in how many images it was found, missed, and predicted although it is absent.

    Args:
        found: images, [C].
        missed: images, [C].
        false: images, [C].
        classes: names of the classes.

    Returns:
        uint8 [h, w, 3].
    """
    counts = np.stack([np.asarray(part, np.int64) for part in (found, missed, false)], axis=1)
    names = [drawable(name, 20) for name in classes]
    margin = 12 + _LETTER * max(len(name) for name in names)
    picture = Image.new("RGB", (margin + _BAR + 120, _ROW * (len(names) + 1) + 4), "white")
    draw = ImageDraw.Draw(picture)
    left = margin
    for meaning, color in zip(_MEANINGS, _COLORS, strict=True):
        draw.rectangle((left, 4, left + 10, 14), fill=color)
        draw.text((left + 14, 3), meaning, fill="black")
        left += 24 + _LETTER * len(meaning)
    most = max(1, int(counts.sum(1).max()))
    for row, name in enumerate(names):
        top = _ROW * (row + 1)
        draw.text((4, top + 3), name, fill="black")
        left = margin
        for value, color in zip(counts[row].tolist(), _COLORS, strict=True):
            right = left + value * _BAR // most
            if right > left:
                draw.rectangle((left, top + 3, right - 1, top + _ROW - 4), fill=color)
            left = right
        draw.text((left + _SPACE, top + 3), "/".join(map(str, counts[row].tolist())), fill="black")
    return np.asarray(picture, np.uint8)


def drawable(text: str, letters: int | None = None) -> str:
    """Returns a line in the letters that Pillow's own font has, cut to a length."""
    return text.encode("ascii", "replace").decode().replace("\n", " ")[:letters]
