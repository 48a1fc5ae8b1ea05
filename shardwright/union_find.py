"""Groups of things that are joined in pairs: union-find over arrays.

SciPy's `connected_components` finds the same groups in the same time; the base installation has no SciPy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

# Joins that are gathered before the groups are brought up to date, which costs a pass over all members.
_GATHERED = 1 << 20


class UnionFind:
    """Groups that grow together: union-find over arrays.

    Args:
        count: members, at first each in a separate group.
    """

    def __init__(self, count: int) -> None:
        # Always flat: a member's entry is the first member of its group.
        self._first = np.arange(count)
        self._waiting: list[tuple[Positions, Positions]] = []
        self._gathered = 0

    def join(self, one: Positions, other: Positions) -> None:
        """Joins the groups of members, pair by pair."""
        ones, others = self._first[one], self._first[other]
        differ = ones != others
        if differ.any():
            self._waiting.append((ones[differ], others[differ]))
            self._gathered += len(self._waiting[-1][0])
            if self._gathered > _GATHERED:
                self._settle()

    def firsts(self) -> Positions:
        """Returns the first member of each member's group, int64 (count,)."""
        self._settle()
        return self._first

    def _settle(self) -> None:
        if not self._waiting:
            return
        one = np.concatenate([pair[0] for pair in self._waiting])
        other = np.concatenate([pair[1] for pair in self._waiting])
        self._waiting, self._gathered = [], 0
        while True:
            ones, others = self._first[one], self._first[other]
            differ = ones != others
            if not differ.any():
                return
            one, other = np.minimum(ones[differ], others[differ]), np.maximum(ones[differ], others[differ])
            # The first member of a group points to the least of those it meets; so there are no circles.
            np.minimum.at(self._first, other, one)
            while True:
                flatter = self._first[self._first]
                if np.array_equal(flatter, self._first):
                    break
                self._first = flatter
