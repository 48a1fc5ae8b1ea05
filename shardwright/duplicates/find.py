"""Finds images of an input that are the same, by bytes, pixels or looks, and applies the options of `duplicates`.

Decides about images that are the same: which one is kept, what is reported, and what stays in one split.

All steps are on positions of keys that are sorted, so "the first" is the first by key, in any order of the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from shardwright.config import DuplicatesConfig
from shardwright.duplicates.clusters import Positions, equal_clusters, near_clusters
from shardwright.duplicates.hashes import BITS, ImageHashes, distance
from shardwright.errors import CheckFailed, Reading, UsageError
from shardwright.running.progress import counted
from shardwright.union_find import UnionFind

EXACT_DUPLICATE = "exact_duplicate"
SAME_BYTES, SAME_PIXELS = "has the same bytes as", "displays the same pixels as"
_ALIKE = r"its \w+ hash differs in \d+ of \d+ bits from that of"
_END = "(?:, which is kept(?:$|;| in )|, but its labels are )"
_REASON = re.compile(rf"(?:({SAME_BYTES})|{SAME_PIXELS}|{_ALIKE}) (.+){_END}", re.DOTALL)
_OPTIONS = {"exact": "exact", "pixel": "pixels", "near": "near.action"}
_Firsts = npt.NDArray[np.int64]
_Alive = npt.NDArray[np.bool_]
CONFLICTING, NEAR_DUPLICATE = "conflicting_duplicates", "near_duplicate"
_SHOWN = 3
# So many images, and more than one of so many, whose labels contradict those of the same image: a mistake of the input.
_MANY, _SHARE = 10, 10


class PixelHashes(Protocol):
    """The hashes of the pixels of n images."""

    @property
    def pixels(self) -> npt.NDArray[Any]:
        """The hash of all pixels of each image."""
        ...

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """The columns of `ImageHashes`, uint64 (n, 4)."""
        ...

    @property
    def sound(self) -> npt.NDArray[np.bool_]:
        """Which images can be decoded, bool (n,)."""
        ...


def find_duplicates(
    options: DuplicatesConfig,
    keys: Sequence[str],
    digests: npt.NDArray[Any],
    probed: PixelHashes | None,
    alive: _Alive,
    labels_of: Callable[[Iterable[int]], Mapping[int, tuple[str, str]]],
    *,
    predefined: bool = False,
) -> DuplicateDecision:
    """Finds images that are the same and decides about them.

    Args:
        options: `duplicates` of a recipe.
        keys: sorted keys of all images, n of them.
        digests: the hash of each file, (n,) or (n, bytes).
        probed: the hashes of their pixels; needed where the options use them.
        alive: which images are going to be written so far, bool (n,); the files of all of them can be read.
        labels_of: positions -> position -> the classes of an image and a word for its masks.
        predefined: whether the input states the split of each image.

    Raises:
        CheckFailed: there are duplicates or conflicts, and they are not to be.
    """
    found: list[tuple[str, str, Callable[[int, int], str], _Firsts]] = [
        ("exact", options.exact, lambda *_: SAME_BYTES, equal_clusters(digests, alive))
    ]
    if options.pixels is not None:
        assert probed is not None
        found.append(
            ("pixel", options.pixels, lambda *_: SAME_PIXELS, equal_clusters(probed.pixels, alive & probed.sound))
        )
    if options.near is not None:
        assert probed is not None
        hashes = probed.hashes[:, ImageHashes._fields.index(options.near.hash)]
        firsts = _near(options, probed, alive & probed.sound)
        found.append(("near", options.near.action, _near_looks(options.near.hash, hashes), firsts))
    members = {i for _, _, _, firsts in found for group in groups_of(firsts, alive) for i in group.tolist()}
    labels = labels_of(members) if members else {}
    rules = [
        DuplicateRule(
            code=f"{name}_duplicate",
            option=f"duplicates.{_OPTIONS[name]}",
            firsts=firsts,
            action=action,
            relation=relation,
            # The masks of images that only look alike are rarely the same to the pixel.
            labels={i: classes if name == "near" else classes + masks for i, (classes, masks) in labels.items()},
        )
        for name, action, relation, firsts in found
    ]
    return decide(keys, alive, rules, options.conflicts, predefined=predefined)


class KeptImage(NamedTuple):
    """The image that is kept for a duplicate, or that was rejected with it for its labels.

    Attributes:
        key: its key.
        same_bytes: whether its file has the same bytes.
    """

    key: str
    same_bytes: bool


def kept_image_of(reason: str) -> KeptImage | None:
    """Returns the image that the reason of a ledger row names as the same; `None` if it names none."""
    match = _REASON.match(reason)
    return None if match is None else KeptImage(match[2], match[1] is not None)


def _near_looks(name: str, hashes: npt.NDArray[np.uint64]) -> Callable[[int, int], str]:
    def relation(image: int, other: int) -> str:
        bits = distance(int(hashes[image]), int(hashes[other]))
        return f"its {name} hash differs in {bits} of {BITS} bits from that of"

    return relation


def _near(options: DuplicatesConfig, probed: PixelHashes, there: _Alive) -> _Firsts:
    assert options.near is not None
    positions = np.flatnonzero(there)
    columns = {name: probed.hashes[positions, i] for i, name in enumerate(ImageHashes._fields)}
    confirm = None if options.near.confirm_hash is None else columns[options.near.confirm_hash]
    limit = options.near.max_distance if options.near.confirm_distance is None else options.near.confirm_distance
    firsts = np.arange(len(there))
    firsts[positions] = positions[near_clusters(columns[options.near.hash], options.near.max_distance, confirm, limit)]
    return firsts


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
        conflicts: what to do where labels within a group disagree: `report`, `keep`, `reject` the group, or `fail`.
        predefined: whether the input states the split of each image, so that groups may be in several.

    Raises:
        CheckFailed: there are duplicates or conflicts, and they are not to be.
        UsageError: `conflicts` is `report`, and there are too many to be chance.
    """
    alive = alive.copy()
    decision = DuplicateDecision({}, np.full(len(keys), -1))
    for rule in rules:
        groups = list(groups_of(rule.firsts, alive))
        if not groups:
            continue
        disagreeing = [members for members in groups if len({rule.labels.get(i, "") for i in members}) > 1]
        kept = "kept" if predefined else "kept, each group in one split"
        # Images that only look alike may well have different labels.
        conflicting = 0 if rule.code == NEAR_DUPLICATE else sum(map(len, disagreeing))
        if conflicts == "report" and conflicting >= _MANY and conflicting * _SHARE > np.count_nonzero(alive):
            raise _contradictory(keys, disagreeing, conflicting, int(np.count_nonzero(alive)))
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
    joined = UnionFind(len(alive))
    for rule in rules:
        joined.join(np.arange(len(alive)), rule.firsts)
    for number, members in enumerate(groups_of(joined.firsts(), alive)):
        decision.clusters[members] = number
    return decision


def groups_of(firsts: Positions, alive: npt.NDArray[np.bool_]) -> Iterator[Positions]:
    """Yields groups of two or more images that are alive, by their first member; positions rise within each."""
    there = np.flatnonzero(alive)
    crowded = there[np.bincount(firsts[there], minlength=len(firsts))[firsts[there]] > 1]
    order = crowded[np.argsort(firsts[crowded], kind="stable")]
    if len(order):
        yield from np.split(order, np.flatnonzero(np.diff(firsts[order])) + 1)


def _duplicate(keys: Sequence[str], rule: DuplicateRule, image: int, kept: int) -> DuplicateRow:
    reason = f"{rule.relation(image, kept)} {keys[kept]}, which is kept"
    if rule.labels.get(image, "") == rule.labels.get(kept, ""):
        return DuplicateRow(keys[image], False, rule.code, reason)
    return DuplicateRow(keys[image], False, CONFLICTING, f"{reason}; {_difference(rule, image, kept)}")


def _difference(rule: DuplicateRule, image: int, other: int) -> str:
    return f"but its labels are {rule.labels.get(image, '')}, not {rule.labels.get(other, '')}"


def _contradictory(keys: Sequence[str], groups: list[Positions], count: int, total: int) -> UsageError:
    return UsageError(
        f"{CONFLICTING}: {count:,} of {total:,} images are there with other labels, too, e.g. {_shown(keys, groups)}. "
        "Leave one of the copies out by input.exclude, give the right annotations, or set duplicates.conflicts: reject "
        "to leave all of them out, or keep."
    ).with_readings(
        Reading("none of these images is taken", {"duplicates.conflicts": "reject"}),
        Reading("all of them are taken, with both labels", {"duplicates.conflicts": "keep"}),
    )


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
