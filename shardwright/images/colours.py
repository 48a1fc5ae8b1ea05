"""Colours as numbers in masks, which the bit `COLOUR` distinguishes from indices, and the colours of classes.

Classes have the colours of Okabe and Ito ("Color Universal Design", 2008), which colour-blind people can distinguish.
Black and the pale yellow are left out: they vanish on one of the two backgrounds. Further classes repeat the seven.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# An index has 16 bits at most, a colour 24.
COLOUR = 1 << 24

_TEXT = re.compile(r"#([0-9a-fA-F]{6})")


def colour_number(text: str) -> int | None:
    """Returns the number of a colour `#rrggbb`, `COLOUR` included; `None` for any other text."""
    match = _TEXT.fullmatch(text)
    return COLOUR + int(match[1], 16) if match else None


def show_value(value: int) -> str:
    """Returns a value for messages: `7`, or `#ff8000` for a colour."""
    return f"#{value - COLOUR:06x}" if value >= COLOUR else str(value)


class Colour(NamedTuple):
    """Levels of a colour, 0 to 255."""

    red: int
    green: int
    blue: int

    @property
    def css(self) -> str:
        """As CSS writes it."""
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"


PALETTE = (
    Colour(230, 159, 0),
    Colour(86, 180, 233),
    Colour(0, 158, 115),
    Colour(213, 94, 0),
    Colour(204, 121, 167),
    Colour(0, 114, 178),
    Colour(170, 150, 60),
)
# A ramp whose lightness falls evenly, for heat maps: readable in grey, too.
_RAMP = (
    Colour(247, 251, 255),
    Colour(198, 219, 239),
    Colour(107, 174, 214),
    Colour(33, 113, 181),
    Colour(8, 48, 107),
)


def class_colour(label: int) -> Colour:
    """Returns the colour of a class by its number."""
    return PALETTE[label % len(PALETTE)]


def ramp(part: float) -> Colour:
    """Returns a colour for a part of the greatest value, 0 to 1: from pale to dark."""
    place = min(max(part, 0.0), 1.0) * (len(_RAMP) - 1)
    lower = min(int(place), len(_RAMP) - 2)
    rest = place - lower
    one, other = _RAMP[lower], _RAMP[lower + 1]
    return Colour(*(round(a + (b - a) * rest) for a, b in zip(one, other, strict=True)))
