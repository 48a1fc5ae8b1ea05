"""Files of samples that are not TFRecords: each becomes one in a temporary folder, and is read as one from there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, NamedTuple

from shardwright.formats import array_records, parquet_images, webdataset
from shardwright.formats.parquet import ParquetFile
from shardwright.formats.parquet_images import Objects
from shardwright.formats.parquet_pages import is_parquet
from shardwright.formats.webdataset import CLASSES_FILE, read_classes
from shardwright.storage import Listing, open_file, read_bytes

TAR, PARQUET, ARRAY_RECORD = "tar", "Parquet", "ArrayRecord"
# What a file of each kind is, as a part of a sentence.
MEANING = {
    TAR: "is a tar file of samples (WebDataset)",
    PARQUET: "is a Parquet file with images inside",
    ARRAY_RECORD: "is an ArrayRecord file",
}


class Packed(NamedTuple):
    """A file of samples.

    Attributes:
        path: its path.
        pin: see `shardwright.storage.read_bytes`.
        name: what messages call it.
    """

    path: str
    pin: str
    name: str


class Described(NamedTuple):
    """The description of a set of files.

    Attributes:
        classes: names of the classes in order, where something states them.
        source: what states them.
        objects: the boxes in lists of Parquet files.
    """

    classes: tuple[str, ...] = ()
    source: str = ""
    objects: Objects = Objects()

    def notes(self) -> list[str]:
        """Messages for the user."""
        order = [f"tfrecord: classes in the order of {self.source}"] if self.classes else []
        return [*self.objects.notes(), *order]


def container_of(file: Packed, start: bytes) -> str:
    """Returns the kind of a file of samples, one of `MEANING`; empty where it is something else, such as a table.

    Raises:
        UsageError: it cannot be read, or the package that reads it is not installed.
    """
    if webdataset.begins_as_tar(start):
        return TAR
    if array_records.begins_as_array_record(start):
        return ARRAY_RECORD
    has_images = is_parquet(start) and parquet_images.has_images(ParquetFile.open(file.path, file.pin))
    return PARQUET if has_images else ""


def write_records(kind: str, file: Packed, copy: IO[bytes], described: Described) -> None:
    """Writes the samples of a file as TFRecords.

    Raises:
        UsageError: it is damaged, or a sample cannot be understood.
    """
    if kind == TAR:
        with open_file(file.path, file.pin) as tar:
            webdataset.write_records(tar, copy, file.name, described.classes)
    elif kind == PARQUET:
        opened = ParquetFile.open(file.path, file.pin)
        parquet_images.write_records(opened, copy, file.name, described.classes, described.objects)
    else:
        array_records.write_records(file.path, file.pin, copy, file.name)


def describe(found: Listing, files: Sequence[tuple[Packed, str]]) -> Described:
    """Returns the description of a set of files.

    Args:
        found: all files of the input; tar files have the classes in a file next to them.
        files: those of samples, with their kinds.

    Raises:
        UsageError: they cannot be read.
    """
    kinds = {kind for _, kind in files}
    names = dict.fromkeys(_listed(found) if TAR in kinds else ())
    opened = [ParquetFile.open(file.path, file.pin) for file, kind in files if kind == PARQUET]
    names |= dict.fromkeys(name for file in opened for name in parquet_images.classes_in(file))
    objects = parquet_images.find_objects(opened)
    names |= dict.fromkeys(objects.classes)
    return Described(tuple(names), CLASSES_FILE if kinds == {TAR} else "the files", objects)


def _listed(found: Listing) -> tuple[str, ...]:
    """Returns the names in the one file of classes that is listed, or else next to the files."""
    files = [i for i, key in enumerate(found.keys) if os.path.basename(key) == CLASSES_FILE]
    if len(files) == 1:
        return read_classes(read_bytes(found.path(files[0]), found.pin(files[0])), found.path(files[0]))
    path = os.path.join(found.root, CLASSES_FILE)
    try:
        return () if files else read_classes(read_bytes(path), path)
    except OSError:
        return ()
