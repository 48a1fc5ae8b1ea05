"""Task files: what a shard's writer has to do, partitioned by shard in one pass and bounded memory.

tasks/<split>-<i>-of-<n>.images.jsonl   [key, file name, size, sha256], in the order of the records
tasks/<split>-<i>-of-<n>.labels.jsonl   [position in the shard, class index, row, mask or null, further features], as in
                                        the table
"""

from __future__ import annotations

import json
import os
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.fingerprint import canonical_json
from shardwright.manifest import shard_name
from shardwright.sources.base import NO_LABEL, Annotation, Mask, Sample
from shardwright.staging import PlannedShard
from shardwright.storage import Listing

_FOLDER = "tasks"
_BUFFERED_CHARACTERS = 1 << 25


def tasks_are_written(staging_root: str) -> bool:
    """Whether an earlier attempt has partitioned this plan."""
    return Path(staging_root, _FOLDER).is_dir()


def write_tasks(
    staging_root: str,
    shards: Mapping[PlannedShard, npt.NDArray[np.int64]],
    listing: Listing,
    digests: list[bytes | None],
    annotations: Iterable[Annotation],
) -> None:
    """Writes the task files of all shards; they appear together, by one rename.

    Args:
        staging_root: staging folder of the plan.
        shards: shard -> positions of its images in the listing, in the order of the records.
        listing: the files.
        digests: their SHA-256; those of the given positions are not `None`.
        annotations: in the order of the table; those of other images are passed over.
    """
    folder = Path(staging_root, f"{_FOLDER}.{uuid.uuid4().hex}")
    folder.mkdir()
    shard_of = np.full(len(listing.keys), -1, dtype=np.int32)
    place_of = np.zeros(len(listing.keys), dtype=np.int32)
    files = []
    for number, (planned, positions) in enumerate(shards.items()):
        shard_of[positions] = number
        place_of[positions] = np.arange(len(positions), dtype=np.int32)
        files.append(_file(folder, planned, "labels"))
        files[-1].touch()
        with _file(folder, planned, "images").open("w", encoding="utf-8") as out:
            for i in positions.tolist():
                digest = digests[i]
                assert digest is not None
                out.write(canonical_json([listing.keys[i], listing.names[i], listing.sizes[i], digest.hex()]) + "\n")
    waiting: dict[int, list[str]] = defaultdict(list)
    buffered = 0
    for image, label, text, row, values in annotations:
        number = int(shard_of[image])
        if number < 0:
            continue
        line = canonical_json([int(place_of[image]), label, row, text, *([dict(values)] if values else [])]) + "\n"
        waiting[number].append(line)
        buffered += len(line)
        if buffered > _BUFFERED_CHARACTERS:
            _flush(waiting, files)
            buffered = 0
    _flush(waiting, files)
    folder.rename(Path(staging_root, _FOLDER))


def read_tasks(staging_root: str, planned: PlannedShard, root: str, task: str) -> Iterator[tuple[Sample, str]]:
    """The samples of a shard in the order of its records, each with the SHA-256 its file must have.

    Args:
        staging_root: staging folder of the plan.
        planned: the shard.
        root: folder that the file names start from.
        task: `segmentation` or `classification`.
    """
    folder = Path(staging_root, _FOLDER)
    annotations: dict[int, list[Mask]] = defaultdict(list)
    further: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    with _file(folder, planned, "labels").open(encoding="utf-8") as lines:
        for line in lines:
            place, label, row, text, *values = json.loads(line)
            if label != NO_LABEL or text is not None:
                annotations[place].append(Mask(label, text, row))
            for name, listed in values[0].items() if values else ():
                further[place][name] += listed
    with _file(folder, planned, "images").open(encoding="utf-8") as lines:
        for place, line in enumerate(lines):
            key, name, size, digest = json.loads(line)
            said = tuple(annotations.pop(place, ()))
            path = os.path.join(root, name)
            if task == "segmentation":
                yield Sample(key, path, size, None, said, further.pop(place, {})), digest
            else:
                labels = tuple(sorted({mask.label for mask in said}))
                yield Sample(key, path, size, labels, (), further.pop(place, {})), digest


def _flush(waiting: dict[int, list[str]], files: list[Path]) -> None:
    """Appends what has gathered; one file open at a time, however many shards there are."""
    for number, lines in sorted(waiting.items()):
        with files[number].open("a", encoding="utf-8") as out:
            out.writelines(lines)
    waiting.clear()


def _file(folder: Path, planned: PlannedShard, what: str) -> Path:
    return folder / f"{planned.split}-{shard_name(planned.number, planned.total)}.{what}.jsonl"
