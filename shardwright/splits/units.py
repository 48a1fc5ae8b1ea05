"""Units of images that must be in one split: those of a group or a cluster of duplicates, and all that these join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from shardwright.union_find import UnionFind


@dataclass(frozen=True)
class Units:
    """Images by what they are tied to; most are not tied to others and are a separate unit.

    Attributes:
        unit_of: number of each image's unit, int64, from 0 in the order of the units' first images.
        names: what a unit's hash is taken of: its first group, by name, or the key of its first image.
    """

    unit_of: npt.NDArray[np.int64]
    names: Sequence[str]


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
    keys: Sequence[str], groups: Sequence[str] | None = None, clusters: npt.NDArray[np.int64] | None = None
) -> Units:
    """Joins images that share a group or a cluster, directly or through others.

    Args:
        keys: distinct keys, sorted.
        groups: name of each image's group, empty for none.
        clusters: number of each image's cluster of duplicates, below 0 for none.
    """
    if groups is None and (clusters is None or not (clusters >= 0).any()):
        return Units(np.arange(len(keys), dtype=np.int64), keys)
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
    names = [keys[root] for root in roots.tolist()]
    if groups is not None:
        chosen: dict[int, str] = {}
        for unit, group in zip(unit_of.reshape(-1).tolist(), groups, strict=True):
            if group:
                chosen[unit] = min(chosen.get(unit, group), group)
        for unit, group in chosen.items():
            names[unit] = group
    return Units(unit_of.astype(np.int64).reshape(-1), names)


def apply_previous(units: Units, old: npt.NDArray[np.int64]) -> PreviousAssignment:
    """Lets new images follow the old ones they are tied to.

    Args:
        units: the images.
        old: number of each image's split in an earlier dataset, -1 for new images.
    """
    result = PreviousAssignment(old.copy())
    if len(units.names) == len(old):
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
