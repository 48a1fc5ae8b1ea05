"""Probing a whole input: read, hashed, checked and measured in one pass, spread over processes or over other machines.

The result depends on the files alone: not on who probes them, nor on what the cache holds.

`read_input` reads what the plan depends on: content IDs, and pixels where duplicates are found by them.

Workers on other machines get their parts, and return the results, as files of a staging folder:

    look/00000.json    the files of a part (`Part`)
    look/00000.jsonl   their results, a line each (`Seen`), written by the worker

A part whose results are there is not given out again, so a look that was interrupted goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from shardwright.config.images import FULL
from shardwright.errors import CheckFailed
from shardwright.images.decode import header_of
from shardwright.images.header import ImageError
from shardwright.ingest.identify import identify_input
from shardwright.ingest.known_files import ALGORITHM, Decoded, KnownFiles, ProbeCache, ProbeRow, decode_file, measured
from shardwright.ingest.survey import IngestInput
from shardwright.running.processes import map_processes, usable_cores
from shardwright.running.progress import SILENT, Progress, progress
from shardwright.staging.staging import Staging
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
from shardwright.storage.checksum import BLAKE3, new_checksum
from shardwright.storage.fingerprint import canonical_json, fingerprint

if TYPE_CHECKING:
    from shardwright.ingest.previous_dataset import PreviousDataset

# Below this, starting processes takes longer than the work.
_BYTES_WORTH_PROCESSES = 64 << 20
# Files that a worker gets together: enough that passing them costs nothing, few enough that all have work to the end.
_FEWEST_AT_ONCE = 16
_MOST_PARTS = 2000
# Rows are kept after so many bytes, which takes a millisecond each time; a killed run loses no more than that.
_BYTES_WORTH_KEEPING = 32 << 20
_LOST = "A process that was probing images has died; out of memory? Its results so far are kept: run the command again."
_Find: TypeAlias = Callable[[bytes], "ProbeRow | None"]
# Code and reason of a file that cannot be read.
UNREADABLE = "unreadable", "the file cannot be read; check its permissions"
_ROWS_AT_ONCE = 4096


def read_input(
    surveyed: IngestInput, *, cache: str | None, workers: int | None, spread: Spread | None, quiet: bool
) -> None:
    """Identifies an input, and probes it where the plan depends on pixels.

    Args:
        surveyed: the input; gets its content, and the probe results that are known.
        cache: folder where probe rows are kept, if any is.
        workers: processes that probe; by default one per processor.
        spread: has images probed elsewhere; by default in these processes.
        quiet: show no progress.
    """
    recipe, listing = surveyed.recipe, surveyed.listing
    if not recipe.duplicates.looks_at_pixels:
        with progress(len(listing.keys), "hashing", quiet=quiet) as shown:
            identify_input(surveyed, shown)
        surveyed.probed = _known_rows(surveyed)
        return
    options = ProbeOptions(
        max_pixels=recipe.images.max_pixels,
        convert=recipe.images.unsupported_formats != "reject",
        checksum=recipe.images.checksum,
        pixels=recipe.duplicates.pixels is not None,
    )
    known, previous, read = surveyed.known, surveyed.previous, None
    same_checks = previous is not None and previous.same_checks(recipe.options()["images"])
    if known is not None and known.content.known.any():
        # Files that are not going to be written need no more than their hash.
        enough = np.array([i in surveyed.rejected for i in range(len(listing.keys))])
        if same_checks:
            enough |= known.sound
        read = np.flatnonzero(~(known.content.known & enough))
    if previous is not None and cache is not None and (read is None or not same_checks):
        _keep_rows(previous, ProbeCache.open(cache))
    part = listing if read is None else listing.part(read.tolist())
    skipped = surveyed.rejected if read is None else [i for i, p in enumerate(read.tolist()) if p in surveyed.rejected]
    with progress(len(part.keys), "probing", quiet=quiet) as shown:
        probed = probe_input(part, skipped, options, cache=cache, workers=workers, spread=spread, progress=shown)
    if known is not None and read is not None:
        probed = known.joined(read, probed)
    identify_input(surveyed, hashed=probed.content)
    surveyed.probed = probed


def _known_rows(surveyed: IngestInput) -> KnownFiles | None:
    """Returns the measures that the previous dataset has of files that have not changed."""
    recipe, previous, known = surveyed.recipe, surveyed.previous, surveyed.known
    if recipe.images.verify != FULL or previous is None or known is None:
        return None
    if not previous.same_checks(recipe.options()["images"]):
        return None
    known = replace(known, content=surveyed.contents)
    if not surveyed.listing.checksums:
        previous.add_rows(surveyed.listing, known)
    return known


def _keep_rows(previous: PreviousDataset, cache: ProbeCache) -> None:
    """Copies the probe rows of a previous dataset into the cache, for files that have to be read again.

    If the file with the rows is damaged, none is copied, because the cache is trusted later.
    """
    with suppress(OSError, ValueError, TypeError, KeyError, OverflowError):
        rows = (
            (origin.content_id, origin.row) for origin in previous.input_records(whole=True) if origin.row is not None
        )
        while some := dict(islice(rows, _ROWS_AT_ONCE)):
            cache.keep(some)


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


def look_fingerprint(content: str, look: Look, parts: Sequence[Part]) -> str:
    """Returns the name of the staging folder of a look: the same content of the same files has the same results.

    Args:
        content: the content fingerprint of the input.
        look: what is looked for.
        parts: the files.
    """
    files = new_checksum()
    for part in parts:
        files.update(part.to_text().encode("utf-8"))
    return fingerprint(["look", ALGORITHM, content, vars(look.options), files.hexdigest()])


def share_parts(staging: Staging, parts: Sequence[Part]) -> list[int]:
    """Writes the parts whose results are not there yet; returns their numbers."""

    def share(number: int) -> bool:
        if staging.is_shared(_results(number)):
            return False
        staging.share(_files(number), parts[number].to_text().encode("utf-8"))
        return True

    shared = map_threads(share, range(len(parts)), _requests(staging))
    return [number for number, missing in enumerate(shared) if missing]


def look_at_part(number: int, look: Look, staging: Staging) -> None:
    """Probes the files of a part, and writes the results."""
    part = Part.from_text(read_bytes(staging.location(_files(number))).decode("utf-8"))
    _, seen = look(part)
    staging.share(_results(number), "".join(f"{one.to_text()}\n" for one in seen).encode("utf-8"))


def shared_results(staging: Staging, look: Look, parts: Sequence[Part]) -> Iterator[tuple[int, list[Seen]]]:
    """Yields the beginning of each part, and the results of its files; looks again where they are damaged.

    Raises:
        CheckFailed: no worker has written those of a part.
    """

    def read(number: int) -> list[Seen]:
        place = staging.location(_results(number))
        try:
            return [Seen.from_text(line) for line in read_bytes(place).decode("utf-8").splitlines()]
        except OSError:
            raise CheckFailed(
                f"{place}: Beam's workers have not written it. If they are on other machines, run.staging must be a "
                "folder that all of them share. Run it again."
            ) from None
        except (ValueError, TypeError):
            return []

    for part, seen in zip(parts, map_threads(read, range(len(parts)), _requests(staging)), strict=True):
        yield (part.begin, seen) if len(seen) == len(part.look) else look(part)


def _requests(staging: Staging) -> int:
    return readers(staging.mirror.url if staging.mirror else staging.root)


def _files(number: int) -> str:
    return f"look/{number:05d}.json"


def _results(number: int) -> str:
    return f"look/{number:05d}.jsonl"
