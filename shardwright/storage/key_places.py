"""Where keys stand in a listing: asked for a million of them in sixteen megabytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardwright.fingerprint import text_number


class KeyPlaces:
    """Finds keys in a list of them by numbers that stand for them; a dictionary would take ten times the memory.

    Args:
        keys: the list; no key is in it twice.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        numbers = np.fromiter(map(text_number, keys), np.int64, len(keys))
        self._order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[self._order]

    def find(self, key: str) -> int:
        """Position of a key, -1 where it is not in the list."""
        number = text_number(key)
        at = int(np.searchsorted(self._numbers, number))
        while at < len(self._numbers) and self._numbers[at] == number:
            position = int(self._order[at])
            if self._keys[position] == key:
                return position
            at += 1
        return -1
