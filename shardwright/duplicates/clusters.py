"""Groups of equal or near-equal images: connected components over pairs, as arrays, in bounded memory.

A group is named by its first member, so the same images have the same groups in any order of their pairs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shardwright.duplicates.hamming import Hashes, Positions, bit_counts, pairs_within, search_cost
from shardwright.union_find import UnionFind

_START = 8


def equal_clusters(digests: npt.NDArray[np.uint8], there: npt.NDArray[np.bool_]) -> Positions:
    """Returns groups of equal digests.

    Args:
        digests: BLAKE3 of each image, uint8 (n, 32).
        there: which of them have one; the others equal nothing, bool (n,).

    Returns:
        Position of the first image with the same digest, int64 (n,).
    """
    firsts = np.arange(len(digests))
    having = np.flatnonzero(there)
    # All but those that share their first bytes are left out beforehand: of a million images that takes far less.
    starts = np.ascontiguousarray(digests[having, :_START]).view(np.uint64)[:, 0]
    order = np.argsort(starts, kind="stable")
    again = np.diff(starts[order]) == 0
    having = np.sort(having[order[np.append(again, False) | np.insert(again, 0, False)]]) if again.any() else having[:0]
    words = np.ascontiguousarray(digests[having]).view(np.uint64)
    # Stable, so that within equal digests the positions rise.
    order = np.lexsort(tuple(words.T))
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (words[order[1:]] != words[order[:-1]]).any(axis=1)
    begins = order[fresh]
    firsts[having[order]] = having[begins[np.cumsum(fresh) - 1]]
    return firsts


def near_clusters(hashes: Hashes, limit: int, confirm: Hashes | None = None, confirm_limit: int = 0) -> Positions:
    """Returns groups of images whose hashes differ in few bits, directly or by way of others (single linkage).

    Args:
        hashes: a hash of each image, uint64 (n,).
        limit: most bits in which two images' hashes may differ, 0 to 64.
        confirm: a second hash of each image, which must be near too.
        confirm_limit: most bits in which the second may differ.

    Returns:
        Position of the first image of the same group, int64 (n,).
    """
    if not len(hashes):
        return np.arange(0)
    # Images with equal hashes need no search, however many there are.
    if confirm is None:
        rows, first, place = np.unique(hashes, return_index=True, return_inverse=True)
        groups = _joined(rows, limit, None, 0)
    else:
        order = np.lexsort((confirm, hashes))
        fresh = np.ones(len(order), dtype=np.bool_)
        fresh[1:] = (hashes[order[1:]] != hashes[order[:-1]]) | (confirm[order[1:]] != confirm[order[:-1]])
        first = order[fresh]
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.cumsum(fresh) - 1
        rows, others = hashes[first], confirm[first]
        # Flat images crowd in one hash and not in the other: look where there is less to compare.
        if search_cost(others, confirm_limit) < search_cost(rows, limit):
            rows, limit, others, confirm_limit = others, confirm_limit, rows, limit
        groups = _joined(rows, limit, others, confirm_limit)
    least = np.full(len(groups), len(hashes))
    np.minimum.at(least, groups, first)
    firsts: npt.NDArray[np.int64] = least[groups[place]]
    return firsts


def _joined(rows: Hashes, limit: int, others: Hashes | None, others_limit: int) -> Positions:
    groups = UnionFind(len(rows))
    for one, other in pairs_within(rows, limit):
        if others is not None:
            near = bit_counts(others[one] ^ others[other]) <= others_limit
            one, other = one[near], other[near]
        groups.join(one, other)
    return groups.firsts()
