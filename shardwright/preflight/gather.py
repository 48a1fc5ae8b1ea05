"""Reads what the rules look at from a dataset; a few hundred records of each split, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from shardwright.dataset import Dataset
from shardwright.errors import DatasetError
from shardwright.manifest import MULTI, SINGLE
from shardwright.preflight.facts import DatasetFacts, SplitFacts
from shardwright.tfrecords.records import RecordError, find_feature

SAMPLED = 512


def dataset_facts(directory: str) -> DatasetFacts:
    """Facts of a dataset, but for those that need the loader.

    Args:
        directory: its folder or URL.

    Raises:
        DatasetError: there is no whole dataset, or a record that was looked at is damaged.
    """
    dataset = Dataset.open(directory)
    manifest = dataset.manifest
    sizes: set[tuple[int, int]] = set()
    sampled = unlabelled = 0
    for split in dataset.splits:
        for record in islice(_records(dataset, split), SAMPLED):
            sampled += 1
            sides = [find_feature(record, manifest.stored(f"image/{side}")) for side in ("height", "width")]
            if sides[0] is not None and sides[1] is not None:
                sizes.add((int(sides[0][0]), int(sides[1][0])))
            if manifest.labels in (SINGLE, MULTI):
                label = find_feature(record, manifest.stored("image/class/label"))
                unlabelled += label is None or not len(label)
    return DatasetFacts(
        root=dataset.root,
        kind=manifest.kind,
        task=manifest.task,
        classes=manifest.classes,
        labels=manifest.labels,
        ignores=manifest.ignores,
        splits={
            name: SplitFacts(
                tuple(shard.records for shard in dataset.shards(name)),
                tuple(shard.bytes for shard in dataset.shards(name)),
            )
            for name in dataset.splits
        },
        sizes=tuple(sorted(sizes)),
        sampled=sampled,
        unlabelled=unlabelled,
    )


def _records(dataset: Dataset, split: str) -> Iterator[bytes]:
    try:
        for _, record in dataset.records(split):
            yield record
    except (OSError, RecordError) as error:
        raise DatasetError(
            f"{error}. Write the dataset anew; `shardwright verify` names all that is damaged."
        ) from None
