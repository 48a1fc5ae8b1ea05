"""The salted hash of a name, and nothing else, decides the split.

So an image keeps its split when others are added, removed or re-encoded. The order inside a split is the order of
the same hash: shuffled once, for good, and the same on every machine.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

_RANGE = 2**64


def hash_name(name: str, salt: str = "") -> int:
    """Returns the first eight bytes of SHA-256 of salt, NUL and name, as a number below 2**64."""
    return int.from_bytes(hashlib.sha256(f"{salt}\0{name}".encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Splitter:
    """Cuts the range of a 64-bit hash into one interval per part.

    Attributes:
        names: parts by name, so that the order in a configuration file plays no part.
        bounds: upper ends of their intervals, the last one left out.
        salt: changes every assignment.
    """

    names: tuple[str, ...]
    bounds: tuple[int, ...]
    salt: str = ""

    @staticmethod
    def of(shares: Mapping[str, float], salt: str = "") -> Splitter:
        """Returns a splitter for shares that are above 0 and add up to about 1; exact fractions of their sum count."""
        names = tuple(sorted(shares))
        exact = [Fraction(shares[name]) for name in names]
        total = sum(exact)
        bounds = []
        reached = Fraction(0)
        for share in exact[:-1]:
            reached += share
            bounds.append(int(reached / total * _RANGE))
        return Splitter(names, tuple(bounds), salt)

    def split(self, name: str) -> str:
        """Returns the part of a name."""
        return self.names[bisect_right(self.bounds, hash_name(name, self.salt))]


def split_order(
    keys: Sequence[str], split_of: npt.NDArray[np.int64], splits: int, salt: str = ""
) -> list[npt.NDArray[np.int64]]:
    """Puts the keys of each split into the order of their records.

    Args:
        keys: distinct keys, sorted.
        split_of: number of each key's split, from 0; below 0 for a key that is in none.
        splits: number of splits.
        salt: the salt of the splits.

    Returns:
        For every split: positions in `keys`, int64, ordered by hash (equal hashes by key).
    """
    hashes = np.fromiter((hash_name(key, salt) for key in keys), dtype=np.uint64, count=len(keys))
    order = np.argsort(hashes, kind="stable").astype(np.int64)
    numbers = split_of[order]
    return [order[numbers == number] for number in range(splits)]
