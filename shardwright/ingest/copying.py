"""Images out of the shards of an earlier dataset, read in large pieces one after the other, each held against its hash.

The order inside a split is that of a hash of the keys, in every dataset. So the images of a new shard lie in a few old
ones, in the same order, nearly side by side: some requests of megabytes take the place of thousands.

`origins/`: what a dataset keeps of the files it was made of, so that the next one need not read them again.

origins/inputs.jsonl             of every file that was read: [key, size, SHA-256, CRC-32C, the store's checksum, what
                                 its pixels tell], by key; the first line names the version
origins/Split-<s>/<shard>.jsonl  of every record whose image is stored with other bytes than its file's: [offset,
                                 origin], in the order of the records

A store's checksum may differ between equal datasets, so none of this is in the manifest; each file is sealed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import google_crc32c

from shardwright.config import ImagesConfig
from shardwright.dataset.manifest import ORIGINS_FOLDER, origins_path
from shardwright.dataset.random_access import records_at
from shardwright.duplicates.hashes import ImageHashes
from shardwright.fingerprint import canonical_json, checksummed_lines, read_checksummed_lines, sha256_bytes
from shardwright.images.header import ImageHeader
from shardwright.images.quality import Quality
from shardwright.ingest.known_files import ALGORITHM, FileHashes, KnownFiles, ProbeRow
from shardwright.ingest.stored_image import frames_of
from shardwright.ingest.tasks import ImageRow, Task
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.storage import Listing, open_file, read_bytes, read_each
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.lazy_example import LazyExample
from shardwright.untrusted import is_text, parse_untrusted_json

INPUTS_FILE = f"{ORIGINS_FOLDER}/inputs.jsonl"
_VERSION = 1
_SHOWN = 200


class InputRecord(NamedTuple):
    """A file that an input held.

    Attributes:
        key: its key.
        size: its bytes.
        sha256: of its bytes.
        crc32c: of its bytes.
        checksum: what the store listed of its bytes (`ObjectInfo.checksum`), empty for a local file.
        row: what its pixels tell, where they were looked at, by this version of the probe, and found sound.
    """

    key: str
    size: int
    sha256: bytes
    crc32c: int
    checksum: str
    row: ProbeRow | None


def input_lines(listing: Listing, contents: FileHashes, probed: KnownFiles | None) -> Iterator[str]:
    """The lines of `origins/inputs.jsonl`.

    Args:
        listing: the files.
        contents: their hashes.
        probed: what their pixels tell, where that was asked for.
    """
    return checksummed_lines(_input_lines(listing, contents, probed))


def _input_lines(listing: Listing, contents: FileHashes, probed: KnownFiles | None) -> Iterator[str]:
    yield canonical_json({"probe": ALGORITHM, "version": _VERSION}) + "\n"
    checksums = listing.checksums or ("" for _ in listing.keys)
    for i, (key, checksum) in enumerate(zip(listing.keys, checksums, strict=True)):
        digest = contents.sha256(i)
        if digest is not None:
            row = [key, listing.sizes[i], digest.hex(), contents.crc32c(i), checksum, _told(probed, i)]
            yield canonical_json(row) + "\n"


def _told(probed: KnownFiles | None, i: int) -> list[Any] | None:
    if probed is None or not probed.sound[i]:
        return None
    pixels = probed.pixels[i].tobytes().hex() if len(probed.pixels) else None
    return [probed.hashes[i].tolist(), probed.quality[i].tolist(), pixels]


def read_inputs(lines: Iterable[bytes]) -> Iterator[InputRecord]:
    """Reads what `input_lines` made, by key; of another version nothing.

    Raises:
        ValueError, TypeError, KeyError: the file is damaged, which may turn out after its last row.
    """
    rows = read_checksummed_lines(lines)
    header = parse_untrusted_json(next(rows, b"{}"))
    if header["version"] != _VERSION:
        return
    probed = header["probe"] == ALGORITHM
    for line in rows:
        key, size, sha256, crc32c, checksum, told = parse_untrusted_json(line)
        if not (is_text(key) and is_text(checksum) and type(size) is int and type(crc32c) is int):
            raise ValueError(f"not an input: {line!r}"[:_SHOWN])
        yield InputRecord(key, size, bytes.fromhex(sha256), crc32c, checksum, _row(told) if probed and told else None)


def _row(told: list[Any]) -> ProbeRow:
    hashes, quality, pixels = told
    return ProbeRow(ImageHashes(*hashes), Quality(*quality), bytes.fromhex(pixels) if pixels else None)


class StoredRecord(NamedTuple):
    """Where an image came from whose stored bytes are not its file's.

    Attributes:
        sha256: of the file, hex.
        tools: what the stored bytes depend on besides the options, as `IngestPlan.tools` has it.
        file: height, width and orientation of the file's pixels.
        header: of the stored bytes.
        stored: SHA-256 of the stored bytes, hex: by nothing else is it known that a record holds them.
    """

    sha256: str
    tools: str
    file: tuple[int, int, int]
    header: ImageHeader
    stored: str

    @staticmethod
    def of(sha256: str, tools: str, header: ImageHeader, frames: CoordinateFrame, stored: bytes) -> StoredRecord:
        """What is to be kept of an image that was prepared."""
        size = (frames.height, frames.width, frames.orientation)
        return StoredRecord(sha256, tools, size, header, sha256_bytes(stored))

    def to_json(self) -> str:
        """As JSON."""
        header = self.header
        told = [header.format, header.height, header.width, header.channels, header.orientation, header.located]
        return canonical_json([self.sha256, self.tools, self.file, told, self.stored])


def read_stored(lines: Iterable[bytes]) -> dict[int, StoredRecord]:
    """Reads the origins of a shard: offset of the record -> origin.

    Raises:
        ValueError, TypeError: the file is damaged.
    """
    found = {}
    for line in read_checksummed_lines(lines):
        offset, (sha256, tools, (height, width, orientation), told, stored) = parse_untrusted_json(line)
        # A seal is no signature: a stranger may have written it.
        if not all(type(size) is int and size > 0 for size in (height, width, orientation, *told[1:4])):
            raise ValueError(f"no sizes of an image: {line!r}"[:_SHOWN])
        found[offset] = StoredRecord(sha256, tools, (height, width, orientation), ImageHeader(*told), stored)
    return found


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
    frames: CoordinateFrame


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
def _origins(root: str, digest: str, shard: str) -> Mapping[int, StoredRecord]:
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
