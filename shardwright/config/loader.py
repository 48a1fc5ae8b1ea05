"""`loader`: how examples become batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.checks import at_least, one_of
from shardwright.epochs.augmentations import read_augmentations
from shardwright.errors import ConfigError, UsageError

NORMALIZATIONS = ("unit", "imagenet_torch", "imagenet_caffe", "dataset", "none")
ORDERS = ("fast", "exact")


@dataclass(frozen=True)
class LoaderConfig:
    """How examples become batches."""

    PATH: ClassVar[str] = "loader"

    normalize: str = "imagenet_torch"
    augment: tuple[str, ...] = ()
    order: str = "fast"
    shuffle_buffer: int = 1024

    def __post_init__(self) -> None:
        one_of("loader.normalize", self.normalize, NORMALIZATIONS)
        try:
            read_augmentations(self.augment)
        except UsageError as error:
            problem, _, fix = str(error).removeprefix("augment ").partition("; ")
            raise ConfigError("loader.augment", problem, fix[:1].upper() + fix[1:]) from None
        one_of("loader.order", self.order, ORDERS)
        at_least("loader.shuffle_buffer", self.shuffle_buffer, 1)
