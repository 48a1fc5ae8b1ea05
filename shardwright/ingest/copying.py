"""Images out of the shards of an earlier dataset, read in large pieces one after the other, each held against its hash.

The order inside a split is that of a hash of the keys, in every dataset. So the images of a new shard lie in a few old
ones, in the same order, nearly side by side: some requests of megabytes take the place of thousands.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

import google_crc32c

from shardwright.config import ImagesConfig
from shardwright.fingerprint import sha256_bytes
from shardwright.frames import Frames
from shardwright.image_files.image_header import ImageHeader
from shardwright.ingest.origins import StoredOrigin, read_stored
from shardwright.ingest.prepare import frames_of
from shardwright.ingest.tasks import ImageRow, Task
from shardwright.storage import open_file, read_bytes, read_each
from shardwright.tfrecords.lazy_example import LazyExample
from shardwright.tfrecords.record_ranges import records_at
from shardwright.tfrecords.records import RecordError
from shardwright.writing.staging import origins_path

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class CopySource:
    """An earlier dataset as the writers of shards see it. Small and picklable.

    Attributes:
        root: its folder, absolute, or its URL.
        shards: paths of its shards below that, in the order of their numbers.
        digest: of its manifest.
        encoded: what its records call the stored bytes of an image.
        alike: whether it stores the same bytes of a file as the dataset that is made, by the options.
        tools: what these depend on besides the options; see `IngestPlan.tools`.
    """

    root: str
    shards: tuple[str, ...]
    digest: str
    encoded: str
    alike: bool
    tools: str


class Stored(NamedTuple):
    """What was made of a file when it was stored: its bytes are others than the file's."""

    data: bytes
    header: ImageHeader
    frames: Frames


@dataclass(frozen=True)
class Image:
    """An image that is to be written.

    Attributes:
        data: the file; `None` where it cannot be read, or `stored` is given.
        stored: what is to be stored of it, where that is known without the file.
        copied: whether it was taken over.
        damaged: whether it should have been, and its record was damaged.
    """

    data: bytes | None
    stored: Stored | None = None
    copied: bool = False
    damaged: bool = False


def images_of(
    source: CopySource,
    root: str,
    tasks: Iterable[Task],
    places: Iterable[Sequence[int]],
    unheld: Iterable[ImageRow],
    options: ImagesConfig,
) -> Iterator[tuple[Task, Image]]:
    """The images of a shard, in order: copied where they can be, and else read.

    Args:
        source: the earlier dataset.
        root: folder of the input.
        tasks: what the shard holds.
        places: of the images among these that are to be copied; on its own, since they are fetched ahead.
        unheld: the other images, likewise.
        options: `images`.
    """
    copies = examples_at(source, ((place, None) for place in places))
    files = read_each(root, unheld, lambda row: row.path, lambda row: row.size)
    for task in tasks:
        if not task.copied:
            yield task, Image(next(files)[1])
            continue
        record = next(copies)[1]
        taken = None if record is None else _taken(source, task, record, options)
        yield task, _read(task, damaged=record is None) if taken is None else taken


def _read(task: Task, *, damaged: bool) -> Image:
    """An image that was to be copied and is not."""
    try:
        return Image(read_bytes(task.sample.path), damaged=damaged)
    except OSError:
        return Image(None, damaged=damaged)


def stored_image(source: CopySource, record: LazyExample) -> bytes:
    """The bytes that a record holds of its image, none where it holds none."""
    data = record.first(source.encoded)
    return data if isinstance(data, bytes) else b""


def _taken(source: CopySource, task: Task, record: LazyExample, options: ImagesConfig) -> Image | None:
    """The image of a record, if it is that of the file of a task."""
    data = stored_image(source, record)
    if len(data) == task.sample.size and google_crc32c.value(data) == task.crc32c:
        # What the record says of its image is a stranger's word, and its checksums are such as anyone can fit.
        return Image(data, copied=True) if sha256_bytes(data) == task.sha256 else None
    if not source.alike:
        return None
    shard, offset, _ = task.copied
    origin = _origins(source.root, source.digest, source.shards[shard]).get(offset)
    if origin is None or (origin.sha256, origin.tools) != (task.sha256, source.tools):
        return None
    if origin.stored != sha256_bytes(data):
        return None
    height, width, orientation = origin.file
    # What has become too large since is to be refused as it always is.
    if height * width > options.max_pixels:
        return None
    frames = frames_of(height, width, orientation, options)
    return Image(None, Stored(data, origin.header, frames), copied=True)


@lru_cache(maxsize=2)
def _origins(root: str, digest: str, shard: str) -> Mapping[int, StoredOrigin]:
    """What is kept of the images of a shard; nothing where there is nothing, or it is damaged."""
    del digest  # Another dataset may come to lie in the same folder.
    try:
        with open_file(os.path.join(root, origins_path(shard))) as lines:
            return read_stored(lines)
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def examples_at(
    source: CopySource, places: Iterable[tuple[Sequence[int], _Item]]
) -> Iterator[tuple[_Item, LazyExample | None]]:
    """Reads records; see `records_at`. `None` also for one that is no Example."""
    files = [os.path.join(source.root, shard) for shard in source.shards]
    for item, payload in records_at(files, places):
        yield item, None if payload is None else _example(payload)


def _example(payload: bytes) -> LazyExample | None:
    try:
        return LazyExample(payload)
    except RecordError:
        return None
