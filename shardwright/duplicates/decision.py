"""Decides about images that are the same: which one is kept, what is reported, and what stays in one split.

All steps are on positions of keys that are sorted, so "the first" is the first by key, in any order of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.duplicates.hamming import Positions
from shardwright.errors import CheckFailed
from shardwright.running.progress import counted
from shardwright.union_find import UnionFind

CONFLICTING = "conflicting_duplicates"
_SHOWN = 3


@dataclass(frozen=True)
class DuplicateRule:
    """One way in which images can be the same, and what is done about it.

    Attributes:
        code: what the ledger calls it, e.g. `exact_duplicate`.
        option: YAML path of the option that asked for it.
        firsts: position of the first image of the same group, int64 (n,).
        action: `keep` all, keep the `first`, or `fail`.
        relation: how an image is like the one that is kept, e.g. `the same bytes as`.
        labels: position -> the labels of the image, for all in groups; equal where the labels agree.
    """

    code: str
    option: str
    firsts: Positions
    action: str
    relation: Callable[[int, int], str]
    labels: Mapping[int, str]


class DuplicateRow(NamedTuple):
    """Why an image is not going to be written.

    Attributes:
        key: its key.
        rejected: whether it is rejected; else it is a duplicate of an image that is kept.
        code: why, as a word, e.g. `exact_duplicate`.
        reason: the same as a sentence.
    """

    key: str
    rejected: bool
    code: str
    reason: str


@dataclass
class DuplicateDecision:
    """The decision about duplicates.

    Attributes:
        rows: position -> why the image is not going to be written.
        clusters: a number per group of images that are the same in any way and remain, -1 for all others; int64 (n,).
        notes: what was found, for the user.
        kept: position of a duplicate -> position of the image that is kept for it; that may be a duplicate, too.
    """

    rows: dict[int, DuplicateRow]
    clusters: Positions
    notes: list[str] = field(default_factory=list)
    kept: dict[int, int] = field(default_factory=dict)

    def kept_image(self, image: int) -> int:
        """Returns the position of the image that is finally written for one."""
        while image in self.kept:
            image = self.kept[image]
        return image


def decide(
    keys: Sequence[str],
    alive: npt.NDArray[np.bool_],
    rules: Sequence[DuplicateRule],
    conflicts: str,
    *,
    predefined: bool = False,
) -> DuplicateDecision:
    """Decides about duplicates.

    Args:
        keys: sorted keys of all inputs.
        alive: which of them are going to be written so far.
        rules: the ways in which images can be the same, the strictest first.
        conflicts: what to do where labels within a group disagree: `report`, `reject` the whole group, or `fail`.
        predefined: whether the input states the split of each image, so that groups may be in several.

    Raises:
        CheckFailed: there are duplicates or conflicts, and they are not to be.
    """
    alive = alive.copy()
    decision = DuplicateDecision({}, np.full(len(keys), -1))
    for rule in rules:
        groups = list(groups_of(rule.firsts, alive))
        if not groups:
            continue
        disagreeing = [members for members in groups if len({rule.labels.get(i, "") for i in members}) > 1]
        kept = "kept" if predefined else "kept, each group in one split"
        _note(decision, keys, rule, groups, disagreeing, conflicts, kept)
        for members in disagreeing if conflicts == "reject" else ():
            for i in members:
                other = next(j for j in members if rule.labels.get(j, "") != rule.labels.get(i, ""))
                reason = f"{rule.relation(i, other)} {keys[other]}, {_difference(rule, i, other)}"
                decision.rows[i] = DuplicateRow(keys[i], True, CONFLICTING, reason)
                alive[i] = False
        for members in groups if rule.action == "first" else ():
            for i in members[1:].tolist() if alive[members[0]] else ():
                decision.rows[i] = _duplicate(keys, rule, i, int(members[0]))
                decision.kept[i] = int(members[0])
                alive[i] = False
    decision.clusters = _clusters(rules, alive)
    return decision


def groups_of(firsts: Positions, alive: npt.NDArray[np.bool_]) -> Iterator[Positions]:
    """Yields groups of two or more images that are alive, by their first member; positions rise within each."""
    there = np.flatnonzero(alive)
    crowded = there[np.bincount(firsts[there], minlength=len(firsts))[firsts[there]] > 1]
    order = crowded[np.argsort(firsts[crowded], kind="stable")]
    if len(order):
        yield from np.split(order, np.flatnonzero(np.diff(firsts[order])) + 1)


def _clusters(rules: Sequence[DuplicateRule], alive: npt.NDArray[np.bool_]) -> Positions:
    groups = UnionFind(len(alive))
    everyone = np.arange(len(alive))
    for rule in rules:
        groups.join(everyone, rule.firsts)
    clusters = np.full(len(alive), -1)
    for number, members in enumerate(groups_of(groups.firsts(), alive)):
        clusters[members] = number
    return clusters


def _duplicate(keys: Sequence[str], rule: DuplicateRule, image: int, kept: int) -> DuplicateRow:
    reason = f"{rule.relation(image, kept)} {keys[kept]}, which is kept"
    if rule.labels.get(image, "") == rule.labels.get(kept, ""):
        return DuplicateRow(keys[image], False, rule.code, reason)
    return DuplicateRow(keys[image], False, CONFLICTING, f"{reason}; {_difference(rule, image, kept)}")


def _difference(rule: DuplicateRule, image: int, other: int) -> str:
    return f"but its labels are {rule.labels.get(image, '')}, not {rule.labels.get(other, '')}"


def _note(
    decision: DuplicateDecision,
    keys: Sequence[str],
    rule: DuplicateRule,
    groups: list[Positions],
    disagreeing: list[Positions],
    conflicts: str,
    kept: str,
) -> None:
    count = sum(len(members) for members in groups)
    within = counted(len(groups), "group")
    found = f"{rule.code}: {count} images in {within}, e.g. {_shown(keys, groups)}"
    if rule.action == "fail":
        raise CheckFailed(f"{found}. {rule.option} is fail: remove all but one of each, or set it to first or keep.")
    what = kept if rule.action == "keep" else "the first of each is kept"
    decision.notes.append(f"{found}: {what}")
    if not disagreeing:
        return
    found = f"{CONFLICTING}: {len(disagreeing)} of these groups disagree on labels, e.g. {_shown(keys, disagreeing)}"
    if conflicts == "fail":
        raise CheckFailed(f"{found}. duplicates.conflicts is fail: fix the labels, or set it to report or reject.")
    decision.notes.append(found)


def _shown(keys: Sequence[str], groups: list[Positions]) -> str:
    members = groups[0]
    return " = ".join(keys[i] for i in members[:_SHOWN].tolist()) + (" = …" if len(members) > _SHOWN else "")
