"""The record of a key, found by the index and read alone."""

from __future__ import annotations

from dataclasses import dataclass

from shardwright.dataset import Dataset, LocatedShard
from shardwright.errors import DatasetError, UsageError
from shardwright.fingerprint import canonical_json
from shardwright.manifest import IndexRow
from shardwright.storage import open_file, read_bytes
from shardwright.storage.parts import part_path
from shardwright.tfrecords.records import RecordError, unframe

_NEAR = 3


@dataclass(frozen=True)
class Fetched:
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


def fetch(directory: str, key: str) -> Fetched:
    """Reads the record of a key: the index of the shards, and then this record alone.

    Args:
        directory: folder or URL of a dataset.
        key: the key, whole.

    Raises:
        DatasetError: there is no whole dataset, or an index or the record is damaged.
        UsageError: there is no such key; the message names near ones, or says why it was not written.
    """
    dataset = Dataset.open(directory)
    near: list[str] = []
    # In the index a key stands as canonical JSON writes it, so most lines need no parsing.
    # Of a command line's bytes that are no UTF-8, half surrogates are made, which are in no index.
    text = canonical_json(key).encode("utf-8", "surrogatepass")
    wanted, part = b'"key":' + text, text[1:-1].lower()
    for split in dataset.splits:
        for shard in dataset.shards(split):
            try:
                with open_file(shard.index) as lines:
                    for number, line in enumerate(lines):
                        if wanted in line and (row := IndexRow.from_json(line)).key == key:
                            return _read(shard, number, row.offset, row.length, key)
                        if part and part in line.lower() and len(near) < _NEAR:
                            near.append(IndexRow.from_json(line).key)
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise DatasetError(f"{shard.index}: no readable index ({error}). Write the dataset anew.") from None
    raise UsageError(f"{dataset.root}: no record has the key {key!a}. {_why(dataset, key, near)}")


def _read(shard: LocatedShard, number: int, offset: int, length: int, key: str) -> Fetched:
    where = f"{shard.file}, record {number} at offset {offset} (key {key!a})"
    try:
        framed = read_bytes(part_path(shard.file, offset, offset + length))
        return Fetched(key, shard.split, shard.path, number, unframe(framed, where))
    except RecordError as error:
        raise DatasetError(f"{error}. `shardwright verify` names all that is damaged.") from None
    except OSError as error:
        raise DatasetError(f"{where}: cannot be read ({error}). Write the dataset anew.") from None


def _why(dataset: Dataset, key: str, near: list[str]) -> str:
    for row in dataset.ledger():
        if row.key == key:
            return f"It was not written: {row.status}, {row.code}: {row.reason}."
    if near:
        return f"There is {', '.join(map(ascii, near))}."
    return "A key is the image's path below the folder of images."
