"""Describes a dataset by its manifest, a file of TFRecords by a scan, or one record by its features.

`draw` shows a picture in a terminal: each character has two pixels, as an upper half block in true color.
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
from shardwright.images.parts import check_parts
from shardwright.images.read_header import other_format, read_header
from shardwright.storage import read_start
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import HEADER_BYTES, DecodedFeature
from shardwright.tfrecords.scan import is_compressed, is_image, read_example, scan_file, text_of

_ANY_SIZE = 2**31
_SHOWN_VALUES = 6
# Records of a file that are parsed; all records are counted, and their checksums compared.
PARSED_RECORDS = 1000
_LISTED = 5
_UPPER_HALF = "\N{UPPER HALF BLOCK}"
_END = "\x1b[0m"
# A larger image may be a decompression bomb.
_MOST_PIXELS = 1 << 28


@dataclass(frozen=True)
class FeatureView:
    """A feature of a record.

    Attributes:
        name: its stored name.
        kind: `bytes`, `int64` or `float32`.
        values: number of its values.
        bytes: total size of its byte strings; 0 for numbers.
        shown: its first values, as printable text.
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
        image: name of the feature that contains its picture; empty if there is none.
    """

    where: str
    bytes: int
    features: tuple[FeatureView, ...]
    image: str


def view_record(payload: bytes, where: str) -> RecordView:
    """Describes a record.

    Args:
        payload: its bytes.
        where: for messages.

    Raises:
        DatasetError: it is not a tf.train.Example.
    """
    try:
        example = read_example(payload)
    except RecordError as error:
        raise DatasetError(f"{where}: not a tf.train.Example: {error}.") from None
    views = tuple(_view(name, values) for name, values in sorted(example.items()))
    single = {name: values[0] for name, values in example.items() if isinstance(values, list) and len(values) == 1}
    pictures = [name for name, value in single.items() if is_image(value)]
    # A mask may be stored as a picture, too.
    whole = [name for name in pictures if "segmentation" not in name and "mask" not in name]
    return RecordView(where, len(payload), views, next(iter(whole or pictures), ""))


def record_of_file(path: str, number: int) -> bytes:
    """Returns the payload of a record of a TFRecord file, plain or compressed.

    Raises:
        DatasetError: the record is damaged, or cannot be found because an earlier one is.
        UsageError: the file is not a TFRecord file, or has no such record.
    """
    count = 0
    for record in scan_file(path):
        if record.number == number:
            if record.payload is None:
                raise DatasetError(f"{path}: {record.where}: {record.reason}.")
            return record.payload
        count += record.payload is not None
    raise UsageError(f"{path}: no record {number}; {count} can be read, counted from 0.")


def kind_of(values: DecodedFeature) -> str:
    """Returns the kind of a feature: `bytes`, `int64` or `float32`."""
    return "bytes" if isinstance(values, list) else str(values.dtype.name)


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
    """Returns a byte string as printable text: its content, or a description."""
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
        totals: numbers of inputs by outcome.
        stored_as: standard name of a feature -> its stored name, if that differs.
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
    """A feature over many records: number of records, fewest and most values, largest size, and its first value.

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
        records: number of readable records.
        bytes: size of their payloads.
        looked_into: number of parsed records.
        features: features of the parsed records, by name.
        others: the first few records that are damaged or not a tf.train.Example, each with its number.
        damaged: number of damaged records.
    """

    path: str
    compressed: bool = False
    records: int = 0
    bytes: int = 0
    looked_into: int = 0
    features: dict[str, FeatureRange] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    damaged: int = 0


def view_dataset(directory: str) -> DatasetView:
    """Describes a dataset by its manifest.

    Raises:
        DatasetError: it is incomplete, damaged or not a dataset.
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
    """Scans a file of TFRecords, plain or compressed, of any origin.

    Raises:
        UsageError: it cannot be read, or contains no records.
    """
    view = FileView(path)
    for record in scan_file(path):
        if record.payload is None:
            view.damaged += 1
            _describe(view, f"{record.where}: {record.reason}")
            continue
        view.records += 1
        view.bytes += len(record.payload)
        if view.looked_into < PARSED_RECORDS:
            view.looked_into += 1
            try:
                features = view_record(record.payload, record.where).features
            except DatasetError as error:
                _describe(view, str(error))
                continue
            for feature in features:
                if feature.name not in view.features:
                    view.features[feature.name] = FeatureRange(
                        feature.name, (feature.kind,), 0, feature.values, feature.values, 0, feature.shown
                    )
                view.features[feature.name].add(feature)
    view.compressed = is_compressed(read_start(path, HEADER_BYTES))
    return view


def _describe(view: FileView, problem: str) -> None:
    if len(view.others) < _LISTED:
        view.others.append(problem)


def draw(encoded: bytes, columns: int, rows: int) -> str:
    """Draws an image as lines of colored characters, without a final line end; empty if it cannot be decoded.

    Args:
        encoded: the image's bytes.
        columns: most characters of a line.
        rows: most lines.
    """
    try:
        check_parts(encoded)
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
