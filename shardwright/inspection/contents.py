"""A dataset by its manifest, and a file of TFRecords by a walk through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardwright.dataset import Dataset
from shardwright.errors import DatasetError, UsageError
from shardwright.inspection.record import FeatureView, view_record
from shardwright.storage import open_file
from shardwright.tfrecords.record_files import begins_as_records, is_compressed, walk_records

# So many records of a file are parsed; all are counted and their checksums compared.
LOOKED_INTO = 1000
_START = 1 << 16
_TOLD = 5


@dataclass(frozen=True)
class SplitView:
    """A split: records, shards, bytes, and the fewest and most records of a shard."""

    name: str
    records: int
    shards: int
    bytes: int
    least: int
    most: int


@dataclass(frozen=True)
class DatasetView:
    """A dataset by its manifest; names as there.

    Attributes:
        splits: its splits.
        totals: what became of the inputs.
        stored_as: our name of a feature -> its name here, where it has another one.
    """

    root: str
    kind: str
    task: str
    labels: str
    classes: tuple[str, ...]
    fingerprint: str
    splits: tuple[SplitView, ...]
    features: Mapping[str, str]
    stored_as: Mapping[str, str]
    totals: Mapping[str, int]


@dataclass
class FeatureRange:
    """A feature over many records: in how many it is, the fewest and most values, bytes of one, and the first one.

    Attributes:
        kinds: `bytes`, `int64`, `float32`; more than one where records disagree.
    """

    name: str
    kinds: tuple[str, ...]
    records: int
    least: int
    most: int
    largest: int
    shown: str

    def add(self, feature: FeatureView) -> None:
        """Counts the feature of one more record."""
        self.kinds = tuple(sorted({*self.kinds, feature.kind}))
        self.records += 1
        self.least, self.most = min(self.least, feature.values), max(self.most, feature.values)
        self.largest = max(self.largest, feature.bytes)


@dataclass
class FileView:
    """A file of TFRecords.

    Attributes:
        path: the file.
        compressed: whether it is compressed as a whole.
        records: how many can be read.
        bytes: size of their payloads.
        looked_into: how many of them were parsed.
        features: what those hold, by name.
        others: what is no tf.train.Example, and what is damaged: the first few, each with its number.
        damaged: how many records cannot be read.
    """

    path: str
    compressed: bool
    records: int = 0
    bytes: int = 0
    looked_into: int = 0
    features: dict[str, FeatureRange] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    damaged: int = 0


def view_dataset(directory: str) -> DatasetView:
    """What a dataset says of itself.

    Raises:
        DatasetError: it is half-written, damaged or none.
    """
    dataset = Dataset.open(directory)
    manifest = dataset.manifest
    splits = []
    for name in dataset.splits:
        shards = dataset.shards(name)
        counts = [shard.records for shard in shards]
        size = sum(shard.bytes for shard in shards)
        splits.append(SplitView(name, sum(counts), len(shards), size, min(counts), max(counts)))
    return DatasetView(
        root=dataset.root,
        kind=manifest.kind,
        task=manifest.task,
        labels=manifest.labels,
        classes=manifest.classes,
        fingerprint=manifest.fingerprint,
        splits=tuple(splits),
        features=dict(sorted(manifest.features.items())),
        stored_as=dict(sorted(manifest.names.items())),
        totals=dict(sorted(manifest.totals.items())),
    )


def view_file(path: str) -> FileView:
    """Walks a file of TFRecords to its end, plain or compressed, whoever wrote it.

    Raises:
        UsageError: it cannot be read, or holds no records.
    """
    try:
        with open_file(path) as file:
            start = file.read(_START)
            if not begins_as_records(start):
                what = "it is empty" if not start else "its beginning is no record's"
                raise UsageError(f"{path}: no TFRecord file: {what}. Give a shard, or a dataset's folder.")
            file.seek(0)
            view = FileView(path, is_compressed(start))
            for walked in walk_records(file):
                if walked.payload is None:
                    view.damaged += 1
                    _tell(view, f"{walked.where}: {walked.reason}")
                    continue
                view.records += 1
                view.bytes += len(walked.payload)
                if view.looked_into < LOOKED_INTO:
                    _look_into(view, walked.payload, walked.where)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error}). Check the path.") from None
    return view


def _look_into(view: FileView, payload: bytes, where: str) -> None:
    view.looked_into += 1
    try:
        record = view_record(payload, where)
    except DatasetError as error:
        _tell(view, str(error))
        return
    for feature in record.features:
        if feature.name not in view.features:
            view.features[feature.name] = FeatureRange(
                feature.name, (feature.kind,), 0, feature.values, feature.values, 0, feature.shown
            )
        view.features[feature.name].add(feature)


def _tell(view: FileView, problem: str) -> None:
    if len(view.others) < _TOLD:
        view.others.append(problem)
