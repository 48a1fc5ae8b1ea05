"""Colours as numbers, beside the indices that masks hold otherwise: the bit `COLOUR` tells the two apart."""

from __future__ import annotations

import re

# An index has 16 bits at most, a colour 24.
COLOUR = 1 << 24

_TEXT = re.compile(r"#([0-9a-fA-F]{6})")


def colour_number(text: str) -> int | None:
    """The number of a colour `#rrggbb`, `COLOUR` included; `None` for any other text."""
    match = _TEXT.fullmatch(text)
    return COLOUR + int(match[1], 16) if match else None


def show_value(value: int) -> str:
    """A value for messages: `7`, or `#ff8000` for a colour."""
    return f"#{value - COLOUR:06x}" if value >= COLOUR else str(value)
