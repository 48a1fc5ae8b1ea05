"""Task files: what a shard's writer has to do, partitioned by shard in one pass and bounded memory.

tasks/<split>-<i>-of-<n>.images.jsonl       [key, file name, size, sha256, crc32c, features of its pixels, where an
                                            earlier dataset holds it], in the order of the records
tasks/<split>-<i>-of-<n>.labels-<b>.jsonl   [image, class index, row, mask or null, further features], as in the table;
                                            of block b: so many images that their annotations fit into memory

The folder of a plan that copies from an earlier dataset carries that one's digest in its name: a run that goes on with
another one makes its own.

Where staging is on a bucket, writers on other machines fetch those of their shards from there.

Lines for many files, gathered in one piece of memory that goes back to the system whole.

Lines that are kept as objects lie between others that live on; what is freed there the C library keeps, and a run
would hold the room of its fullest moment to its end.
"""

from __future__ import annotations

import json
import mmap
import os
import uuid
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
# Short lines take more beside their bytes than these: two numbers each, and another one to sort them by.
_MOST_LINES = 1 << 18


class PartitionedWriter:
    """Appends lines to files; one is open at a time, however many there are. `flush` comes last.

    Args:
        files: where to; made at once, empty.
        size: bytes that are gathered before they are written; by default 32 MiB.
    """

    def __init__(self, files: Sequence[Path], size: int | None = None) -> None:
        self._files = files
        for file in files:
            file.touch()
        # Its pages count from when they are first written to, so few lines take little.
        self._memory = mmap.mmap(-1, size or _BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._used = 0
        self._numbers = array("i")
        self._ends = array("q")

    def add(self, number: int, line: bytes) -> None:
        """Takes a line, with its end, for the file of a number."""
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
        """Writes what has gathered; lines of one file keep their order."""
        numbers, ends = np.array(self._numbers), np.array(self._ends)
        self._used, self._numbers, self._ends = 0, array("i"), array("q")
        order = np.argsort(numbers, kind="stable")
        with memoryview(self._memory) as lines:
            for some in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else ():
                with self._files[numbers[some[0]]].open("ab") as out:
                    for place in some.tolist():
                        out.write(lines[ends[place - 1] if place else 0 : ends[place]])


_FOLDER = "tasks"
_DIGITS = 16
# Of a machine that did not write them: what its own shards needed, fetched from a bucket.
_FETCHED = "fetched"
_BLOCK = 512
# How the line of an image ends that an earlier dataset holds; that of another ends with its features.
_HELD = "]]\n"


def tasks_folder(earlier: str = "") -> str:
    """Name of the folder of task files.

    Args:
        earlier: digest of the dataset that images are copied from, if there is one.
    """
    return f"{_FOLDER}-{earlier[:_DIGITS]}" if earlier else _FOLDER


def tasks_are_written(staging_root: str, name: str = _FOLDER) -> bool:
    """Whether an earlier attempt has partitioned this plan. `name` is that of `tasks_folder`."""
    return Path(staging_root, name).is_dir()


def new_tasks(staging_root: str, name: str = _FOLDER) -> Path:
    """A folder for task files, which `publish_tasks` gives its name."""
    folder = Path(staging_root, f"{name}.{uuid.uuid4().hex}")
    folder.mkdir()
    return folder


def write_images(
    folder: Path,
    shards: Mapping[PlannedShard, npt.NDArray[np.int64]],
    listing: Listing,
    contents: FileHashes,
    probed: Callable[[int], Values],
    copied: Callable[[int], list[int]] = lambda position: [],
) -> None:
    """Writes which images each shard holds.

    Args:
        folder: of `new_tasks`.
        shards: shard -> positions of its images in the listing, in the order of the records.
        listing: the files.
        contents: their hashes; the files at the given positions can be read.
        probed: position -> features that its pixels tell.
        copied: position -> shard, offset and length of its record in an earlier dataset; nothing where there is none.
    """
    for planned, positions in shards.items():
        with _file(folder, planned, "images").open("w", encoding="utf-8") as out:
            for i in positions.tolist():
                digest = contents.sha256(i)
                assert digest is not None
                hashes = digest.hex(), contents.crc32c(i)
                told: list[Any] = [listing.keys[i], listing.names[i], listing.sizes[i], *hashes, dict(probed(i))]
                place = copied(i)
                told += [place] if place else []
                out.write(canonical_json(told) + "\n")


def write_labels(
    folder: Path,
    shards: Mapping[PlannedShard, npt.NDArray[np.int64]],
    images: int,
    annotations: Iterable[Annotation],
) -> None:
    """Partitions what is said about the images by shard.

    Args:
        folder: of `new_tasks`.
        shards: as for `write_images`.
        images: number of files of the listing.
        annotations: in the order of the table; those of images in no shard are passed over.
    """
    block_of = np.full(images, -1, dtype=np.int32)
    place_of = np.zeros(images, dtype=np.int32)
    files: list[Path] = []
    for planned, positions in shards.items():
        places = np.arange(len(positions), dtype=np.int32)
        block_of[positions] = len(files) + places // _BLOCK
        place_of[positions] = places
        files += [_file(folder, planned, f"labels-{block}") for block in range(_blocks(len(positions)))]
    written = PartitionedWriter(files)
    for image, label, text, row, values in annotations:
        number = int(block_of[image])
        if number < 0:
            continue
        line = canonical_json([int(place_of[image]), label, row, text, *([dict(values)] if values else [])]) + "\n"
        written.add(number, line.encode("utf-8"))
    written.flush()


def publish_tasks(staging_root: str, folder: Path) -> None:
    """Makes the task files appear, all together, under the name that they were made for."""
    durable.rename_folder(folder, Path(staging_root, folder.stem))


def share_tasks(staging: Staging, shards: Mapping[PlannedShard, npt.NDArray[np.int64]], name: str = _FOLDER) -> None:
    """Puts the task files beside the shards where staging is on a bucket, for writers on other machines.

    Args:
        staging: where they are.
        shards: as for `write_images`.
        name: of `tasks_folder`.
    """
    if staging.mirror is not None:
        files = (file for planned, positions in shards.items() for file in _files(planned, len(positions)))
        staging.mirror.push(Path(staging.root), [f"{name}/{file}" for file in files])


class ImageRow(NamedTuple):
    """An image of a shard, without what is said about it.

    Attributes:
        key: its key.
        path: its file.
        size: bytes of the file.
        sha256: of the file, hex.
        crc32c: of the file.
        probed: features that its pixels tell.
        copied: shard, offset and length of its record in an earlier dataset; empty where there is none.
    """

    key: str
    path: str
    size: int
    sha256: str
    crc32c: int
    probed: dict[str, Any]
    copied: Sequence[int] = ()


class Task(NamedTuple):
    """What a shard's writer is to make a record of.

    Attributes:
        sample: the image and what is said about it.
        sha256: of the file, hex.
        crc32c: of the file.
        copied: as `ImageRow` has it.
    """

    sample: ImageSample
    sha256: str
    crc32c: int
    copied: Sequence[int] = ()


def read_places(staging: Staging, planned: PlannedShard, name: str) -> Iterator[list[int]]:
    """Where an earlier dataset holds images of a shard: `ImageRow.copied` of each that it holds, in order."""
    with _file(_folder_of(staging, planned, name), planned, "images").open(encoding="utf-8") as lines:
        for line in lines:
            # It stands last, and most lines are long: no need to parse the rest.
            if line.endswith(_HELD):
                yield list(map(int, line[line.rindex("[") + 1 : -len(_HELD)].split(",")))


def read_not_reused(staging: Staging, planned: PlannedShard, root: str, name: str) -> Iterator[ImageRow]:
    """The other images of a shard, in order; see `read_tasks`."""
    folder = _folder_of(staging, planned, name)
    return _image_rows(folder, planned, root, lambda line: not line.endswith(_HELD))


def read_tasks(
    staging: Staging, planned: PlannedShard, root: str, task: str, name: str = _FOLDER, *, ordered: bool = False
) -> Iterator[Task]:
    """The samples of a shard in the order of its records.

    Args:
        staging: staging folder of the plan.
        planned: the shard.
        root: folder that the file names start from.
        task: `segmentation` or `classification`.
        name: of `tasks_folder`.
        ordered: whether order and repeats of an image's classes count; see `Survey.ordered`.
    """
    folder = _folder_of(staging, planned, name)
    annotations: dict[int, list[Mask]] = {}
    further: dict[int, dict[str, list[Any]]] = {}
    for place, (key, path, size, digest, checksum, probed, copied) in enumerate(_image_rows(folder, planned, root)):
        if place % _BLOCK == 0:
            annotations, further = _read_block(_file(folder, planned, f"labels-{place // _BLOCK}"))
        said = tuple(annotations.pop(place, ()))
        values = {**further.pop(place, {}), **probed}
        if task == "segmentation":
            yield Task(ImageSample(key, path, size, None, said, values), digest, checksum, copied)
        else:
            listed = (mask.label for mask in said)
            labels = tuple(listed) if ordered else tuple(sorted(set(listed)))
            yield Task(ImageSample(key, path, size, labels, (), values), digest, checksum, copied)


def _folder_of(staging: Staging, planned: PlannedShard, name: str) -> Path:
    """The folder that holds a shard's task files, fetched where another machine has written them."""
    folder = Path(staging.root, name)
    if staging.mirror is not None and not _file(folder, planned, "images").exists():
        return _fetched(Path(staging.root, f"{_FETCHED}-{name}"), staging.mirror, planned, name)
    return folder


def _image_rows(
    folder: Path, planned: PlannedShard, root: str, wanted: Callable[[str], bool] | None = None
) -> Iterator[ImageRow]:
    with _file(folder, planned, "images").open(encoding="utf-8") as lines:
        for line in lines if wanted is None else filter(wanted, lines):
            key, name, *rest = json.loads(line)
            yield ImageRow(key, os.path.join(root, name), *rest)


def _read_block(file: Path) -> tuple[dict[int, list[Mask]], dict[int, dict[str, list[Any]]]]:
    annotations: dict[int, list[Mask]] = defaultdict(list)
    further: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            place, label, row, text, *values = json.loads(line)
            if label != NO_LABEL or text is not None:
                annotations[place].append(Mask(label, text, row))
            for name, listed in values[0].items() if values else ():
                further[place][name] += listed
    return annotations, further


def _fetched(folder: Path, mirror: Mirror, planned: PlannedShard, of: str) -> Path:
    """The folder that holds a shard's task files after they were fetched from the one called `of`."""
    folder.mkdir(parents=True, exist_ok=True)
    images = mirror.read(f"{of}/{_file(folder, planned, 'images').name}")
    for name in _files(planned, images.count(b"\n")):
        data = mirror.read(f"{of}/{name}")
        temporary = folder / f".{name}.{uuid.uuid4().hex}"
        temporary.write_bytes(data)
        temporary.replace(folder / name)
    return folder


def _files(planned: PlannedShard, images: int) -> list[str]:
    """Names of the task files of a shard of so many images."""
    kinds = ["images", *(f"labels-{block}" for block in range(_blocks(images)))]
    return [_file(Path(), planned, kind).name for kind in kinds]


def _blocks(images: int) -> int:
    return -(-images // _BLOCK)


def _file(folder: Path, planned: PlannedShard, what: str) -> Path:
    return folder / f"{planned.split}-{shard_name(planned.number, planned.total)}.{what}.jsonl"
