"""`split.keep_from`: keeps images in the splits that they have in an earlier dataset.

Finds images of an earlier dataset that have another key today, by their bytes.

An image with the same key and the size that is stored there counts as the same. Content IDs that are known, and
checksums that a store lists, may show that it is another one. The bytes of the other files are compared with the images
that are not there under their own keys. If there are none, as in most months, no file is read for that.

The facts next to the shards of the earlier dataset contain 64 bits of each content ID. The content of objects on a
bucket is often not known yet: the checksums that the store lists are compared with those that it listed then.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config import SplitConfig
from shardwright.dataset.ledger import DUPLICATE, WRITTEN
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.shard_names import LEDGER_FOLDER
from shardwright.errors import CheckFailed, DatasetError, UsageError
from shardwright.ingest.copying import INPUTS_FILE, read_inputs
from shardwright.ingest.known_files import FileHashes, hash_into
from shardwright.running.progress import SILENT
from shardwright.splits import NEW
from shardwright.staging.commit import is_committed
from shardwright.storage import Listing, hash_file, is_remote, map_threads, open_file, readers
from shardwright.storage.listing import KeyIndex

_Ints = npt.NDArray[np.int64]
_Contents = npt.NDArray[np.uint64]
_KNOWN_BYTES = 8


def named_dataset(option: str, path: str) -> ImageDataset:
    """Opens the dataset that an option names.

    Raises:
        UsageError: there is none.
        DatasetError: it is damaged.
    """
    try:
        return ImageDataset.open(path)
    except DatasetError as error:
        if is_committed(path):
            raise
        raise UsageError(f"{option}: {error}") from None


class PreviousSplits(NamedTuple):
    """The splits of an earlier dataset.

    Attributes:
        split_of: for each of today's images, the number of the split that it was written into, or would have been
            without a duplicate; `NEW` for images that were not there or were rejected.
        renamed: positions of images that had another key, in ascending order.
        gone: split -> how many of its images are not there today, neither under their keys nor by their bytes.
        not_compared: see `RenamedImages`.
    """

    split_of: npt.NDArray[np.int64]
    renamed: Sequence[int]
    gone: Counter[str]
    not_compared: int


def previous_splits(options: SplitConfig, path: str, files: InputFiles) -> PreviousSplits:
    """Returns the splits that images had, by their bytes or by their keys.

    Args:
        options: `split` of a recipe: `previous` is the digest that the earlier dataset must have.
        path: its folder, absolute.
        files: today's images.

    Raises:
        UsageError: its splits are not those of the configuration, or it is another fold.
        CheckFailed: its digest is not the one in the recipe.
        DatasetError: it is damaged.
    """
    dataset = ImageDataset.open(path)
    if dataset.manifest.digest != options.keep_from:
        raise CheckFailed(
            f"split.keep_from: {path} has changed since the run began (digest {dataset.manifest.digest[:12]}, expected "
            f"{str(options.keep_from)[:12]}). Run it again."
        )
    for part, checksum in sorted(dataset.manifest.parts.items()):
        if not part.startswith(LEDGER_FOLDER):
            continue
        found = hash_file(os.path.join(dataset.root, part))
        if found is None or found.content_id.hex() != checksum:
            raise DatasetError(f"split.keep_from: {part} of {path} is missing or damaged. Restore it.")
    unknown = sorted(set(dataset.splits) - set(options.names))
    if unknown:
        raise UsageError(
            f"split.keep_from: {path} has a split {unknown[0]!r}; this configuration has {', '.join(options.names)}. "
            "Name the splits alike."
        )
    if options.method == "kfold":
        _check_fold(options, dataset)
    number = {name: i for i, name in enumerate(options.names)}
    positions = KeyIndex(files.listing.keys)
    split_of = np.full(len(files.listing.keys), NEW, dtype=np.int64)
    # Keys of duplicates, whose images the earlier dataset has under another key.
    duplicates = set[int]()
    for row in dataset.ledger():
        if row.status in (WRITTEN, DUPLICATE) and row.split in number:
            position = positions.find(row.key)
            if position >= 0:
                split_of[position] = number[row.split]
                if row.status == DUPLICATE:
                    duplicates.add(position)
    renamed = find_renamed(dataset, options.names, files)
    for position, split in renamed.split_of.items():
        split_of[position] = split
    return PreviousSplits(split_of, sorted(renamed.split_of.keys() - duplicates), renamed.gone, renamed.not_compared)


def _check_fold(options: SplitConfig, dataset: ImageDataset) -> None:
    """Checks that the dataset is the same fold: an image that is `train` in one fold is `eval` in another."""
    before = dataset.manifest.recipe.get("split", {})
    if [before.get(name) for name in ("method", "num_folds", "fold_index")] != [
        options.method,
        options.num_folds,
        options.fold_index,
    ]:
        raise UsageError(
            f"split.keep_from: {dataset.root} is not fold {options.fold_index} of {options.num_folds}. Give the "
            "earlier dataset of the same fold."
        )


@dataclass(frozen=True)
class InputFiles:
    """The files of an input.

    Attributes:
        listing: the files.
        contents: their hashes, where they are known already.
        algorithm: of these hashes.
        usable: which files may be written, bool (n,).
    """

    listing: Listing
    contents: FileHashes
    algorithm: str
    usable: npt.NDArray[np.bool_]


class RenamedImages(NamedTuple):
    """Images of an earlier dataset that have another key today, or are not there.

    Attributes:
        split_of: position of an image that had another key -> number of the split that it was in.
        gone: split -> how many of its images are not there today.
        not_compared: number of files whose bytes cannot be compared with images that are gone.
    """

    split_of: Mapping[int, int]
    gone: Counter[str]
    not_compared: int


class _Earlier(NamedTuple):
    """Images of the earlier dataset that may have another key today.

    Attributes:
        keys: their keys.
        position: that of the file that has the key today, or -1.
        content: 64 bits of the content ID; 0 where it is not stored.
        split: number of the split.
    """

    keys: list[str]
    position: _Ints
    content: _Contents
    split: _Ints

    def part(self, chosen: npt.NDArray[np.bool_]) -> _Earlier:
        keys = [key for key, one in zip(self.keys, chosen.tolist(), strict=True) if one]
        return _Earlier(keys, self.position[chosen], self.content[chosen], self.split[chosen])


def find_renamed(dataset: ImageDataset, names: Sequence[str], files: InputFiles) -> RenamedImages:
    """Finds the images of an earlier dataset that have another key today.

    Args:
        dataset: the earlier dataset.
        names: the splits, in the order of their numbers; the dataset has no others.
        files: today's input.

    Raises:
        DatasetError: an index or the facts of a shard are damaged.
    """
    earlier, same = _changed(dataset, names, files)
    if not earlier.keys:
        return RenamedImages({}, Counter(), 0)
    sought = files.usable & ~same
    # Some presets of features store no content ID.
    stored = bool(earlier.content.any())
    content = _contents(dataset, files, sought & stored)
    # A file that was rewritten with another size, or a dataset that stores other bytes than those of the files.
    there = earlier.position >= 0
    own = there & (earlier.content > 0) & (content[earlier.position] == earlier.content)
    sought[earlier.position[own]] = False
    left = earlier.part(~own)
    split_of = _by_content(left, content, sought)
    unknown = np.flatnonzero(sought & (content == 0)).tolist()
    listed, matched = _by_listing(dataset, files.listing, left, unknown)
    split_of |= {position: number for position, number in listed.items() if position not in split_of}
    found = np.isin(left.content, np.unique(content[list(split_of)])) & (left.content > 0)
    # A file with the key of an image may be another image, and else is the same one with other bytes.
    gone = ((left.position < 0) | np.isin(left.position, list(split_of))) & ~found
    gone[matched] = False
    counts = Counter(names[number] for number in left.split[gone].tolist())
    new = sum(position not in listed for position in unknown)
    return RenamedImages(split_of, counts, new if counts else 0)


def _changed(dataset: ImageDataset, names: Sequence[str], files: InputFiles) -> tuple[_Earlier, npt.NDArray[np.bool_]]:
    """Returns the images of the dataset without a file of their key and bytes today, and which files are the others."""
    index, sizes = KeyIndex(files.listing.keys), np.asarray(files.listing.sizes, np.int64)
    now, relisted = _known_content(dataset, files), _listed_with_others(dataset, files.listing, index)
    same = np.zeros(len(sizes), np.bool_)
    keys: list[str] = []
    positions, contents, numbers = array("q"), array("Q"), array("q")
    shards = [shard for split in dataset.splits for shard in dataset.shards(split)]
    for shard, facts in zip(shards, map_threads(dataset.facts, shards, readers(dataset.root)), strict=True):
        stored = zip(facts.numbers["bytes"].tolist(), facts.content.tolist(), strict=True)
        for (key, _), (size, content) in zip(dataset.entries(shard), stored, strict=True):
            position = index.find(key)
            other = position in relisted or (content and now and now[position] not in (0, content))
            if position >= 0 and sizes[position] == size and not other:
                same[position] = True
            else:
                keys.append(key)
                positions.append(position)
                contents.append(content)
                numbers.append(names.index(shard.split))
    return _Earlier(keys, np.array(positions), np.array(contents), np.array(numbers)), same


def _known_content(dataset: ImageDataset, files: InputFiles) -> array[int]:
    """Returns 64 bits of the content ID of each file, 0 where it is not known; nothing if it is of another kind."""
    if files.algorithm != dataset.manifest.image_checksum:
        return array("Q")
    content = np.zeros(len(files.contents.known), np.uint64)
    content[files.contents.known] = _first_bits(files.contents, files.contents.known)
    return array("Q", content.tobytes())


def _listed_with_others(dataset: ImageDataset, listing: Listing, index: KeyIndex) -> set[int]:
    """Returns the positions of objects whose listed checksum shows other bytes than those of then."""
    found: set[int] = set()
    for key, checksums in _listed_then(dataset) if any(listing.checksums) else ():
        position = index.find(key)
        listed = listing.checksum(position) if position >= 0 else ""
        kind = listed.partition(":")[0]
        # A store may list another kind of checksum than then.
        if listed and listed not in {one for _, one in checksums} and any(one.startswith(kind) for _, one in checksums):
            found.add(position)
    return found


def _contents(dataset: ImageDataset, files: InputFiles, sought: npt.NDArray[np.bool_]) -> _Contents:
    """Returns 64 bits of the content ID of each file that is sought, 0 where it is unknown; reads files on a disk."""
    listing, algorithm = files.listing, dataset.manifest.image_checksum
    content = np.zeros(len(sought), np.uint64)
    if files.algorithm == algorithm:
        known = sought & files.contents.known
        content[known] = _first_bits(files.contents, known)
    if not is_remote(listing.root):
        found = FileHashes(len(sought))
        hash_into(found, listing, np.flatnonzero(sought & (content == 0)).tolist(), algorithm, SILENT)
        content[found.known] = _first_bits(found, found.known)
    return content


def _first_bits(hashes: FileHashes, chosen: npt.NDArray[np.bool_]) -> _Contents:
    return np.ascontiguousarray(hashes.content_ids[chosen, :_KNOWN_BYTES]).view(">u8").reshape(-1).astype(np.uint64)


def _by_content(earlier: _Earlier, content: _Contents, sought: npt.NDArray[np.bool_]) -> dict[int, int]:
    """Returns position -> split of the files with the bytes of an earlier image.

    If these were in several splits, the last one by name counts: that is `train`, which no image may leave for `test`.
    """
    order = np.lexsort((earlier.split, earlier.content))
    contents = earlier.content[order]
    files = np.flatnonzero(sought & (content > 0))
    at = np.searchsorted(contents, content[files], side="right") - 1
    match = (at >= 0) & (contents[at] == content[files]) if len(contents) else np.zeros(len(files), np.bool_)
    return dict(zip(files[match].tolist(), earlier.split[order][at[match]].tolist(), strict=True))


def _by_listing(
    dataset: ImageDataset, listing: Listing, earlier: _Earlier, unknown: Sequence[int]
) -> tuple[dict[int, int], list[int]]:
    """Returns position -> split of objects that the store lists with a checksum of then, and numbers of the images."""
    wanted: dict[tuple[int, str], list[int]] = {}
    for position in unknown:
        if listing.checksum(position):
            wanted.setdefault((listing.sizes[position], listing.checksum(position)), []).append(position)
    split_of: dict[int, int] = {}
    matched: list[int] = []
    numbers = {key: number for number, key in enumerate(earlier.keys)} if wanted else {}
    for key, checksums in _listed_then(dataset) if wanted else ():
        number = numbers.get(key)
        positions = [i for one in checksums for i in wanted.get(one, ())] if number is not None else []
        if number is not None and positions:
            matched.append(number)
            split = int(earlier.split[number])
            split_of |= {position: max(split, split_of.get(position, split)) for position in positions}
    return split_of, matched


def _listed_then(dataset: ImageDataset) -> Iterator[tuple[str, set[tuple[int, str]]]]:
    """Yields the key of each file of the earlier dataset with its size and each checksum that a store may list."""
    # A dataset need not have this file, and a damaged one only means that less is found.
    with (
        suppress(OSError, ValueError, TypeError, KeyError),
        open_file(os.path.join(dataset.root, INPUTS_FILE)) as lines,
    ):
        for row in read_inputs(lines):
            yield row.key, {(row.size, row.checksum), (row.size, f"crc32c:{row.crc32c:08x}")}
