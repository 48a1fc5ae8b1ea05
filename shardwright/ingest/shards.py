"""Which images go into which shard of a split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from shardwright.config import ShardsConfig
from shardwright.sharding import deal_classes, shard_bounds, shard_count
from shardwright.sources.base import NO_LABEL, Annotation, ClassesInText, MaskCode
from shardwright.storage import in_parallel

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


def class_sets(annotations: Iterable[Annotation], images: int, code: MaskCode) -> ClassSets:
    """The classes that annotations give each image, ascending; equal sets are one object.

    Args:
        annotations: all of them.
        images: number of images.
        code: how masks are written; asked for the classes of those whose row names none.
    """
    known: dict[tuple[int, ...], tuple[int, ...]] = {(): ()}
    sets: list[tuple[int, ...]] = [()] * images
    for image, labels in _labels(annotations, code):
        new = [label for label in labels if label >= 0 and label not in sets[image]]
        if new:
            joined = tuple(sorted((*sets[image], *new)))
            sets[image] = known.setdefault(joined, joined)
    return sets


def _labels(annotations: Iterable[Annotation], code: MaskCode) -> Iterator[tuple[int, Iterable[int]]]:
    if not isinstance(code, ClassesInText):
        return ((image, (label,)) for image, label, *_ in annotations)

    def look(annotation: Annotation) -> tuple[int, Iterable[int]]:
        if annotation.label != NO_LABEL or annotation.text is None:
            return annotation.image, (annotation.label,)
        return annotation.image, code.classes(annotation.text)

    return in_parallel(look, annotations)
