"""Which image a table means: by its whole key, or by the bare file name where only one image has it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from shardwright.errors import UsageError

_AMBIGUOUS = -1


class NameIndex:
    """Finds keys by the names that tables use.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are no images: found by their whole key, since a table may name them, never by file name.
    """

    def __init__(self, keys: Sequence[str], skip: frozenset[int] = frozenset()) -> None:
        self._keys = keys
        self._skip = skip
        self._by_key = {key: i for i, key in enumerate(keys)}
        self._by_base: dict[str, int] | None = None

    def find(self, name: str) -> int | None:
        """Position of the key that `name` means, or `None`.

        Raises:
            UsageError: a bare file name that several images have.
        """
        found = self._by_key.get(name)
        if found is not None:
            return found
        name = unicodedata.normalize("NFC", name.strip().replace("\\", "/"))
        while name.startswith("./"):
            name = name[2:]
        found = self._by_key.get(name)
        if found is not None or not name or "/" in name:
            return found
        if self._by_base is None:
            self._by_base = self._base_names()
        found = self._by_base.get(name)
        if found == _AMBIGUOUS:
            both = [key for i, key in enumerate(self._keys) if key.rpartition("/")[2] == name and i not in self._skip]
            raise UsageError(
                f"The annotations name {name!r}, which could be {both[0]} or {both[1]}. Write the whole relative path."
            )
        return found

    def _base_names(self) -> dict[str, int]:
        by_base: dict[str, int] = {}
        for key, i in self._by_key.items():
            if i not in self._skip:
                base = key.rpartition("/")[2]
                by_base[base] = _AMBIGUOUS if base in by_base else i
        return by_base
