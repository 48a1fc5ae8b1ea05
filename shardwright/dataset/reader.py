"""Reads a dataset: its manifest, its shards, its records by key, its ledger; shows it in a notebook.

The reader trusts the manifest and makes only cheap checks: the digest, and that every shard exists with its size. The
hashes of indexes and of the ledger are checked when these are read to their ends. The hashes of whole shards are
checked by `shardwright verify`, and by readers that make other datasets or files (`shardwright.edit`, transforms).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shardwright.dataset.example_view import ExampleReader
from shardwright.dataset.ledger import LedgerRow
from shardwright.dataset.manifest import MANIFEST_FILE, IndexRow, Manifest, ShardInfo
from shardwright.dataset.record_facts import FactsCollector, ShardFacts
from shardwright.dataset.shard_names import LEDGER_FOLDER, facts_path, index_path
from shardwright.errors import DatasetError, NotFound, UsageError
from shardwright.storage import buckets, is_folder, is_remote, map_threads, open_file, read_bytes, readers
from shardwright.storage.checksum import checksum_of, new_checksum
from shardwright.storage.fingerprint import canonical_json
from shardwright.storage.paths import part_path, split_url
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.records import read_records, unframe

if TYPE_CHECKING:
    from shardwright.dataset.examples import Example, Examples

# Similar keys that a message names, and images that a notebook shows of a dataset.
_NEAR, _PICTURES = 3, 4
IS_LINK = "is a link. A dataset contains files, not links. Copy it there instead."


@dataclass(frozen=True)
class ImageDataset:
    """A committed dataset on disk or on an object store.

    Attributes:
        root: its folder, absolute, or its URL.
        manifest: its manifest.
    """

    root: str
    manifest: Manifest

    @staticmethod
    def open(directory: str | os.PathLike[str]) -> ImageDataset:
        """Opens a dataset.

        Args:
            directory: the folder with `manifest.json`, or its URL.

        Raises:
            NotFound: there is no such folder.
            DatasetError: no manifest, a damaged one, or a shard that is missing or has another size.
            UsageError: the bucket is missing or closed to us.
        """
        path = os.fspath(directory)
        root = path.rstrip("/") if is_remote(path) else str(Path(path).absolute())
        file = os.path.join(root, MANIFEST_FILE)
        try:
            text = read_bytes(file).decode("utf-8")
        except FileNotFoundError:
            if not is_folder(root):
                raise NotFound(f"{root}: there is no such folder. Check the path.") from None
            raise DatasetError(
                f"{root}: has no {MANIFEST_FILE}, so it is not a finished dataset. {dataset_inside(root)}"
            ) from None
        except NotADirectoryError:
            raise NotFound(
                f"{root}: is a file, not a dataset. `shardwright inspect` shows the records of a TFRecord file, and "
                "`shardwright ingest` makes a dataset of such files, given as input.images."
            ) from None
        except PermissionError:
            raise NotFound(f"{file}: cannot be read (Permission denied). Check the permissions.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(f"{file}: cannot be read ({error}). Re-create the dataset.") from None
        dataset = ImageDataset(root, Manifest.from_json(text, file))
        dataset._check_sizes()
        return dataset

    def _check_sizes(self) -> None:
        """Compares the sizes of all shards with the manifest; those of objects by one listing."""
        sizes: dict[str, int] | None = None
        if is_remote(self.root):
            start = len(split_url(self.root)[2]) + 1
            sizes = {info.name[start:]: info.size for info in buckets.list_objects(f"{self.root}/")}
        for link in links(self.root, self.manifest) if sizes is None else ():
            raise DatasetError(f"{os.path.join(self.root, link)}: {IS_LINK}")
        for shard in self.all_shards():
            try:
                size = os.stat(shard.file).st_size if sizes is None else sizes[shard.path]
            except (OSError, KeyError):
                raise _missing(shard.file) from None
            if size != shard.bytes:
                raise DatasetError(
                    f"{shard.file}: {size} bytes instead of the manifest's {shard.bytes}. Re-create the dataset."
                )

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, sorted."""
        return self.manifest.splits

    def shards(self, split: str) -> list[LocatedShard]:
        """Returns the shards of a split, by number.

        Raises:
            DatasetError: there is no such split.
        """
        if split not in self.splits:
            raise DatasetError(f"{self.root}: no split {split!r}. It has: {', '.join(self.splits)}.")
        return [
            LocatedShard(**vars(shard), file=os.path.join(self.root, shard.path))
            for shard in self.manifest.shards
            if shard.split == split
        ]

    def all_shards(self) -> list[LocatedShard]:
        """Returns the shards of all splits, by split and number."""
        return [shard for split in self.splits for shard in self.shards(split)]

    def num_records(self, split: str) -> int:
        """Returns the number of records in a split."""
        return sum(shard.records for shard in self.shards(split))

    def records(self, split: str, *, proven: bool = False) -> Iterator[tuple[str, bytes]]:
        """Yields the keys and serialized examples of a split, in the order they are stored; checksums are verified.

        Args:
            split: which one.
            proven: compare every shard with its hash, too, after its last record.

        Raises:
            DatasetError: a shard is damaged, or another than the manifest's, or does not match its index.
        """
        for shard in self.shards(split):
            for key, _, payload in self.placed_records(shard, proven=proven):
                yield key, payload

    def placed_records(self, shard: LocatedShard, *, proven: bool = False) -> Iterator[tuple[str, int, bytes]]:
        """Yields the key, offset of the frame and serialized example of every record of a shard; see `records`."""
        entries = self._index(shard)
        for offset, payload in iter_records(shard.file, shard.checksum if proven else None):
            key, expected = next(entries, ("", -1))
            if offset != expected:
                raise DatasetError(
                    f"{shard.index}: does not match {shard.file} at byte {offset}. Re-create the dataset."
                )
            yield key, offset, payload
        if next(entries, None) is not None:
            raise DatasetError(f"{shard.index}: lists more records than {shard.file} contains. Re-create the dataset.")

    def entries(self, shard: LocatedShard) -> Iterator[tuple[str, int]]:
        """Yields the key and offset of every record of a shard, by its index; no record is read.

        Raises:
            DatasetError: the index is missing or damaged.
        """
        return self._index(shard)

    def facts(self, shard: LocatedShard) -> ShardFacts:
        """Returns the facts of the records of a shard, from their file; the records are read only if there is none.

        Raises:
            DatasetError: the facts, or the records, are damaged.
        """
        path = facts_path(shard.path)
        if path not in self.manifest.parts:
            collected = FactsCollector(self.manifest, len(self.shards(shard.split)))
            for key, _, payload in self.placed_records(shard):
                collected.add(key, payload)
            return ShardFacts.decode(collected.encode(), self.manifest, shard.records, shard.file)
        file = os.path.join(self.root, path)
        try:
            data = read_bytes(file)
        except OSError as error:
            raise DatasetError(f"{file}: not readable facts ({error}). Re-create the dataset.") from None
        if checksum_of(data) != self.manifest.parts[path]:
            raise DatasetError(f"{file}: its checksum differs from the manifest's. Re-create the dataset.")
        return ShardFacts.decode(data, self.manifest, shard.records, file)

    def keys(self, split: str) -> list[str]:
        """Returns the keys of a split in the order of its records; the loader's number `i` is that of `keys[i]`.

        Raises:
            DatasetError: there is no such split, or an index is missing or damaged.
        """
        return [key for shard in self.shards(split) for key, _ in self._index(shard)]

    def fetch(self, key: str) -> FoundRecord:
        """Reads the record of a key: the indexes up to the key, and then this record alone.

        Args:
            key: the key, whole.

        Raises:
            DatasetError: an index or the record is damaged.
            UsageError: there is no such key; the message names similar ones, or the reason why it was not written.
        """
        # The index has keys as canonical JSON, so most lines need no parsing. Bytes of a command line that are not
        # UTF-8 become half surrogates, which no index contains.
        text = canonical_json(key).encode("utf-8", "surrogatepass")
        wanted, part = b'"key":' + text, text[1:-1].lower()
        near: list[str] = []
        for split in self.splits:
            for shard in self.shards(split):
                try:
                    with open_file(shard.index) as lines:
                        for number, line in enumerate(lines):
                            if wanted in line and (row := IndexRow.from_json(line)).key == key:
                                return _read(shard, number, row)
                            if part and part in line.lower() and len(near) < _NEAR:
                                near.append(IndexRow.from_json(line).key)
                except (OSError, ValueError, KeyError, TypeError) as error:
                    problem = f"{shard.index}: not a readable index ({error})"
                    raise DatasetError(f"{problem}. Re-create the dataset.") from None
        row_of = next((row for row in self.ledger() if row.key == key), None)
        why = (
            f"There is {', '.join(map(ascii, near))}."
            if near
            else "A key is the image's path below the folder of images."
        )
        if row_of is not None:
            why = f"It was not written: {row_of.status}, {row_of.code}: {row_of.reason}."
        raise UsageError(f"{self.root}: no record has the key {key!a}. {why}")

    def example(self, key: str) -> Example:
        """Returns the image of a key, found by the index: its pixels, masks and classes; a notebook shows it.

        Raises:
            UsageError: there is no such key; the message names near ones.
            DatasetError: an index or the record is damaged.
        """
        found = self.fetch(key)
        from shardwright.dataset.examples import Example

        return Example(ExampleReader(self.manifest).read(key, found.payload), found.split)

    def examples(self, split: str | None = None, count: int = 8) -> Examples:
        """Returns the first images of a split; their order is that of a hash, so they are a random sample.

        Args:
            split: its name; by default the split with the most images.
            count: how many.

        Raises:
            DatasetError: there is no such split, or it is damaged.
        """
        from shardwright.dataset.examples import Example, Examples

        largest = sorted(self.splits, key=lambda name: -self.num_records(name))[:1]
        reader = ExampleReader(self.manifest)
        records = (
            Example(reader.read(key, payload), name)
            for name in (largest if split is None else [split])
            for shard in self.shards(name)
            for key, _, payload in self.placed_records(shard)
        )
        return Examples(islice(records, max(0, count)))

    def __fspath__(self) -> str:
        return self.root

    def __repr__(self) -> str:
        images, splits = self.manifest.records, ", ".join(self.splits)
        return f"ImageDataset({self.root!r}, {self.manifest.task}, {images} images, splits {splits})"

    def _repr_html_(self) -> str:
        """Returns the manifest as HTML, with the first images of the largest split: a random sample of it."""
        from shardwright.dataset.examples import dataset_html

        return dataset_html(self.manifest, lambda: self.examples(count=_PICTURES))

    def ledger(self) -> Iterator[LedgerRow]:
        """Yields the result of every input, by key.

        Raises:
            DatasetError: a part of the ledger is missing or damaged.
        """
        for path in sorted(p for p in self.manifest.parts if p.startswith(LEDGER_FOLDER)):
            file = os.path.join(self.root, path)
            try:
                with open_file(file) as lines:
                    for line in self._proven(lines, path):
                        yield LedgerRow.from_json(line.decode("utf-8"))
            except (OSError, ValueError, TypeError) as error:
                raise DatasetError(f"{file}: not a readable ledger ({error}). Re-create the dataset.") from None

    def _index(self, shard: LocatedShard) -> Iterator[tuple[str, int]]:
        try:
            with open_file(shard.index) as lines:
                before = -1
                for line in self._proven(lines, index_path(shard.path)):
                    key, offset, length = IndexRow.from_json(line)
                    if not before < offset <= shard.bytes - length:
                        raise ValueError(f"{key!a}: offset {offset!a} is not after the previous record")
                    before = offset
                    yield key, offset
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"{shard.index}: not a readable index ({error}). Re-create the dataset.") from None

    def _proven(self, lines: IO[bytes], path: str) -> Iterator[bytes]:
        """Yields the lines of a part; raises after the last one if it is not the part in the manifest."""
        digest = new_checksum()
        for line in lines:
            digest.update(line)
            yield line
        if digest.hexdigest() != self.manifest.parts.get(path):
            raise ValueError("its BLAKE3 differs from the manifest's")


@dataclass(frozen=True)
class LocatedShard(ShardInfo):
    """A shard and its location.

    Attributes:
        file: the shard's file, absolute, or its URL.
    """

    file: str

    @property
    def index(self) -> str:
        """Path or URL of the shard's index: one JSON line of key, offset and length per record."""
        return self.file.removesuffix(self.path) + index_path(self.path)

    @property
    def index_file(self) -> Path:
        """The shard's index, of a dataset on this machine."""
        return Path(self.index)


@dataclass(frozen=True)
class FoundRecord:
    """A record.

    Attributes:
        key: its key.
        split: its split.
        shard: path of its shard, relative to the dataset.
        record: its number in the shard, from 0.
        payload: the serialized example.
    """

    key: str
    split: str
    shard: str
    record: int
    payload: bytes


def _read(shard: LocatedShard, number: int, row: IndexRow) -> FoundRecord:
    where = f"{shard.file}, record {number} at offset {row.offset} (key {row.key!a})"
    try:
        framed = read_bytes(part_path(shard.file, row.offset, row.offset + row.length))
        return FoundRecord(row.key, shard.split, shard.path, number, unframe(framed, where))
    except RecordError as error:
        raise DatasetError(f"{error}. Run `shardwright verify` for a list of all damage.") from None
    except OSError as error:
        raise DatasetError(f"{where}: cannot be read ({error}). Re-create the dataset.") from None


def iter_records(file: str, checksum: str | None) -> Iterator[tuple[int, bytes]]:
    """Yields the offset and serialized example of every record of a shard's file.

    Args:
        file: the file, or its URL.
        checksum: the manifest's; `None` to check single records only.

    Raises:
        DatasetError: it is damaged or missing, or, after the last record, not that of the manifest.
    """
    try:
        yield from read_records(file, checksum=checksum)
    except FileNotFoundError:
        raise _missing(file) from None
    except RecordError as error:
        raise DatasetError(f"{error}. Run `shardwright verify` for a list of all damage.") from None


def _missing(file: str) -> DatasetError:
    return DatasetError(f"{file}: named by the manifest, but missing. Re-create the dataset.")


def dataset_inside(root: str) -> str:
    """Returns what to do with a folder without a manifest.

    That is to give the one folder in it that has one, such as the `transformed_examples` of a transform, or the newest
    of several that TFX has numbered.
    """
    names: list[str] = []
    if not is_remote(root):
        with suppress(OSError):  # It has just been deleted.
            names = [name for name in os.listdir(root) if os.path.isfile(os.path.join(root, name, MANIFEST_FILE))]
    numbered = [name for name in names if name.isascii() and name.isdigit()]
    newest = max(numbered, key=int) if numbered else names[0] if len(names) == 1 else ""
    return f"Did you mean {os.path.join(root, newest)}?" if newest else "Give a folder that `shardwright ingest` wrote."


def links(root: str, manifest: Manifest) -> Iterator[str]:
    """Yields the files and folders of a dataset on this machine that are links, which may lead anywhere."""
    files = [*(shard.path for shard in manifest.shards), *manifest.parts]
    folders = {str(folder) for path in files for folder in PurePosixPath(path).parents}
    for path in (*sorted(folders - {"."}), *files):
        if os.path.islink(os.path.join(root, path)):
            yield path


def contents_of(dataset: ImageDataset) -> npt.NDArray[np.uint64]:
    """Returns 64 bits of the content ID of each image, uint64 (n,), in the order of the splits and their records.

    They are 0 where none is stored.

    Raises:
        DatasetError: see `ImageDataset.facts`.
    """
    found = map_threads(dataset.facts, dataset.all_shards(), readers(dataset.root))
    return np.concatenate([np.empty(0, np.uint64), *(facts.content for facts in found)])
