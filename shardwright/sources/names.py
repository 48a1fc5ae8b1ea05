"""Which image a table means: by its whole key, or by file name, by either without extension where one image fits."""

from __future__ import annotations

import os
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence

from shardwright.errors import UsageError
from shardwright.limited_pattern import LimitedPattern

_AMBIGUOUS = -1


class NameIndex:
    """Finds keys by the names that tables use.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are no images: found by their whole key, since a table may name them, never by file name.
        pattern: `input.labels.key_pattern`: images are named by what the groups of this regular expression find in
            their keys, joined by `_`, and in no other way.
        exact: whether images are named by their whole keys and in no other way, as in an export of ours.

    Raises:
        UsageError: the pattern finds the same name in two keys, or none in any.
    """

    def __init__(
        self,
        keys: Sequence[str],
        skip: frozenset[int] = frozenset(),
        pattern: str | None = None,
        *,
        exact: bool = False,
    ) -> None:
        self._keys = keys
        limited = None if pattern is None else LimitedPattern(pattern, "input.labels.key_pattern")
        self._by_pattern = None if limited is None else _by_pattern(keys, skip, limited)
        self._skip = skip
        self._exact = exact
        self._last: tuple[str, int | None] = ("", None)
        self._next = 0
        self._by_form: dict[Callable[[str], str], dict[str, int]] = {}

    def find(self, name: str) -> int | None:
        """Position of the key that `name` means, or `None`.

        Raises:
            UsageError: a bare file name, or a name without extension, that several images have.
        """
        if self._by_pattern is not None:
            return self._by_pattern.get(unicodedata.normalize("NFC", name.strip()))
        # Rows about an image mostly stand together.
        if self._last[0] != name:
            self._last = (name, self._find(name))
        return self._last[1]

    def _find(self, name: str) -> int | None:
        found = self._at(name)
        if found is not None or self._exact:
            return found
        name = unicodedata.normalize("NFC", name.strip().replace("\\", "/"))
        while name.startswith("./"):
            name = name[2:]
        found = self._at(name)
        if found is not None or not name:
            return found
        for form in (_stem,) if "/" in name else (_base, _stem, _base_stem):
            found = self._named(form).get(name)
            if found == _AMBIGUOUS:
                both = [key for i, key in enumerate(self._keys) if form(key) == name and i not in self._skip]
                raise UsageError(
                    f"The annotations name {name!r}, which could be {both[0]} or {both[1]}. "
                    "Write the whole relative path."
                )
            if found is not None:
                return found
        return None

    def _at(self, key: str) -> int | None:
        """Position of a whole key; they are sorted, and so are most tables: the key after the last one comes first."""
        place = self._next
        if place >= len(self._keys) or self._keys[place] != key:
            place = bisect_left(self._keys, key)
            if place >= len(self._keys) or self._keys[place] != key:
                return None
        self._next = place + 1
        return place

    def _named(self, form: Callable[[str], str]) -> dict[str, int]:
        """The images by a shorter form of their keys; made when it is first needed."""
        if form not in self._by_form:
            named: dict[str, int] = {}
            for i, key in enumerate(self._keys):
                if i not in self._skip:
                    short = form(key)
                    named[short] = _AMBIGUOUS if short in named else i
            self._by_form[form] = named
        return self._by_form[form]


def is_text(name: str) -> bool:
    """Whether UTF-8 can hold a name: JSON can escape halves of characters."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _by_pattern(keys: Sequence[str], skip: frozenset[int], pattern: LimitedPattern) -> dict[str, int]:
    named: dict[str, int] = {}
    for i, key in enumerate(keys):
        match = pattern.search(key) if i not in skip else None
        if match is None:
            continue
        name = "_".join(filter(None, match.groups()))
        if named.setdefault(name, i) != i:
            raise UsageError(
                f"input.labels.key_pattern: {pattern.pattern!r} finds {name!r} in both {keys[named[name]]} and {key}. "
                "Add a group for what tells them apart."
            )
    if not named:
        shown = ", ".join([key for i, key in enumerate(keys) if i not in skip][:3])
        raise UsageError(f"input.labels.key_pattern: {pattern.pattern!r} finds nothing in any image: {shown}. Mend it.")
    return named


def _base(key: str) -> str:
    return key.rpartition("/")[2]


def _stem(key: str) -> str:
    return os.path.splitext(key)[0]


def _base_stem(key: str) -> str:
    return _stem(_base(key))
