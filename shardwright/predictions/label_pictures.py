"""Pictures of what a model says of images that may have several classes; numpy and Pillow only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

Pixels = npt.NDArray[np.uint8]

_LEAST_WIDTH = 240
_LINE, _LETTER = 14, 6
_ROW, _BAR, _GAP = 20, 220, 8
# Of an image: found, missed, told though it is not there.
_COLOURS = ((0, 114, 178), (230, 159, 0), (160, 160, 160))
_MEANINGS = ("found", "missed", "false")


def captioned(image: Pixels, lines: Sequence[str]) -> Pixels:
    """Writes lines of text below an image; a small image is enlarged first.

    Args:
        image: uint8 [H, W, 3].
        lines: what cannot be drawn of them, and what is too long, is cut; non-ASCII letters become question marks.

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
        draw.text((4, height + 2 + _LINE * number), _plain(line, (width - 8) // _LETTER), fill="black")
    return np.asarray(picture, np.uint8)


def class_bars(found: npt.ArrayLike, missed: npt.ArrayLike, false: npt.ArrayLike, classes: Sequence[str]) -> Pixels:
    """Draws for every class in how many images it was found, missed, and told though it is not there.

    Args:
        found: images, [C].
        missed: images, [C].
        false: images, [C].
        classes: names of the classes.

    Returns:
        uint8 [h, w, 3].
    """
    counts = np.stack([np.asarray(part, np.int64) for part in (found, missed, false)], axis=1)
    names = [_plain(name, 20) for name in classes]
    margin = 12 + _LETTER * max(len(name) for name in names)
    picture = Image.new("RGB", (margin + _BAR + 120, _ROW * (len(names) + 1) + 4), "white")
    draw = ImageDraw.Draw(picture)
    left = margin
    for meaning, colour in zip(_MEANINGS, _COLOURS, strict=True):
        draw.rectangle((left, 4, left + 10, 14), fill=colour)
        draw.text((left + 14, 3), meaning, fill="black")
        left += 24 + _LETTER * len(meaning)
    most = max(1, int(counts.sum(1).max()))
    for row, name in enumerate(names):
        top = _ROW * (row + 1)
        draw.text((4, top + 3), name, fill="black")
        left = margin
        for value, colour in zip(counts[row].tolist(), _COLOURS, strict=True):
            right = left + value * _BAR // most
            if right > left:
                draw.rectangle((left, top + 3, right - 1, top + _ROW - 4), fill=colour)
            left = right
        draw.text((left + _GAP, top + 3), "/".join(map(str, counts[row].tolist())), fill="black")
    return np.asarray(picture, np.uint8)


def _plain(text: str, letters: int) -> str:
    return text.encode("ascii", "replace").decode().replace("\n", " ")[:letters]
