"""Task files: what the writer of a range (`shardwright.staging.ranges`) has to do.

tasks/<split>-<i>-of-<n>.<begin>.jsonl    the images of the range that begins there, as a line of columns (`ImageRow`);
                                          then a line for each annotation, as in the table: image, class index, row,
                                          mask or null, further features, stated size

The folder of a plan that copies from a previous dataset has that dataset's digest in its name: a run that goes on with
another one makes another folder. If staging is on a bucket, writers on other machines read their task files there.

`PartitionedWriter` gathers lines for many files in one piece of memory that goes back to the system whole. Lines kept
as objects would share their pages with objects that stay; the C library would then keep that memory until the run ends.
"""

from __future__ import annotations

import json
import mmap
import os
import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config import ImagesConfig
from shardwright.dataset.shard_names import shard_name
from shardwright.dataset.stored_image import may_decode
from shardwright.formats.base import NO_LABEL, Annotation
from shardwright.images.header import ImageError, ImageHeader
from shardwright.ingest.known_files import FileHashes, KnownFiles, ProbeRow
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.staging.ranges import Bounds
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import Listing, durable
from shardwright.storage.fingerprint import canonical_json

_BYTES = 1 << 25
# Short lines take more than their bytes: two numbers each, and another one to sort them by.
_MOST_LINES = 1 << 18
_NUMBERS = b"0123456789 "
# Bytes of annotations that are parsed together.
_TOGETHER = 1 << 20
Shards = Mapping[PlannedShard, npt.NDArray[np.int64]]
# Nanoseconds of one processor: for an image with its record, and for a byte that is read, hashed, and decoded.
_OF_IMAGE, _OF_BYTE, _OF_DECODING = 200_000, 2, 25


def cost_of(options: ImagesConfig, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns about how many nanoseconds of one processor each image takes.

    Args:
        options: `images`.
        sizes: bytes of each image, int64 (n,).
    """
    decoded = may_decode(options)
    return _OF_IMAGE + sizes * (_OF_DECODING if decoded else _OF_BYTE)


class PartitionedWriter:
    """Appends lines to files, of which only one is open. `flush` comes last.

    Args:
        files: the files; created at once, empty.
        size: bytes that are gathered before they are written; by default 32 MiB.
    """

    def __init__(self, files: Sequence[Path], size: int | None = None) -> None:
        self._files = files
        for file in files:
            file.touch()
        # A page takes memory only once it is written to, so few lines take little.
        self._memory = mmap.mmap(-1, size or _BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._used = 0
        self._numbers = array("i")
        self._ends = array("q")

    def add(self, number: int, line: bytes) -> None:
        """Adds a line, with its end, to the file of a number."""
        if self._used + len(line) > len(self._memory) or len(self._numbers) == _MOST_LINES:
            self.flush()
        if len(line) > len(self._memory):
            with self._files[number].open("ab") as out:
                out.write(line)
            return
        begin, self._used = self._used, self._used + len(line)
        self._memory[begin : self._used] = line
        self._numbers.append(number)
        self._ends.append(self._used)

    def flush(self) -> None:
        """Writes the gathered lines; lines of one file keep their order."""
        numbers, ends = np.array(self._numbers), np.array(self._ends)
        self._used, self._numbers, self._ends = 0, array("i"), array("q")
        order = np.argsort(numbers, kind="stable")
        with memoryview(self._memory) as lines:
            for some in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else ():
                with self._files[numbers[some[0]]].open("ab") as out:
                    for index in some.tolist():
                        out.write(lines[ends[index - 1] if index else 0 : ends[index]])


@contextmanager
def new_tasks(staging_root: str, name: str) -> Iterator[Path]:
    """Yields a folder for task files, which gets its name, with all that is in it, when the block ends."""
    folder = Path(staging_root, f"{name}.{uuid.uuid4().hex}")
    folder.mkdir()
    yield folder
    durable.rename_folder(folder, Path(staging_root, name))


@dataclass
class Tasks:
    """What the plan knows of the images, for their writers.

    Attributes:
        listing: the files.
        contents: their hashes; those of an object may be unknown, and it is then compared with the listed checksum.
        probed: what probing has measured, if it has.
        copied: position -> shard, offset and length of its record in the previous dataset; empty where there is none.
    """

    listing: Listing
    contents: FileHashes
    probed: KnownFiles | None = None
    copied: Callable[[int], list[int]] | None = None

    def columns(self, images: Sequence[int]) -> list[list[Any]]:
        """Returns the fields of the `ImageRow` of images, a list each, and their probe results or `None`."""
        listing, hashes = self.listing, [self.contents.get(i) for i in images]
        keys = [listing.keys[i] for i in images]
        return [
            keys,
            keys if listing.names is listing.keys else [listing.names[i] for i in images],
            [listing.sizes[i] for i in images],
            ["" if known is None else known.content_id.hex() for known in hashes],
            [0 if known is None else known.crc32c for known in hashes],
            [listing.checksum(i) for i in images],
            [listing.pin(i) if known is None else "" for i, known in zip(images, hashes, strict=True)],
            [[] if self.copied is None else self.copied(i) for i in images],
            [None if self.probed is None else self.probed.row(i) for i in images],
        ]


# Reads the annotations of some images alone.
Reader = Callable[[Sequence[int]], Iterator[Annotation]]
# Of this process, and of forks of it: folder of staging and name of the tasks -> these, not in files.
_kept: dict[tuple[str, str], tuple[Tasks, Shards, Reader]] = {}


def keep_tasks(staging: Staging, name: str, tasks: Tasks, shards: Shards, reader: Reader) -> None:
    """Lets this process, and forks of it, have tasks without files, until `forget_tasks`.

    Args:
        staging: staging folder of the plan.
        name: what would be the name of the folder of the task files.
        tasks: what is known of the images.
        shards: shard -> positions of its images in the listing, in the order of the records.
        reader: reads the annotations of some images.
    """
    _kept[staging.root, name] = tasks, shards, reader


def forget_tasks(staging: Staging, name: str) -> None:
    """Ends what `keep_tasks` began, if it did."""
    _kept.pop((staging.root, name), None)


def write_images(folder: Path, shards: Shards, bounds: Sequence[Bounds], tasks: Tasks) -> None:
    """Writes which images each range contains.

    Args:
        folder: of `new_tasks`.
        shards: shard -> positions of its images in the listing, in the order of the records.
        bounds: of the ranges of each shard.
        tasks: what is known of the images.
    """
    for name, positions in _ranges(shards, bounds):
        keys, names, *columns, rows = tasks.columns(positions.tolist())
        probed = [None if row is None else row.to_json() for row in rows]
        line = canonical_json([keys, [] if names is keys else names, *columns, probed])
        (folder / name).write_text(f"{line}\n", encoding="utf-8", newline="\n")


def write_labels(
    folder: Path, shards: Shards, bounds: Sequence[Bounds], images: int, annotations: Iterable[Annotation]
) -> None:
    """Adds the annotations of the images to the files of their ranges.

    Args:
        folder: of `new_tasks`.
        shards: as for `write_images`.
        bounds: as for `write_images`.
        images: number of files of the listing.
        annotations: in the order of the table; those of images in no shard are passed over.
    """
    range_of, index_of = np.full(images, -1, dtype=np.int32), np.zeros(images, dtype=np.int32)
    files: list[Path] = []
    for name, positions in _ranges(shards, bounds):
        range_of[positions] = len(files)
        index_of[positions] = np.arange(len(positions))
        files.append(folder / name)
    written = PartitionedWriter(files)
    for annotation in annotations:
        number = int(range_of[annotation.image])
        if number >= 0:
            written.add(number, _label_line(int(index_of[annotation.image]), annotation))
    written.flush()


def share_tasks(staging: Staging, shards: Shards, bounds: Sequence[Bounds], name: str) -> None:
    """Copies the task files in a folder to the bucket where staging is on one, for writers on other machines."""
    if staging.mirror is not None:
        staging.mirror.push(Path(staging.root), [f"{name}/{file}" for file, _ in _ranges(shards, bounds)])


def _ranges(shards: Shards, bounds: Sequence[Bounds]) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Yields the name of each task file, and the positions of its images."""
    for (planned, positions), cuts in zip(shards.items(), bounds, strict=True):
        for begin, end in pairwise(cuts):
            yield _file(planned, begin), positions[begin:end]


def _label_line(index: int, annotation: Annotation) -> bytes:
    """Returns a line of a file of labels."""
    _, label, text, row, values, stated_size = annotation
    if text and not values and text.isascii():
        octets = text.encode("ascii")
        if not octets.translate(None, _NUMBERS):
            # Run lengths, long texts of which JSON's encoder would look at each character.
            size = b",{},[%d,%d]" % stated_size if stated_size else b""
            return b'[%d,%d,%d,"%b"%b]\n' % (index, label, row, octets, size)
    further: list[Any] = [dict(values), stated_size] if stated_size else [dict(values)] if values else []
    return canonical_json([index, label, row, text, *further]).encode("utf-8") + b"\n"


class ImageRow(NamedTuple):
    """The file of an image of a shard, as the plan knows it.

    Attributes:
        key: its key.
        path: its file.
        size: bytes of the file.
        content_id: of the file, hex; empty for an object that was not read yet.
        crc32c: of the file.
        listed: the checksum that the store lists; empty for a local file.
        pin: the version of an object that was not read yet.
        copied: shard, offset and length of its record in the previous dataset; empty where there is none.
    """

    key: str
    path: str
    size: int
    content_id: str = ""
    crc32c: int = 0
    listed: str = ""
    pin: str = ""
    copied: Sequence[int] = ()


class Stored(NamedTuple):
    """An image as it is stored: its bytes, their header, and how annotations get to its pixels."""

    data: bytes
    header: ImageHeader
    frame: CoordinateFrame


@dataclass
class Job:
    """One image on its way to its record: each step of `shardwright.ingest.write_shards` fills in what it finds out.

    Attributes:
        file: the file of the image; its content ID and CRC-32C are known from the step `identify` on.
        annotations: its classes and masks, in the order of the table, as their format has read them.
        values: further features: name -> numbers or texts; the lists of its annotations are joined, and what probing or
            `measure` has measured is added.
        stated_size: see `Annotation.stated_size`.
        masks: the files of its masks by their names, where they were fetched for the first time.
        data: the bytes of the file; `None` where it cannot be read, or `stored` is known without them.
        stored: what is stored.
        row: the results of probing it, by the plan or by `measure`.
        error: why it is rejected, if it is.
        copied: whether it was copied from a previous dataset.
        damaged: whether it was to be copied, and its record was damaged.
    """

    file: ImageRow
    annotations: list[Annotation] = field(default_factory=list)
    values: dict[str, list[Any]] = field(default_factory=dict)
    stated_size: tuple[int, int] | None = None
    masks: Mapping[str, bytes] | None = None
    data: bytes | None = None
    stored: Stored | None = None
    row: ProbeRow | None = None
    error: ImageError | None = None
    copied: bool = False
    damaged: bool = False

    def add(self, annotation: Annotation) -> None:
        """Adds an annotation of the image, after those before it in the table."""
        if annotation.label != NO_LABEL or annotation.text is not None:
            self.annotations.append(annotation)
        for name, listed in annotation.values.items():
            self.values.setdefault(name, []).extend(listed)
        self.stated_size = annotation.stated_size or self.stated_size


def read_tasks(staging: Staging, planned: PlannedShard, ends: tuple[int, int], *, root: str, name: str) -> list[Job]:
    """Returns the images of a range with their annotations, in the order of the records.

    Args:
        staging: staging folder of the plan. Another machine reads the file from the bucket.
        planned: the shard.
        ends: the first image of the range, and the image after its last.
        root: folder that the file names start from.
        name: of the folder of the task files.
    """
    annotations: Iterator[tuple[int, Annotation]]
    if kept := _kept.get((staging.root, name)):
        tasks, shards, reader = kept
        images = shards[planned][ends[0] : ends[1]].tolist()
        keys, names, *columns, rows = tasks.columns(images)
        places = {image: index for index, image in enumerate(images)}
        annotations = ((places[annotation.image], annotation) for annotation in reader(images))
    else:
        file = f"{name}/{_file(planned, ends[0])}"
        there = staging.path(file)
        data = there.read_bytes() if staging.mirror is None or there.exists() else staging.mirror.read(file)
        head, _, lines = data.partition(b"\n")
        keys, names, *columns, texts = json.loads(head)
        rows = [ProbeRow.from_json(text) if text else None for text in texts]
        annotations = _read_labels(lines)
    files = map(ImageRow, keys, (os.path.join(root, name) for name in names or keys), *columns)
    jobs = [Job(file, row=row) for file, row in zip(files, rows, strict=True)]
    for index, annotation in annotations:
        jobs[index].add(annotation)
    for job in jobs:
        job.values.update({} if job.row is None else job.row.values())
    return jobs


def _read_labels(lines: bytes) -> Iterator[tuple[int, Annotation]]:
    """Yields the index of an image in its range, and an annotation of it."""
    at = 0
    while at < len(lines):
        # Short lines are parsed together, in half the time.
        end = lines.find(b"\n", at + _TOGETHER - 1)
        end = len(lines) - 1 if end < 0 else end
        for index, label, row, text, *further in json.loads(b"[%b]" % lines[at:end].replace(b"\n", b",")):
            values, size = (*further, None, None)[:2]
            yield index, Annotation(index, label, text, row, values or {}, tuple(size) if size else None)
        at = end + 1


def _file(planned: PlannedShard, begin: int) -> str:
    return f"{planned.split}-{shard_name(planned.number, planned.total)}.{begin:09d}.jsonl"
