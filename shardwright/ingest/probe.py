"""Probing a whole input: read, hashed, checked and measured in one pass, spread over processes or over other machines.

The result depends on the files alone: not on who probes them, nor on what the cache holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from shardwright.images.decode import header_of
from shardwright.images.header import ImageError
from shardwright.ingest.known_files import Decoded, KnownFiles, ProbeCache, ProbeRow, decode_file, measured
from shardwright.running.processes import map_processes, usable_cores
from shardwright.running.progress import SILENT, Progress
from shardwright.storage import (
    FileHash,
    Listing,
    Refusal,
    hash_bytes,
    hash_file,
    is_remote,
    map_threads,
    read_bytes,
    readers,
)
from shardwright.storage.checksum import BLAKE3
from shardwright.storage.fingerprint import canonical_json

# Below this, starting processes takes longer than the work.
_BYTES_WORTH_PROCESSES = 64 << 20
# Files that a worker gets together: enough that passing them costs nothing, few enough that all have work to the end.
_FEWEST_AT_ONCE = 16
_MOST_PARTS = 2000
# Rows are kept after so many bytes, which takes a millisecond each time; a killed run loses no more than that.
_BYTES_WORTH_KEEPING = 32 << 20
_LOST = "A process that was probing images has died; out of memory? Its results so far are kept: run the command again."

_Find: TypeAlias = Callable[[bytes], "ProbeRow | None"]


@dataclass(frozen=True)
class ProbeOptions:
    """Options of probing.

    Attributes:
        max_pixels: the most pixels an image may have.
        convert: whether files of other formats than JPEG and PNG are taken too.
        checksum: algorithm of the content IDs.
        pixels: whether all pixels at full size are hashed, too.
    """

    max_pixels: int
    convert: bool = False
    checksum: str = BLAKE3
    pixels: bool = False


@dataclass(frozen=True)
class Part:
    """Files that a worker gets together: consecutive ones of the listing, and which of them are to be probed."""

    begin: int
    listing: Listing
    look: list[bool]

    def to_text(self) -> str:
        """Returns the part as JSON, without what is not needed to probe it."""
        listing = self.listing
        columns = (listing.names, listing.sizes, listing.pins)
        return canonical_json([self.begin, listing.root, *map(list, columns), self.look])

    @staticmethod
    def from_text(text: str) -> Part:
        """Reads what `to_text` made."""
        begin, root, names, sizes, pins, look = json.loads(text)
        return Part(begin, Listing(root, names, names, sizes, [], pins), look)


@dataclass(frozen=True)
class Seen:
    """The result of one file. `fresh`: its row was not in the cache and is worth keeping."""

    file: FileHash | None
    row: ProbeRow | None = None
    fresh: bool = False

    def to_text(self) -> str:
        """Returns the result as a line of JSON."""
        if self.file is None:
            return "null"
        content, crc32c = self.file.content_id, self.file.crc32c
        return canonical_json([content.hex(), crc32c, self.row.to_text(content) if self.row else "", self.fresh])

    @staticmethod
    def from_text(text: str) -> Seen:
        """Reads what `to_text` made.

        Raises:
            ValueError: it is damaged.
        """
        fields = json.loads(text)
        if fields is None:
            return Seen(None)
        content, crc32c, row, fresh = fields
        file = FileHash(bytes.fromhex(content), crc32c)
        found = ProbeRow.from_text(file.content_id, row) if row else None
        if row and found is None:
            raise ValueError(f"a damaged row: {row[:100]}")
        return Seen(file, found, fresh)


@dataclass(frozen=True)
class Look:
    """Probes the files of a part; any worker can do that.

    Attributes:
        cache: known rows; a worker on another machine does not find them.
        options: options of probing.
    """

    cache: ProbeCache
    options: ProbeOptions

    def __call__(self, part: Part) -> tuple[int, list[Seen]]:
        """Returns the beginning of a part, and the results of its files."""
        listing = part.listing
        read, indices = partial(_read, part, self.options.checksum), range(len(part.look))
        # From a bucket many files are fetched concurrently; a local one is read faster than a thread could prefetch it.
        remote = is_remote(listing.root)
        files = (
            map_threads(read, indices, readers(listing.root), listing.sizes.__getitem__)
            if remote
            else map(read, indices)
        )
        with self.cache.reading() as find:
            looked = ((file, _look(file, data, find, self.options)) for file, data in files)
            seen = [
                Seen(file, row, fresh=True) if isinstance(row, ProbeRow) else row or Seen(file)
                for file, row in measured(looked)
            ]
        return part.begin, seen


# Has parts probed by other workers, and returns the results in any order.
Spread: TypeAlias = Callable[[Look, Sequence[Part]], Iterable[tuple[int, list[Seen]]]]


def probe_input(
    listing: Listing,
    skip: Iterable[int],
    options: ProbeOptions,
    *,
    cache: str | None = None,
    workers: int | None = None,
    spread: Spread | None = None,
    progress: Progress = SILENT,
) -> KnownFiles:
    """Probes all files of a listing.

    Args:
        listing: the files.
        skip: positions of those that are only hashed.
        options: what is checked and measured.
        cache: folder where rows are kept by content; `None` to keep none.
        workers: processes; by default one per processor, and threads for small inputs.
        spread: has the parts probed elsewhere; by default in processes of this machine.
        progress: is advanced by finished files.

    Raises:
        ShardwrightError: a worker process has died.
    """
    result = KnownFiles.nothing(len(listing.keys), probed=True, pixels=options.pixels)
    kept = ProbeCache.open(cache)
    known = kept if kept.holds_rows() else ProbeCache(None)
    fresh: dict[bytes, ProbeRow] = {}
    size = 0
    parts = _parts(listing, frozenset(skip))
    spread = spread or partial(_spread, workers, sum(listing.sizes))
    try:
        for begin, seen in spread(Look(known, options), parts):
            fresh.update({one.file.content_id: one.row for one in seen if one.fresh and one.file and one.row})
            size += sum(listing.sizes[begin : begin + len(seen)])
            for position, one in enumerate(seen, begin):
                _fill(result, listing, position, one)
            if size >= _BYTES_WORTH_KEEPING:
                kept.keep(fresh)
                fresh, size = {}, 0
            progress.advance(len(seen))
    finally:
        kept.keep(fresh)
    return result


def _spread(workers: int | None, size: int, look: Look, parts: Sequence[Part]) -> Iterator[tuple[int, list[Seen]]]:
    """Probes on this machine, `size` bytes in all."""
    cores = usable_cores()
    if workers is None and size < _BYTES_WORTH_PROCESSES:
        return map_threads(look, parts, threads=cores)
    return map_processes(look, parts, min(workers or cores, len(parts)), _LOST)


def _parts(listing: Listing, skip: frozenset[int]) -> list[Part]:
    count = len(listing.keys)
    step = max(_FEWEST_AT_ONCE, readers(listing.root), -(-count // _MOST_PARTS))
    parts = []
    for begin in range(0, count, step):
        here = range(begin, min(count, begin + step))
        parts.append(Part(begin, listing.part(here), [i not in skip for i in here]))
    return parts


def _read(part: Part, algorithm: str, index: int) -> tuple[FileHash | None, bytes | None]:
    """Returns the hashes of a file, and its bytes if they are to be probed."""
    path, pin = part.listing.path(index), part.listing.pin(index)
    if not part.look[index]:
        return hash_file(path, pin, algorithm), None
    try:
        data = read_bytes(path, pin)
    except OSError:
        return None, None
    return hash_bytes(data, algorithm), data


def _look(
    file: FileHash | None, data: bytes | None, find: _Find, options: ProbeOptions
) -> Decoded | ProbeRow | Seen | None:
    """Returns the picture of a file, which is still to be measured, or its new row; else its result, if it has one."""
    if file is None or data is None:
        return None
    try:
        header = header_of(data, max_pixels=options.max_pixels, convert=options.convert)
        row = find(file.content_id)
        if row is not None and (row.pixels or row.code or not options.pixels):
            return Seen(file, row)
        return decode_file(data, header, max_pixels=options.max_pixels, pixels=options.pixels)
    except ImageError as error:
        # Not kept: it is found at once, and may depend on an option.
        return Seen(file, ProbeRow(None, None, None, error.code, error.reason))


def _fill(result: KnownFiles, listing: Listing, position: int, one: Seen) -> None:
    if one.file is not None:
        result.content.set(position, one.file)
    if one.row is None:
        return
    if one.row.hashes is None:
        result.rejected[position] = Refusal(listing.keys[position], one.row.code, one.row.reason)
    else:
        result.add_row(position, one.row)
