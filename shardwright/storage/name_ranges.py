"""Ranges of names, so that one flat folder of a bucket is listed in several places concurrently.

A store returns a page of a thousand names, and the next page only with the token of the page before. It can also begin
after any name. So the names that are left are cut in the middle when a page shows that there are more. The middle is
an estimate: of two names as numbers, whose digits are the characters that names had so far. A bad estimate costs one
request, and the next one is for half of what is left.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from shardwright.storage.object_store import ObjectInfo

# Characters of a name that are one number.
_DIGITS = 8
# Pages of a folder that is worth several requests.
_MANY = 3


@dataclass(eq=False)
class NameRange:
    """The names that begin with a prefix, are after one name and not after another one.

    Attributes:
        prefix: what they begin with.
        start: the listing begins after this name; empty for the first of all.
        stop: the last name; `None` where there is no limit.
        token: of the next page, `None` for the first one.
        last: the last name so far.
        letters: the characters after the prefix so far.
        pages: how many were taken, with those of the range that it was a part of.
    """

    prefix: str
    start: str = ""
    stop: str | None = None
    token: str | None = None
    last: str = ""
    letters: set[str] = field(default_factory=set)
    pages: int = 0

    def take(self, found: Sequence[ObjectInfo], token: str | None) -> list[ObjectInfo]:
        """Takes a page and the token of the next one; returns the objects that belong to the range."""
        self.token = token
        self.pages += 1
        if found:
            self.last = found[-1].name
            # Those of the first and the last name are enough for an estimate.
            self.letters.update(found[0].name[len(self.prefix) :], self.last[len(self.prefix) :])
        if self.stop is None or self.last < self.stop:
            return [info for info in found if info.name > self.start]
        self.token = None
        return [info for info in found if self.start < info.name <= self.stop]

    def split(self) -> NameRange | None:
        """Cuts off the second half of the names that are left, of many; returns it, `None` where there is none."""
        middle = middle_name(self.last, self.stop, self.prefix, self.letters) if self.pages >= _MANY else None
        if middle is None:
            return None
        rest = NameRange(self.prefix, middle, self.stop, last=middle, letters=set(self.letters), pages=self.pages)
        self.stop = middle
        return rest


def middle_name(low: str, high: str | None, prefix: str, letters: set[str]) -> str | None:
    """Returns a name between two others, about in the middle; `None` if there is none that is shorter or as long.

    Args:
        low: the lower name.
        high: the higher one; `None` for the end of all names with the prefix.
        prefix: what both begin with.
        letters: the characters that names have.
    """
    alphabet = sorted(letters)
    if not low.startswith(prefix) or len(alphabet) < 2:
        return None
    same, last = len(prefix), len(alphabet) ** _DIGITS
    if high is not None:
        same = next(i for i in range(len(high)) if high[i] != low[i : i + 1])
        last = _number(high[same:], alphabet)
    first = _number(low[same:], alphabet)
    digits, number = [], (first + last) // 2
    for _ in range(_DIGITS):
        number, digit = divmod(number, len(alphabet))
        digits.append(alphabet[digit])
    middle = low[:same] + "".join(reversed(digits)).rstrip(alphabet[0])
    return middle if low < middle and (high is None or middle < high) else None


def _number(text: str, alphabet: Sequence[str]) -> int:
    number = 0
    for place in range(_DIGITS):
        digit = min(bisect_left(alphabet, text[place]), len(alphabet) - 1) if place < len(text) else 0
        number = number * len(alphabet) + digit
    return number
