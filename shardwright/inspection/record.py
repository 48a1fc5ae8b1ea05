"""One record: its features, how many values each has, and what they begin with."""

from __future__ import annotations

from dataclasses import dataclass

from shardwright.errors import DatasetError, UsageError
from shardwright.image_files.image_header import ImageError
from shardwright.image_files.images import other_format, read_header
from shardwright.storage import open_file
from shardwright.tfrecords.record_files import begins_as_records, walk_records
from shardwright.tfrecords.record_kinds import is_image, read_example, text_of
from shardwright.tfrecords.records import DecodedFeature, RecordError

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
            for walked in walk_records(file):
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
