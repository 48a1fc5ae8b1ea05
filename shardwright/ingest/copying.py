"""Copies images from the shards of a previous dataset, in large reads, and compares each with its hash.

In every dataset the order inside a split is that of a hash of the keys. So the images of a new shard are in a few old
shards, in the same order and close together: a few requests of megabytes replace thousands.

`origins/` describes the files that a dataset was made from, so that the next dataset need not read them again:

origins/inputs.jsonl             one line per file: [key, size, content ID, CRC-32C, the store's checksum, probe
                                 results], by key; the first line contains the version
origins/Split-<s>/<shard>.jsonl  one line per record whose image is not stored with the bytes of its file: [offset,
                                 origin], in the order of the records

A store's checksum may differ between equal datasets, so `origins/` is not in the manifest; each file has a checksum.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import google_crc32c

from shardwright.config import ImagesConfig
from shardwright.config.images import FULL
from shardwright.dataset.manifest import ORIGINS_FOLDER, origins_path
from shardwright.dataset.random_access import records_at
from shardwright.dataset.stored_image import frames_of
from shardwright.images.header import ImageHeader
from shardwright.ingest.known_files import ALGORITHM, FileHashes, KnownFiles, ProbeRow
from shardwright.ingest.tasks import Job, Stored
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.storage import Listing, open_file, read_bytes, read_each
from shardwright.storage.checksum import checksum_of
from shardwright.storage.fingerprint import canonical_json, read_checksummed_lines
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.lazy_example import LazyExample
from shardwright.untrusted.json_text import is_text, parse_untrusted_json

INPUTS_FILE = f"{ORIGINS_FOLDER}/inputs.jsonl"
_VERSION = 1
_SHOWN = 200
_Item = TypeVar("_Item")


class InputRecord(NamedTuple):
    """A file of an input.

    Attributes:
        key: its key.
        size: its bytes.
        content_id: of its bytes, by the algorithm of `images.checksum`.
        crc32c: of its bytes.
        checksum: of its bytes, as the store listed it (`ObjectInfo.checksum`), empty for a local file.
        row: the probe results, where this version of the probe decoded it without errors.
    """

    key: str
    size: int
    content_id: bytes
    crc32c: int
    checksum: str
    row: ProbeRow | None


def input_lines(listing: Listing, contents: FileHashes, probed: KnownFiles | None) -> Iterator[str]:
    """Yields the lines of `origins/inputs.jsonl`, before their checksum is added.

    Args:
        listing: the files.
        contents: their hashes.
        probed: the probe results, where they were asked for.
    """
    yield input_header()
    checksums = listing.checksums or ("" for _ in listing.keys)
    for i, (key, checksum) in enumerate(zip(listing.keys, checksums, strict=True)):
        content = contents.get(i)
        if content is not None:
            row = None if probed is None else probed.row(i)
            looked = None if row is None else row.to_json()
            yield input_line(key, listing.sizes[i], content.content_id.hex(), content.crc32c, checksum, looked)


def input_header() -> str:
    """Returns the first line of `origins/inputs.jsonl`, before its checksum is added."""
    return canonical_json({"probe": ALGORITHM, "version": _VERSION}) + "\n"


def input_line(key: str, size: int, content_id: str, crc32c: int, listed: str, probe: list[Any] | None) -> str:
    """Returns the line of a file; see `InputRecord` and `ProbeRow.to_json`."""
    return canonical_json([key, size, content_id, crc32c, listed, probe]) + "\n"


def read_inputs(lines: Iterable[bytes]) -> Iterator[InputRecord]:
    """Reads the lines of `input_lines`, by key; none if another version wrote them.

    Raises:
        ValueError, TypeError, KeyError: the file is damaged, which may turn out after its last row.
    """
    rows = read_checksummed_lines(lines)
    header = parse_untrusted_json(next(rows, b"{}"))
    if header["version"] != _VERSION:
        return
    probed = header["probe"] == ALGORITHM
    for line in rows:
        key, size, content_id, crc32c, checksum, looked = parse_untrusted_json(line)
        if not (is_text(key) and is_text(checksum) and type(size) is int and type(crc32c) is int):
            raise ValueError(f"not an input: {line!r}"[:_SHOWN])
        row = ProbeRow.from_json(looked) if probed and looked else None
        yield InputRecord(key, size, bytes.fromhex(content_id), crc32c, checksum, row)


class StoredRecord(NamedTuple):
    """The origin of an image whose stored bytes are not its file's.

    Attributes:
        content_id: of the file, hex.
        tools: what the stored bytes depend on besides the options; see `IngestPlan.tools`.
        file: height, width and orientation of the file's pixels.
        header: of the stored bytes.
        stored: BLAKE3 of the stored bytes, hex: the only proof that a record contains them.
    """

    content_id: str
    tools: str
    file: tuple[int, int, int]
    header: ImageHeader
    stored: str

    @staticmethod
    def of(content_id: str, tools: str, header: ImageHeader, frame: CoordinateFrame, stored: bytes) -> StoredRecord:
        """Returns the origin of an image that was prepared."""
        size = (frame.height, frame.width, frame.orientation)
        return StoredRecord(content_id, tools, size, header, checksum_of(stored))

    def to_json(self) -> str:
        """Returns the origin as JSON."""
        header = self.header
        fields = [header.format, header.height, header.width, header.channels, header.orientation, header.located]
        return canonical_json([self.content_id, self.tools, self.file, fields, self.stored])


def read_stored(lines: Iterable[bytes]) -> dict[int, StoredRecord]:
    """Reads the origins of a shard: offset of the record -> origin.

    Raises:
        ValueError, TypeError: the file is damaged.
    """
    found = {}
    for line in read_checksummed_lines(lines):
        offset, (content_id, tools, (height, width, orientation), header, stored) = parse_untrusted_json(line)
        # A checksum is not a signature: the file may come from anywhere.
        if not all(type(size) is int and size > 0 for size in (height, width, orientation, *header[1:4])):
            raise ValueError(f"invalid image sizes: {line!r}"[:_SHOWN])
        found[offset] = StoredRecord(content_id, tools, (height, width, orientation), ImageHeader(*header), stored)
    return found


@dataclass(frozen=True)
class CopySource:
    """A previous dataset as the writers of shards see it. Small and picklable.

    Attributes:
        root: its folder, absolute, or its URL.
        shards: paths of its shards below that, in the order of their numbers.
        digest: of its manifest.
        encoded: name of the feature with the stored bytes of an image.
        same_options: whether its options store a file with the same bytes as those of the new dataset.
        tools: what these depend on besides the options; see `IngestPlan.tools`.
    """

    root: str
    shards: tuple[str, ...]
    digest: str
    encoded: str
    same_options: bool
    tools: str


def copy_images(source: CopySource, root: str, jobs: Sequence[Job], options: ImagesConfig) -> Iterator[Job]:
    """Yields images in order, with what is stored of them: copied where they can be, and else read.

    Args:
        source: the previous dataset.
        root: folder or URL of the files.
        jobs: images of a shard.
        options: `images`.
    """
    copies = examples_at(source, ((job.file.copied, None) for job in jobs if job.file.copied))
    files = read_each(
        root,
        (job for job in jobs if not job.file.copied),
        lambda job: job.file.path,
        lambda job: job.file.size,
        lambda job: job.file.pin,
    )
    for job in jobs:
        if not job.file.copied:
            job.data = next(files)[1]
        else:
            record = next(copies)[1]
            job.damaged = record is None
            if record is None or not _take(source, job, record, options):
                with suppress(OSError):
                    job.data = read_bytes(job.file.path, job.file.pin)
        yield job


def stored_image(source: CopySource, record: LazyExample) -> bytes:
    """Returns the bytes that a record contains of its image; empty if it contains none."""
    data = record.first(source.encoded)
    return data if isinstance(data, bytes) else b""


def _take(source: CopySource, job: Job, record: LazyExample, options: ImagesConfig) -> bool:
    """Takes the image of a record, if it is that of the file of a job; returns whether it is.

    Stored bytes that are not the file's do not suffice where the pixels of the file are still to be measured.
    """
    data, file = stored_image(source, record), job.file
    if len(data) == file.size and google_crc32c.value(data) == file.crc32c:
        # The dataset is untrusted, and anyone can forge a CRC-32C.
        job.copied = checksum_of(data, options.checksum) == file.content_id
        job.data = data if job.copied else None
        return job.copied
    if not source.same_options or (options.verify == FULL and job.row is None):
        return False
    shard, offset, _ = file.copied
    origin = _origins(source.root, source.digest, source.shards[shard]).get(offset)
    if origin is None or (origin.content_id, origin.tools) != (file.content_id, source.tools):
        return False
    height, width, orientation = origin.file
    # An image that is too large for today's options is read, and rejected as usual.
    if origin.stored != checksum_of(data) or height * width > options.max_pixels:
        return False
    job.stored = Stored(data, origin.header, frames_of(height, width, orientation, options))
    job.copied = True
    return True


@lru_cache(maxsize=2)
def _origins(root: str, digest: str, shard: str) -> Mapping[int, StoredRecord]:
    """Returns the origins of the images of a shard; none where the file is missing or damaged."""
    del digest  # Part of the cache's key: another dataset may replace the one in this folder.
    try:
        with open_file(os.path.join(root, origins_path(shard))) as lines:
            return read_stored(lines)
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def examples_at(
    source: CopySource, locations: Iterable[tuple[Sequence[int], _Item]]
) -> Iterator[tuple[_Item, LazyExample | None]]:
    """Reads records; see `records_at`. `None` also for one that is not an Example."""
    files = [os.path.join(source.root, shard) for shard in source.shards]
    for item, payload in records_at(files, locations):
        example = None
        with suppress(RecordError):
            example = None if payload is None else LazyExample(payload)
        yield item, example
