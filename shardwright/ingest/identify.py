"""Content IDs of an input, and its fingerprint.

The content ID of a local file is its checksum. An object on a bucket is identified by what the store lists: its size
with the MD5, or with CRC-32C and generation. It is read once, when it is written, and compared with that. An object
without a usable checksum is read before.

A CRC-32C cannot prove that two objects are equal, so one is usable only for an object whose size no other has. A local
file is not a duplicate either if its size, or some of its bytes, are unlike those of all others. `pin_input` lets its
writer make the content ID, so that it is read once, too; until then its state identifies it.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.config import Config
from shardwright.formats.mask_values import ReadsFiles
from shardwright.ingest.known_files import FileHashes, hash_into
from shardwright.ingest.recipe import IngestRecipe, InputLocation, ingest_recipe, locate, location_json
from shardwright.ingest.split_lists import files_of_lists
from shardwright.ingest.survey import IngestInput, survey_input
from shardwright.running.processes import map_processes
from shardwright.running.progress import SILENT, Progress
from shardwright.storage import (
    FileHash,
    Listing,
    hash_bytes,
    is_remote,
    look_at_files,
    map_threads,
    read_bytes,
    readers,
)
from shardwright.storage.checksum import BLAKE3, DIGEST_BYTES, Checksum, digest_of, md5_of, new_checksum
from shardwright.storage.file_pins import KEY_BYTES
from shardwright.storage.fingerprint import canonical_json, json_texts
from shardwright.storage.fingerprint import fingerprint as fingerprint_of
from shardwright.storage.limits import MOST_BYTES
from shardwright.storage.listing import StringArray

MD5, CRC32C = "md5:", "crc32c:"
# Files that are looked at, or whose lines are added to a checksum, together.
_TOGETHER = 2048
# Starting processes takes longer than looking at so many files.
_WORTH_PROCESSES = 2 * _TOGETHER
_LOST = "A process that was looking at files has died; out of memory? Run it again, perhaps with fewer --workers."


Looks = Generator[tuple[int, StringArray, npt.NDArray[np.uint8]], None, None]


def look_at_input(listed: IngestInput, processes: int) -> Looks | None:
    """Looks at the files of this machine by which writers may read most of them for the first time (`pin_input`).

    Args:
        listed: the input.
        processes: those that look, from this call on, while this one reads the annotations.

    Returns:
        The looks; `None` where the plan needs the content of all files.
    """
    listing = listed.listing
    if (
        is_remote(listing.root)
        or listed.records is not None
        or listed.previous is not None
        or listed.recipe.duplicates.looks_at_pixels
        # Files may have exchanged their names since that dataset.
        or listed.recipe.split.keep_from is not None
    ):
        return None
    sampled, count = ~_alone(sizes := np.asarray(listing.sizes, np.int64)) & (sizes <= MOST_BYTES), len(sizes)
    names = ((begin, listing.names[begin : begin + _TOGETHER]) for begin in range(0, count, _TOGETHER))
    parts = ((begin, Listing(listing.root, some, some, (), []), sampled[begin:][: len(some)]) for begin, some in names)
    return map_processes(look_at_part, parts, processes if count > _WORTH_PROCESSES else 1, _LOST)


def look_at_part(part: tuple[int, Listing, npt.NDArray[np.bool_]]) -> tuple[int, StringArray, npt.NDArray[np.uint8]]:
    """Looks at some files, in any process; returns the first position, and `look_at_files`."""
    begin, listing, sampled = part
    return begin, *look_at_files(listing, sampled)


def pin_input(listed: IngestInput, looks: Looks) -> None:
    """Lets writers read most files of an input for the first time.

    The fingerprint of such an input is valid on this machine until a file's times change, so it may name a staging
    folder, and no more.

    Args:
        listed: the input; its listing gets the states of these files.
        looks: of `look_at_input`.
    """
    parts = sorted(looks, key=itemgetter(0))
    states = chain.from_iterable(part for _, part, _ in parts)
    sizes = np.asarray(listed.listing.sizes, np.int64)
    samples = np.vstack([np.zeros((0, KEY_BYTES), np.uint8), *(samples for _, _, samples in parts)])
    sizes_and_samples = np.ascontiguousarray(np.hstack([sizes.view(np.uint8).reshape(-1, sizes.itemsize), samples]))
    first_read = (sizes <= MOST_BYTES) & _alone(sizes_and_samples.view(f"V{sizes_and_samples.shape[1]}").ravel())
    pins = StringArray(state if first else "" for state, first in zip(states, first_read.tolist(), strict=True))
    listed.listing, listed.pinned = replace(listed.listing, pins=pins), True


def identify_input(listed: IngestInput, progress: Progress = SILENT, hashed: FileHashes | None = None) -> IngestInput:
    """Identifies an input: keys, sizes, contents; never times or its location. Returns the same record.

    The content of an image that is rejected already has no effect on the dataset and is left out.

    Args:
        listed: the input.
        progress: is advanced by each file.
        hashed: hashes of the images where they have been read already.
    """
    listing, rejected, usable = listed.listing, listed.rejected, _usable(listed)
    contents, digests = _identify(listed, usable, progress) if hashed is None else (hashed, {})
    attached = listed.source.attachments()
    listed.attached, listed.attached_later = None, _read_by_writers(listed, attached)
    later = (hashed is None and bool((usable & ~contents.known).any())) or bool(listed.attached_later.any())
    # Without listed checksums both are the same, and the second is of use where no file is read later.
    total, real = new_checksum(), new_checksum() if usable.any() and not later else None
    for keys, sizes, checksums, identities in _identities(listed, usable, contents):
        add_files(total, keys, sizes, identities)
        if real is not None:
            add_files(real, keys, sizes, checksums)
    if attached is not None:
        listed.attached = FileHashes(len(attached.keys))
        hash_into(listed.attached, attached, np.flatnonzero(~listed.attached_later).tolist(), BLAKE3, SILENT)
    rest = _rest(listed, attached)
    remote = is_remote(listing.root) and listed.records is None
    before = sum(i not in rejected for i in np.flatnonzero(~usable).tolist()) if remote else 0
    note = f"{before:,} of {len(usable):,} objects have no checksum that identifies them, so they are read twice"
    listed.notes = (note,) if before else ()
    listed.contents = contents
    # A file that could not be read to be probed is not identified by its listing.
    listed.identified = contents.known if hashed is not None else usable | contents.known
    listed.same = contents.content_ids if hashed is not None else _same(listing, usable, contents, digests)
    listed.fingerprint = input_fingerprint_of(total, rest)
    listed.content = "" if later else input_fingerprint_of(total if real is None else real, rest)
    return listed


def _identities(
    listed: IngestInput, usable: npt.NDArray[np.bool_], contents: FileHashes
) -> Iterator[tuple[list[str], Sequence[int], list[str | None], list[str | None]]]:
    """Yields some thousand files at a time: their keys, sizes, and content IDs, and what identifies them."""
    listing, rejected = listed.listing, listed.rejected
    keys, by_listing, any_usable = iter(listing.keys), _listed_identities(listing), bool(usable.any())
    for begin in range(0, len(listing.keys), _TOGETHER):
        some = list(islice(keys, _TOGETHER))
        end = begin + len(some)
        checksums = identities = contents.checksums(begin, end)
        if rejected:
            places = zip(range(begin, end), checksums, strict=True)
            checksums = identities = [None if i in rejected else checksum for i, checksum in places]
        if any_usable:
            rows = zip(range(begin, end), usable[begin:end].tolist(), checksums, by_listing, strict=False)
            identities = [
                checksum if not use else None if i in rejected else stated for i, use, checksum, stated in rows
            ]
        yield some, listing.sizes[begin:end], checksums, identities


def add_files(total: Checksum, keys: Iterable[str], sizes: Iterable[int], identities: Iterable[str | None]) -> None:
    """Adds files of the listing to the checksum of all files, which is made in the order of the keys."""
    rows = zip(json_texts(keys), sizes, json_texts(identities), strict=True)
    # As `canonical_json` writes each list.
    total.update("".join(f"[{key},{size},{identity}]\n" for key, size, identity in rows).encode())


def input_fingerprint_of(files: Checksum, rest: str) -> str:
    """Returns the fingerprint of an input.

    Args:
        files: of all files; see `add_files`.
        rest: checksum of `rest_rows` and the attachments.
    """
    return fingerprint_of({"files": files.hexdigest(), "rest": rest})


def input_fingerprint(config: Config, location: InputLocation, progress: Progress = SILENT) -> str:
    """Returns the content fingerprint of a configuration's input, 64 hex digits.

    Raises:
        UsageError, CheckFailed: see `survey_input`.
    """
    return identify_input(survey_input(IngestRecipe.of(config), location), progress).fingerprint


def rest_rows(surveyed: IngestInput) -> Iterator[list[str | int | None]]:
    """Yields what `IngestInput.fingerprint` covers besides the images and the attachments of their annotations."""
    for refusal in surveyed.listing.refused:
        yield list(refusal)
    for row in surveyed.spans.passed_over:
        yield [row.key, row.code, row.reason]
    for part in surveyed.spans.labels:
        # The name is part of it, because the reasons in the ledger name the table. A folder has no bytes.
        yield [os.path.basename(part.path), surveyed.guard.checksum(part.path)]
    for path in surveyed.further:
        yield [os.path.basename(path), surveyed.guard.checksum(path)]
    for split, path in sorted(surveyed.lists.items()):
        yield [split, *map(surveyed.guard.checksum, files_of_lists([path]))]


def _rest(listed: IngestInput, attached: Listing | None) -> str:
    total = new_checksum()
    for row in rest_rows(listed):
        total.update(canonical_json(row).encode() + b"\n")
    if attached is not None and listed.attached is not None and len(attached.keys):
        checksums = listed.attached.checksums(0, len(attached.keys))
        rows = zip(checksums, listed.attached_later.tolist(), _listed_identities(attached), strict=False)
        identities = [checksum or (stated if later else None) for checksum, later, stated in rows]
        add_files(total, attached.keys, attached.sizes, identities)
    return total.hexdigest()


def _read_by_writers(surveyed: IngestInput, attached: Listing | None) -> npt.NDArray[np.bool_]:
    """Returns which attachments are objects that a store lists with a checksum, if the writers read them."""
    if attached is None or surveyed.records is not None or not isinstance(surveyed.source.dialect, ReadsFiles):
        return np.zeros(0 if attached is None else len(attached.keys), np.bool_)
    remote = is_remote(attached.root)
    return np.array([remote and bool(attached.checksum(i)) for i in range(len(attached.keys))], np.bool_)


def _listed_identities(listing: Listing) -> Iterator[str]:
    """Yields the listed checksums of objects. One that proves less than an MD5 comes with the object's version."""
    pairs = zip(listing.checksums or repeat(""), listing.pins or repeat(""), strict=False)
    return (checksum if checksum.startswith(MD5) else f"{checksum}@{pin}" for checksum, pin in pairs)


def _usable(surveyed: IngestInput) -> npt.NDArray[np.bool_]:
    """Returns which objects are identified by what the store lists, and which local files by their states."""
    listing = surveyed.listing
    if surveyed.pinned:
        return np.array(list(map(bool, listing.pins)), np.bool_)
    if not is_remote(listing.root) or not listing.checksums:
        return np.zeros(len(listing.keys), np.bool_)
    alone = _alone(np.asarray(listing.sizes))
    kinds = ((checksum.startswith(MD5), checksum.startswith(CRC32C)) for checksum in listing.checksums)
    return np.array([md5 or (crc32c and alone[i]) for i, (md5, crc32c) in enumerate(kinds)], np.bool_)


def _alone(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Returns which values occur once, bool (n,)."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse] == 1)


def _identify(
    surveyed: IngestInput, listed: npt.NDArray[np.bool_], progress: Progress
) -> tuple[FileHashes, dict[int, bytes]]:
    """Reads the files that nothing else identifies.

    Returns:
        The hashes that are known then, and the MD5 of those that are compared with listed ones.
    """
    listing, algorithm = surveyed.listing, surveyed.recipe.images.checksum
    contents = FileHashes(len(listing.keys))
    if surveyed.known is not None:
        for i, content in enumerate(surveyed.known.content):
            if content is not None:
                contents.set(i, content)
    wanted = np.ones(len(listing.keys), np.bool_)
    wanted[list(surveyed.rejected)] = False
    digests: dict[int, bytes] = {}
    if not is_remote(listing.root):
        wanted &= ~listed
    elif (wanted & listed & ~contents.known).any():
        todo = np.flatnonzero(wanted & ~listed).tolist()

        def hash_twice(i: int) -> tuple[FileHash, bytes] | None:
            try:
                data = read_bytes(listing.path(i), listing.pin(i))
            except OSError:
                return None
            return hash_bytes(data, algorithm), _digest(f"{MD5}{md5_of(data)}", listing.sizes[i])

        hashes = map_threads(hash_twice, todo, readers(listing.root), listing.sizes.__getitem__)
        for i, both in zip(todo, hashes, strict=True):
            if both is not None:
                contents.set(i, both[0])
                digests[i] = both[1]
            progress.advance()
        return contents, digests
    hash_into(contents, listing, np.flatnonzero(wanted & ~contents.known).tolist(), algorithm, progress)
    return contents, digests


def _same(
    listing: Listing, listed: npt.NDArray[np.bool_], contents: FileHashes, digests: dict[int, bytes]
) -> npt.NDArray[np.uint8]:
    """Returns `IngestInput.same`. It splits the files as their content IDs do, from listed MD5 where there are any."""
    if not (listed & ~contents.known).any():
        return contents.content_ids
    if not is_remote(listing.root):
        # No other file has these bytes (`pin_input`), so any number is good that none has, and no content ID.
        same = contents.content_ids.copy()
        same.view(np.uint64)[listed, 0] = np.flatnonzero(listed) + 1
        return same
    same = np.zeros((len(listing.keys), DIGEST_BYTES), np.uint8)
    for i in range(len(listing.keys)):
        # No other object has the size of one that is identified by its CRC-32C.
        digest = _digest(listing.checksum(i), listing.sizes[i]) if listed[i] else digests.get(i, bytes(DIGEST_BYTES))
        same[i] = np.frombuffer(digest, np.uint8)
    return same


def _digest(checksum: str, size: int) -> bytes:
    return digest_of(f"{size} {checksum}".encode())


@dataclass(frozen=True)
class IngestSource:
    """An ingest as parameters: texts, or values of a task that has not run yet.

    Attributes:
        fingerprint: of the content of images and annotations, 64 hex digits. Other content is refused when it is read.
        recipe: the options that change bytes, as canonical JSON.
        location: where the input is, as JSON; empty where the environment variable `SHARDWRIGHT_INPUT` has it.
    """

    fingerprint: Any
    recipe: Any
    location: Any = ""

    @staticmethod
    def of(config: Config) -> IngestSource:
        """Lists the input of a configuration, reads its annotations and hashes its files: seconds for a gigabyte.

        Raises:
            UsageError: the folder, the table, a column or a class is wrong.
            CheckFailed: nothing matches, or images without annotations are not allowed.
        """
        location = locate(config)
        surveyed = survey_input(IngestRecipe.of(config), location)
        recipe = ingest_recipe(config, surveyed.survey.classes)
        return IngestSource(identify_input(surveyed).fingerprint, recipe, location_json(location))
