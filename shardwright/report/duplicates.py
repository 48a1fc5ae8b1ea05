"""Finds groups of images that are equal or look alike, also across splits, and groups whose labels disagree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from shardwright.dataset.random_access import RecordLocation
from shardwright.duplicates.clusters import equal_clusters, near_clusters
from shardwright.duplicates.find import groups_of
from shardwright.report.collect import Collected, as_hashes

# Bits of 64 in which both hashes of near duplicates may differ; with more, different photographs of a scene match.
NEAR_BITS = 4
_GROUPS_SHOWN = 12
_MEMBERS_SHOWN = 4


class Group(NamedTuple):
    """Images that are equal or look alike.

    Attributes:
        kind: `exact` or `near`.
        size: number of images.
        places: locations of the first few records.
        leaks: the images are in more than one split.
        conflicts: `labels` or `masks` if these differ within the group; else empty.
    """

    kind: str
    size: int
    places: tuple[RecordLocation, ...]
    leaks: bool
    conflicts: str


class Duplicates(NamedTuple):
    """The duplicates of a dataset.

    Attributes:
        exact: number of groups of equal files; `None` if no hashes are stored.
        near: number of groups of images that look alike; `None` if no hashes are stored.
        leaks: number of groups, of either kind, that are in more than one split.
        exact_leaks: number of groups of equal files that are in more than one split.
        conflicts: number of groups, of either kind, whose classes or masks differ.
        shown: some groups, with conflicts and leaks first.
    """

    exact: int | None
    near: int | None
    leaks: int
    exact_leaks: int
    conflicts: int
    shown: tuple[Group, ...]


def find_duplicates(collected: Collected) -> Duplicates:
    """Finds groups by the hashes that the records contain."""
    columns = collected.columns
    content, perceptual = as_hashes(columns.content), as_hashes(columns.perceptual)
    exact = (
        list(_groups("exact", collected, equal_clusters(content.view(np.uint8).reshape(-1, 8), content != 0)))
        if content.any()
        else None
    )
    near = None
    if len(perceptual) and len(perceptual) == collected.total:
        firsts = near_clusters(perceptual, NEAR_BITS, as_hashes(columns.average), NEAR_BITS)
        near = list(_groups("near", collected, firsts))
    every = [*(exact or ()), *(near or ())]
    every.sort(key=lambda group: (not group.conflicts, not group.leaks, group.kind != "near", -group.size))
    return Duplicates(
        None if exact is None else len(exact),
        None if near is None else len(near),
        sum(group.leaks for group in every),
        sum(group.leaks for group in every if group.kind == "exact"),
        sum(bool(group.conflicts) for group in every),
        tuple(every[:_GROUPS_SHOWN]),
    )


def _groups(kind: str, collected: Collected, firsts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[Group]:
    columns = collected.columns
    splits = [shard.split for shard in collected.shards]
    for members in groups_of(firsts, np.ones(len(firsts), np.bool_)):
        rows = members.tolist()
        if kind == "near" and len({columns.content[row] for row in rows}) == 1:
            continue  # A group of equal files, which is listed as `exact`.
        # Masks of pictures that only look alike are rarely equal to the pixel.
        compared = {"labels": columns.labels, **({"masks": columns.masks} if kind == "exact" else {})}
        yield Group(
            kind,
            len(rows),
            tuple(RecordLocation(columns.shard[row], columns.offset[row]) for row in rows[:_MEMBERS_SHOWN]),
            len({splits[columns.shard[row]] for row in rows}) > 1,
            next((name for name, column in compared.items() if len({column[row] for row in rows}) > 1), ""),
        )
