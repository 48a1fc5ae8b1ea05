"""Task files: what the writer of a range of a shard has to do, partitioned in one pass and bounded memory.

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
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.dataset.shard_names import shard_name
from shardwright.formats.base import NO_LABEL, Annotation, ImageSample, Mask, Values
from shardwright.images.header import ImageError, ImageHeader
from shardwright.ingest.known_files import FileHashes, ProbeRow
from shardwright.ingest.ranges import Bounds
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import Listing, durable
from shardwright.storage.fingerprint import canonical_json, fingerprint

_BYTES = 1 << 25
# Short lines take more than their bytes: two numbers each, and another one to sort them by.
_MOST_LINES = 1 << 18


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


_FOLDER = "tasks"
_DIGITS = 16
_NUMBERS = b"0123456789 "
# Bytes of annotations that are parsed together.
_TOGETHER = 1 << 20

Shards = Mapping[PlannedShard, npt.NDArray[np.int64]]


def tasks_folder(bounds: Sequence[Bounds], previous: str = "") -> str:
    """Returns the name of the folder of task files: another one for other ranges, or for images copied from elsewhere.

    Args:
        bounds: of the ranges of each shard.
        previous: digest of the dataset that images are copied from, if there is one.
    """
    return f"{_FOLDER}-{fingerprint([bounds, previous])[:_DIGITS]}"


def tasks_are_written(staging_root: str, name: str = _FOLDER) -> bool:
    """Returns whether a previous attempt has partitioned this plan. `name` is that of `tasks_folder`."""
    return Path(staging_root, name).is_dir()


def new_tasks(staging_root: str, name: str = _FOLDER) -> Path:
    """Creates a folder for task files, which `publish_tasks` gives its name."""
    folder = Path(staging_root, f"{name}.{uuid.uuid4().hex}")
    folder.mkdir()
    return folder


def write_images(
    folder: Path,
    shards: Shards,
    bounds: Sequence[Bounds],
    listing: Listing,
    contents: FileHashes,
    probed: Callable[[int], Values],
    copied: Callable[[int], list[int]] | None = None,
) -> None:
    """Writes which images each range contains.

    Args:
        folder: of `new_tasks`.
        shards: shard -> positions of its images in the listing, in the order of the records.
        bounds: of the ranges of each shard.
        listing: the files.
        contents: their hashes; those of an object may be unknown, and it is then compared with the listed checksum.
        probed: position -> features that probing measured.
        copied: position -> shard, offset and length of its record in the previous dataset; empty where there is none.
    """

    def columns(images: Sequence[int]) -> Iterator[list[Any]]:
        hashes = [contents.get(i) for i in images]
        yield [listing.keys[i] for i in images]
        yield [] if listing.names is listing.keys else [listing.names[i] for i in images]
        yield [listing.sizes[i] for i in images]
        yield ["" if one is None else one.content_id.hex() for one in hashes]
        yield [0 if one is None else one.crc32c for one in hashes]
        yield [listing.checksum(i) for i in images]
        yield [listing.pin(i) if one is None else "" for i, one in zip(images, hashes, strict=True)]
        yield [dict(probed(i)) for i in images]
        yield [[] if copied is None else copied(i) for i in images]

    for (planned, positions), cuts in zip(shards.items(), bounds, strict=True):
        for begin, end in pairwise(cuts):
            line = canonical_json(list(columns(positions[begin:end].tolist()))) + "\n"
            (folder / _file(planned, begin)).write_text(line, encoding="utf-8", newline="\n")


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
    for (planned, positions), cuts in zip(shards.items(), bounds, strict=True):
        for begin, end in pairwise(cuts):
            range_of[positions[begin:end]] = len(files)
            index_of[positions[begin:end]] = np.arange(end - begin)
            files.append(folder / _file(planned, begin))
    written = PartitionedWriter(files)
    for annotation in annotations:
        number = int(range_of[annotation.image])
        if number >= 0:
            written.add(number, _label_line(int(index_of[annotation.image]), annotation))
    written.flush()


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


def publish_tasks(staging_root: str, folder: Path) -> None:
    """Publishes the task files, all together, under the name that they were made for."""
    durable.rename_folder(folder, Path(staging_root, folder.stem))


def share_tasks(staging: Staging, shards: Iterable[PlannedShard], bounds: Sequence[Bounds], name: str) -> None:
    """Copies the task files to the bucket where staging is on one, for writers on other machines.

    Args:
        staging: where they are.
        shards: every shard.
        bounds: of the ranges of each.
        name: of `tasks_folder`.
    """
    if staging.mirror is not None:
        files = (_file(planned, begin) for planned, cuts in zip(shards, bounds, strict=True) for begin in cuts[:-1])
        staging.mirror.push(Path(staging.root), [f"{name}/{file}" for file in files])


class ImageRow(NamedTuple):
    """An image of a shard, without its annotations.

    Attributes:
        key: its key.
        path: its file.
        size: bytes of the file.
        content_id: of the file, hex; empty for an object that was not read yet.
        crc32c: of the file.
        listed: the checksum that the store lists; empty for a local file.
        pin: the version of an object that was not read yet.
        probed: features that probing measured.
        copied: shard, offset and length of its record in the previous dataset; empty where there is none.
    """

    key: str
    path: str
    size: int
    content_id: str
    crc32c: int
    listed: str
    pin: str
    probed: dict[str, Any]
    copied: Sequence[int] = ()


class Stored(NamedTuple):
    """An image as it is stored."""

    data: bytes
    header: ImageHeader
    frame: CoordinateFrame


@dataclass
class Job:
    """One image on its way to its record: each step of `shardwright.ingest.write_shards` fills in what it finds out.

    Attributes:
        file: the file of the image; its content ID and CRC-32C are known from the step `identify` on.
        sample: the image and its annotations; its values contain what probing or `measure` has measured.
        masks: the files of its masks by their names, where they were fetched for the first time.
        data: the bytes of the file; `None` where it cannot be read, or `stored` is known without them.
        stored: what is stored.
        row: the results of decoding it, where it was decoded here.
        error: why it is rejected, if it is.
        copied: whether it was copied from a previous dataset.
        damaged: whether it was to be copied, and its record was damaged.
    """

    file: ImageRow
    sample: ImageSample
    masks: Mapping[str, bytes] | None = None
    data: bytes | None = None
    stored: Stored | None = None
    row: ProbeRow | None = None
    error: ImageError | None = None
    copied: bool = False
    damaged: bool = False


def read_tasks(
    staging: Staging, planned: PlannedShard, begin: int, *, root: str, name: str, task: str, ordered: bool = False
) -> Iterator[Job]:
    """Yields the images of a range with their annotations, in the order of the records.

    Args:
        staging: staging folder of the plan. Another machine reads the file from the bucket.
        planned: the shard.
        begin: the first image of the range.
        root: folder that the file names start from.
        name: of `tasks_folder`.
        task: `segmentation` or `classification`.
        ordered: whether order and repeats of an image's classes count; see `Survey.ordered`.
    """
    file = f"{name}/{_file(planned, begin)}"
    there = staging.path(file)
    data = there.read_bytes() if staging.mirror is None or there.exists() else staging.mirror.read(file)
    head, _, lines = data.partition(b"\n")
    keys, names, *columns = json.loads(head)
    annotated = Annotated()
    for index, label, row, text, *further in _parsed(lines):
        values = further[0] if further else {}
        size = tuple(further[1]) if len(further) > 1 else None
        annotated.add(Annotation(index, label, text, row, values, size))
    paths = (os.path.join(root, name) for name in names or keys)
    for index, row in enumerate(map(ImageRow, keys, paths, *columns)):
        yield Job(row, annotated.pop_sample(index, row, task, ordered=ordered))


def _parsed(lines: bytes) -> Iterator[list[Any]]:
    """Yields the values of lines of JSON; short ones are parsed together, in half the time."""
    begin = 0
    while begin < len(lines):
        end = lines.find(b"\n", begin + _TOGETHER - 1)
        end = len(lines) - 1 if end < 0 else end
        yield from json.loads(b"[%b]" % lines[begin:end].replace(b"\n", b","))
        begin = end + 1


class Annotated:
    """The annotations of some images, gathered from the rows."""

    def __init__(self) -> None:
        self._masks: dict[int, list[Mask]] = defaultdict(list)
        self._values: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        self._sizes: dict[int, tuple[int, int]] = {}

    def add(self, annotation: Annotation) -> None:
        """Adds a row. `image` may be any number that identifies the image here."""
        image, label, text, row, values, stated_size = annotation
        if label != NO_LABEL or text is not None:
            self._masks[image].append(Mask(label, text or "", row))
        for name, listed in values.items():
            self._values[image][name] += listed
        if stated_size is not None:
            self._sizes[image] = stated_size

    def pop_sample(self, image: int, row: ImageRow, task: str, *, ordered: bool) -> ImageSample:
        """Removes the annotations of an image, and returns the image with them.

        Args:
            image: its number.
            row: its file, and what probing measured.
            task: `segmentation` or `classification`.
            ordered: see `read_tasks`.
        """
        masks = self._masks.pop(image, [])
        values = {**self._values.pop(image, {}), **row.probed}
        labels = None
        if task != "segmentation":
            listed, masks = [mask.label for mask in masks], []
            labels = tuple(listed if ordered else sorted(set(listed)))
        size = self._sizes.pop(image, None)
        return ImageSample(row.key, row.path, row.size, labels, tuple(masks), values, size)


def _file(planned: PlannedShard, begin: int) -> str:
    return f"{planned.split}-{shard_name(planned.number, planned.total)}.{begin:09d}.jsonl"
