"""Files of samples that are not TFRecords: each becomes one in a temporary folder, and is read as one from there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import IO, NamedTuple

from shardwright.formats import array_records, parquet_images, webdataset
from shardwright.formats.parquet import ParquetFile
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
    write: Callable[[Packed, IO[bytes], Sequence[str]], None]


def _write_tar(file: Packed, copy: IO[bytes], classes: Sequence[str]) -> None:
    with open_file(file.path, file.pin) as tar:
        webdataset.write_records(tar, copy, file.name, classes)


def _write_parquet(file: Packed, copy: IO[bytes], classes: Sequence[str]) -> None:
    parquet_images.write_records(ParquetFile.open(file.path, file.pin), copy, file.name, classes)


def _write_array_record(file: Packed, copy: IO[bytes], classes: Sequence[str]) -> None:
    del classes
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


def read_class_names(found: Listing, files: Sequence[tuple[Packed, Container]]) -> tuple[tuple[str, ...], str]:
    """Returns the names of the classes in order, and what states them; neither where nothing does.

    Args:
        found: all files of the input; tar files have the classes in a file next to them.
        files: those of samples.

    Raises:
        UsageError: they cannot be read.
    """
    names: dict[str, None] = {}
    kinds = {container.kind for _, container in files}
    if _TAR in kinds:
        names |= dict.fromkeys(_listed(found))
    for file, container in files:
        if container.kind == _PARQUET:
            names |= dict.fromkeys(parquet_images.classes_in(ParquetFile.open(file.path, file.pin)))
    return tuple(names), CLASSES_FILE if kinds == {_TAR} else "the files"


def left_out(files: Sequence[tuple[Packed, Container]]) -> tuple[str, ...]:
    """Returns a note about columns of Parquet files that are not read; nothing where all are."""
    opened = [ParquetFile.open(file.path, file.pin) for file, container in files if container.kind == _PARQUET]
    names = dict.fromkeys(name for one in opened for name in parquet_images.structures(one))
    fix = "boxes are read from `boxes` and `box_classes`, or from a metadata.jsonl next to the images"
    return (f"tfrecord: left out: {', '.join(names)} (structures; {fix})",) if names else ()


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
