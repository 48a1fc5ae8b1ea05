"""The facts that rules check: plain values, so that every rule is arithmetic.

`dataset_facts` reads those of a dataset from a few hundred records of each split, without TensorFlow; `measure` adds
those of the loader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from shardwright.config import Config
from shardwright.config.trainer import MODELS
from shardwright.config.transform import DEFAULT_SIZE
from shardwright.dataset.manifest import MULTI, SINGLE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.pipelines.tpu import TpuSlice
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import find_feature

TRAIN, EVAL = "train", "eval"


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
class LoaderTensor:
    """A tensor of the loader's batches.

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
    """A dataset.

    Attributes:
        root: its folder or URL, for messages.
        kind: `ingest` or `transform`.
        task: `segmentation` or `classification`.
        classes: names of its classes.
        labels: the kind of labels: `masks`, `single`, `multi` or `none`.
        ignores: whether it marks pixels that do not count.
        splits: its splits by name.
        sizes: the different (height, width) among the sampled images.
        sampled: how many images were sampled.
        unlabeled: how many of them have no label.
        statistics: whether mean and std of its pixels are stored with it.
        fed: the tensors of the loader's batches; empty if the loader was not tried.
        refusal: the loader's error, if it gave no batches.
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
    unlabeled: int
    statistics: bool = False
    fed: tuple[LoaderTensor, ...] = ()
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
        slice: the requested slice.
        hosts: the requested number of hosts, of all slices together.
        host_processors: virtual processors of a host.
        host_memory: bytes of a host's memory.
        dataset: the dataset, if one was given.
        needed: images per second that the whole slice needs; `None` if not given.
        measured: images per second that the loader gave on this machine; `None` if not measured.
        processors: processors of this machine.
        slices: how many such slices train together, on a node pool each.
    """

    config: Config
    slice: TpuSlice
    hosts: int
    host_processors: int
    host_memory: int
    dataset: DatasetFacts | None = None
    needed: float | None = None
    measured: float | None = None
    processors: int = 1
    slices: int = 1

    @property
    def name(self) -> str:
        """`v5e-4x4`, or `2 x v5e-4x4`."""
        return self.slice.name if self.slices == 1 else f"{self.slices} x {self.slice.name}"

    @property
    def host_counts(self) -> tuple[int, ...]:
        """Possible numbers of hosts of all slices."""
        return tuple(self.slices * count for count in self.slice.host_counts)

    @property
    def chips(self) -> int:
        """Chips of all slices."""
        return self.slices * self.slice.chips

    @property
    def devices(self) -> int:
        """JAX devices of all slices, among which a batch is divided."""
        return self.slices * self.slice.devices

    @property
    def data(self) -> DatasetFacts:
        """The dataset, for rules that need one."""
        assert self.dataset is not None
        return self.dataset

    @property
    def global_batch(self) -> int:
        """Images of one step on all devices together."""
        return self.config.trainer.batch_size

    @property
    def model(self) -> str:
        """The model's name; the task decides what `auto` is."""
        chosen = self.config.trainer.model
        return MODELS[self.config.task][0] if chosen == "auto" else chosen

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the images to train on: the dataset's if all agree, else the configured size."""
        if self.dataset is not None and len(self.dataset.sizes) == 1:
            return self.dataset.sizes[0]
        return self.config.transform.size or DEFAULT_SIZE

    def split(self, name: str) -> SplitFacts | None:
        """Returns a split of the dataset; `None` without the split or without a dataset."""
        return None if self.dataset is None else self.dataset.splits.get(name)


SAMPLED = 512


def dataset_facts(directory: str) -> DatasetFacts:
    """Reads the facts of a dataset that do not need the loader.

    Args:
        directory: its folder or URL.

    Raises:
        DatasetError: there is no complete dataset, or a sampled record is damaged.
    """
    dataset = ImageDataset.open(directory)
    manifest = dataset.manifest
    sizes: set[tuple[int, int]] = set()
    sampled = unlabeled = 0
    for split in dataset.splits:
        for record in islice(_records(dataset, split), SAMPLED):
            sampled += 1
            sides = [find_feature(record, manifest.stored(f"image/{side}")) for side in ("height", "width")]
            if sides[0] is not None and sides[1] is not None:
                sizes.add((int(sides[0][0]), int(sides[1][0])))
            if manifest.labels in (SINGLE, MULTI):
                label = find_feature(record, manifest.stored("image/class/label"))
                unlabeled += label is None or not len(label)
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
        unlabeled=unlabeled,
    )


def _records(dataset: ImageDataset, split: str) -> Iterator[bytes]:
    try:
        for _, record in dataset.records(split):
            yield record
    except (OSError, RecordError) as error:
        raise DatasetError(f"{error}. Rewrite the dataset; `shardwright verify` lists all damage.") from None
