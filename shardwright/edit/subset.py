"""Selects the images of a subset: the same part of every split and of every class, chosen by a hash of the keys.

Only records contain the classes. So all records are read once; their shards are compared with the manifest, and the
states of these files are kept, so that they are not read whole a second time (`shardwright.edit.derive`). If all images
are selected, or none has a class, only the keys are read.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from shardwright.dataset.example_view import ExampleReader, sampling_hash
from shardwright.dataset.manifest import NONE
from shardwright.dataset.reader import ImageDataset
from shardwright.edit.derive import file_state
from shardwright.errors import UsageError
from shardwright.storage.fingerprint import text_number


class Selection(NamedTuple):
    """Selected images.

    Attributes:
        numbers: `fingerprint.text_number` of their keys.
        proven: see `Derived.proven`.
    """

    numbers: set[int]
    proven: Mapping[str, str]


def stratified(
    dataset: ImageDataset,
    share: float | None = None,
    *,
    count: int | None = None,
    splits: Collection[str] | None = None,
    classes: Collection[str] | None = None,
    seed: int = 0,
) -> Selection:
    """Selects images.

    The same share of every stratum (the images of one split with the same classes) is selected, at least one image.

    Args:
        dataset: read once, or only its indexes.
        share: part of the images, over 0 to 1; all by default.
        count: about how many images instead: strata are rounded.
        splits: only images of these.
        classes: only images that have one of these.
        seed: another seed selects other images.

    Raises:
        UsageError: there is no such split or class, or nothing is left.
        DatasetError: a record is damaged, or a shard is not the manifest's.
    """
    manifest = dataset.manifest
    for kind, wanted, known in (("split", splits, manifest.splits), ("class", classes, manifest.classes)):
        for name in wanted or ():
            if name not in known:
                raise UsageError(f"{dataset.root}: has no {kind} {name!r}. It has: {', '.join(known)}.")
    shards = [
        shard for split in (manifest.splits if splits is None else sorted(splits)) for shard in dataset.shards(split)
    ]
    part = _part(share, count, sum(shard.records for shard in shards))
    strata: dict[tuple[str, tuple[int, ...]], _Stratum] = {}
    proven: dict[str, str] = {}
    by_key = not classes and (part == 1 or manifest.labels == NONE)
    wanted_classes = {manifest.classes.index(name) for name in classes or ()}
    reader = ExampleReader(manifest)
    for shard in shards:
        state = file_state(shard.file, settled=True)
        records = dataset.entries(shard) if by_key else dataset.placed_records(shard, proven=True)
        for key, _, *payload in records:
            own = () if by_key else tuple(sorted(set(reader.read(key, *payload).labels)))
            if not wanted_classes or not wanted_classes.isdisjoint(own):
                strata.setdefault((shard.split, own), _Stratum()).add(key, seed)
        if not by_key:
            proven[shard.file] = state
    total = sum(len(stratum.hashes) for stratum in strata.values())
    if not total:
        raise UsageError(f"{dataset.root}: has no image of these splits and classes. Name others.")
    part = _part(share, count, total)
    numbers: set[int] = set()
    for stratum in strata.values():
        lowest = np.argsort(np.frombuffer(stratum.hashes), kind="stable")[: max(1, round(part * len(stratum.hashes)))]
        numbers.update(np.frombuffer(stratum.numbers, np.int64)[lowest].tolist())
    return Selection(numbers, proven)


class _Stratum:
    """The images of a stratum, in the order of their records: their hashes, and numbers of their keys."""

    def __init__(self) -> None:
        self.hashes, self.numbers = array("d"), array("q")

    def add(self, key: str, seed: int) -> None:
        """Adds an image."""
        self.hashes.append(sampling_hash(key, seed))
        self.numbers.append(text_number(key))


def _part(share: float | None, count: int | None, total: int) -> float:
    if count is not None:
        return min(1.0, count / max(1, total))
    return 1.0 if share is None else share
