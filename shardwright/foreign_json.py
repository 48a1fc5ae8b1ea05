"""JSON out of files that anyone may have written, where every way of being none is one error."""

from __future__ import annotations

import json
from typing import Any


def foreign_json(text: str | bytes) -> Any:
    """Reads a JSON document.

    Raises:
        ValueError: it is none, or its lists lie in each other deeper than Python reads them.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or mappings within each other without end") from None
