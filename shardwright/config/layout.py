"""`split`, `shards`, `rejects`: what a dataset is cut into, and how much of the input it may lack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.checks import at_least, between, one_of
from shardwright.errors import ConfigError


@dataclass(frozen=True)
class SplitConfig:
    """Names and shares of the splits; by a salted hash of the key, so that growing data moves no old key."""

    PATH: ClassVar[str] = "split"

    shares: Mapping[str, float] = field(default_factory=lambda: {"train": 0.8, "eval": 0.1, "test": 0.1})
    by: str = "hash"
    salt: str = ""

    def __post_init__(self) -> None:
        one_of("split.by", self.by, ("hash",))
        if not self.shares:
            raise ConfigError("split", "no splits", "Write for example {train: 0.8, eval: 0.1, test: 0.1}.")
        for name, share in self.shares.items():
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise ConfigError(f"split.{name}", "not a split's name", "Use lower-case letters, digits and _.")
            if not 0 < share <= 1:
                raise ConfigError(f"split.{name}", f"{share!r} is no share", "Use a number above 0, at most 1.")
        total = sum(self.shares.values())
        if abs(total - 1) > 1e-6:
            raise ConfigError("split", f"the shares add up to {total:g}", "Make them add up to 1.")


@dataclass(frozen=True)
class ShardsConfig:
    """How many shards a split has: by bytes a shard, or a count, or records a shard (one of the three)."""

    PATH: ClassVar[str] = "shards"

    target_size: int | None = None
    count: int | None = None
    records: int | None = None

    def __post_init__(self) -> None:
        given = {k: v for k, v in vars(self).items() if v is not None}
        if len(given) > 1:
            raise ConfigError("shards", f"{' and '.join(given)} exclude each other", "Give one of them.")
        for name, value in given.items():
            at_least(f"shards.{name}", value, 1)
        if not given:
            object.__setattr__(self, "target_size", 150_000_000)


@dataclass(frozen=True)
class RejectsConfig:
    """How many inputs may be rejected before the run fails; 10 are always allowed."""

    PATH: ClassVar[str] = "rejects"

    max: float = 0.01

    def __post_init__(self) -> None:
        between("rejects.max", self.max, 0, 1)
