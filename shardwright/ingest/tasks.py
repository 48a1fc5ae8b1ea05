"""Task files: what a shard's writer has to do, partitioned by shard in one pass and bounded memory.

tasks/<split>-<i>-of-<n>.images.jsonl       [key, file name, size, sha256, crc32c, features of its pixels], in the order
                                            of the records
tasks/<split>-<i>-of-<n>.labels-<b>.jsonl   [image, class index, row, mask or null, further features], as in the table;
                                            of block b: so many images that their annotations fit into memory

Where staging is on a bucket, writers on other machines fetch those of their shards from there.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.fingerprint import canonical_json
from shardwright.ingest.contents import Contents
from shardwright.manifest import shard_name
from shardwright.mirror import Mirror
from shardwright.sources.base import NO_LABEL, Annotation, Mask, Sample, Values
from shardwright.staging import PlannedShard, Staging
from shardwright.storage import Listing

_FOLDER = "tasks"
# Of a machine that did not write them: what its own shards needed, fetched from a bucket.
_FETCHED = "fetched-tasks"
_BUFFERED_CHARACTERS = 1 << 25
_BLOCK = 512


def tasks_are_written(staging_root: str) -> bool:
    """Whether an earlier attempt has partitioned this plan."""
    return Path(staging_root, _FOLDER).is_dir()


def new_tasks(staging_root: str) -> Path:
    """A folder for task files, which `publish_tasks` gives its name."""
    folder = Path(staging_root, f"{_FOLDER}.{uuid.uuid4().hex}")
    folder.mkdir()
    return folder


def write_images(
    folder: Path,
    shards: Mapping[PlannedShard, npt.NDArray[np.int64]],
    listing: Listing,
    contents: Contents,
    probed: Callable[[int], Values],
) -> None:
    """Writes which images each shard holds.

    Args:
        folder: of `new_tasks`.
        shards: shard -> positions of its images in the listing, in the order of the records.
        listing: the files.
        contents: their hashes; the files at the given positions can be read.
        probed: position -> features that its pixels tell.
    """
    for planned, positions in shards.items():
        with _file(folder, planned, "images").open("w", encoding="utf-8") as out:
            for i in positions.tolist():
                digest = contents.sha256(i)
                assert digest is not None
                hashes = digest.hex(), contents.crc32c(i)
                told = [listing.keys[i], listing.names[i], listing.sizes[i], *hashes, dict(probed(i))]
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
        for block in range(_blocks(len(positions))):
            files.append(_file(folder, planned, f"labels-{block}"))
            files[-1].touch()
    waiting: dict[int, list[str]] = defaultdict(list)
    buffered = 0
    for image, label, text, row, values in annotations:
        number = int(block_of[image])
        if number < 0:
            continue
        line = canonical_json([int(place_of[image]), label, row, text, *([dict(values)] if values else [])]) + "\n"
        waiting[number].append(line)
        buffered += len(line)
        if buffered > _BUFFERED_CHARACTERS:
            _flush(waiting, files)
            buffered = 0
    _flush(waiting, files)


def publish_tasks(staging_root: str, folder: Path) -> None:
    """Makes the task files appear, all together."""
    folder.rename(Path(staging_root, _FOLDER))


def share_tasks(staging: Staging, shards: Mapping[PlannedShard, npt.NDArray[np.int64]]) -> None:
    """Puts the task files beside the shards where staging is on a bucket, for writers on other machines.

    Args:
        staging: where they are.
        shards: as for `write_images`.
    """
    if staging.mirror is not None:
        files = (file for planned, positions in shards.items() for file in _files(planned, len(positions)))
        staging.mirror.push(Path(staging.root), [f"{_FOLDER}/{name}" for name in files])


class Task(NamedTuple):
    """What a shard's writer is to make a record of.

    Attributes:
        sample: the image and what is said about it.
        sha256: of the file, hex.
        crc32c: of the file.
    """

    sample: Sample
    sha256: str
    crc32c: int


def read_tasks(staging: Staging, planned: PlannedShard, root: str, task: str) -> Iterator[Task]:
    """The samples of a shard in the order of its records.

    Args:
        staging: staging folder of the plan.
        planned: the shard.
        root: folder that the file names start from.
        task: `segmentation` or `classification`.
    """
    folder = Path(staging.root, _FOLDER)
    if staging.mirror is not None and not _file(folder, planned, "images").exists():
        folder = _fetched(Path(staging.root, _FETCHED), staging.mirror, planned)
    annotations: dict[int, list[Mask]] = {}
    further: dict[int, dict[str, list[Any]]] = {}
    with _file(folder, planned, "images").open(encoding="utf-8") as lines:
        for place, line in enumerate(lines):
            if place % _BLOCK == 0:
                annotations, further = _read_block(_file(folder, planned, f"labels-{place // _BLOCK}"))
            key, name, size, digest, checksum, probed = json.loads(line)
            said = tuple(annotations.pop(place, ()))
            values = {**further.pop(place, {}), **probed}
            path = os.path.join(root, name)
            if task == "segmentation":
                yield Task(Sample(key, path, size, None, said, values), digest, checksum)
            else:
                labels = tuple(sorted({mask.label for mask in said}))
                yield Task(Sample(key, path, size, labels, (), values), digest, checksum)


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


def _fetched(folder: Path, mirror: Mirror, planned: PlannedShard) -> Path:
    """The folder that holds a shard's task files after they were fetched."""
    folder.mkdir(parents=True, exist_ok=True)
    images = mirror.read(f"{_FOLDER}/{_file(folder, planned, 'images').name}")
    for name in _files(planned, images.count(b"\n")):
        data = mirror.read(f"{_FOLDER}/{name}")
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


def _flush(waiting: dict[int, list[str]], files: list[Path]) -> None:
    """Appends what has gathered; one file open at a time, however many shards there are."""
    for number, lines in sorted(waiting.items()):
        with files[number].open("a", encoding="utf-8") as out:
            out.writelines(lines)
    waiting.clear()


def _file(folder: Path, planned: PlannedShard, what: str) -> Path:
    return folder / f"{planned.split}-{shard_name(planned.number, planned.total)}.{what}.jsonl"
