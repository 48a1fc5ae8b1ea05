"""`images`: what is checked of images and done to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from shardwright.config.checks import at_least, between, one_of
from shardwright.errors import ConfigError

HEADER, FULL = "header", "full"
# Largest side that an image may be resized to; as `transform.size`.
_LARGEST_SIDE = 16384
# No record can be larger: protocol buffers end at 2 GiB.
_MOST_BYTES = 2**31 - 1


@dataclass(frozen=True)
class ImagesConfig:
    """What is checked of each image, and what is done to it. By default nothing: stored bytes are the file's own.

    `verify: header` checks what a file says of itself; `full` decodes it before anything is planned, so that what
    cannot be decoded is rejected, and adds the features `image/hash/*` and `image/quality/*` (`shardwright.probe`).
    A file of more than `max_bytes` is rejected unread, one of more than `max_pixels` is rejected by its header.

    `orientation: apply` turns images that Exif says are to be turned and encodes these anew. `resize` brings the pixels
    (after that turn) to `size`: [height, width], for `longest_side` one number. `reencode` stores all images as `jpeg`,
    `png`, `tensor` or `raw`; `quality`, `optimize` and `chroma` (444, 422, 420) hold for whatever is encoded anew, and
    without `reencode` an image keeps its format then. `convert: png` or `jpeg` takes files of other formats and stores
    them so. `strip_metadata` leaves out what is `private` or `all` that is not pixels, losslessly. See
    `shardwright.image_files.conversion`, `shardwright.image_files.encoding` and `shardwright.image_files.metadata`.
    """

    PATH: ClassVar[str] = "images"

    verify: str = HEADER
    max_pixels: int = 200_000_000
    max_bytes: int = 1 << 30
    orientation: str = "keep"
    resize: str = "none"
    size: tuple[int, int] | int | None = None
    reencode: str = "none"
    quality: int = 90
    optimize: bool = False
    chroma: int = 420
    convert: str = "reject"
    strip_metadata: str = "none"

    def __post_init__(self) -> None:
        one_of("images.verify", self.verify, (HEADER, FULL))
        at_least("images.max_pixels", self.max_pixels, 1)
        between("images.max_bytes", self.max_bytes, 1, _MOST_BYTES)
        one_of("images.orientation", self.orientation, ("keep", "apply"))
        one_of("images.reencode", self.reencode, ("none", "jpeg", "png", "tensor", "raw"))
        between("images.quality", self.quality, 1, 100)
        if self.chroma not in (444, 422, 420):
            raise ConfigError("images.chroma", f"{self.chroma!r} is not known", "Use 444, 422 or 420.")
        one_of("images.convert", self.convert, ("reject", "png", "jpeg"))
        one_of("images.strip_metadata", self.strip_metadata, ("none", "private", "all"))
        self._check_resize()

    def _check_resize(self) -> None:
        one_of("images.resize", self.resize, ("none", "stretch", "fill_crop", "letterbox", "longest_side"))
        if self.resize == "none":
            if self.size is not None:
                raise ConfigError("images.size", f"{self.size!r} is of no use without images.resize", "Set that too.")
            return
        one_number = self.resize == "longest_side"
        if self.size is None or isinstance(self.size, int) != one_number:
            wanted = "one number, e.g. 512" if one_number else "[height, width], e.g. [512, 512]"
            raise ConfigError("images.size", f"{self.size!r} is no size for {self.resize}", f"Give {wanted}.")
        for side in (self.size,) if isinstance(self.size, int) else self.size:
            between("images.size", side, 1, _LARGEST_SIDE)

    @property
    def may_encode(self) -> bool:
        """Whether an image may be stored as other pixels or another file than it came as."""
        given = (self.orientation, self.resize, self.reencode, self.convert)
        return given != ("keep", "none", "none", "reject")

    @property
    def stored_bytes(self) -> int | None:
        """Bytes of every stored image, where that is known beforehand; shards are planned with it."""
        if self.reencode not in ("tensor", "raw") or not isinstance(self.size, tuple):
            return None
        height, width = self.size
        return height * width * 3


def images_config(options: Mapping[str, Any]) -> ImagesConfig:
    """The options that a manifest or a model tells as plain values; others have their defaults."""
    size = options.get("size")
    return ImagesConfig(**{**options, "size": tuple(size) if isinstance(size, list) else size})
