"""`shards`, `features`, `rejects`: what a dataset is cut into and consists of, and what it may lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.checks import at_least, between, one_of
from shardwright.errors import ConfigError
from shardwright.shard_names import DEFAULT_PATTERN, PatternError, ShardNames

TF_VISION, TFDS, KAGGLE_FLOWERS, RLE_TEXT = "tf_vision", "tfds", "kaggle_flowers", "rle_text"
# Each is a file, or more, even where there are fewer records.
_MOST_SHARDS = 1_000_000
PRESETS = (TF_VISION, TFDS, KAGGLE_FLOWERS, RLE_TEXT)


@dataclass(frozen=True)
class ShardsConfig:
    """How many shards a split has: by bytes a shard, or a count, or records a shard (one of the three).

    `hosts` asks for ten shards or more for each of so many machines, where the data is large enough. `balance: class`
    deals every class (of masks: every set of classes) equally to all shards. `pattern` names the files: `{split}`,
    `{index}` from 0, `{of}` shards, `{count}` records.
    """

    PATH: ClassVar[str] = "shards"

    target_size: int | None = None
    count: int | None = None
    records: int | None = None
    hosts: int | None = None
    balance: str = "none"
    pattern: str = DEFAULT_PATTERN

    def __post_init__(self) -> None:
        sizes = {"target_size": self.target_size, "count": self.count, "records": self.records}
        given = {name: value for name, value in sizes.items() if value is not None}
        if len(given) > 1:
            raise ConfigError("shards", f"{' and '.join(given)} exclude each other", "Give one of them.")
        for name, value in given.items():
            at_least(f"shards.{name}", value, 1)
        if self.count is not None:
            between("shards.count", self.count, 1, _MOST_SHARDS)
        if not given:
            object.__setattr__(self, "target_size", 150_000_000)
        if self.hosts is not None:
            at_least("shards.hosts", self.hosts, 1)
            if self.target_size is None:
                raise ConfigError("shards.hosts", f"{' '.join(given)} says how many shards there are", "Remove it.")
        one_of("shards.balance", self.balance, ("none", "class"))
        try:
            ShardNames(self.pattern)
        except PatternError as error:
            raise ConfigError(
                "shards.pattern", f"{self.pattern!r}: {error}", f"The default is {DEFAULT_PATTERN}."
            ) from None


@dataclass(frozen=True)
class FeaturesConfig:
    """Names and forms of the stored features: a preset, and our name -> another name for single ones."""

    PATH: ClassVar[str] = "features"

    preset: str = TF_VISION
    map: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("features.preset", self.preset, PRESETS)
        for ours, theirs in self.map.items():
            if not theirs or any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in theirs):
                raise ConfigError(f"features.map.{ours}", f"{theirs!r} is no name", "Write the name it shall have.")

    @property
    def ours(self) -> bool:
        """Whether features have our own names and forms, which the pipeline needs."""
        return self == FeaturesConfig()


@dataclass(frozen=True)
class RejectsConfig:
    """How many inputs may be rejected before the run fails; 10 are always allowed.

    Images that `input.unlisted: reject` leaves out are not counted: they were meant to be.
    """

    PATH: ClassVar[str] = "rejects"

    max: float = 0.01

    def __post_init__(self) -> None:
        between("rejects.max", self.max, 0, 1)
