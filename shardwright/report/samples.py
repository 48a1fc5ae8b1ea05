"""Which images are shown: the first few by some score, kept while all go by, and read again in the end."""

from __future__ import annotations

import os
from typing import NamedTuple

from shardwright.dataset.random_access import RecordLocation


class Candidate(NamedTuple):
    """An image that is going to be shown; the order is that of the scores.

    Attributes:
        score: why it was chosen.
        key: its key.
        place: where its record lies.
        label: the class whose mask it is shown for; -1 for none.
    """

    score: float
    key: str
    place: RecordLocation
    label: int = -1


class LowestK:
    """Keeps those with the lowest scores, in memory that does not grow.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._picks: list[Candidate] = []
        self._limit = float("inf")

    def offer(self, score: float, key: str, place: RecordLocation, label: int = -1) -> None:
        """Takes part in the choice."""
        if score > self._limit:
            return
        self._picks.append(Candidate(score, key, place, label))
        if len(self._picks) >= 4 * self._count + 16:
            self._settle()

    def picks(self) -> list[Candidate]:
        """Those chosen, the lowest first."""
        self._settle()
        return list(self._picks)

    def _settle(self) -> None:
        self._picks = sorted(self._picks)[: self._count]
        if len(self._picks) == self._count:
            self._limit = self._picks[-1].score if self._picks else -float("inf")


def key_folder(key: str) -> str:
    """The first folder of a key, which mostly names a source; empty where it has none."""
    return os.path.dirname(key).split("/", 1)[0]
