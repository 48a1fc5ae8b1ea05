"""`images`: checks and changes of each image. `duplicates`: the treatment of images that are the same."""

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
    """Checks and changes of each image. By default images are not changed: stored bytes are the file's own.

    `verify: header` checks the header of a file; `full` also decodes it before anything is planned, rejects files that
    cannot be decoded, and adds the features `image/hash/*` and `image/quality/*` (`shardwright.ingest.probe`).
    A file of more than `max_bytes` is rejected unread, one of more than `max_pixels` is rejected by its header.

    `orientation: apply` turns images as their Exif orientation states, and re-encodes these. `resize` brings the pixels
    (after that turn) to `size`: [height, width], for `longest_side` one number. `reencode` stores all images as `jpeg`,
    `png`, `tensor` or `raw`; `quality`, `optimize` and `chroma` (444, 422, 420) apply to every image that is encoded
    again, and without `reencode` such an image keeps its format. `convert: png` or `jpeg` accepts files of other
    formats and stores them in this one. `strip_metadata` losslessly removes `private` or `all` metadata. See
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
                raise ConfigError(
                    "images.size", f"{self.size!r} has no effect without images.resize", "Set images.resize too."
                )
            return
        one_number = self.resize == "longest_side"
        if self.size is None or isinstance(self.size, int) != one_number:
            wanted = "one number, e.g. 512" if one_number else "[height, width], e.g. [512, 512]"
            raise ConfigError("images.size", f"{self.size!r} is not a size for {self.resize}", f"Give {wanted}.")
        for side in (self.size,) if isinstance(self.size, int) else self.size:
            between("images.size", side, 1, _LARGEST_SIDE)

    @property
    def may_encode(self) -> bool:
        """True if an image may be stored with other pixels or as another file than in the input."""
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
    """Returns the section for plain values from a manifest or a model; missing options have their defaults."""
    size = options.get("size")
    return ImagesConfig(**{**options, "size": tuple(size) if isinstance(size, list) else size})


KEEP, FIRST, FAIL = "keep", "first", "fail"
REPORT, REJECT = "report", "reject"
HASHES = ("average", "perceptual", "difference", "wavelet")
_ACTIONS = (KEEP, FIRST, FAIL)
# Beyond that, pictures of different things are as close.
_FARTHEST = 16


@dataclass(frozen=True)
class DuplicatesConfig:
    """The treatment of images that are the same.

    `exact`: files of the same bytes. `pixels`: files of any format that display the same pixels. `near`: the
    number of bits in which the `near_hash` of two images may differ. If `confirm` names a second hash, it must be
    similar too, within `confirm_distance` bits (by default as many). The action for each kind is `keep` all, keep the
    `first` by key, or `fail`; that for near duplicates is `near_action`. Kept duplicates are all in the same split.

    `conflicts`: the action if the labels of such images differ: `report` it, `reject` all of them, or `fail`.
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
            self._check_needs("near", "near_action", "near_hash", "confirm")
        else:
            between("duplicates.near", self.near, 0, _FARTHEST)
        if self.confirm is None:
            self._check_needs("confirm", "confirm_distance")
        else:
            one_of("duplicates.confirm", self.confirm, tuple(name for name in HASHES if name != self.near_hash))
        if self.confirm_distance is not None:
            between("duplicates.confirm_distance", self.confirm_distance, 0, _FARTHEST)
        self._check_actions()

    @property
    def looks_at_pixels(self) -> bool:
        """True if pixels must be compared, not only bytes."""
        return self.pixels is not None or self.near is not None

    def _check_needs(self, needed: str, *options: str) -> None:
        for option in options:
            value = getattr(self, option)
            if value != getattr(DuplicatesConfig, option):
                raise ConfigError(
                    f"duplicates.{option}",
                    f"{value!r} without duplicates.{needed}",
                    f"Set {needed} too, or remove duplicates.{option}.",
                )

    def _check_actions(self) -> None:
        """Refuses to keep a kind of duplicates that is part of a kind to remove: equal bytes are equal pixels."""
        kinds = [("exact", self.exact), ("pixels", self.pixels)]
        if self.near is not None:
            kinds.append(("near_action", self.near_action))
        given = [(name, action) for name, action in kinds if action is not None]
        for (narrow, kept), (wide, action) in pairwise(given):
            if kept == KEEP and action != KEEP:
                raise ConfigError(
                    f"duplicates.{wide}",
                    f"{action!r}, but duplicates.{narrow} is 'keep', and all its duplicates are of this kind too",
                    f"Set duplicates.{narrow}: {action} too.",
                )
