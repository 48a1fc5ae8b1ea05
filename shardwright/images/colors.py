"""Colors as numbers in masks, which the bit `COLOR` distinguishes from indices, and the colors of classes.

Classes have the colors of Okabe and Ito ("Color Universal Design", 2008), which color-blind people can distinguish.
Black and the pale yellow are left out: they vanish on one of the two backgrounds. Further classes repeat the seven.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# An index has 16 bits at most, a color 24.
COLOR = 1 << 24

_TEXT = re.compile(r"#([0-9a-fA-F]{6})")


def color_number(text: str) -> int | None:
    """Returns the number of a color `#rrggbb`, `COLOR` included; `None` for any other text."""
    match = _TEXT.fullmatch(text)
    return COLOR + int(match[1], 16) if match else None


def show_value(value: int) -> str:
    """Returns a value for messages: `7`, or `#ff8000` for a color."""
    return f"#{value - COLOR:06x}" if value >= COLOR else str(value)


class Color(NamedTuple):
    """Levels of a color, 0 to 255."""

    red: int
    green: int
    blue: int

    @property
    def css(self) -> str:
        """As CSS writes it."""
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"


PALETTE = (
    Color(230, 159, 0),
    Color(86, 180, 233),
    Color(0, 158, 115),
    Color(213, 94, 0),
    Color(204, 121, 167),
    Color(0, 114, 178),
    Color(170, 150, 60),
)
# A ramp whose lightness falls evenly, for heat maps: readable in gray, too.
_RAMP = (
    Color(247, 251, 255),
    Color(198, 219, 239),
    Color(107, 174, 214),
    Color(33, 113, 181),
    Color(8, 48, 107),
)


def class_color(label: int) -> Color:
    """Returns the color of a class by its number."""
    return PALETTE[label % len(PALETTE)]


def ramp(part: float) -> Color:
    """Returns a color for a part of the greatest value, 0 to 1: from pale to dark."""
    place = min(max(part, 0.0), 1.0) * (len(_RAMP) - 1)
    lower = min(int(place), len(_RAMP) - 2)
    rest = place - lower
    one, other = _RAMP[lower], _RAMP[lower + 1]
    return Color(*(round(a + (b - a) * rest) for a, b in zip(one, other, strict=True)))
