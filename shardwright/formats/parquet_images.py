"""Parquet files with the images inside as TFRecords, as `shardwright export` and Hugging Face's `datasets` write them.

| column | feature |
|---|---|
| the first structure of `bytes` and `path` | the image |
| `label`, `labels`, described as `ClassLabel` | its class or classes, by name |
| `mask_NAME`, `ignored`: structures of `bytes` | the mask of a class, pixels that do not count |
| `boxes` with `box_classes` | edges in pixels, and the class of each |
| texts, numbers and lists of them | features of the same name |
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import IO, Any

from shardwright.dataset.manifest import IGNORED
from shardwright.errors import UsageError
from shardwright.formats.parquet import Column, ParquetFile, class_names
from shardwright.formats.sample_features import (
    CLASS_TEXT,
    SampleError,
    are_boxes,
    box_features,
    mask_name,
    texts,
    value_feature,
)
from shardwright.tfrecords.encode import FeatureValue, RecordError, encode_example
from shardwright.tfrecords.records import frame

_MASK, _IGNORED = "mask_", "ignored"
_BOXES, _BOX_CLASSES = "boxes", "box_classes"
_LABELS = ("label", "labels")
_ROWS_SEEN = 100


def has_images(file: ParquetFile) -> bool:
    """Returns whether a file has a column of images."""
    return any(column.image for column in file.columns)


def classes_in(file: ParquetFile) -> tuple[str, ...]:
    """Returns the classes that a file describes, in order: those of the label, or of the masks."""
    for column in file.columns:
        if column.name in _LABELS and (names := class_names(column.feature)):
            return names
    return tuple(column.name.removeprefix(_MASK) for column in file.columns if _is_mask(column))


def structures(file: ParquetFile) -> list[str]:
    """Returns the columns of structures that are not images, such as `objects`: no feature can hold them."""
    names = [column.name for column in file.columns if column.nested and not column.image]
    found: dict[str, None] = {}
    for row in islice(file.rows(names), _ROWS_SEEN) if names else ():
        for name, value in row.items():
            inside = value if isinstance(value, list) else [value]
            found |= dict.fromkeys([name] if any(isinstance(one, dict) for one in inside) else [])
    return list(found)


def write_records(file: ParquetFile, copy: IO[bytes], name: str, classes: Sequence[str]) -> None:
    """Writes the rows of a file as TFRecords, in their order.

    Args:
        file: the file.
        copy: receives the records.
        name: what messages call the file.
        classes: names of the classes, in order; empty where none are stated.

    Raises:
        UsageError: it is damaged, or a row cannot be understood.
    """
    rows = _Rows(file.columns, classes)
    for number, row in enumerate(file.rows([column.name for column in file.columns])):
        try:
            copy.write(frame(encode_example(rows.features(row))))
        except (SampleError, RecordError) as error:
            raise UsageError(f"{name}, row {number + 1}: {error}") from None


def _is_mask(column: Column) -> bool:
    return column.image and column.name.startswith(_MASK) and column.name != _MASK


class _Rows:
    """The rows of a file.

    Args:
        columns: of the file.
        classes: see `write_records`.
    """

    def __init__(self, columns: Sequence[Column], classes: Sequence[str]) -> None:
        self._classes = classes
        images = [column.name for column in columns if column.image]
        self._renamed = {
            column.name: mask_name(column.name.removeprefix(_MASK)) for column in columns if _is_mask(column)
        }
        if _IGNORED in images:
            self._renamed[_IGNORED] = mask_name(IGNORED)
        self._image = next((name for name in images if name not in self._renamed), "")
        self._renamed[self._image] = "image/encoded"
        self._named = {column.name for column in columns if column.name in _LABELS and class_names(column.feature)}
        self._keyed = any(column.name == "key" for column in columns)

    def features(self, row: dict[str, Any]) -> dict[str, FeatureValue]:
        """Returns the features of a row."""
        found: dict[str, FeatureValue] = {}
        image, boxes, names = b"", row.get(_BOXES), row.get(_BOX_CLASSES)
        boxed = are_boxes(boxes) and isinstance(names, list) and all(isinstance(one, str) for one in names)
        for name, value in row.items():
            if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
                found[self._renamed.get(name, name)] = value["bytes"]
                if name == self._image:
                    image, path = value["bytes"], value.get("path")
                    if isinstance(path, str) and path and not self._keyed:
                        found["path"] = texts([path])
            elif name in self._named:
                listed = value if isinstance(value, list) else [value]
                found[CLASS_TEXT] = texts([str(one) for one in listed if one is not None])
            elif isinstance(value, bytes):
                found[name] = value
            elif not (boxed and name in (_BOXES, _BOX_CLASSES)) and (feature := value_feature(value)) is not None:
                found[name] = feature
        if boxed:
            found |= box_features(image, boxes or [], names or [], self._classes, "the classes of the file")
        return found
