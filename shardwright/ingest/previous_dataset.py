"""`previous`: a dataset of almost the same input, whose images need not be fetched again.

An image is known without reading it if the store lists one of two checksums. One is the checksum that it listed for the
previous dataset (`origins/inputs.jsonl`), the other that of the bytes in its shards. Other files are read and hashed,
which costs little for local files; the record is copied if its hash is the same. A copied image is never trusted: its
checksum and its hash are compared when it is written (`shardwright.ingest.copying`). A damaged previous dataset costs
time and nothing else.

It is in no recipe and no fingerprint: the new dataset is the same with and without it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.dataset.manifest import IndexRow, origins_path
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.dataset.shard_names import index_path
from shardwright.errors import UsageError
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
from shardwright.ingest.recipe import CODE_FORMAT
from shardwright.storage import FileHash, Listing, hash_bytes, map_threads, matches_listed, open_file, read_bytes
from shardwright.storage.checksum import BLAKE3, checksum_of
from shardwright.storage.fingerprint import read_checksummed_lines
from shardwright.storage.listing import KeyIndex

_KIND = "ingest"
# Options of `images` that decide how a file is checked or whether it is refused, not how it is stored.
_CHECKING = frozenset(("verify", "max_pixels", "max_bytes"))
# Options of `images` by which a file is refused before it is decoded.
_REFUSING = ("max_pixels", "max_bytes", "unsupported_formats")
_INDEXES_AT_ONCE = 8


@dataclass(frozen=True)
class PreviousLocations:
    """The records of a previous dataset for the images of a listing, by position.

    Attributes:
        shard: number of the shard, -1 where no record may be the same image, int32 (n,).
        offset: of the record's frame, int64 (n,).
        length: of the frame, int64 (n,).
    """

    shard: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]

    def at(self, position: int) -> list[int]:
        """Returns shard, offset and length of a record; empty where there is none."""
        if self.shard[position] < 0:
            return []
        return [int(self.shard[position]), int(self.offset[position]), int(self.length[position])]


@dataclass(frozen=True)
class PreviousDataset:
    """A previous dataset.

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
            UsageError: it is not a dataset of an ingest.
            DatasetError: it is damaged.
        """
        dataset = named_dataset("reuse_from", path)
        if dataset.manifest.kind != _KIND:
            raise UsageError(
                f"reuse_from: {path} is the output of a {dataset.manifest.kind}. Give a dataset of `shardwright "
                "ingest`."
            )
        return PreviousDataset(dataset, tuple(shard for split in dataset.splits for shard in dataset.shards(split)))

    @property
    def digest(self) -> str:
        """Returns the digest of its manifest."""
        return self.dataset.manifest.digest

    @property
    def _same_code(self) -> bool:
        """Returns whether this version of the code stores the same bytes for the same options."""
        return bool(self.dataset.manifest.recipe.get("code_format") == CODE_FORMAT)

    def source(self, images: Mapping[str, Any], tools: str) -> CopySource:
        """Returns what the writers of shards need to copy from it.

        Args:
            images: the options `images` of the new dataset, as its recipe has them.
            tools: see `IngestPlan.tools`.
        """
        manifest = self.dataset.manifest
        return CopySource(
            root=self.dataset.root,
            shards=tuple(shard.path for shard in self.shards),
            digest=self.digest,
            encoded=manifest.stored("image/encoded"),
            same_options=self._same_code and _storing(manifest.recipe.get("images", {})) == _storing(images),
            tools=tools,
        )

    def may_reuse(self, images: Mapping[str, Any]) -> bool:
        """Returns whether its records may be copied: not if it stores other pixels.

        Args:
            images: see `source`.
        """
        before = self.dataset.manifest.recipe.get("images", {})
        return _storing(before) == _storing(images) or not {"resize", "encoding"} & before.keys()

    def same_checks(self, images: Mapping[str, Any]) -> bool:
        """Returns whether a file that it accepted would be accepted now.

        Args:
            images: see `source`.
        """
        before = self.dataset.manifest.recipe.get("images", {})
        return all(before.get(name) == images.get(name) for name in _REFUSING)

    def known(self, listing: Listing, *, algorithm: str, probed: bool, pixels: bool) -> KnownFiles:
        """Returns what is known of the files of a listing without reading any.

        Args:
            listing: the files.
            algorithm: of content IDs, `images.checksum`.
            probed: whether probe results are wanted.
            pixels: whether hashes of all pixels are.
        """
        known = KnownFiles.nothing(len(listing.keys), probed=probed, pixels=pixels)
        if not listing.checksums:
            return known
        try:
            if self.dataset.manifest.recipe.get("images", {}).get("checksum", BLAKE3) != algorithm:
                raise FileNotFoundError
            for position, origin in _matched(listing, self.input_records()):
                # The CRC-32C of every file is known.
                same = (origin.checksum, f"crc32c:{origin.crc32c:08x}")
                listed = listing.checksum(position)
                if origin.size == listing.sizes[position] and listed and listed in same:
                    known.content.set(position, FileHash(origin.content_id, origin.crc32c))
                    if origin.row is not None:
                        known.add_row(position, origin.row)
            return known
        except FileNotFoundError:
            known = KnownFiles.nothing(len(listing.keys), probed=probed, pixels=pixels)
        except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
            known = KnownFiles.nothing(len(listing.keys), probed=probed, pixels=pixels)
            known.notes.append(f"reuse_from: {INPUTS_FILE} of {self.dataset.root} is damaged ({error}) and is not used")
        self._hash_stored(listing, known, algorithm)
        return known

    def add_rows(self, listing: Listing, known: KnownFiles) -> None:
        """Adds the measures of files whose content is known, and equal to that of the earlier file of the same key.

        Args:
            listing: the files.
            known: their hashes; the measures are added. A damaged file of origins adds none.
        """
        with suppress(OSError, ValueError, TypeError, KeyError, OverflowError):
            for position, origin in _matched(listing, self.input_records(whole=True)):
                content = known.content.get(position)
                if origin.row is not None and content is not None and content.content_id == origin.content_id:
                    known.add_row(position, origin.row)

    def input_records(self, *, whole: bool = False) -> Iterator[InputRecord]:
        """Yields the records of its input files, by key.

        Args:
            whole: whether to raise for damage before the first row, not after the last: the file is read twice then.

        Raises:
            FileNotFoundError: it has none, as a dataset of local files that were not probed.
            OSError, ValueError, TypeError, KeyError: the file is damaged.
        """
        file = os.path.join(self.dataset.root, INPUTS_FILE)
        if whole:
            with open_file(file) as lines:
                deque(read_checksummed_lines(lines), maxlen=0)
        with open_file(file) as lines:
            yield from read_inputs(lines)

    def locations(self, listing: Listing, known: KnownFiles) -> tuple[PreviousLocations, list[str]]:
        """Finds its records of the images of a listing.

        Args:
            listing: the files.
            known: what is known of them.

        Returns:
            The locations, and notes on damaged indexes.
        """
        count = len(listing.keys)
        found = PreviousLocations(np.full(count, -1, np.int32), np.zeros(count, np.int64), np.zeros(count, np.int64))
        notes = []
        # If the listed checksum is not the earlier one, the image has changed.
        maybe = known.content.known | np.array([not checksum for checksum in listing.checksums] or [True] * count)
        finder = KeyIndex(listing.keys)
        for number, rows in enumerate(map_threads(self._index, self.shards, _INDEXES_AT_ONCE)):
            if rows is None:
                notes.append(
                    f"reuse_from: the index of {self.shards[number].path} in {self.dataset.root} is damaged; the "
                    "images of that shard are read again. `shardwright verify` shows the details"
                )
            for key, offset, length in rows or ():
                position = finder.find(key)
                if position >= 0 and maybe[position]:
                    found.shard[position], found.offset[position] = number, offset
                    found.length[position] = length
        return found, notes

    def check_origins(self) -> list[str]:
        """Returns a note if the origins of its stored images cannot be read. Only the first shard is checked."""
        file = os.path.join(self.dataset.root, origins_path(self.shards[0].path)) if self.shards else ""
        try:
            with open_file(file) as lines:
                if self._same_code:
                    read_stored(lines)
                else:
                    return [f"reuse_from: {self.dataset.root} is of another version, so re-encoded images are read"]
        except OSError:
            pass  # There is no such file if images are stored unchanged.
        except (ValueError, TypeError, RecursionError):
            return [f"reuse_from: {file} is damaged or of an earlier version, so re-encoded images are read"]
        return []

    def _index(self, shard: LocatedShard) -> list[tuple[str, int, int]] | None:
        """Returns key, offset and length of every record of a shard; `None` where its index is damaged."""
        try:
            data = read_bytes(shard.index)
        except OSError:
            return None
        if checksum_of(data) != self.dataset.manifest.parts.get(index_path(shard.path)):
            return None
        try:
            rows: list[tuple[str, int, int]] = [IndexRow.from_json(line) for line in data.splitlines()]
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        inside = all(offset >= 0 and length > 0 and offset + length <= shard.bytes for _, offset, length in rows)
        return rows if inside else None

    def _hash_stored(self, listing: Listing, known: KnownFiles, algorithm: str) -> None:
        """Compares the checksums that the store lists with the images in the shards, which it reads once."""
        nothing = KnownFiles.nothing(len(listing.keys), probed=False, pixels=False)
        nothing.content.known[:] = True
        locations, notes = self.locations(listing, nothing)
        known.notes += notes
        source = self.source({}, "")
        order = [i for i in np.lexsort((locations.offset, locations.shard)).tolist() if locations.shard[i] >= 0]
        for position, record in examples_at(source, ((locations.at(i), i) for i in order)):
            data = b"" if record is None else stored_image(source, record)
            if len(data) == listing.sizes[position] and matches_listed(data, listing.checksum(position)):
                known.content.set(position, hash_bytes(data, algorithm))


def _matched(listing: Listing, origins: Iterable[InputRecord]) -> Iterator[tuple[int, InputRecord]]:
    """Joins two lists that are sorted by key; yields the positions of the keys in both."""
    keys = enumerate(listing.keys)
    position, key = next(keys, (-1, ""))
    for origin in origins:
        while position >= 0 and key < origin.key:
            position, key = next(keys, (-1, ""))
        if position >= 0 and key == origin.key:
            yield position, origin


def _storing(images: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in images.items() if name not in _CHECKING}
