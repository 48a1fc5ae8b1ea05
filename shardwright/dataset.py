"""Reading a dataset: its manifest, its shards, its records by key, its ledger.

The reader trusts what the manifest says and checks only what is cheap: the digest, and that every shard is there in its
size. Hashes of whole shards are for `shardwright verify`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shardwright.errors import DatasetError
from shardwright.manifest import MANIFEST_FILE, LedgerRow, Manifest, ShardInfo, index_path
from shardwright.records import read_records

__all__ = ["Dataset", "LedgerRow", "LocatedShard", "Manifest", "ShardInfo"]


@dataclass(frozen=True)
class LocatedShard(ShardInfo):
    """A shard together with where it lies.

    Attributes:
        file: the shard's file, absolute.
    """

    file: str

    @property
    def index_file(self) -> Path:
        """The shard's index: one JSON line of key, offset and length per record."""
        root = Path(self.file).parents[1]
        return root / index_path(self.path)


@dataclass(frozen=True)
class Dataset:
    """A committed dataset on disk.

    Attributes:
        root: its folder, absolute.
        manifest: what it says about itself.
    """

    root: str
    manifest: Manifest

    @staticmethod
    def open(directory: str | os.PathLike[str]) -> Dataset:
        """Opens a dataset.

        Args:
            directory: the folder that holds `manifest.json`.

        Raises:
            DatasetError: no manifest, a damaged one, or a shard that is missing or has another size.
        """
        root = Path(directory).absolute()
        file = root / MANIFEST_FILE
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise DatasetError(
                f"{root}: no {MANIFEST_FILE}, so no finished dataset. Give a folder that `shardwright ingest` wrote."
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(f"{file}: cannot be read ({error}). Write the dataset anew.") from None
        dataset = Dataset(str(root), Manifest.from_json(text, str(file)))
        for split in dataset.splits:
            for shard in dataset.shards(split):
                _check_size(shard)
        return dataset

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, sorted."""
        return self.manifest.splits

    def shards(self, split: str) -> list[LocatedShard]:
        """The shards of a split, by number.

        Raises:
            DatasetError: there is no such split.
        """
        if split not in self.splits:
            raise DatasetError(f"{self.root}: no split {split!r}. It has: {', '.join(self.splits)}.")
        return [
            LocatedShard(**vars(shard), file=str(Path(self.root, shard.path)))
            for shard in self.manifest.shards
            if shard.split == split
        ]

    def num_records(self, split: str) -> int:
        """Number of records in a split."""
        return sum(shard.records for shard in self.shards(split))

    def records(self, split: str) -> Iterator[tuple[str, bytes]]:
        """Keys and serialized examples of a split, in the order they are stored; checksums are verified.

        Raises:
            DatasetError: a shard and its index tell different things.
            shardwright.records.RecordError: a shard is damaged.
        """
        for shard in self.shards(split):
            entries = self._index(shard)
            for offset, payload in read_records(shard.file):
                key, expected = next(entries, ("", -1))
                if offset != expected:
                    raise DatasetError(f"{shard.index_file}: does not fit {shard.file} at byte {offset}.")
                yield key, payload
            if next(entries, None) is not None:
                raise DatasetError(f"{shard.index_file}: names more records than {shard.file} holds.")

    def keys(self, split: str) -> list[str]:
        """Keys of a split in the order of its records: the key of the image that the loader calls `i` is `keys[i]`.

        Raises:
            DatasetError: there is no such split, or an index is missing or damaged.
        """
        return [key for shard in self.shards(split) for key, _ in self._index(shard)]

    def ledger(self) -> Iterator[LedgerRow]:
        """What became of every input, by key.

        Raises:
            DatasetError: a part of the ledger is missing or damaged.
        """
        for path in sorted(p for p in self.manifest.parts if p.startswith("ledger/")):
            file = Path(self.root, path)
            try:
                with file.open(encoding="utf-8") as lines:
                    for line in lines:
                        yield LedgerRow.from_json(line)
            except (OSError, ValueError, TypeError) as error:
                raise DatasetError(f"{file}: no readable ledger ({error}). Write the dataset anew.") from None

    def _index(self, shard: LocatedShard) -> Iterator[tuple[str, int]]:
        try:
            with shard.index_file.open(encoding="utf-8") as lines:
                for line in lines:
                    row = json.loads(line)
                    yield row["key"], row["offset"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"{shard.index_file}: no readable index ({error}). Write the dataset anew.") from None


def _check_size(shard: LocatedShard) -> None:
    try:
        size = os.stat(shard.file).st_size
    except OSError as error:
        raise DatasetError(
            f"{shard.file}: named by the manifest, but {error.strerror}. Write the dataset anew."
        ) from None
    if size != shard.bytes:
        raise DatasetError(f"{shard.file}: {size} bytes, the manifest says {shard.bytes}. Write the dataset anew.")
