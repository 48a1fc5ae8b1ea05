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
        self._candidates: list[Candidate] = []
        self._limit = float("inf")

    def offer(self, score: float, key: str, place: RecordLocation, label: int = -1) -> None:
        """Adds a candidate."""
        if score > self._limit:
            return
        self._candidates.append(Candidate(score, key, place, label))
        if len(self._candidates) >= 4 * self._count + 16:
            self._prune()

    def candidates(self) -> list[Candidate]:
        """Returns the kept candidates, the lowest score first."""
        self._prune()
        return list(self._candidates)

    def _prune(self) -> None:
        self._candidates = sorted(self._candidates)[: self._count]
        if len(self._candidates) == self._count:
            self._limit = self._candidates[-1].score if self._candidates else -float("inf")


def key_folder(key: str) -> str:
    """Returns the first folder of a key, which often names a source; empty if it has none."""
    return os.path.dirname(key).split("/", 1)[0]
