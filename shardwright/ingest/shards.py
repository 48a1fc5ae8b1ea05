"""Which images go into which shard of a split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from shardwright.config import ShardsConfig
from shardwright.sharding import deal_classes, shard_bounds, shard_count
from shardwright.sources.base import Annotation

ClassSets = Sequence[tuple[int, ...]]


def cut_split(
    images: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], options: ShardsConfig, classes: ClassSets | None
) -> list[npt.NDArray[np.int64]]:
    """Cuts a split into shards.

    Args:
        images: positions in the listing, in the order of the records.
        sizes: bytes of every file of the listing.
        options: `shards`.
        classes: classes of every image of the listing, for `shards.balance`.

    Returns:
        The images of every shard, in the order of its records.
    """
    count = shard_count(
        len(images),
        int(sizes[images].sum()),
        target_size=options.target_size,
        count=options.count,
        records_per_shard=options.records,
        hosts=options.hosts,
    )
    if classes is not None:
        return [images[dealt] for dealt in deal_classes([classes[i] for i in images.tolist()], count)]
    bounds = shard_bounds(len(images), count)
    return [images[bounds[number] : bounds[number + 1]] for number in range(count)]


def class_sets(annotations: Iterable[Annotation], images: int) -> ClassSets:
    """The classes that annotations give each image, ascending; equal sets are one object.

    Args:
        annotations: all of them.
        images: number of images.
    """
    known: dict[tuple[int, ...], tuple[int, ...]] = {(): ()}
    sets: list[tuple[int, ...]] = [()] * images
    for image, label, *_ in annotations:
        if label >= 0 and label not in sets[image]:
            joined = tuple(sorted((*sets[image], label)))
            sets[image] = known.setdefault(joined, joined)
    return sets
