"""A picture as text for a terminal: two pixels a character, the upper half block before and behind in true colour."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

_UPPER_HALF = "\N{UPPER HALF BLOCK}"
_END = "\x1b[0m"
# A bomb is not decoded for a look at it.
_MOST_PIXELS = 1 << 28


def draw(encoded: bytes, columns: int, rows: int) -> str:
    """An image as lines of coloured characters, without a line end behind the last; empty where it cannot be decoded.

    Args:
        encoded: the image's bytes.
        columns: most characters of a line.
        rows: most lines.
    """
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            if image.width * image.height > _MOST_PIXELS or columns < 1 or rows < 1:
                return ""
            scale = min(columns / image.width, 2 * rows / image.height, 1.0)
            size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
            image.draft("RGB", size)
            pixels = np.asarray(image.convert("RGB").resize(size, Image.Resampling.BOX))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return ""
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:1])])
    lines = []
    for upper, lower in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        cells = (
            f"\x1b[38;2;{_rgb(one)};48;2;{_rgb(other)}m{_UPPER_HALF}" for one, other in zip(upper, lower, strict=True)
        )
        lines.append("".join(cells) + _END)
    return "\n".join(lines)


def _rgb(pixel: list[int]) -> str:
    return ";".join(map(str, pixel))
