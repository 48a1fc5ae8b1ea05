"""`images`: what is checked of images and done to them.

`duplicates`: images that are the same, and what becomes of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from shardwright.config.parsing import at_least, between, one_of
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
    cannot be decoded is rejected, and adds the features `image/hash/*` and `image/quality/*` (`shardwright.ingest.probe`).
    A file of more than `max_bytes` is rejected unread, one of more than `max_pixels` is rejected by its header.

    `orientation: apply` turns images that Exif says are to be turned and encodes these anew. `resize` brings the pixels
    (after that turn) to `size`: [height, width], for `longest_side` one number. `reencode` stores all images as `jpeg`,
    `png`, `tensor` or `raw`; `quality`, `optimize` and `chroma` (444, 422, 420) hold for whatever is encoded anew, and
    without `reencode` an image keeps its format then. `convert: png` or `jpeg` takes files of other formats and stores
    them so. `strip_metadata` leaves out what is `private` or `all` that is not pixels, losslessly. See
    `shardwright.images.decode`, `shardwright.dataset.image_encoding` and `shardwright.images.metadata`.
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


KEEP, FIRST, FAIL = "keep", "first", "fail"
REPORT, REJECT = "report", "reject"
HASHES = ("average", "perceptual", "difference", "wavelet")
_ACTIONS = (KEEP, FIRST, FAIL)
# Beyond that, pictures that show other things are as near.
_FARTHEST = 16


@dataclass(frozen=True)
class DuplicatesConfig:
    """Images that are the same, and what becomes of them.

    `exact`: files of the same bytes. `pixels`: files that display the same pixels, whatever their format. `near`: the
    most bits in which the `near_hash` of two images may differ; those of a third hash, `confirm`, too, if one is named,
    which may differ in `confirm_distance` bits (by default as many). Each is followed by what is done: `keep` all, keep
    the `first` by key, or `fail`; for near ones, `near_action` says it. What is kept lies on one side of the split.

    `conflicts`: where labels of images that are the same disagree: `report` it, `reject` all of them, or `fail`.
    """

    PATH: ClassVar[str] = "duplicates"

    exact: str = KEEP
    pixels: str | None = None
    near: int | None = None
    near_action: str = KEEP
    near_hash: str = "perceptual"
    confirm: str | None = None
    confirm_distance: int | None = None
    conflicts: str = REPORT

    def __post_init__(self) -> None:
        one_of("duplicates.exact", self.exact, _ACTIONS)
        if self.pixels is not None:
            one_of("duplicates.pixels", self.pixels, _ACTIONS)
        one_of("duplicates.near_action", self.near_action, _ACTIONS)
        one_of("duplicates.near_hash", self.near_hash, HASHES)
        one_of("duplicates.conflicts", self.conflicts, (REPORT, REJECT, FAIL))
        if self.near is None:
            self._refuse_without("near", "near_action", "near_hash", "confirm")
        else:
            between("duplicates.near", self.near, 0, _FARTHEST)
        if self.confirm is None:
            self._refuse_without("confirm", "confirm_distance")
        else:
            one_of("duplicates.confirm", self.confirm, tuple(name for name in HASHES if name != self.near_hash))
        if self.confirm_distance is not None:
            between("duplicates.confirm_distance", self.confirm_distance, 0, _FARTHEST)
        self._refuse_keeping_less()

    @property
    def looks_at_pixels(self) -> bool:
        """Whether the bytes alone do not tell."""
        return self.pixels is not None or self.near is not None

    def _refuse_without(self, needed: str, *options: str) -> None:
        for option in options:
            value = getattr(self, option)
            if value != getattr(DuplicatesConfig, option):
                raise ConfigError(
                    f"duplicates.{option}", f"{value!r} without duplicates.{needed}", f"Set {needed} too, or remove it."
                )

    def _refuse_keeping_less(self) -> None:
        """Files of the same bytes are the same by any measure: whoever drops the wider kind drops the narrower."""
        kinds = [("exact", self.exact), ("pixels", self.pixels)]
        if self.near is not None:
            kinds.append(("near_action", self.near_action))
        given = [(name, action) for name, action in kinds if action is not None]
        for (narrow, kept), (wide, action) in pairwise(given):
            if kept == KEEP and action != KEEP:
                raise ConfigError(
                    f"duplicates.{wide}",
                    f"{action!r}, but {narrow} is 'keep', and whatever that finds is a duplicate of this kind too",
                    f"Set {narrow}: {action} too.",
                )
