"""Groups of equal or near-equal images: connected components over pairs, as arrays, in bounded memory.

A group is named by its first member, so the same images have the same groups in any order of their pairs.

Pairs of 64-bit hashes that differ in few bits, without comparing each with each.

This is multi-index hashing (Norouzi, Punjani and Fleet, 2014). The bits are dealt to bands. Hashes that differ in at
most `limit` bits differ in some band by at most that band's share of it. So for every band the hashes are sorted by its
bits, and each is compared with those in the buckets whose number differs from its own in that few bits. Bits that no
hash differs in are left out, and the others are dealt so that every band has its part of those that vary most. How many
bands are cheapest depends on how many hashes there are and how they crowd, so that is computed beforehand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from shardwright.union_find import UnionFind

_START = 8
Hashes: TypeAlias = npt.NDArray[np.uint64]
Positions: TypeAlias = npt.NDArray[np.int64]
_BITS = 64
# Pairs compared at once: few enough that the arrays stay in the processor's cache.
_AT_ONCE = 1 << 16
# A band's buckets are a table; more bits than these would make it larger than the hashes.
_WIDEST_BAND = 22
_MOST_BANDS = 8
# The cost of looking up a hash's bucket, and of beginning with another pattern of bits, in comparisons of a pair.
_VISIT = 1.5
_PATTERN = 2000
_numpy: Any = np  # numpy 1 has no `bitwise_count`, and its stubs know of none.
_COUNTS_BITS = hasattr(np, "bitwise_count")
_Plan: TypeAlias = "list[tuple[tuple[int, ...], int]]"


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


def bit_counts(values: Hashes) -> Hashes:
    """Returns the number of bits set in each value. Overwrites `values`."""
    if _COUNTS_BITS:
        counts: Hashes = _numpy.bitwise_count(values)
        return counts
    # Sums of neighboring bits, then of pairs, then of fours; the product adds the bytes up.
    part = values >> np.uint64(1)
    part &= np.uint64(0x5555555555555555)
    values -= part
    np.right_shift(values, np.uint64(2), out=part)
    part &= np.uint64(0x3333333333333333)
    values &= np.uint64(0x3333333333333333)
    values += part
    np.right_shift(values, np.uint64(4), out=part)
    values += part
    values &= np.uint64(0x0F0F0F0F0F0F0F0F)
    values *= np.uint64(0x0101010101010101)
    values >>= np.uint64(56)
    return values


def pairs_within(hashes: Hashes, limit: int) -> Iterator[tuple[Positions, Positions]]:
    """Finds all pairs of hashes that differ in at most `limit` bits.

    Args:
        hashes: shape (n,). Equal ones are found too, but each of them costs; give distinct ones where it matters.
        limit: most bits, 0 or more.

    Yields:
        Positions of the one and of the other, int64 (m,), m > 0. A pair may come more than once, in either order.
    """
    for band, radius in _plan(hashes, limit):
        yield from _pairs_in_band(hashes, limit, band, radius)


def search_cost(hashes: Hashes, limit: int) -> float:
    """Returns about how many pairs `pairs_within` compares at most."""
    return sum(_band_cost(hashes, band, radius) for band, radius in _plan(hashes, limit))


def _plan(hashes: Hashes, limit: int) -> _Plan:
    """Returns the bands to search, each as its bits and the most bits that may differ in it."""
    if len(hashes) < 2:
        return []
    # Bits that are not the same in all hashes, those first that are set in about half of them.
    shares = [abs(2 * int((hashes >> np.uint64(bit) & np.uint64(1)).sum()) - len(hashes)) for bit in range(_BITS)]
    bits = sorted((bit for bit in range(_BITS) if shares[bit] < len(hashes)), key=lambda bit: (shares[bit], bit))
    if len(bits) <= limit:
        return [((), 0)]  # All are near each other.
    plans = []
    for count in range(1, min(_MOST_BANDS, len(bits)) + 1):
        bands = [tuple(bits[first::count]) for first in range(count)]
        # The shares, plus one each, add up to limit + 1: so not all bands can exceed theirs. -1 means no search.
        share, larger = divmod(limit + 1 - count, count)
        plan = [
            (band, share + (number < larger)) for number, band in enumerate(bands) if share + (number < larger) >= 0
        ]
        if len(bands[0]) <= _WIDEST_BAND:
            plans.append((sum(_band_cost(hashes, *searched) for searched in plan), plan))
    everything: _Plan = [((), 0)]
    plans.append((_band_cost(hashes, (), 0), everything))
    return min(plans, key=lambda priced: priced[0])[1]


def _band_cost(hashes: Hashes, band: tuple[int, ...], radius: int) -> float:
    """Returns an upper bound: buckets that differ by one pattern have no more pairs than all have with themselves."""
    sizes = np.bincount(_numbers(hashes, band)).astype(np.float64)
    patterns = sum(math.comb(len(band), count) for count in range(radius + 1))
    return (1 << len(band)) + patterns * (_PATTERN + _VISIT * len(hashes) + float((sizes * sizes).sum()) / 2)


def _numbers(hashes: Hashes, band: tuple[int, ...]) -> Positions:
    """Returns the bits of a band, side by side, as a number per hash."""
    numbers = np.zeros(len(hashes), dtype=np.uint64)
    for place, bit in enumerate(band):
        numbers |= (hashes >> np.uint64(bit) & np.uint64(1)) << np.uint64(place)
    return numbers.astype(np.int64)


def _pairs_in_band(
    hashes: Hashes, limit: int, band: tuple[int, ...], radius: int
) -> Iterator[tuple[Positions, Positions]]:
    numbers = _numbers(hashes, band)
    order = np.argsort(numbers, kind="stable")
    ordered, numbers = hashes[order], numbers[order]
    # Bucket b is at starts[b] to starts[b + 1].
    starts = np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=1 << len(band)))))
    everyone = np.arange(len(hashes))
    for count in range(radius + 1):
        for places in itertools.combinations(range(len(band)), count):
            pattern = sum(1 << place for place in places)
            if pattern:
                # From one side only: from that whose highest differing bit is not set.
                who = everyone[numbers & 1 << places[-1] == 0]
                buckets = numbers[who] ^ pattern
                begins, ends = starts[buckets], starts[buckets + 1]
            else:
                who, begins, ends = everyone, everyone + 1, starts[numbers + 1]
            for left, right in _compared(ordered, limit, who, begins, ends):
                yield order[left], order[right]


def _compared(
    ordered: Hashes, limit: int, who: Positions, begins: Positions, ends: Positions
) -> Iterator[tuple[Positions, Positions]]:
    """Compares each of `who` with all from its begin to its end."""
    meet = ends > begins
    who, begins, lengths = who[meet], begins[meet], (ends - begins)[meet]
    reached = np.cumsum(lengths)
    first = 0
    while first < len(who):
        done = int(reached[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(reached, done + _AT_ONCE, side="right")))
        if last == first + 1:
            # Alone it may have more to compare than is done at once.
            begin, end = int(begins[first]), int(begins[first] + lengths[first])
            for piece in range(begin, end, _AT_ONCE):
                near = bit_counts(ordered[piece : min(piece + _AT_ONCE, end)] ^ ordered[who[first]]) <= limit
                right = np.flatnonzero(near) + piece
                if len(right):
                    yield np.full(len(right), who[first]), right
        else:
            left, right = _compared_at_once(ordered, limit, who[first:last], begins[first:last], lengths[first:last])
            if len(right):
                yield left, right
        first = last


def _compared_at_once(
    ordered: Hashes, limit: int, who: Positions, begins: Positions, lengths: Positions
) -> tuple[Positions, Positions]:
    reached = np.cumsum(lengths)
    right = np.arange(int(reached[-1])) + np.repeat(begins - reached + lengths, lengths)
    differing = np.repeat(ordered[who], lengths)
    differing ^= ordered[right]
    near = np.flatnonzero(bit_counts(differing) <= limit)
    return who[np.searchsorted(reached, near, side="right")], right[near]
