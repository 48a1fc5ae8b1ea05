"""Task files: what a shard's writer has to do, partitioned by shard in one pass and bounded memory.

tasks/<split>-<i>-of-<n>.images.jsonl       [key, file name, size, content ID, CRC-32C, the store's checksum and
                                            version where it is read for the first time, features of its pixels,
                                            where it is in the previous dataset], in the order of the records
tasks/<split>-<i>-of-<n>.labels-<b>.jsonl   [image, class index, row, mask or null, further features,
                                            stated size], as in the table;
                                            of block b: so many images that their annotations fit into memory

The folder of a plan that copies from a previous dataset has that dataset's digest in its name: a run that goes on with
another one makes another folder. If staging is on a bucket, writers on other machines fetch their task files.

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
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.dataset.shard_names import shard_name
from shardwright.fingerprint import canonical_json
from shardwright.formats.base import NO_LABEL, Annotation, ImageSample, Mask, Values
from shardwright.ingest.known_files import FileHashes
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import Listing, durable
from shardwright.storage.mirror import Mirror

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
_TOGETHER = 1 << 17
# Folder of a machine that did not write them: those of the shards that it writes, fetched from a bucket.
_FETCHED = "fetched"
_BLOCK = 512
_NUMBERS = b"0123456789 "
# End of the line of an image that is in the previous dataset; other lines end with the features.
_HELD = "]]\n"


def tasks_folder(previous: str = "") -> str:
    """Returns the name of the folder of task files.

    Args:
        previous: digest of the dataset that images are copied from, if there is one.
    """
    return f"{_FOLDER}-{previous[:_DIGITS]}" if previous else _FOLDER


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
    shards: Mapping[PlannedShard, npt.NDArray[np.int64]],
    listing: Listing,
    contents: FileHashes,
    probed: Callable[[int], Values],
    copied: Callable[[int], list[int]] | None = None,
) -> None:
    """Writes which images each shard contains.

    Args:
        folder: of `new_tasks`.
        shards: shard -> positions of its images in the listing, in the order of the records.
        listing: the files.
        contents: their hashes; those of an object may be unknown, and it is then compared with the listed checksum.
        probed: position -> features that probing measured.
        copied: position -> shard, offset and length of its record in the previous dataset; empty where there is none.
    """
    for planned, positions in shards.items():
        with _file(folder, planned, "images").open("w", encoding="utf-8") as out:
            for i in positions.tolist():
                content = contents.get(i)
                if content is None:
                    identity = "", 0, listing.checksum(i), listing.pin(i)
                else:
                    identity = content.content_id.hex(), content.crc32c, listing.checksum(i), ""
                row: list[Any] = [listing.keys[i], listing.names[i], listing.sizes[i], *identity, dict(probed(i))]
                location = copied(i) if copied is not None else []
                row += [location] if location else []
                out.write(canonical_json(row) + "\n")


def write_labels(
    folder: Path,
    shards: Mapping[PlannedShard, npt.NDArray[np.int64]],
    images: int,
    annotations: Iterable[Annotation],
) -> None:
    """Partitions the annotations of the images by shard.

    Args:
        folder: of `new_tasks`.
        shards: as for `write_images`.
        images: number of files of the listing.
        annotations: in the order of the table; those of images in no shard are passed over.
    """
    block_of_image = np.full(images, -1, dtype=np.int32)
    index_of = np.zeros(images, dtype=np.int32)
    files: list[Path] = []
    for planned, positions in shards.items():
        indices = np.arange(len(positions), dtype=np.int32)
        block_of_image[positions] = len(files) + indices // _BLOCK
        index_of[positions] = indices
        files += [_file(folder, planned, f"labels-{block}") for block in range(_blocks(len(positions)))]
    written = PartitionedWriter(files)
    for annotation in annotations:
        number = int(block_of_image[annotation.image])
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


def share_tasks(staging: Staging, shards: Mapping[PlannedShard, npt.NDArray[np.int64]], name: str = _FOLDER) -> None:
    """Copies the task files to the bucket where staging is on one, for writers on other machines.

    Args:
        staging: where they are.
        shards: as for `write_images`.
        name: of `tasks_folder`.
    """
    if staging.mirror is not None:
        files = (file for planned, positions in shards.items() for file in _files(planned, len(positions)))
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


class Task(NamedTuple):
    """One record to write.

    Attributes:
        sample: the image and its annotations; its values contain what probing measured.
        file: the file of the image.
        masks: the files of its masks by their names, where they were fetched for the first time.
    """

    sample: ImageSample
    file: ImageRow
    masks: Mapping[str, bytes] | None = None


class ShardTasks:
    """The task files of one shard. They are fetched from the bucket on first use if another machine wrote them.

    Args:
        staging: staging folder of the plan.
        planned: the shard.
        root: folder that the file names start from.
        name: of `tasks_folder`.
    """

    def __init__(self, staging: Staging, planned: PlannedShard, root: str, name: str = _FOLDER) -> None:
        self.root = root
        self._staging, self._planned, self._name = staging, planned, name

    def locations(self) -> Iterator[list[int]]:
        """Yields `ImageRow.copied` of each image that the previous dataset contains, in order."""
        with _file(self._folder, self._planned, "images").open(encoding="utf-8") as lines:
            for line in lines:
                # It comes last, and most lines are long: no need to parse the rest.
                if line.endswith(_HELD):
                    yield list(map(int, line[line.rindex("[") + 1 : -len(_HELD)].split(",")))

    def not_reused(self) -> Iterator[ImageRow]:
        """Yields the other images, in order."""
        return self._rows(lambda line: not line.endswith(_HELD))

    def read(self, task: str, *, ordered: bool = False) -> Iterator[Task]:
        """Yields the samples in the order of the records.

        Args:
            task: `segmentation` or `classification`.
            ordered: whether order and repeats of an image's classes count; see `Survey.ordered`.
        """
        block = Annotated()
        for index, row in enumerate(self._rows()):
            if index % _BLOCK == 0:
                block = _read_block(_file(self._folder, self._planned, f"labels-{index // _BLOCK}"))
            yield Task(block.pop_sample(index, row, task, ordered=ordered), row)

    @cached_property
    def _folder(self) -> Path:
        folder, mirror = Path(self._staging.root, self._name), self._staging.mirror
        if mirror is not None and not _file(folder, self._planned, "images").exists():
            return _fetched(Path(self._staging.root, f"{_FETCHED}-{self._name}"), mirror, self._planned, self._name)
        return folder

    def _rows(self, wanted: Callable[[str], bool] | None = None) -> Iterator[ImageRow]:
        with _file(self._folder, self._planned, "images").open(encoding="utf-8") as lines:
            for line in filter(wanted, lines):
                key, name, *rest = json.loads(line)
                yield ImageRow(key, os.path.join(self.root, name), *rest)


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
            ordered: see `ShardTasks.read`.
        """
        masks = self._masks.pop(image, [])
        values = {**self._values.pop(image, {}), **row.probed}
        sample = ImageSample(row.key, row.path, row.size, None, (), values, self._sizes.pop(image, None))
        if task == "segmentation":
            return replace(sample, masks=tuple(masks))
        listed = [mask.label for mask in masks]
        return replace(sample, labels=tuple(listed if ordered else sorted(set(listed))))


def _read_block(file: Path) -> Annotated:
    block = Annotated()
    # Lines of masks have kilobytes, which a file opened as text would read in small pieces.
    with file.open("rb", buffering=_TOGETHER) as lines:
        for line in lines:
            index, label, row, text, *further = json.loads(line)
            values = further[0] if further else {}
            size = tuple(further[1]) if len(further) > 1 else None
            block.add(Annotation(index, label, text, row, values, size))
    return block


def _fetched(folder: Path, mirror: Mirror, planned: PlannedShard, of: str) -> Path:
    """Fetches a shard's task files from the folder called `of` on the bucket; returns the folder they are in now."""
    folder.mkdir(parents=True, exist_ok=True)
    images = mirror.read(f"{of}/{_file(folder, planned, 'images').name}")
    for name in _files(planned, images.count(b"\n")):
        data = mirror.read(f"{of}/{name}")
        temporary = folder / f".{name}.{uuid.uuid4().hex}"
        temporary.write_bytes(data)
        temporary.replace(folder / name)
    return folder


def _files(planned: PlannedShard, images: int) -> list[str]:
    """Returns the names of the task files of a shard of so many images."""
    kinds = ["images", *(f"labels-{block}" for block in range(_blocks(images)))]
    return [_file(Path(), planned, kind).name for kind in kinds]


def _blocks(images: int) -> int:
    return -(-images // _BLOCK)


def _file(folder: Path, planned: PlannedShard, what: str) -> Path:
    return folder / f"{planned.split}-{shard_name(planned.number, planned.total)}.{what}.jsonl"
