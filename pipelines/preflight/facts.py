"""What the rules look at: plain values, gathered elsewhere, so that every rule is arithmetic.

Reads what the rules look at from a dataset; a few hundred records of each split, without TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from shardwright.config import Config
from shardwright.config.trainer import MODELS
from shardwright.config.transform import DEFAULT_SIZE
from shardwright.dataset.manifest import MULTI, SINGLE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import find_feature

TRAIN, EVAL = "train", "eval"


@dataclass(frozen=True)
class Host:
    """A machine that the chips sit in.

    Attributes:
        processors: virtual processors; `None` where nobody told us.
        memory: bytes; `None` likewise.
    """

    processors: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Slice:
    """A TPU slice as it is asked for.

    Attributes:
        name: as people write it, `v5e-2x4`.
        chips: chips of the whole slice.
        hosts: how many machines such a slice may have: more than one number where several machine types make it.
    """

    name: str
    chips: int
    hosts: tuple[int, ...]


@dataclass(frozen=True)
class SplitFacts:
    """The shards of a split.

    Attributes:
        records: records of each shard.
        bytes: size of each shard.
    """

    records: tuple[int, ...]
    bytes: tuple[int, ...]

    @property
    def total(self) -> int:
        """Records of the split."""
        return sum(self.records)


@dataclass(frozen=True)
class FeedRate:
    """A tensor that the loader hands to the devices.

    Attributes:
        name: `image`, `target` or `weight`.
        shape: its sides, the batch first; `None` for a side that may differ from batch to batch.
        dtype: its name, `float32`.
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: str


@dataclass(frozen=True)
class DatasetFacts:
    """A dataset that is there.

    Attributes:
        root: its folder or URL, for messages.
        kind: `ingest` or `transform`.
        task: `segmentation` or `classification`.
        classes: names of its classes.
        labels: what an image is given: `masks`, `single`, `multi` or `none`.
        ignores: whether it marks pixels that do not count.
        splits: its splits by name.
        sizes: the different (height, width) among the images that were looked at.
        sampled: how many images were looked at.
        unlabelled: how many of them have no label.
        statistics: whether mean and std of its pixels lie beside it.
        fed: what the loader makes of it; empty where that was not tried.
        refusal: what the loader said in place of batches.
    """

    root: str
    kind: str
    task: str
    classes: tuple[str, ...]
    labels: str
    ignores: bool
    splits: Mapping[str, SplitFacts]
    sizes: tuple[tuple[int, int], ...]
    sampled: int
    unlabelled: int
    statistics: bool = False
    fed: tuple[FeedRate, ...] = ()
    refusal: str = ""

    @property
    def mean_record(self) -> float:
        """Bytes of a record, on average over all splits."""
        records = sum(split.total for split in self.splits.values())
        return sum(sum(split.bytes) for split in self.splits.values()) / max(1, records)


@dataclass(frozen=True)
class Facts:
    """All that is known before the first TPU is rented.

    Attributes:
        config: the configuration.
        slice: the slice that is asked for.
        hosts: machines that are said to share the work.
        host: one of them.
        dataset: the dataset, where one was given.
        needed: images a second that the whole slice is to learn from; `None` where nobody told us.
        measured: images a second that the loader gave on this machine; `None` where it was not measured.
        processors: processors of this machine.
    """

    config: Config
    slice: Slice
    hosts: int
    host: Host = field(default_factory=Host)
    dataset: DatasetFacts | None = None
    needed: float | None = None
    measured: float | None = None
    processors: int = 1

    @property
    def global_batch(self) -> int:
        """Images of one step on all devices together."""
        return self.config.trainer.batch_size

    @property
    def model(self) -> str:
        """The model by its name; `auto` is settled by the task."""
        told = self.config.trainer.model
        return MODELS[self.config.task][0] if told == "auto" else told

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of what is trained on: of the dataset where its images agree, else of the configuration."""
        if self.dataset is not None and len(self.dataset.sizes) == 1:
            return self.dataset.sizes[0]
        return self.config.transform.size or DEFAULT_SIZE

    def split(self, name: str) -> SplitFacts | None:
        """A split of the dataset; `None` where there is none, or no dataset."""
        return None if self.dataset is None else self.dataset.splits.get(name)


SAMPLED = 512


def dataset_facts(directory: str) -> DatasetFacts:
    """Facts of a dataset, but for those that need the loader.

    Args:
        directory: its folder or URL.

    Raises:
        DatasetError: there is no whole dataset, or a record that was looked at is damaged.
    """
    dataset = ImageDataset.open(directory)
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


def _records(dataset: ImageDataset, split: str) -> Iterator[bytes]:
    try:
        for _, record in dataset.records(split):
            yield record
    except (OSError, RecordError) as error:
        raise DatasetError(
            f"{error}. Write the dataset anew; `shardwright verify` names all that is damaged."
        ) from None
