"""Which split a key falls into: a salted hash of the key, nothing else.

So an image keeps its split whatever is added, removed or re-encoded around it. The order inside a split is the order of
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


@dataclass(frozen=True)
class Splitter:
    """Cuts the range of a 64-bit hash into one interval per split.

    Attributes:
        names: splits by name, so that the order in a configuration file plays no part.
        bounds: upper ends of their intervals, the last one left out.
        salt: changes every assignment.
    """

    names: tuple[str, ...]
    bounds: tuple[int, ...]
    salt: str = ""

    @staticmethod
    def of(shares: Mapping[str, float], salt: str = "") -> Splitter:
        """A splitter for shares that are above 0 and add up to about 1; exact fractions of their sum count."""
        names = tuple(sorted(shares))
        exact = [Fraction(shares[name]) for name in names]
        total = sum(exact)
        bounds = []
        reached = Fraction(0)
        for share in exact[:-1]:
            reached += share
            bounds.append(int(reached / total * _RANGE))
        return Splitter(names, tuple(bounds), salt)

    def hash(self, key: str) -> int:
        """First eight bytes of SHA-256 of salt, NUL and key, as a number below 2**64."""
        digest = hashlib.sha256(f"{self.salt}\0{key}".encode()).digest()
        return int.from_bytes(digest[:8], "big")

    def split(self, key: str) -> str:
        """The split of a key."""
        return self.names[bisect_right(self.bounds, self.hash(key))]


def assign(splitter: Splitter, keys: Sequence[str]) -> dict[str, npt.NDArray[np.int64]]:
    """Assigns keys to splits.

    Args:
        splitter: names, shares and salt.
        keys: distinct keys, sorted.

    Returns:
        Split -> positions of its keys in `keys`, int64, ordered by hash (equal hashes by key); every split is there.
    """
    hashes = np.fromiter((splitter.hash(key) for key in keys), dtype=np.uint64, count=len(keys))
    order = np.argsort(hashes, kind="stable")
    cuts = np.searchsorted(hashes[order], np.array(splitter.bounds, dtype=np.uint64), side="left")
    return dict(zip(splitter.names, np.split(order.astype(np.int64), cuts), strict=True))
