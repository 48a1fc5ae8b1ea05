"""`transform`: the pixels that are trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.checks import between, one_of

RESIZE_POLICIES = ("stretch", "fill_crop", "letterbox")
ENCODINGS = ("jpeg", "png")


@dataclass(frozen=True)
class TransformConfig:
    """The pixels that are trained on. `size` is [height, width]."""

    PATH: ClassVar[str] = "transform"

    size: tuple[int, int] = (352, 544)
    resize: str = "stretch"
    encoding: str = "jpeg"
    quality: int = 90

    def __post_init__(self) -> None:
        for side in self.size:
            between("transform.size", side, 8, 16384)
        one_of("transform.resize", self.resize, RESIZE_POLICIES)
        one_of("transform.encoding", self.encoding, ENCODINGS)
        between("transform.quality", self.quality, 1, 100)
