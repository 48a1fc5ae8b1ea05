"""Files of samples that are not TFRecords: each becomes one in a temporary folder, and is read as one from there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import IO, NamedTuple

from shardwright.formats import array_records, parquet_images, webdataset
from shardwright.formats.parquet import ParquetFile
from shardwright.formats.parquet_images import Objects
from shardwright.formats.parquet_pages import is_parquet
from shardwright.formats.webdataset import CLASSES_FILE, read_classes
from shardwright.storage import Listing, open_file, read_bytes


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


class Container(NamedTuple):
    """A kind of file.

    Attributes:
        kind: its name.
        means: what a file of it is, as a part of a sentence.
        begins: whether a file with this beginning may be one.
        holds: whether a file that begins so has images.
        write: writes its samples as TFRecords.
    """

    kind: str
    means: str
    begins: Callable[[bytes], bool]
    holds: Callable[[Packed], bool]
    write: Callable[[Packed, IO[bytes], Described], None]


def _write_tar(file: Packed, copy: IO[bytes], described: Described) -> None:
    with open_file(file.path, file.pin) as tar:
        webdataset.write_records(tar, copy, file.name, described.classes)


def _write_parquet(file: Packed, copy: IO[bytes], described: Described) -> None:
    opened = ParquetFile.open(file.path, file.pin)
    parquet_images.write_records(opened, copy, file.name, described.classes, described.objects)


def _write_array_record(file: Packed, copy: IO[bytes], described: Described) -> None:
    del described
    array_records.write_records(file.path, file.pin, copy, file.name)


def _always(file: Packed) -> bool:
    del file
    return True


def _has_images(file: Packed) -> bool:
    return parquet_images.has_images(ParquetFile.open(file.path, file.pin))


_PARQUET = "Parquet"
_TAR = "tar"
_CONTAINERS = (
    Container(_TAR, "is a tar file of samples (WebDataset)", webdataset.begins_as_tar, _always, _write_tar),
    Container(_PARQUET, "is a Parquet file with images inside", is_parquet, _has_images, _write_parquet),
    Container(
        "ArrayRecord", "is an ArrayRecord file", array_records.begins_as_array_record, _always, _write_array_record
    ),
)


def container_of(file: Packed, start: bytes) -> Container | None:
    """Returns what a file of samples is; `None` where it is something else, such as a table.

    Raises:
        UsageError: it cannot be read, or the package that reads it is not installed.
    """
    found = next((container for container in _CONTAINERS if container.begins(start)), None)
    return found if found is not None and found.holds(file) else None


def describe(found: Listing, files: Sequence[tuple[Packed, Container]]) -> Described:
    """Returns the description of a set of files.

    Args:
        found: all files of the input; tar files have the classes in a file next to them.
        files: those of samples.

    Raises:
        UsageError: they cannot be read.
    """
    kinds = {container.kind for _, container in files}
    names = dict.fromkeys(_listed(found) if _TAR in kinds else ())
    opened = [ParquetFile.open(file.path, file.pin) for file, container in files if container.kind == _PARQUET]
    names |= dict.fromkeys(name for file in opened for name in parquet_images.classes_in(file))
    objects = parquet_images.find_objects(opened)
    names |= dict.fromkeys(objects.classes)
    return Described(tuple(names), CLASSES_FILE if kinds == {_TAR} else "the files", objects)


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
