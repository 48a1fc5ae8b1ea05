"""File names of shards by a pattern, as `data-{index:05d}-of-{of:05d}.tfrecord` or `train{index:02d}-{count}.tfrec`.

A pattern names a shard by its split, its number (`index`, from 0), the number of shards (`of`) and the number of its
records (`count`). Only a finished shard has its last name, since rejected images are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from shardwright.config.shards import DEFAULT_TEMPLATE, check_pattern

LEDGER_FOLDER, FACTS_FOLDER = "ledger/", "facts/"


@dataclass(frozen=True)
class ShardNames:
    """Names shards.

    Args:
        pattern: text with `{split}`, `{index}`, `{of}` and `{count}`, the numbers perhaps with a width (`{index:05d}`),
            and an extension.

    Raises:
        PatternError: two shards could get one name, or it is not a plain file name, or it ends with .gz: readers would
            take the file for compressed.
    """

    pattern: str = DEFAULT_TEMPLATE

    def __post_init__(self) -> None:
        check_pattern(self.pattern)

    def name(self, split: str, index: int, of: int, count: int) -> str:
        """Returns the file name of a shard.

        Args:
            split: its split.
            index: its number, from 0.
            of: number of shards in the split.
            count: records in it.
        """
        return self.pattern.format(split=split, index=index, of=of, count=count)


def shard_name(index: int, count: int) -> str:
    """Returns `data-00000-of-00004`, without a suffix."""
    return f"data-{index:05d}-of-{count:05d}"


def shard_path(split: str, index: int, count: int) -> str:
    """Returns the path of a shard in the staging folder, and in a dataset whose shards have the default names."""
    return f"Split-{split}/{shard_name(index, count)}.tfrecord"


def index_path(shard: str) -> str:
    """Returns the path of the index of a shard, whose own path is given; both relative to the dataset's folder."""
    return f"index/{PurePosixPath(shard).with_suffix('.jsonl')}"


def facts_path(shard: str) -> str:
    """Returns the path of the facts of a shard, likewise."""
    return f"{FACTS_FOLDER}{PurePosixPath(shard).with_suffix('.json')}"


def ledger_path(index: int, count: int) -> str:
    """Returns the path of a part of the ledger, relative to the dataset's folder."""
    return f"{LEDGER_FOLDER}part-{index:05d}-of-{count:05d}.jsonl"
