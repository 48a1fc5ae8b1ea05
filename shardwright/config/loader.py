"""`loader`: how examples become batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.checks import at_least, one_of

NORMALIZATIONS = ("unit", "imagenet_torch", "imagenet_caffe", "dataset", "none")
AUGMENTATIONS = ("flip_left_right", "flip_up_down", "rotate90", "brightness")


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
        for name in self.augment:
            one_of("loader.augment", name, AUGMENTATIONS)
        one_of("loader.order", self.order, ("fast", "exact"))
        at_least("loader.shuffle_buffer", self.shuffle_buffer, 1)
