"""Which images a subset holds: the same part of every split and of every class, chosen by a hash of the keys."""

from __future__ import annotations

from array import array
from collections.abc import Collection

import numpy as np

from shardwright.dataset import Dataset
from shardwright.errors import UsageError
from shardwright.fingerprint import text_number
from shardwright.image_facts import FactsReader, lot


def stratified(
    dataset: Dataset,
    share: float | None = None,
    *,
    count: int | None = None,
    splits: Collection[str] | None = None,
    classes: Collection[str] | None = None,
    seed: int = 0,
) -> set[int]:
    """Chooses images.

    Every stratum, the images of one split with the same classes, gives the same share, and at least one.

    Args:
        dataset: read once.
        share: part of the images, over 0 to 1; all by default.
        count: how many images instead, about: strata are rounded.
        splits: only images of these.
        classes: only images that have one of these.
        seed: another one chooses others.

    Returns:
        `fingerprint.text_number` of the keys chosen.

    Raises:
        UsageError: there is no such split or class, or nothing is left.
    """
    manifest = dataset.manifest
    for what, wanted, known in (("split", splits, manifest.splits), ("class", classes, manifest.classes)):
        for name in wanted or ():
            if name not in known:
                raise UsageError(f"{dataset.root}: no {what} {name!r}. It has: {', '.join(known)}.")
    labels = {manifest.classes.index(name) for name in classes} if classes else None
    reader = FactsReader(manifest)
    strata: dict[tuple[str, tuple[int, ...]], tuple[array[float], array[int]]] = {}
    for split in manifest.splits if splits is None else sorted(splits):
        for key, payload in dataset.records(split):
            own = tuple(sorted(set(reader.read(key, payload).labels)))
            if labels is None or labels & set(own):
                lots, numbers = strata.setdefault((split, own), (array("d"), array("q")))
                lots.append(lot(key, seed))
                numbers.append(text_number(key))
    total = sum(len(lots) for lots, _ in strata.values())
    if not total:
        raise UsageError(f"{dataset.root}: no image is of these splits and classes.")
    part = min(1.0, count / total) if count is not None else 1.0 if share is None else share
    chosen: set[int] = set()
    for _, (lots, numbers) in sorted(strata.items()):
        order = np.argsort(np.frombuffer(lots), kind="stable")[: max(1, round(part * len(lots)))]
        chosen.update(np.frombuffer(numbers, np.int64)[order].tolist())
    return chosen
