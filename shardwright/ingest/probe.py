"""Probing a whole input: read, hashed, checked and measured in one pass, spread over processes.

The result depends on the files alone: not on the number of workers, nor on what the cache holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from shardwright.checksum import BLAKE3
from shardwright.images.decode import header_of
from shardwright.images.header import ImageError
from shardwright.ingest.known_files import Decoded, KnownFiles, ProbeCache, ProbeRow, decode_file, measured
from shardwright.processes import map_processes
from shardwright.progress import SILENT, Progress
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
class _Part:
    """Files that a worker gets together: consecutive ones of the listing, and which of them are to be probed."""

    begin: int
    listing: Listing
    look: list[bool]


@dataclass(frozen=True)
class _Seen:
    """The result of one file. `fresh`: its row was not in the cache and is worth keeping."""

    file: FileHash | None
    row: ProbeRow | None = None
    fresh: bool = False


def probe_input(
    listing: Listing,
    skip: Iterable[int],
    options: ProbeOptions,
    *,
    cache: str | None = None,
    workers: int | None = None,
    progress: Progress = SILENT,
) -> KnownFiles:
    """Probes all files of a listing.

    Args:
        listing: the files.
        skip: positions of those that are only hashed.
        options: what is checked and measured.
        cache: folder where rows are kept by content; `None` to keep none.
        workers: processes; by default one per processor, and threads for small inputs.
        progress: is advanced by finished files.

    Raises:
        ShardwrightError: a worker process has died.
    """
    result = KnownFiles.nothing(len(listing.keys), probed=True, pixels=options.pixels)
    kept = ProbeCache.open(cache)
    known = kept if kept.holds_rows() else ProbeCache(None)
    fresh: dict[bytes, ProbeRow] = {}
    size = 0
    try:
        for begin, seen in _spread(listing, frozenset(skip), partial(_probe, known, options), workers):
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


def _spread(
    listing: Listing, skip: frozenset[int], probe: partial[tuple[int, list[_Seen]]], workers: int | None
) -> Iterator[tuple[int, list[_Seen]]]:
    parts = _parts(listing, skip)
    cores = os.cpu_count() or 1
    if workers is None and sum(listing.sizes) < _BYTES_WORTH_PROCESSES:
        return map_threads(probe, parts, threads=cores)
    return map_processes(probe, parts, min(workers or cores, len(parts)), _LOST)


def _parts(listing: Listing, skip: frozenset[int]) -> list[_Part]:
    count = len(listing.keys)
    step = max(_FEWEST_AT_ONCE, readers(listing.root), -(-count // _MOST_PARTS))
    parts = []
    for begin in range(0, count, step):
        here = range(begin, min(count, begin + step))
        parts.append(_Part(begin, listing.part(here), [i not in skip for i in here]))
    return parts


def _probe(cache: ProbeCache, options: ProbeOptions, part: _Part) -> tuple[int, list[_Seen]]:
    listing = part.listing
    read, indices = partial(_read, part, options.checksum), range(len(part.look))
    # From a bucket many files are fetched concurrently; a local one is read faster than a thread could prefetch it.
    remote = is_remote(listing.root)
    files = (
        map_threads(read, indices, readers(listing.root), listing.sizes.__getitem__) if remote else map(read, indices)
    )
    with cache.reading() as find:
        looked = ((file, _look(file, data, find, options)) for file, data in files)
        seen = [
            _Seen(file, row, fresh=True) if isinstance(row, ProbeRow) else row or _Seen(file)
            for file, row in measured(looked)
        ]
    return part.begin, seen


def _read(part: _Part, algorithm: str, index: int) -> tuple[FileHash | None, bytes | None]:
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
) -> Decoded | ProbeRow | _Seen | None:
    """Returns the picture of a file, which is still to be measured, or its new row; else its result, if it has one."""
    if file is None or data is None:
        return None
    try:
        header = header_of(data, max_pixels=options.max_pixels, convert=options.convert)
        row = find(file.content_id)
        if row is not None and (row.pixels or row.code or not options.pixels):
            return _Seen(file, row)
        return decode_file(data, header, max_pixels=options.max_pixels, pixels=options.pixels)
    except ImageError as error:
        # Not kept: it is found at once, and may depend on an option.
        return _Seen(file, ProbeRow(None, None, None, error.code, error.reason))


def _fill(result: KnownFiles, listing: Listing, position: int, one: _Seen) -> None:
    if one.file is not None:
        result.content.set(position, one.file)
    if one.row is None:
        return
    if one.row.hashes is None:
        result.rejected[position] = Refusal(listing.keys[position], one.row.code, one.row.reason)
    else:
        result.add_row(position, one.row)
