"""Splits in which every class has its share, for images of one class, of several or of none.

The method is iterative stratification (Sechidis, Tsoumakas and Vlahavas, "On the Stratification of Multi-Label Data",
2011). The class with the fewest images left comes first, and each of its images goes where the class is most wanted.
Three things differ. An image of several classes goes where all of them together are most wanted. Nothing is drawn at
random: a salted hash decides what the method leaves open. And once no split lacks a whole image of a class, the rest of
the class goes to those splits that lack most images of any kind; otherwise many small classes would all round towards
the largest split, and the smaller ones would stay empty.

Frequent sets of classes, of which every part can get an image, count as classes too (after Szymański and Kajdanowicz,
"A Network Perspective on Stratification of Multi-Label Data", 2017). Otherwise one part would get its share of the
classes by few images that show many, and another by many that show few.

For images of one class each, a split's count of a class is its share of the class rounded up or down. All is reckoned
in integers: in units of one over the common denominator of the shares.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.splits.hashing import hash_name
from shardwright.splits.units import Units

# Shares in a configuration are decimals; 0.1 means a tenth and not the float next to it.
_LARGEST_DENOMINATOR = 1_000_000
# Bits of a quotient after the point.
_PRECISION = 20


class ClassTable(NamedTuple):
    """Which image shows which classes: one entry an image and class, in any order.

    Attributes:
        images: positions of images, int64.
        classes: indices of classes, int64, as long.
    """

    images: npt.NDArray[np.int64]
    classes: npt.NDArray[np.int64]


def stratify(
    units: Units,
    table: ClassTable,
    shares: Mapping[str, float],
    assigned: npt.NDArray[np.int64],
    todo: npt.NDArray[np.bool_],
    salt: str = "",
) -> npt.NDArray[np.int64]:
    """Divides images so that every part gets its share of every class.

    Args:
        units: images that stay together.
        table: the classes; images without any are divided like a separate class.
        shares: part -> share, above 0.
        assigned: number of the part, in the order of their names, of images that are in one already; they count towards
            the shares. -1 for all others.
        todo: which images are to be divided; whole units.
        salt: of the hash that breaks ties.

    Returns:
        Number of the part of every image, int64; `assigned` where `todo` is false.
    """
    parts, scale = _integer_shares(shares)
    counted = todo | (assigned >= 0)
    table = _with_sets(table, counted, -(-scale // min(parts)))
    stock = _Stock(units, table, todo)
    sizes = np.bincount(table.classes[counted[table.images]], minlength=stock.count)
    bare = counted.copy()
    bare[table.images] = False
    need = [[int(size) * part for part in parts] for size in [*sizes.tolist(), int(bare.sum())]]
    wanted = [int(counted.sum()) * part for part in parts]
    placed = assigned >= 0
    for image, label in zip(table.images.tolist(), table.classes.tolist(), strict=True):
        if placed[image]:
            need[label][assigned[image]] -= scale
    for image in np.flatnonzero(placed).tolist():
        wanted[assigned[image]] -= scale
        if bare[image]:
            need[-1][assigned[image]] -= scale
    part_of = _deal(stock, [hash_name(name, salt) for name in units.names], need, wanted, parts)
    result = assigned.copy()
    result[todo] = part_of[units.unit_of[todo]]
    return result


def _with_sets(table: ClassTable, counted: npt.NDArray[np.bool_], least: int) -> ClassTable:
    """Returns the classes, and each set of several that `least` images or more show as a further one."""
    order = np.lexsort((table.classes, table.images))
    shown: dict[int, list[int]] = {}
    for image, label in zip(table.images[order].tolist(), table.classes[order].tolist(), strict=True):
        if counted[image]:
            shown.setdefault(image, []).append(label)
    images_of: dict[tuple[int, ...], list[int]] = {}
    for image, labels in shown.items():
        if len(labels) > 1:
            images_of.setdefault(tuple(labels), []).append(image)
    frequent = [images_of[labels] for labels in sorted(images_of) if len(images_of[labels]) >= least]
    numbers = np.repeat(np.arange(len(frequent)), [len(images) for images in frequent])
    return ClassTable(
        np.concatenate([table.images, np.array([i for images in frequent for i in images], dtype=np.int64)]),
        np.concatenate([table.classes, int(table.classes.max(initial=-1)) + 1 + numbers]).astype(np.int64),
    )


class _Stock:
    """Units that are to be divided: for each its size and how many of its images show which class."""

    def __init__(self, units: Units, table: ClassTable, todo: npt.NDArray[np.bool_]) -> None:
        self.count = int(table.classes.max(initial=-1)) + 1
        self.size = np.bincount(units.unit_of[todo], minlength=len(units.names)).tolist()
        self.classes: list[dict[int, int]] = [{} for _ in units.names]
        bare = todo.copy()
        bare[table.images] = False
        for image, label in zip(table.images.tolist(), table.classes.tolist(), strict=True):
            if todo[image]:
                self._add(int(units.unit_of[image]), label)
        for image in np.flatnonzero(bare).tolist():
            self._add(int(units.unit_of[image]), self.count)

    def _add(self, unit: int, label: int) -> None:
        self.classes[unit][label] = self.classes[unit].get(label, 0) + 1


def _deal(
    stock: _Stock, hashes: list[int], need: list[list[int]], wanted: list[int], parts: list[int]
) -> npt.NDArray[np.int64]:
    ledger = _Ledger(need, wanted, parts)
    part_of = np.full(len(hashes), -1, dtype=np.int64)
    showing: list[list[int]] = [[] for _ in need]
    for unit, classes in enumerate(stock.classes):
        for label, count in classes.items():
            showing[label].append(unit)
            ledger.left[label] += count
    rarest = [(count, label) for label, count in enumerate(ledger.left) if count]
    heapq.heapify(rarest)
    while rarest:
        count, label = heapq.heappop(rarest)
        if count != ledger.left[label]:
            # It has lost images to rarer classes since.
            if ledger.left[label]:
                heapq.heappush(rarest, (ledger.left[label], label))
            continue
        # Large units first: small ones then even out what is left.
        for unit in sorted(showing[label], key=lambda u: (-stock.classes[u][label], hashes[u], u)):
            if part_of[unit] < 0:
                part_of[unit] = ledger.choose(label, stock.classes[unit], hashes[unit])
                ledger.book(int(part_of[unit]), stock.size[unit], stock.classes[unit])
    return part_of


class _Ledger:
    """The images that each part still lacks.

    Attributes:
        need: of each class, part by part, in units of one image over the shares' denominator; negative where it has
            more than its share.
        left: images of each class that are not in a part yet.
        urgency: of all images, part by part, by its share.
    """

    def __init__(self, need: list[list[int]], wanted: list[int], parts: list[int]) -> None:
        self.need = need
        self.left = [0] * len(need)
        self._image = sum(parts)
        common = math.lcm(*parts)
        self._by_share = [common // part for part in parts]
        # Half an image less, as in Webster's method, favours neither small parts nor large ones.
        self.urgency = [
            (2 * images - self._image) * factor for images, factor in zip(wanted, self._by_share, strict=True)
        ]

    def choose(self, label: int, classes: Mapping[int, int], tie: int) -> int:
        """Returns the part that a unit goes to.

        Args:
            label: the class whose images are being divided.
            classes: number of images of each class in the unit.
            tie: hash of the unit.
        """
        need, count = self.need[label], len(self.need[label])
        whole = [part for part in range(count) if need[part] >= classes[label] * self._image]
        some = whole or [part for part in range(count) if need[part] > 0] or range(count)
        if len(classes) > 1:
            return max(some, key=lambda part: (self._wish(part, classes), self.urgency[part], (part + tie) % count))
        if whole:
            return max(some, key=lambda part: (need[part], self.urgency[part], (part + tie) % count))
        return max(some, key=lambda part: (self.urgency[part], need[part], (part + tie) % count))

    def book(self, part: int, images: int, classes: Mapping[int, int]) -> None:
        """Puts a unit into a part."""
        self.urgency[part] -= 2 * images * self._image * self._by_share[part]
        for label, count in classes.items():
            self.need[label][part] -= count * self._image
            self.left[label] -= count

    def _wish(self, part: int, classes: Mapping[int, int]) -> int:
        """Returns how much a part lacks of all the classes of a unit, by its share and by what is left of each."""
        lacks = (((2 * self.need[label][part] - self._image) << _PRECISION) // self.left[label] for label in classes)
        return sum(lacks) * self._by_share[part]


def _integer_shares(shares: Mapping[str, float]) -> tuple[list[int], int]:
    """Shares in the order of their names as integers, and their sum."""
    floats = [Fraction(shares[name]) for name in sorted(shares)]
    exact = [share.limit_denominator(_LARGEST_DENOMINATOR) or share for share in floats]
    denominator = math.lcm(*(share.denominator for share in exact))
    parts = [int(share * denominator) for share in exact]
    return parts, sum(parts)
