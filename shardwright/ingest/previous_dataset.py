"""`previous`: an earlier dataset of much the same input, whose images need not be fetched again.

What an image of today is, two things can tell without reading it: the checksum that the store lists today is the one
that it listed when the earlier dataset was made (`origins/inputs.jsonl`), or it is that of the bytes in its shards. Of
what neither tells, the file is read and hashed as ever, which for a local file costs little; its record is copied if
the hash is the record's. A copied image is never trusted: its record's checksum and its hash are compared when it is
written (`shardwright.ingest.copying`), so that an earlier dataset which is damaged costs time and nothing else.

Nothing of it is in a recipe or a fingerprint: with it or without, the same dataset is made.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt

from shardwright.dataset.manifest import IndexRow, origins_path
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.dataset.shard_names import index_path
from shardwright.errors import UsageError
from shardwright.fingerprint import read_checksummed_lines, sha256_bytes
from shardwright.ingest.copying import (
    INPUTS_FILE,
    CopySource,
    InputRecord,
    examples_at,
    read_inputs,
    read_stored,
    stored_image,
)
from shardwright.ingest.known_files import KnownFiles
from shardwright.ingest.previous_splits import named_dataset
from shardwright.storage import FileHash, Listing, hash_bytes, map_threads, open_file, read_bytes
from shardwright.storage.listing import KeyIndex

_KIND = "ingest"
# Options of `images` by which a file is refused or looked at, not stored otherwise.
_LOOKING = frozenset(("verify", "max_pixels", "max_bytes"))
# Options of `images` by which a file is refused before it is looked at.
_REFUSING = ("max_pixels", "max_bytes", "convert")
_INDEXES_AT_ONCE = 8


@dataclass(frozen=True)
class PreviousLocations:
    """Where the earlier dataset holds the images of a listing, by position.

    Attributes:
        shard: number of the shard, -1 where it holds none that may be the same, int32 (n,).
        offset: of the record's frame, int64 (n,).
        length: of the frame, int64 (n,).
    """

    shard: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]

    def at(self, position: int) -> list[int]:
        """Shard, offset and length of a record; empty where there is none."""
        if self.shard[position] < 0:
            return []
        return [int(self.shard[position]), int(self.offset[position]), int(self.length[position])]


@dataclass(frozen=True)
class PreviousDataset:
    """An earlier dataset.

    Attributes:
        dataset: the dataset.
        shards: its shards, by split and number.
    """

    dataset: ImageDataset
    shards: tuple[LocatedShard, ...]

    @staticmethod
    def open(path: str) -> PreviousDataset:
        """Opens the dataset that `previous` names.

        Raises:
            UsageError: it is no dataset, or its records are no images as they were delivered.
            DatasetError: it is not whole.
        """
        dataset = named_dataset("previous", path)
        if dataset.manifest.kind != _KIND:
            raise UsageError(
                f"previous: {path} is the output of a {dataset.manifest.kind}. Give a dataset of `shardwright ingest`."
            )
        return PreviousDataset(dataset, tuple(shard for split in dataset.splits for shard in dataset.shards(split)))

    @property
    def digest(self) -> str:
        """The digest of its manifest."""
        return self.dataset.manifest.digest

    def source(self, images: Mapping[str, Any], tools: str) -> CopySource:
        """What the writers of shards need to copy from it.

        Args:
            images: the options `images` of the dataset that is made, as its recipe has them.
            tools: see `IngestPlan.tools`.
        """
        manifest = self.dataset.manifest
        return CopySource(
            root=self.dataset.root,
            shards=tuple(shard.path for shard in self.shards),
            digest=self.digest,
            encoded=manifest.stored("image/encoded"),
            alike=_storing(manifest.recipe.get("images", {})) == _storing(images),
            tools=tools,
        )

    def is_of_use(self, images: Mapping[str, Any]) -> bool:
        """Whether its records may hold what is to be stored: not where all its pixels are others.

        Args:
            images: see `source`.
        """
        before = self.dataset.manifest.recipe.get("images", {})
        return _storing(before) == _storing(images) or not {"resize", "reencode"} & before.keys()

    def looked_at_alike(self, images: Mapping[str, Any]) -> bool:
        """Whether what was found sound when it was made would not be refused now.

        Args:
            images: see `source`.
        """
        before = self.dataset.manifest.recipe.get("images", {})
        return all(before.get(name) == images.get(name) for name in _REFUSING)

    def known(self, listing: Listing, *, probed: bool, pixels: bool) -> KnownFiles:
        """What is known of the files of a listing without reading any.

        Args:
            listing: the files.
            probed: whether what pixels tell is wanted.
            pixels: whether hashes of all pixels are.
        """
        known = KnownFiles.nothing(len(listing.keys), probed=probed, pixels=pixels)
        if not listing.checksums:
            return known
        try:
            for position, origin in _matched(listing, self.origins()):
                if origin.size == listing.sizes[position] and _same(origin, listing.checksum(position)):
                    known.add_content(position, FileHash(origin.sha256, origin.crc32c))
                    if origin.row is not None:
                        known.add_row(position, origin.row)
            return known
        except FileNotFoundError:
            known = KnownFiles.nothing(len(listing.keys), probed=probed, pixels=pixels)
        except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
            known = KnownFiles.nothing(len(listing.keys), probed=probed, pixels=pixels)
            known.notes.append(f"previous: {INPUTS_FILE} of {self.dataset.root} is damaged ({error}) and of no use")
        self._prove(listing, known)
        return known

    def origins(self, *, whole: bool = False) -> Iterator[InputRecord]:
        """What it keeps of its files, by key.

        Args:
            whole: whether damage is to show before the first row, not after the last: the file is read twice for it.

        Raises:
            FileNotFoundError: it keeps nothing; one of local files that were not probed does so.
            OSError, ValueError, TypeError, KeyError: the file is damaged.
        """
        file = os.path.join(self.dataset.root, INPUTS_FILE)
        if whole:
            with open_file(file) as lines:
                deque(read_checksummed_lines(lines), maxlen=0)
        with open_file(file) as lines:
            yield from read_inputs(lines)

    def places(self, listing: Listing, known: KnownFiles) -> tuple[PreviousLocations, list[str]]:
        """Where it holds the images of a listing.

        Args:
            listing: the files.
            known: what is known of them.

        Returns:
            The places, and what was found to be damaged.
        """
        count = len(listing.keys)
        places = PreviousLocations(np.full(count, -1, np.int32), np.zeros(count, np.int64), np.zeros(count, np.int64))
        notes = []
        # A listed checksum that is not the earlier one says that the image has changed.
        maybe = known.hashed | np.array([not checksum for checksum in listing.checksums] or [True] * count)
        finder = KeyIndex(listing.keys)
        for number, rows in enumerate(map_threads(self._index, self.shards, _INDEXES_AT_ONCE)):
            if rows is None:
                notes.append(
                    f"previous: the index of {self.shards[number].path} in {self.dataset.root} is damaged; the images "
                    "of that shard are read again. `shardwright verify` tells more"
                )
            for key, offset, length in rows or ():
                position = finder.find(key)
                if position >= 0 and maybe[position]:
                    places.shard[position], places.offset[position] = number, offset
                    places.length[position] = length
        return places, notes

    def unproven(self) -> list[str]:
        """Says where it keeps nothing by which the stored bytes of its images can be told; the first shard speaks."""
        file = os.path.join(self.dataset.root, origins_path(self.shards[0].path)) if self.shards else ""
        try:
            with open_file(file) as lines:
                read_stored(lines)
        except OSError:
            pass  # Where files are stored as they came, there is none.
        except (ValueError, TypeError, RecursionError):
            why = "is damaged or of an earlier version: images that were encoded anew are read"
            return [f"previous: what {file} tells {why}"]
        return []

    def _index(self, shard: LocatedShard) -> list[tuple[str, int, int]] | None:
        """Key, offset and length of every record of a shard; `None` where its index is damaged."""
        try:
            data = read_bytes(shard.index)
        except OSError:
            return None
        if sha256_bytes(data) != self.dataset.manifest.parts.get(index_path(shard.path)):
            return None
        try:
            rows = [_entry(line) for line in data.splitlines()]
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        inside = all(offset >= 0 and length > 0 and offset + length <= shard.bytes for _, offset, length in rows)
        return rows if inside else None

    def _prove(self, listing: Listing, known: KnownFiles) -> None:
        """Compares what the store lists with the images in the shards, which are read for it, once."""
        nothing = KnownFiles.nothing(len(listing.keys), probed=False, pixels=False)
        nothing.hashed[:] = True
        places, notes = self.places(listing, nothing)
        known.notes += notes
        source = self.source({}, "")
        order = np.lexsort((places.offset, places.shard)).tolist()
        for position, record in examples_at(source, ((places.at(i), i) for i in order if places.shard[i] >= 0)):
            data = b"" if record is None else stored_image(source, record)
            if len(data) == listing.sizes[position] and _is_of(data, listing.checksum(position)):
                known.add_content(position, hash_bytes(data))


def _entry(line: bytes) -> tuple[str, int, int]:
    return IndexRow.from_json(line)


def _matched(listing: Listing, origins: Iterable[InputRecord]) -> Iterator[tuple[int, InputRecord]]:
    """Positions of the keys that both have, which are sorted in both."""
    keys = enumerate(listing.keys)
    position, key = next(keys, (-1, ""))
    for origin in origins:
        while position >= 0 and key < origin.key:
            position, key = next(keys, (-1, ""))
        if position >= 0 and key == origin.key:
            yield position, origin


def _same(origin: InputRecord, listed: str) -> bool:
    """Whether a store lists a file as it was. Its CRC-32C is known of every file, whatever was listed then."""
    return bool(listed) and listed in (origin.checksum, f"crc32c:{origin.crc32c:08x}")


def _is_of(data: bytes, listed: str) -> bool:
    """Whether bytes have a checksum that a store lists."""
    kind, _, value = listed.partition(":")
    if kind == "md5":
        return hashlib.md5(data, usedforsecurity=False).hexdigest() == value
    return kind == "crc32c" and f"{google_crc32c.value(data):08x}" == value


def _storing(images: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in images.items() if name not in _LOOKING}
