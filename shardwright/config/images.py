"""`images`: what is checked of images and done to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.checks import at_least, one_of


@dataclass(frozen=True)
class ImagesConfig:
    """What is checked of each image. Stored bytes are the file's own (pass-through)."""

    PATH: ClassVar[str] = "images"

    verify: str = "header"
    max_pixels: int = 200_000_000

    def __post_init__(self) -> None:
        one_of("images.verify", self.verify, ("header",))
        at_least("images.max_pixels", self.max_pixels, 1)
