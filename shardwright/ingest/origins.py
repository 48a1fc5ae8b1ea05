"""`origins/`: what a dataset keeps of the files it was made of, so that the next one need not read them again.

origins/inputs.jsonl             of every file that was read: [key, size, SHA-256, CRC-32C, the store's checksum, what
                                 its pixels tell], by key; the first line names the version
origins/Split-<s>/<shard>.jsonl  of every record whose image is stored with other bytes than its file's: [offset,
                                 origin], in the order of the records

A store's checksum may differ between equal datasets, so none of this is in the manifest; each file is sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from shardwright.fingerprint import canonical_json, sha256_bytes
from shardwright.foreign_json import foreign_json
from shardwright.frames import Frames
from shardwright.image_files.image_header import ImageHeader
from shardwright.ingest.contents import Contents
from shardwright.probe.hashes import ImageHashes
from shardwright.probe.known_files import KnownFiles
from shardwright.probe.quality import Quality
from shardwright.probe.row import ALGORITHM, ProbeRow
from shardwright.provenance.sealed import sealed_lines, unsealed_lines
from shardwright.storage import Listing
from shardwright.untrusted import is_text
from shardwright.writing.staging import ORIGINS_FOLDER

INPUTS_FILE = f"{ORIGINS_FOLDER}/inputs.jsonl"
_VERSION = 1
_SHOWN = 200


class InputOrigin(NamedTuple):
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


def input_lines(listing: Listing, contents: Contents, probed: KnownFiles | None) -> Iterator[str]:
    """The lines of `origins/inputs.jsonl`.

    Args:
        listing: the files.
        contents: their hashes.
        probed: what their pixels tell, where that was asked for.
    """
    return sealed_lines(_input_lines(listing, contents, probed))


def _input_lines(listing: Listing, contents: Contents, probed: KnownFiles | None) -> Iterator[str]:
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


def read_inputs(lines: Iterable[bytes]) -> Iterator[InputOrigin]:
    """Reads what `input_lines` made, by key; of another version nothing.

    Raises:
        ValueError, TypeError, KeyError: the file is damaged, which may turn out after its last row.
    """
    rows = unsealed_lines(lines)
    header = foreign_json(next(rows, b"{}"))
    if header["version"] != _VERSION:
        return
    probed = header["probe"] == ALGORITHM
    for line in rows:
        key, size, sha256, crc32c, checksum, told = foreign_json(line)
        if not (is_text(key) and is_text(checksum) and type(size) is int and type(crc32c) is int):
            raise ValueError(f"not an input: {line!r}"[:_SHOWN])
        yield InputOrigin(key, size, bytes.fromhex(sha256), crc32c, checksum, _row(told) if probed and told else None)


def _row(told: list[Any]) -> ProbeRow:
    hashes, quality, pixels = told
    return ProbeRow(ImageHashes(*hashes), Quality(*quality), bytes.fromhex(pixels) if pixels else None)


class StoredOrigin(NamedTuple):
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
    def of(sha256: str, tools: str, header: ImageHeader, frames: Frames, stored: bytes) -> StoredOrigin:
        """What is to be kept of an image that was prepared."""
        size = (frames.height, frames.width, frames.orientation)
        return StoredOrigin(sha256, tools, size, header, sha256_bytes(stored))

    def to_json(self) -> str:
        """As JSON."""
        header = self.header
        told = [header.format, header.height, header.width, header.channels, header.orientation, header.located]
        return canonical_json([self.sha256, self.tools, self.file, told, self.stored])


def read_stored(lines: Iterable[bytes]) -> dict[int, StoredOrigin]:
    """Reads the origins of a shard: offset of the record -> origin.

    Raises:
        ValueError, TypeError: the file is damaged.
    """
    found = {}
    for line in unsealed_lines(lines):
        offset, (sha256, tools, (height, width, orientation), told, stored) = foreign_json(line)
        # A seal is no signature: a stranger may have written it.
        if not all(type(size) is int and size > 0 for size in (height, width, orientation, *told[1:4])):
            raise ValueError(f"no sizes of an image: {line!r}"[:_SHOWN])
        found[offset] = StoredOrigin(sha256, tools, (height, width, orientation), ImageHeader(*told), stored)
    return found
