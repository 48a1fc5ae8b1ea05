"""Selects the images to show: those with the lowest scores, kept in one pass and read again at the end."""

from __future__ import annotations

import os
from typing import NamedTuple

from shardwright.dataset.random_access import RecordLocation


class Candidate(NamedTuple):
    """An image that may be shown; candidates are ordered by their scores.

    Attributes:
        score: the lowest scores are shown.
        key: its key.
        place: location of its record.
        label: the class whose mask it is shown for; -1 if there is none.
    """

    score: float
    key: str
    place: RecordLocation
    label: int = -1


class LowestK:
    """Keeps the candidates with the lowest scores, in constant memory.

    Args:
        count: number of candidates to keep.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._picks: list[Candidate] = []
        self._limit = float("inf")

    def offer(self, score: float, key: str, place: RecordLocation, label: int = -1) -> None:
        """Adds a candidate."""
        if score > self._limit:
            return
        self._picks.append(Candidate(score, key, place, label))
        if len(self._picks) >= 4 * self._count + 16:
            self._prune()

    def picks(self) -> list[Candidate]:
        """Returns the kept candidates, the lowest score first."""
        self._prune()
        return list(self._picks)

    def _prune(self) -> None:
        self._picks = sorted(self._picks)[: self._count]
        if len(self._picks) == self._count:
            self._limit = self._picks[-1].score if self._picks else -float("inf")


def key_folder(key: str) -> str:
    """Returns the first folder of a key, which often names a source; empty if it has none."""
    return os.path.dirname(key).split("/", 1)[0]
