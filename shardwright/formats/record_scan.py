"""One pass over a TFRecord file of tf.train.Examples: where its images are, and a summary of its features.

Nothing of a record is kept but its key, the place of its image, and what is new in it: classes and kinds of features.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from shardwright.dataset.feature_presets import COMMON_FEATURES
from shardwright.dataset.manifest import mask_class
from shardwright.errors import AnnotationError, UsageError
from shardwright.formats.classes import MOST_CLASSES
from shardwright.formats.record_roles import BY_LABEL, BY_NAME, OBJECTS, RUNS, TEXTS, Roles, is_text, kind_of
from shardwright.formats.sample_features import REFUSED
from shardwright.tfrecords.records import HEADER_BYTES, DecodedFeature
from shardwright.tfrecords.scan import OtherRecordError, ScannedRecord, read_example, scan_records

NO_EXAMPLE, NO_IMAGE, BAD_FEATURE = "no_example", "no_image", "bad_feature"
BINARY = "binary"
FILE_NAME = "image/filename"
LABELED = 2

Features = Mapping[str, DecodedFeature]

_MOST_FEATURES = 1000
_LONGEST_KEY = 512
_NOWHERE = -1
# Names of keys that are names of files.
_FILE_NAMES = frozenset(("filename", "file_name", "image_name", "path", "image/path"))
# Features of masks, and of pixels by the probe, which the ingest makes.
_RECREATED = ("image/segmentation/", "segmentation_mask/", "image/quality/", "image/hash/")
# Features of the preset `kaggle_flowers`.
_DERIVED = ("size", "one_hot_class")


@dataclass
class FileScan:
    """The content of a file; lists and arrays have an entry per record, readable or not.

    Attributes:
        keys: what names the record, or an empty text.
        starts: first byte of the image in the unpacked file, -1 where the record cannot be used.
        sizes: bytes of the image.
        labeled: `LABELED` where it has a class, 1 where it has the feature of it without a value, else 0.
        problems: number -> code and reason, for records that cannot be used.
        classes: class as the records write it -> the first record with it.
        numbers: class -> the numbers next to it.
        several: whether a record has several classes.
        filed: whether a record holds the name of its file.
        kinds: feature -> kinds it occurs in: those of `record_roles.kind_of`, or `BINARY`.
        mask_names: class that a feature of masks is named by -> the first record with it.
    """

    keys: list[str] = field(default_factory=list)
    starts: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    labeled: bytearray = field(default_factory=bytearray)
    problems: dict[int, tuple[str, str]] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, set[int]] = field(default_factory=dict)
    several: bool = False
    filed: bool = False
    kinds: dict[str, set[str]] = field(default_factory=dict)
    mask_names: dict[str, str] = field(default_factory=dict)

    def add(self, scan: FileScan) -> None:
        """Adds the scan of the next file, without its problems."""
        self.keys += scan.keys
        self.starts += scan.starts
        self.sizes += scan.sizes
        self.labeled += scan.labeled
        self.several, self.filed = self.several or scan.several, self.filed or scan.filed
        for firsts, others in ((self.classes, scan.classes), (self.mask_names, scan.mask_names)):
            for name, where in others.items():
                firsts.setdefault(name, where)
        for name, numbers in scan.numbers.items():
            self.numbers.setdefault(name, set()).update(numbers)
        for name, kinds in scan.kinds.items():
            self.kinds.setdefault(name, set()).update(kinds)


def scan_file(file: IO[bytes], copy: IO[bytes] | None, name: str, roles: Roles) -> FileScan:
    """Scans a file.

    Args:
        file: open for reading.
        copy: takes the unpacked bytes.
        name: what messages call it.
        roles: which feature is what.
    """
    scan = FileScan()
    for record in scan_records(file, copy):
        where = f"{name}, {record.where}"
        start, image, key, labeled = _NOWHERE, b"", "", 0
        try:
            features = features_of(record)
            refused = features.get(REFUSED, [])
            if isinstance(refused, list) and len(refused) == 2:  # By its container.
                code, reason = (text.decode("utf-8", "replace") for text in refused)
                raise AnnotationError(reason, code)
            image = image_of(features, roles)
            labels = labels_of(features, roles.label)
            key = _key(features, roles.key)
            _add(scan, features, roles, labels, where)
            assert record.payload is not None
            start = record.offset + HEADER_BYTES + place_in(record.payload, image)
            labeled = LABELED if labels else int(roles.label in features)
        except AnnotationError as error:
            scan.problems[record.number] = (error.code, f"{where}: {error}")
        scan.keys.append(key)
        scan.starts.append(start)
        scan.sizes.append(len(image))
        scan.labeled.append(labeled)
    return scan


def features_of(record: ScannedRecord) -> Features:
    """Returns the features of a record.

    Raises:
        AnnotationError: it cannot be read, or is not an Example.
    """
    if record.payload is None:
        raise AnnotationError(record.reason, record.code)
    try:
        return read_example(record.payload)
    except OtherRecordError as error:
        raise AnnotationError(str(error), NO_EXAMPLE) from None


def read_file(file: IO[bytes], usable: Sequence[bool]) -> Iterator[tuple[int, int, bytes, Features]]:
    """Yields number, offset, payload and features of those records of a scanned file that can be used.

    Args:
        file: the file, unpacked.
        usable: for each record, whether the scan could use it. The others are not read again.
    """
    for record in scan_records(file, wanted=usable):
        if record.payload is not None:
            with suppress(AnnotationError):
                yield record.number, record.offset, record.payload, features_of(record)


def image_of(features: Features, roles: Roles) -> bytes:
    """Returns the encoded image.

    Raises:
        AnnotationError: there is none, or several.
    """
    values = features.get(roles.image, [])
    if not isinstance(values, list) or len(values) != 1:
        raise AnnotationError(f"feature {roles.image!r} holds {_amount(values)}, not one image", NO_IMAGE)
    return values[0]


def labels_of(features: Features, name: str) -> list[str]:
    """Classes as the record writes them, in its order; numbers as text.

    Raises:
        AnnotationError: they are neither whole numbers nor text.
    """
    values = features.get(name, []) if name else []
    if isinstance(values, np.ndarray):
        if len(values) and values.dtype != np.int64:
            raise AnnotationError(
                f"feature {name!r} holds {_amount(values)}; a class is a number or a text", BAD_FEATURE
            )
        return [str(value) for value in values.tolist()]
    if not all(map(is_text, values)):
        problem = f"feature {name!r} holds bytes that are not UTF-8; a class is a number or a text"
        raise AnnotationError(problem, BAD_FEATURE)
    return [text for value in values if (text := value.decode("utf-8").strip())]


def place_in(payload: bytes, value: bytes) -> int:
    """Returns the position of a feature's bytes in the payload; equal bytes before them are as good."""
    place = payload.find(value[:64])
    while payload[place : place + len(value)] != value:
        place = payload.find(value[:64], place + 1)
    return place


def further_features(features: Features, roles: Roles) -> Iterator[tuple[str, str, DecodedFeature]]:
    """Yields name, kind and values of the kept features: those without a role that the ingest does not make."""
    taken = {roles.image, roles.key, roles.mask, roles.caption}
    # Boxes need their classes, also where these are the classes of the image.
    taken |= {name for name in (roles.label, roles.number) if not name.startswith(OBJECTS)}
    for name, values in features.items():
        derived = roles.image == "image" and name in _DERIVED
        if len(values) and not (name in taken or name in COMMON_FEATURES or name.startswith(_RECREATED) or derived):
            text = isinstance(values, np.ndarray) or all(map(is_text, values))
            yield name, kind_of(values) if text else BINARY, values


def file_name_of(features: Features, roles: Roles, key: str) -> str:
    """Returns the file's name that a record holds and its key does not, or an empty text."""
    for name in (FILE_NAME, *({roles.key} & _FILE_NAMES)):
        values = features.get(name, [])
        if isinstance(values, list) and len(values) == 1 and is_text(values[0]):
            text = values[0].decode("utf-8")
            return text if name == FILE_NAME or text != key else ""
    return ""


def _add(scan: FileScan, features: Features, roles: Roles, labels: list[str], where: str) -> None:
    """Adds what a record brings."""
    for text in labels:
        if text not in scan.classes:
            scan.classes[text] = where
            if len(scan.classes) > MOST_CLASSES:
                raise UsageError(
                    f"{where}: more than {MOST_CLASSES} different classes in feature {roles.label!r}, e.g. {text!r}. "
                    "Name the feature of classes in input.labels.columns."
                )
    # Boxes of one class are one class of their image. An image without boxes has an empty list of classes, and a list
    # that repeats a class is a list.
    boxed = roles.label.startswith(OBJECTS)
    without = boxed and not labels and roles.label in features
    scan.several = scan.several or without or len(set(labels) if boxed else labels) > 1
    numbers = features.get(roles.number)
    if isinstance(numbers, np.ndarray) and len(numbers) == len(labels):
        for text, number in zip(labels, numbers.tolist(), strict=True):
            scan.numbers.setdefault(text, set()).add(number)
    scan.filed = scan.filed or bool(file_name_of(features, roles, ""))
    _check_masks(features, roles, labels)
    for name, kind, _ in further_features(features, roles):
        scan.kinds.setdefault(name, set()).add(kind)
    if len(scan.kinds) > _MOST_FEATURES:
        raise UsageError(f"{where}: more than {_MOST_FEATURES} different features, e.g. {next(iter(features))!r}.")
    for name, _ in masks_of(features, roles) if roles.classed == BY_NAME else ():
        scan.mask_names.setdefault(name, where)


def masks_of(features: Features, roles: Roles) -> Iterator[tuple[str, DecodedFeature]]:
    """Class (empty where the name of the feature contains none) and values of every feature of masks."""
    if roles.classed != BY_NAME:
        yield "", features.get(roles.mask, [])
        return
    for name, values in features.items():
        if match := re.fullmatch(roles.mask, name):
            yield mask_class(match["name"]), values


def _check_masks(features: Features, roles: Roles, labels: list[str]) -> None:
    for name, values in masks_of(features, roles) if roles.mask else ():
        feature = f"{roles.mask!r} of {name}" if name else repr(roles.mask)
        kind = "int64" if roles.form == RUNS else "bytes"
        if len(values) and kind_of(values) != kind:
            raise AnnotationError(f"feature {feature} holds {_amount(values)}; masks are {kind} elsewhere", BAD_FEATURE)
        if roles.form == TEXTS and isinstance(values, list) and not all(map(is_text, values)):
            raise AnnotationError(f"feature {feature} holds bytes that are not run lengths", BAD_FEATURE)
        masks = 1 if roles.form == RUNS else len(values)
        if roles.classed == BY_LABEL and roles.label and len(labels) not in (1, masks) and len(values):
            raise AnnotationError(f"{masks} masks, but {len(labels)} classes", BAD_FEATURE)


def _key(features: Features, name: str) -> str:
    """Returns the text or number that names a record, in the spelling of keys, or nothing where it is not safe."""
    values = features.get(name, [])
    if len(values) != 1:
        return ""
    value = values[0]
    if not isinstance(value, bytes):
        return str(value) if isinstance(value, np.int64) else ""
    try:
        text = unicodedata.normalize("NFC", value.decode("utf-8"))
    except UnicodeDecodeError:
        return ""
    parts = text.split("/")
    safe = len(value) <= _LONGEST_KEY and text.isprintable() and "\\" not in text
    return text if safe and not {"", ".", ".."} & set(parts) else ""


def _amount(values: DecodedFeature) -> str:
    return f"{len(values)} values ({kind_of(values)})" if len(values) else "nothing"
