"""One image as several readings of its annotations have it, side by side: people see at once which one is right.

Needs numpy and Pillow only.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from shardwright.display.overlays import Pixels, drawable, overlay
from shardwright.display.thumbnails import StoredImage, fitted, shrunk
from shardwright.images.boxes import LABEL, XMAX, XMIN, YMAX, YMIN
from shardwright.images.geometry import plan_geometry
from shardwright.images.orientation import displayed_size, orient_boxes
from shardwright.masks.coordinate_frame import orient_runs
from shardwright.masks.rle import draw, resample

CELL_HEIGHT, CELL_WIDTH = 210, 280
# Sides of what is compared: a larger image is made smaller, so that a comparison takes a moment.
_LARGEST = 2048
# Readings that differ in less than that part of an image are shown enlarged, this part of a cell's pixels at a time.
_SMALL, _ZOOM = 0.02, 3
_GAP, _LINE, _LETTER, _MARGIN = 8, 13, 6, 6
_PALE = 225
_BOX = 2


class AnnotatedImage(StoredImage, Protocol):
    """An image with masks and boxes."""

    @property
    def boxes(self) -> dict[str, list[float]]:
        """Edges and classes of its boxes in the stored frame, by feature."""
        ...


class Column(NamedTuple):
    """A reading: its meaning, and what chooses it."""

    title: str
    setting: str


class Row(NamedTuple):
    """An image under each reading.

    Attributes:
        title: its name.
        cells: pictures of one size, uint8 [H, W, 3].
        captions: what is in each.
    """

    title: str
    cells: Sequence[Pixels]
    captions: Sequence[str]


def label_map(image: AnnotatedImage) -> npt.NDArray[np.int16]:
    """Returns the number of each pixel's class, as displayed: 0 for none, 1 for one not counted, 2 for the first class.

    Of a large image the map is smaller. The edges of boxes are drawn in. [H, W], int16.
    """
    height, width = image.size
    shape = displayed_size(height, width, image.orientation)
    rows, columns = fitted(*shape, _LARGEST, _LARGEST, most=1)
    plan = plan_geometry("stretch", *shape, rows, columns)
    labels = np.zeros((rows, columns), np.int16)
    for label in sorted(image.labels):
        runs = resample(orient_runs(image.runs(label), height, width, image.orientation), plan)
        labels[draw(runs, rows, columns).astype(bool)] = label + 2
    if image.boxes:
        boxes = orient_boxes(image.boxes, image.orientation)
        sides = np.stack([boxes[XMIN], boxes[YMIN], boxes[XMAX], boxes[YMAX]], axis=1) * (columns, rows, columns, rows)
        thick = max(1, _BOX * max(rows / CELL_HEIGHT, columns / CELL_WIDTH))
        for (left, top, right, bottom), label in zip(sides.round().astype(int), boxes[LABEL], strict=True):
            inside = np.zeros((rows, columns), bool)
            inside[max(top, 0) : bottom, max(left, 0) : right] = True
            inner = round(thick)
            inside[max(top + inner, 0) : max(bottom - inner, 0), max(left + inner, 0) : max(right - inner, 0)] = False
            labels[inside] = label + 1
    return labels


def difference(maps: Sequence[npt.NDArray[np.int16]]) -> float:
    """Returns the part of an image whose pixels differ between readings; 1 where its size does."""
    first, *others = maps
    if any(other.shape != first.shape for other in others):
        return 1.0
    return float(np.any([other != first for other in others], axis=0).mean()) if others else float((first > 0).mean())


def draw_row(title: str, images: Sequence[AnnotatedImage | None], captions: Sequence[str]) -> Row:
    """Draws an image under each reading; `None` where it is not in the dataset then.

    Readings that differ in few pixels are shown where they differ most, enlarged.
    """
    maps = [None if image is None else label_map(image) for image in images]
    there = [one for one in maps if one is not None]
    window = _window(there)
    cells = []
    for image, labels in zip(images, maps, strict=True):
        drawn = None if image is None or labels is None else _drawn(image, labels, window)
        cell = np.full((CELL_HEIGHT, CELL_WIDTH, 3), _PALE if drawn is None else 255, np.uint8)
        if drawn is not None:
            top, left = (CELL_HEIGHT - drawn.shape[0]) // 2, (CELL_WIDTH - drawn.shape[1]) // 2
            cell[top : top + drawn.shape[0], left : left + drawn.shape[1]] = drawn
        cells.append(cell)
    return Row(title + (", a part of it" if window else ""), cells, captions)


def _window(maps: Sequence[npt.NDArray[np.int16]]) -> tuple[int, int, int, int] | None:
    """Returns top, left, bottom and right of the part that is shown enlarged; `None` for the whole."""
    if len(maps) < 2 or any(one.shape != maps[0].shape for one in maps):
        return None
    rows, columns = maps[0].shape
    height, width = CELL_HEIGHT // _ZOOM, CELL_WIDTH // _ZOOM
    differs = np.any([one != maps[0] for one in maps[1:]], axis=0)
    if not differs.any() or differs.mean() > _SMALL or (rows <= height and columns <= width):
        return None
    # Sums over blocks of half a window: the block with most of the difference is in the middle.
    high, wide = max(1, min(height, rows) // 2), max(1, min(width, columns) // 2)
    sums = np.add.reduceat(np.add.reduceat(differs, range(0, rows, high), 0, np.int64), range(0, columns, wide), 1)
    row, column = np.unravel_index(int(sums.argmax()), sums.shape)
    top = min(max(0, int(row) * high - high // 2), max(0, rows - height))
    left = min(max(0, int(column) * wide - wide // 2), max(0, columns - width))
    return top, left, min(rows, top + height), min(columns, left + width)


def _drawn(
    image: AnnotatedImage, labels: npt.NDArray[np.int16], window: tuple[int, int, int, int] | None
) -> Pixels | None:
    rows, columns = labels.shape
    picture = None if image.header is None else shrunk(image.encoded, image.header, rows, columns)
    if picture is None:
        return None
    top, left, bottom, right = window or (0, 0, rows, columns)
    part, inside = picture.crop((left, top, right, bottom)), labels[top:bottom, left:right]
    size = fitted(bottom - top, right - left, CELL_WIDTH, CELL_HEIGHT)
    enlarged = size[0] > bottom - top
    part = part.resize(size[::-1], Image.Resampling.NEAREST if enlarged else Image.Resampling.BOX)
    index = np.asarray(Image.fromarray(inside.astype(np.int32), "I").resize(size[::-1], Image.Resampling.NEAREST))
    numbers = np.unique(index[index > 0]).tolist()
    masks = np.stack([index == number for number in numbers], axis=-1) if numbers else np.zeros((*size, 0))
    return overlay(np.asarray(part, np.uint8), masks, [number - 2 for number in numbers])


def strip(row: Row) -> Pixels:
    """Returns the pictures of a row next to each other, uint8 [H, W, 3]."""
    gap = np.full((CELL_HEIGHT, _GAP, 3), 255, np.uint8)
    return np.concatenate([part for cell in row.cells for part in (gap, cell)][1:], axis=1)


def draw_table(columns: Sequence[Column], rows: Sequence[Row]) -> Image.Image:
    """Draws images as rows and readings as columns, with what chooses each reading at its head."""
    letters = CELL_WIDTH // _LETTER
    heads = [
        [*textwrap.wrap(drawable(one.title), letters), "", *textwrap.wrap(drawable(one.setting), letters)]
        for one in columns
    ]
    # The longest title is cut: each row is an image, and its name may be a path.
    head = _MARGIN + _LINE * max(map(len, heads))
    captions = [[textwrap.wrap(drawable(text), letters)[:3] for text in row.captions] for row in rows]
    heights = [CELL_HEIGHT + _LINE * (2 + max(map(len, lines))) + _GAP for lines in captions]
    width = len(columns) * (CELL_WIDTH + _GAP) - _GAP
    picture = Image.new("RGB", (width + 2 * _MARGIN, head + sum(heights) + _MARGIN), "white")
    pen = ImageDraw.Draw(picture)
    lefts = [_MARGIN + number * (CELL_WIDTH + _GAP) for number in range(len(columns))]
    for left, lines in zip(lefts, heads, strict=True):
        pen.text((left, _MARGIN), "\n".join(lines), fill="black", spacing=_LINE - 11)
    top = head + _MARGIN
    for row, lines_of, height in zip(rows, captions, heights, strict=True):
        pen.text((_MARGIN, top), drawable(row.title)[: width // _LETTER], fill=(90, 90, 90))
        picture.paste(Image.fromarray(strip(row)), (_MARGIN, top + _LINE))
        for left, lines in zip(lefts, lines_of, strict=True):
            pen.text((left, top + _LINE + CELL_HEIGHT + 2), "\n".join(lines), fill="black", spacing=_LINE - 11)
        top += height
    return picture
