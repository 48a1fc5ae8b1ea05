"""A dataset by its manifest, and a file of TFRecords by a walk through it.

A picture as text for a terminal: two pixels a character, the upper half block before and behind in true colour.

One record: its features, how many values each has, and what they begin with.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.images.header import ImageError
from shardwright.images.read_header import other_format, read_header
from shardwright.storage import open_file
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import DecodedFeature
from shardwright.tfrecords.scan import begins_as_records, is_compressed, is_image, read_example, scan_records, text_of

_ANY_SIZE = 2**31
_SHOWN_VALUES = 6


@dataclass(frozen=True)
class FeatureView:
    """A feature of a record.

    Attributes:
        name: its name, as it is stored.
        kind: `bytes`, `int64` or `float32`.
        values: how many values it has.
        bytes: size of its byte strings together; 0 of numbers.
        shown: what it begins with, as text that can be printed.
    """

    name: str
    kind: str
    values: int
    bytes: int
    shown: str


@dataclass(frozen=True)
class RecordView:
    """A record.

    Attributes:
        where: the file, and the record's number in it.
        bytes: size of its payload.
        features: its features, by name.
        image: name of the feature that holds its picture; empty where none does.
    """

    where: str
    bytes: int
    features: tuple[FeatureView, ...]
    image: str


def view_record(payload: bytes, where: str) -> RecordView:
    """What a record holds.

    Args:
        payload: its bytes.
        where: for messages.

    Raises:
        DatasetError: it is no tf.train.Example.
    """
    try:
        example = read_example(payload)
    except RecordError as error:
        raise DatasetError(f"{where}: no tf.train.Example but {error}.") from None
    views = tuple(_view(name, values) for name, values in sorted(example.items()))
    pictures = [name for name, values in example.items() if _is_picture(values)]
    # A mask may be stored as a picture, too.
    whole = [name for name in pictures if "segmentation" not in name and "mask" not in name]
    return RecordView(where, len(payload), views, next(iter(whole or pictures), ""))


def record_of_file(path: str, number: int) -> bytes:
    """The payload of a record of a TFRecord file, plain or compressed.

    Raises:
        DatasetError: it is damaged, or what comes before it is, so that it cannot be found.
        UsageError: the file is none, or has no such record.
    """
    count = 0
    try:
        with open_file(path) as file:
            if not begins_as_records(file.read(1 << 16)):
                raise UsageError(f"{path}: no TFRecord file. Give a shard, or a dataset's folder.")
            file.seek(0)
            for walked in scan_records(file):
                if walked.number == number and walked.payload is not None:
                    return walked.payload
                if walked.payload is None and walked.number == number:
                    raise DatasetError(f"{path}: {walked.where}: {walked.reason}.")
                count += walked.payload is not None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error}). Check the path.") from None
    raise UsageError(f"{path}: no record {number}; {count} can be read, counted from 0.")


def kind_of(values: DecodedFeature) -> str:
    """The name of a feature's kind."""
    return "bytes" if isinstance(values, list) else str(values.dtype.name)


def _is_picture(values: DecodedFeature) -> bool:
    return isinstance(values, list) and len(values) == 1 and is_image(values[0])


def _view(name: str, values: DecodedFeature) -> FeatureView:
    size = sum(map(len, values)) if isinstance(values, list) else 0
    if isinstance(values, list):
        shown = ", ".join(_of_bytes(value) for value in values[:_SHOWN_VALUES])
    else:
        shown = ", ".join(
            f"{value:g}" if kind_of(values) == "float32" else str(value) for value in values[:_SHOWN_VALUES]
        )
    return FeatureView(
        name, kind_of(values), len(values), size, shown + (", ..." if len(values) > _SHOWN_VALUES else "")
    )


def _of_bytes(data: bytes) -> str:
    """A byte string as text that can be printed: its own, or what it is."""
    if is_image(data):
        try:
            header = read_header(data, max_pixels=_ANY_SIZE)
        except ImageError as error:
            return f"{other_format(data) or 'image'}, {error.code}"
        return f"{header.format} {header.height} x {header.width}, {header.channels} channels"
    if data and not (text := text_of(data)):
        return f"{len(data)} bytes {data[:8].hex(' ')}"
    shown = text if data else ""
    escaped = shown if shown.isprintable() else ascii(shown)
    return escaped + ("..." if len(data) > len(shown.encode()) else "")


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
    dataset = ImageDataset.open(directory)
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
            for walked in scan_records(file):
                if walked.payload is None:
                    view.damaged += 1
                    _describe(view, f"{walked.where}: {walked.reason}")
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
        _describe(view, str(error))
        return
    for feature in record.features:
        if feature.name not in view.features:
            view.features[feature.name] = FeatureRange(
                feature.name, (feature.kind,), 0, feature.values, feature.values, 0, feature.shown
            )
        view.features[feature.name].add(feature)


def _describe(view: FileView, problem: str) -> None:
    if len(view.others) < _TOLD:
        view.others.append(problem)


_UPPER_HALF = "\N{UPPER HALF BLOCK}"
_END = "\x1b[0m"
# A bomb is not decoded for a look at it.
_MOST_PIXELS = 1 << 28


def draw(encoded: bytes, columns: int, rows: int) -> str:
    """An image as lines of coloured characters, without a line end behind the last; empty where it cannot be decoded.

    Args:
        encoded: the image's bytes.
        columns: most characters of a line.
        rows: most lines.
    """
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            if image.width * image.height > _MOST_PIXELS or columns < 1 or rows < 1:
                return ""
            scale = min(columns / image.width, 2 * rows / image.height, 1.0)
            size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
            image.draft("RGB", size)
            pixels = np.asarray(image.convert("RGB").resize(size, Image.Resampling.BOX))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return ""
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:1])])
    lines = []
    for upper, lower in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        cells = (
            f"\x1b[38;2;{_rgb(one)};48;2;{_rgb(other)}m{_UPPER_HALF}" for one, other in zip(upper, lower, strict=True)
        )
        lines.append("".join(cells) + _END)
    return "\n".join(lines)


def _rgb(pixel: list[int]) -> str:
    return ";".join(map(str, pixel))
