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
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from shardwright.config.split import split_word
from shardwright.splits.hashing import Splitter
from shardwright.splits.stratified import ClassTable, stratify
from shardwright.splits.units import Units, apply_previous, split_units

NEW: Final = -1
UNASSIGNED: Final = -1


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
        tied: number of units of several images that groups and clusters make.
        kept: number of images that are in the split of the earlier dataset.
    """

    names: tuple[str, ...]
    split_of: npt.NDArray[np.int64]
    bridging: Mapping[int, tuple[int, int]]
    leaks: Sequence[tuple[int, int]]
    tied: int
    kept: int

    def counts(self) -> dict[str, int]:
        """Returns the number of images in each split."""
        counted = np.bincount(self.split_of[self.split_of >= 0], minlength=len(self.names))
        return dict(zip(self.names, counted.tolist(), strict=True))


def assign_splits(
    units: Units,
    shares: Mapping[str, float],
    *,
    salt: str = "",
    folds: Folds | None = None,
    table: ClassTable | None = None,
    declared: npt.NDArray[np.int64] | None = None,
    previous: npt.NDArray[np.int64] | None = None,
) -> Assignment:
    """Assigns every image to a split.

    Args:
        units: the images and what is in one split with them, see `join_units`.
        shares: split -> share, above 0, adding up to about 1. Splits are numbered in the order of their names.
        salt: changes every assignment by hash.
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
            part_of = stratify(units, table, parts, split_of, todo, salt)
        else:
            part_of = _part_by_hash(units, parts, todo, salt)
        split_of[todo] = np.array(numbers, dtype=np.int64)[part_of[todo]]
    return Assignment(
        names=names,
        split_of=split_of,
        bridging=applied.bridging,
        leaks=split_units(units, split_of),
        tied=int((np.bincount(units.unit_of) > 1).sum()),
        kept=int((old >= 0).sum()),
    )


def _part_by_hash(
    units: Units, parts: Mapping[str, float], todo: npt.NDArray[np.bool_], salt: str
) -> npt.NDArray[np.int64]:
    """Returns the part of every image by the hash of its unit; `UNASSIGNED` in units without an image of `todo`."""
    splitter = Splitter.of(parts, salt)
    numbers = {part: number for number, part in enumerate(splitter.names)}
    wanted = np.unique(units.unit_of[todo])
    of_unit = np.full(len(units.names), UNASSIGNED, dtype=np.int64)
    numbered = (numbers[splitter.split(units.names[int(unit)])] for unit in wanted)
    of_unit[wanted] = np.fromiter(numbered, np.int64, len(wanted))
    return of_unit[units.unit_of]


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
