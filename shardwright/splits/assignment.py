"""Assigns every image to a split: by an earlier dataset, then by the input, then by the method.

| method | what decides | growing data moves |
|---|---|---|
| hash | the hash of the key, or of the group's name | nothing |
| stratified | the shares of the classes, then the hash | much, without an earlier dataset |
| folds | either of the two, with the folds as parts | as the method |
| predefined | the input | what the input moves |

With an earlier dataset no image of it moves, with any method. A cluster of duplicates goes where its first key is
hashed. Growing data can put another key first, or join two clusters. Then only an earlier dataset keeps images where
they were.

Splits that the input itself names: by a folder, in a column, in a list.

Splits in which every class has its share, for images of one class, of several or of none.

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

import hashlib
import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config.split import split_word
from shardwright.union_find import UnionFind

NEW: Final = -1
UNASSIGNED: Final = -1
_RANGE = 2**64
# Shares in a configuration are decimals; 0.1 means a tenth and not the float next to it.
_LARGEST_DENOMINATOR = 1_000_000
# Bits of a quotient after the point.
_PRECISION = 20


@dataclass(frozen=True)
class Folds:
    """One of several rounds of cross-validation: a fold is `eval`, the others are `train`.

    Attributes:
        count: how many folds there are.
        fold: which is `eval`, from 0.
    """

    count: int
    fold: int

    def parts(self, shares: Mapping[str, float]) -> dict[str, float]:
        """Returns the folds, with equal shares, and the splits other than `train` and `eval`; the same every round."""
        rest = {name: share for name, share in shares.items() if name not in ("train", "eval")}
        of_fold = (sum(shares.values()) - sum(rest.values())) / self.count
        return {**{f"fold {number:06d}": of_fold for number in range(self.count)}, **rest}

    def split(self, part: str) -> str:
        """Returns the split of a part, in this round."""
        if not part.startswith("fold "):
            return part
        return "eval" if int(part[5:]) == self.fold else "train"


@dataclass(frozen=True)
class Assignment:
    """The splits of all images.

    Attributes:
        names: splits, sorted.
        split_of: number of each image's split, int64; `UNASSIGNED` for those in `bridging`.
        bridging: new image -> the first two old images of different splits that it would join.
        leaks: first two images of different splits, for each group or cluster that is in several.
        kept: number of images that are in the split of the earlier dataset.
    """

    names: tuple[str, ...]
    split_of: npt.NDArray[np.int64]
    bridging: Mapping[int, tuple[int, int]]
    leaks: Sequence[tuple[int, int]]
    kept: int

    def counts(self) -> dict[str, int]:
        """Returns the number of images in each split."""
        counted = np.bincount(self.split_of[self.split_of >= 0], minlength=len(self.names))
        return dict(zip(self.names, counted.tolist(), strict=True))


def assign_splits(
    units: Units,
    shares: Mapping[str, float],
    *,
    folds: Folds | None = None,
    table: ClassTable | None = None,
    declared: npt.NDArray[np.int64] | None = None,
    previous: npt.NDArray[np.int64] | None = None,
) -> Assignment:
    """Assigns every image to a split.

    Args:
        units: the images and what is in one split with them, see `join_units`.
        shares: split -> share, above 0, adding up to about 1. Splits are numbered in the order of their names.
        folds: which round of cross-validation, or `None`.
        table: classes of the images, to be spread evenly; `None` for assignment by hash.
        declared: number of the split that the input itself names for each image; nothing but `previous` and the images
            of it that an image is tied to come before that.
        previous: number of each image's split in the earlier dataset, `NEW` where it was not there.

    Raises:
        ValueError: folds are to be both stratified and grown from an earlier dataset.
    """
    if table is not None and folds is not None and previous is not None:
        raise ValueError("which fold an image of `train` was in is not known afterwards: no shares can be filled up")
    names = tuple(sorted(shares))
    old = np.full(len(units.unit_of), NEW, dtype=np.int64) if previous is None else previous
    applied = apply_previous(units, old)
    split_of = applied.split_of.copy()
    todo = split_of < 0
    todo[list(applied.bridging)] = False
    if declared is not None:
        split_of[todo] = declared[todo]
    else:
        parts = shares if folds is None else folds.parts(shares)
        numbers = [names.index(part if folds is None else folds.split(part)) for part in sorted(parts)]
        if table is not None:
            part_of = stratify(units, table, parts, split_of, todo)
        else:
            part_of = Splitter.of(parts).parts(units.hashes)[units.unit_of]
        split_of[todo] = np.array(numbers, dtype=np.int64)[part_of[todo]]
    return Assignment(
        names=names,
        split_of=split_of,
        bridging=applied.bridging,
        leaks=split_units(units, split_of),
        kept=int((old >= 0).sum()),
    )


def split_named(text: str, names: Collection[str]) -> str | None:
    """Returns the split that a folder, a field or a file's name means, or `None`.

    Args:
        text: `val`, `Training`, `train2017`, …; upper and lower case are the same.
        names: splits of the configuration. Their own names come first, then the usual synonyms of theirs.
    """
    folded = text.strip().lower()
    if folded in names:
        return folded
    canonical = split_word(folded)
    return canonical if canonical in names else None


def folder_split(
    key: str, names: Collection[str], words: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, str] | None:
    """Returns the first folder of a key that means a split, and that split; `None` where no folder does.

    Args:
        key: the key.
        names: see `split_named`.
        words: further folders and their splits; see `shardwright.config.split.split_folders`.
    """
    for folder in key.split("/")[:-1]:
        split = split_named(folder, names) or (words.get(folder) if words.get(folder) in names else None)
        if split is not None:
            return folder, split
    return None


def hash_name(name: str, salt: str = "") -> int:
    """Returns the first eight bytes of SHA-256 of salt, NUL and name, as a number below 2**64."""
    return int.from_bytes(hashlib.sha256(f"{salt}\0{name}".encode()).digest()[:8], "big")


def hash_names(names: Sequence[str], salt: str = "") -> npt.NDArray[np.uint64]:
    """Returns `hash_name` of each name, uint64 (n,)."""
    return np.fromiter((hash_name(name, salt) for name in names), np.uint64, len(names))


@dataclass(frozen=True)
class Splitter:
    """Cuts the range of a 64-bit hash into one interval per part.

    Attributes:
        names: parts by name, so that the order in a configuration file plays no part.
        bounds: upper ends of their intervals, the last one left out.
    """

    names: tuple[str, ...]
    bounds: tuple[int, ...]

    @staticmethod
    def of(shares: Mapping[str, float]) -> Splitter:
        """Returns a splitter for shares that are above 0 and add up to about 1; exact fractions of their sum count."""
        names = tuple(sorted(shares))
        exact = [Fraction(shares[name]) for name in names]
        total = sum(exact)
        bounds = []
        reached = Fraction(0)
        for share in exact[:-1]:
            reached += share
            bounds.append(int(reached / total * _RANGE))
        return Splitter(names, tuple(bounds))

    def parts(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Returns the number of each hash's part, int64 (n,)."""
        return np.searchsorted(np.array(self.bounds, np.uint64), hashes, "right").astype(np.int64)


def split_order(
    hashes: npt.NDArray[np.uint64], split_of: npt.NDArray[np.int64], splits: int
) -> list[npt.NDArray[np.int64]]:
    """Puts the keys of each split into the order of their records.

    Args:
        hashes: of distinct keys, which are sorted; see `Units`.
        split_of: number of each key's split, from 0; below 0 for a key that is in none.
        splits: number of splits.

    Returns:
        For every split: positions of the keys, int64, ordered by hash (equal hashes by key).
    """
    order = np.argsort(hashes, kind="stable").astype(np.int64)
    numbers = split_of[order]
    return [order[numbers == number] for number in range(splits)]


@dataclass(frozen=True)
class Units:
    """Images by what they are tied to; most are not tied to others and are a separate unit.

    Attributes:
        unit_of: number of each image's unit, int64, from 0 in the order of the units' first images.
        hashes: of each unit, uint64: that of its first group, by name, or of the key of its first image.
        of_keys: the hash of each image's key, uint64.
    """

    unit_of: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]
    of_keys: npt.NDArray[np.uint64]


@dataclass
class PreviousAssignment:
    """The splits of today's images by an earlier assignment.

    Attributes:
        split_of: number of the split of images that are old or tied to old ones, -1 for all others.
        bridging: new image -> the first two old images of different splits it would join; it goes into no split.
        leaks: first two old images of different splits, for each unit that holds such.
    """

    split_of: npt.NDArray[np.int64]
    bridging: dict[int, tuple[int, int]] = field(default_factory=dict)
    leaks: list[tuple[int, int]] = field(default_factory=list)


def join_units(
    keys: Sequence[str],
    groups: Sequence[str] | None = None,
    clusters: npt.NDArray[np.int64] | None = None,
    salt: str = "",
) -> Units:
    """Joins images that share a group or a cluster, directly or through others.

    Args:
        keys: distinct keys, sorted.
        groups: name of each image's group, empty for none.
        clusters: number of each image's cluster of duplicates, below 0 for none.
        salt: changes every hash, and with it every assignment.
    """
    of_keys = hash_names(keys, salt)
    if groups is None and (clusters is None or not (clusters >= 0).any()):
        return Units(np.arange(len(keys), dtype=np.int64), of_keys, of_keys)
    units = UnionFind(len(keys))
    if groups is not None:
        first: dict[str, int] = {}
        named = [(i, first.setdefault(group, i)) for i, group in enumerate(groups) if group]
        units.join(*np.array(named, dtype=np.int64).reshape(-1, 2).T)
    if clusters is not None:
        members = np.flatnonzero(clusters >= 0)
        _, firsts, number = np.unique(clusters[members], return_index=True, return_inverse=True)
        units.join(members, members[firsts[number.reshape(-1)]])
    roots, unit_of = np.unique(units.firsts(), return_inverse=True)
    hashes = of_keys[roots]
    if groups is not None:
        chosen: dict[int, str] = {}
        for unit, group in zip(unit_of.reshape(-1).tolist(), groups, strict=True):
            if group:
                chosen[unit] = min(chosen.get(unit, group), group)
        for unit, group in chosen.items():
            hashes[unit] = hash_name(group, salt)
    return Units(unit_of.astype(np.int64).reshape(-1), hashes, of_keys)


def apply_previous(units: Units, old: npt.NDArray[np.int64]) -> PreviousAssignment:
    """Lets new images follow the old ones they are tied to.

    Args:
        units: the images.
        old: number of each image's split in an earlier dataset, -1 for new images.
    """
    result = PreviousAssignment(old.copy())
    if len(units.hashes) == len(old):
        return result  # Nothing is tied to anything.
    seen: dict[int, int] = {}
    in_several: dict[int, tuple[int, int]] = {}
    for i in np.flatnonzero(old >= 0).tolist():
        unit = int(units.unit_of[i])
        before = seen.setdefault(unit, i)
        if old[before] != old[i]:
            in_several.setdefault(unit, (before, i))
    result.leaks = sorted(in_several.values())
    if not seen:
        return result
    for i in np.flatnonzero(old < 0).tolist():
        unit = int(units.unit_of[i])
        if unit in in_several:
            result.bridging[i] = in_several[unit]
        elif unit in seen:
            result.split_of[i] = old[seen[unit]]
    return result


def split_units(units: Units, split_of: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Returns the first two images of different splits, for each unit that is in several."""
    return apply_previous(units, split_of).leaks


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
) -> npt.NDArray[np.int64]:
    """Divides images so that every part gets its share of every class.

    Args:
        units: images that stay together.
        table: the classes; images without any are divided like a separate class.
        shares: part -> share, above 0.
        assigned: number of the part, in the order of their names, of images that are in one already; they count towards
            the shares. -1 for all others.
        todo: which images are to be divided; whole units.

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
    part_of = _deal(stock, units.hashes.tolist(), need, wanted, parts)
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
        self.size = np.bincount(units.unit_of[todo], minlength=len(units.hashes)).tolist()
        self.classes: list[dict[int, int]] = [{} for _ in units.hashes]
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
