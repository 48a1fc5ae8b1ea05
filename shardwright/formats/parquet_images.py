"""Parquet files with the images inside as TFRecords, as `shardwright export` and Hugging Face's `datasets` write them.

| column | feature |
|---|---|
| the first structure of `bytes` and `path`, or the first column of bytes of images | the image |
| `label`, `labels`, described as `ClassLabel` | its class or classes, by name |
| `mask_NAME`, `ignored`: structures of `bytes` | the mask of a class, pixels that do not count |
| `boxes` with `box_classes` | edges in pixels, and the class of each |
| the first structure with `bbox` and `category` | boxes; see `listed_boxes` |
| texts, numbers and lists of them | features of the same name |
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any

from shardwright.dataset.manifest import IGNORED
from shardwright.errors import AnnotationError, UsageError
from shardwright.formats.listed_boxes import BOXES, BoxForm, category_of, read_boxes
from shardwright.formats.object_values import ObjectError
from shardwright.formats.parquet import Column, ParquetFile, class_names
from shardwright.formats.sample_features import (
    ANY_SIZE,
    CLASS_TEXT,
    REFUSED,
    SampleError,
    are_boxes,
    are_texts,
    box_features,
    mask_name,
    texts,
    value_feature,
)
from shardwright.images import boxes
from shardwright.images.header import ImageError
from shardwright.images.read_header import read_header
from shardwright.tfrecords.encode import FeatureValue, RecordError, encode_example, floats, ints
from shardwright.tfrecords.records import frame

_MASK, _IGNORED = "mask_", "ignored"
_BOXES, _BOX_CLASSES = "boxes", "box_classes"
_LABELS = ("label", "labels")
_ROWS_SEEN = 100


def classes_in(file: ParquetFile) -> tuple[str, ...]:
    """Returns the classes that a file describes, in order: those of the label, or of the masks."""
    for column in file.columns:
        if column.name in _LABELS and (names := class_names(column.feature)):
            return names
    return tuple(column.name.removeprefix(_MASK) for column in file.columns if _is_mask(column))


@dataclass(frozen=True)
class Objects:
    """The boxes of a set of files.

    Attributes:
        column: the structure that has them; empty where none is read.
        form: what their numbers are.
        classes: their classes: as the files describe them, or else all of them in order.
        only: the class of all boxes where no member has their classes, or empty.
        left_out: structures that are not read.
        problem: why boxes are not read, or empty.
    """

    column: str = ""
    form: BoxForm = field(default_factory=BoxForm)
    classes: tuple[str, ...] = ()
    only: str = ""
    left_out: tuple[str, ...] = ()
    problem: str = ""

    def notes(self) -> list[str]:
        """Messages for the user."""
        notes = [f"tfrecord: {self.column}: {self.form.note()}"] if self.column else []
        if self.only:
            notes.append(f"tfrecord: {self.column}: no member `category`, so all boxes are of the class {self.only!r}")
        if self.problem:
            notes.append(f"tfrecord: left out: the boxes of {self.problem}")
        elif self.left_out:
            notes.append(f"tfrecord: left out: {', '.join(self.left_out)} (structures)")
        return notes


def find_objects(files: Sequence[ParquetFile]) -> Objects:
    """Returns the boxes of a set of files, which are all of one form.

    Raises:
        UsageError: a file is damaged, or the boxes are fractions.
    """
    structures = _structures(files)
    nested = tuple(structures)
    column = next((name for name, members in structures.items() if BOXES in members), "")
    rest = tuple(name for name in nested if name != column)
    if not column:
        return Objects(left_out=nested)
    stated = tuple(dict.fromkeys(name for file in files for name in _classes_of_boxes(file, column)))
    named = {one.name for file in files for one in file.columns}
    if {_BOXES, _BOX_CLASSES} <= named:
        return Objects(left_out=nested, problem=f"{column}: `boxes` and `box_classes` are read")
    if others := [name for name in (*_LABELS, *named) if name in named and (name in _LABELS or name.startswith(_MASK))]:
        return Objects(left_out=nested, problem=f"{column}: the classes of the images are those of {others[0]}")
    only = "" if category_of(structures[column]) else column
    form, used = BoxForm(), dict[str, None]()
    for file in files:
        for row in file.rows([column]):
            with suppress(ObjectError):  # The row is refused.
                for box in read_boxes(row[column] or [], only):
                    form.add(box.numbers)
                    used[box.label] = None
    if form.fractions:
        raise UsageError(
            f"{files[0].path}: {column}.bbox: the numbers are fractions of the image, and it is unknown which. Write "
            "them as [x, y, width, height] in pixels."
        )
    for file in files if form.may_be_edges else ():  # The sizes of the images decide.
        rows = _Rows(file.columns, (), Objects())
        for row in file.rows([rows.image, column]):
            with suppress(ObjectError, ImageError):
                header = read_header(_bytes_of(row[rows.image]), max_pixels=ANY_SIZE)
                for box in read_boxes(row[column] or [], only):
                    form.compare(box.numbers, height=header.height, width=header.width)
    return Objects(
        column,
        form,
        stated
        or tuple(sorted(used, key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))),
        only,
        rest,
    )


def _structures(files: Sequence[ParquetFile]) -> dict[str, dict[str, Any]]:
    """Returns the columns of structures that are not images, or of lists of them, with the first values of each."""
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        names = [column.name for column in file.columns if column.nested and not column.image]
        for row in islice(file.rows(names), _ROWS_SEEN) if names else ():
            for name, value in row.items():
                for one in value if isinstance(value, list) else [value]:
                    if isinstance(one, dict):
                        found.setdefault(name, one)
    return found


def _classes_of_boxes(file: ParquetFile, name: str) -> tuple[str, ...]:
    """Returns the classes that a file describes for the boxes of a structure, in order."""
    feature = next((column.feature for column in file.columns if column.name == name), None)
    while isinstance(feature, list) or (isinstance(feature, dict) and isinstance(feature.get("feature"), dict | list)):
        feature = (feature[0] if feature else None) if isinstance(feature, list) else feature["feature"]
    return class_names(feature.get(category_of(feature))) if isinstance(feature, dict) else ()


def write_records(file: ParquetFile, copy: IO[bytes], name: str, classes: Sequence[str], objects: Objects) -> None:
    """Writes the rows of a file as TFRecords, in their order.

    Args:
        file: the file.
        copy: receives the records.
        name: what messages call the file.
        classes: names of the classes, in order; empty where none are stated.
        objects: the boxes.

    Raises:
        UsageError: it is damaged, or a row cannot be understood.
    """
    rows = _Rows(file.columns, classes, objects)
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
        objects: see `write_records`.

    Attributes:
        image: the column of the images.
    """

    def __init__(self, columns: Sequence[Column], classes: Sequence[str], objects: Objects) -> None:
        self._classes = classes
        self._objects = objects
        images = [column.name for column in columns if column.image]
        self._renamed = {
            column.name: mask_name(column.name.removeprefix(_MASK)) for column in columns if _is_mask(column)
        }
        if _IGNORED in images:
            self._renamed[_IGNORED] = mask_name(IGNORED)
        self.image = next((name for name in images if name not in self._renamed), "")
        self._renamed[self.image] = "image/encoded"
        self._named = {column.name for column in columns if column.name in _LABELS and class_names(column.feature)}
        self._keyed = any(column.name == "key" for column in columns)

    def features(self, row: dict[str, Any]) -> dict[str, FeatureValue]:
        """Returns the features of a row."""
        found: dict[str, FeatureValue] = {}
        image, edges, names = b"", row.get(_BOXES), row.get(_BOX_CLASSES)
        boxed = are_boxes(edges) and are_texts(names)
        for name, value in row.items():
            if name in self._renamed and (data := _bytes_of(value)):
                found[self._renamed[name]] = data
                if name == self.image:
                    image, path = data, value.get("path") if isinstance(value, dict) else None
                    if isinstance(path, str) and path and not self._keyed:
                        found["path"] = texts([path])
            elif name in self._named:
                listed = value if isinstance(value, list) else [value]
                found[CLASS_TEXT] = texts([str(one) for one in listed if one is not None])
            elif isinstance(value, dict | bytes):
                if data := _bytes_of(value):
                    found[name] = data
            elif not (boxed and name in (_BOXES, _BOX_CLASSES)) and (feature := value_feature(value)) is not None:
                found[name] = feature
        if boxed:
            found |= box_features(image, edges or [], names or [], self._classes, "the classes of the file")
        if self._objects.column:
            found |= self._listed(image, row.get(self._objects.column))
        return found

    def _listed(self, image: bytes, objects: Any) -> dict[str, FeatureValue]:
        """Returns the features of the boxes in lists; of broken ones, why the image is refused."""
        lists: dict[str, list[Any]] = {name: [] for name in boxes.box_features()}
        try:
            header = read_header(image, max_pixels=ANY_SIZE)
            for one in read_boxes(objects or [], self._objects.only):
                if one.label not in self._classes:
                    raise ObjectError(f"the class {one.label!a} has no name in the description of the file")
                label, box = self._classes.index(one.label), self._objects.form.box(one.numbers)
                values = boxes.box_values(
                    box, height=header.height, width=header.width, label=label, text=one.label, clip=None
                )
                for name, value in values.items():
                    lists[name] += value
        except ImageError:
            return {}  # The ingest rejects such an image.
        except AnnotationError as error:
            return {REFUSED: texts([error.code, f"{self._objects.column}: {error}"])}
        edges = (boxes.XMIN, boxes.YMIN, boxes.XMAX, boxes.YMAX)
        found: dict[str, FeatureValue] = {name: floats(lists[name]) for name in edges}
        return found | {boxes.LABEL: ints(lists[boxes.LABEL]), boxes.TEXT: texts(lists[boxes.TEXT])}


def _bytes_of(value: Any) -> bytes:
    """Returns the bytes of an image or of a mask; empty where there is none."""
    data = value.get("bytes") if isinstance(value, dict) else value
    return data if isinstance(data, bytes) else b""
