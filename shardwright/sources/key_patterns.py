"""How a table names images by parts of their paths, where it names none by path or file name: told from both.

UW-Madison's `case123_day20_slice_0001` is `case123/case123_day20/scans/slice_0001_266_266_1.50_1.50.png`. A name is cut
at its underscores, and the pieces are looked for in a path, one behind the other; what surrounds and joins them there,
with any digits for its own, is the pattern. It counts only where it finds no name twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.sources.names import NameIndex

_MOST_PIECES = 3
# Names that patterns are made of, and paths that the pieces of each are looked for in.
_TRIED_NAMES, _TRIED_PATHS = 3, 1000
# Longer ones are cut in too many ways.
_MOST_UNDERSCORES = 12
_DIGITS = re.compile(r"[0-9]+")
# No piece begins or ends within a word of the path: case12 is not in case123.
_BEGIN, _END = r"(?<![^\W_])", r"(?![^\W_])"


class KeyPattern(NamedTuple):
    """A pattern for `input.labels.key_pattern`.

    Attributes:
        pattern: the regular expression.
        pieces: how many groups it has.
        found: how many of the names it finds an image for.
    """

    pattern: str
    pieces: int
    found: int


def tell_key_pattern(names: Sequence[str], keys: Sequence[str], skip: frozenset[int]) -> KeyPattern | None:
    """Finds the pattern by which a table names images.

    Args:
        names: different names of the table, none of which is a path or a file name.
        keys: sorted keys of the listing.
        skip: positions that are no images.

    Returns:
        The pattern that finds most of the names; `None` where none finds any, or two find other images for a name.
    """
    candidates = dict.fromkeys(pattern for name in names[:_TRIED_NAMES] for pattern in _patterns(name, keys, skip))
    best = KeyPattern("", 0, 0)
    meant: list[int | None] = []
    unsure = False
    for pattern in candidates:
        try:
            index = NameIndex(keys, skip, pattern)
        except UsageError:
            continue  # Two images of one name, or none of any.
        places = [index.find(name) for name in names]
        found = len(places) - places.count(None)
        if found > best.found:
            best, meant, unsure = KeyPattern(pattern, re.compile(pattern).groups, found), places, False
        elif found == best.found > 0:
            unsure = unsure or places != meant
    return None if unsure or not best.found else best


def _patterns(name: str, keys: Sequence[str], skip: frozenset[int]) -> Iterator[str]:
    """A pattern for each way to cut a name whose pieces stand in a path, few pieces first."""
    cuts = [place for place, character in enumerate(name) if character == "_"]
    if len(cuts) > _MOST_UNDERSCORES:
        return
    words = name.split("_")
    holding = (key for i, key in enumerate(keys) if i not in skip and all(word in key for word in words))
    paths = list(islice(holding, _TRIED_PATHS))
    for pieces in range(1, _MOST_PIECES + 1):
        for chosen in combinations(cuts, pieces - 1):
            begins = [0, *(place + 1 for place in chosen)]
            parts = [name[begin:end] for begin, end in zip(begins, [*chosen, len(name)], strict=True)]
            if not all(parts):
                continue
            sought = re.compile(rf"{_BEGIN}{rf'{_END}(.+?){_BEGIN}'.join(map(re.escape, parts))}{_END}")
            match = next(filter(None, map(sought.search, paths)), None)
            if match is not None:
                groups = [f"({_any_digits(part)})" for part in parts]
                between = [*map(_any_digits, match.groups()), ""]
                yield "".join(group + gap for group, gap in zip(groups, between, strict=True))


def _any_digits(text: str) -> str:
    """A regular expression for a text, with any digits in the places of its own."""
    return r"\d+".join(map(re.escape, _DIGITS.split(text)))


def quoted(pattern: str) -> str:
    """A pattern as YAML takes it."""
    return "'" + pattern.replace("'", "''") + "'"
