"""`images`: checks and changes of each image. `duplicates`: the treatment of images that are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar

from shardwright.checksum import ALGORITHMS, BLAKE3
from shardwright.config.parsing import at_least, between, one_of
from shardwright.errors import ConfigError

HEADER, FULL = "header", "full"
KEEP = "keep"
# Largest side that an image may be resized to; as `transform.size`.
_LARGEST_SIDE = 16384
# No record can be larger: protocol buffers end at 2 GiB.
_MOST_BYTES = 2**31 - 1


@dataclass(frozen=True)
class ImagesConfig:
    """Checks and changes of each image. By default images are not changed: stored bytes are the file's own.

    Attributes:
        verify: `header` checks the header of a file. `full` also decodes it, rejects files that cannot be
            decoded, and adds the features `image/hash/*` and `image/quality/*`.
        max_pixels: A file of more pixels is rejected by its header; `200MP` is a number, too.
        max_bytes: A file of more bytes is rejected unread; `1GB` is a number, too.
        orientation: `apply` turns images as their Exif orientation states, and encodes these again.
        resize: How pixels are brought to `size`, after that turn.
        size: `[height, width]`; one number for `longest_side`.
        encoding: Encoding of all stored images; `keep` leaves those as they are that need no other change.
        quality: JPEG quality of images that are encoded again.
        optimize: Makes JPEG and PNG files smaller, which takes longer to encode.
        chroma: Chroma samples of JPEG files that are encoded again.
        unsupported_formats: Treatment of other formats than JPEG and PNG: `reject`, or store them as `png` or `jpeg`.
        strip_metadata: Losslessly removes `private` or `all` metadata.
        checksum: Algorithm of content IDs and of the feature with the checksum of each file, `image/blake3` or
            `image/sha256`.
    """

    PATH: ClassVar[str] = "images"

    verify: str = HEADER
    max_pixels: int = 200_000_000
    max_bytes: int = 1 << 30
    orientation: str = KEEP
    resize: str = KEEP
    size: tuple[int, int] | int | None = None
    encoding: str = KEEP
    quality: int = 90
    optimize: bool = False
    chroma: int = 420
    unsupported_formats: str = "reject"
    strip_metadata: str = "none"
    checksum: str = BLAKE3

    def __post_init__(self) -> None:
        one_of("images.verify", self.verify, (HEADER, FULL))
        at_least("images.max_pixels", self.max_pixels, 1)
        between("images.max_bytes", self.max_bytes, 1, _MOST_BYTES)
        one_of("images.orientation", self.orientation, ("keep", "apply"))
        one_of("images.encoding", self.encoding, (KEEP, "jpeg", "png", "tensor", "raw"))
        between("images.quality", self.quality, 1, 100)
        if self.chroma not in (444, 422, 420):
            raise ConfigError("images.chroma", f"{self.chroma!r} is not known", "Use 444, 422 or 420.")
        one_of("images.unsupported_formats", self.unsupported_formats, ("reject", "png", "jpeg"))
        one_of("images.strip_metadata", self.strip_metadata, ("none", "private", "all"))
        one_of("images.checksum", self.checksum, ALGORITHMS)
        self._check_resize()

    def _check_resize(self) -> None:
        one_of("images.resize", self.resize, (KEEP, "stretch", "fill_crop", "letterbox", "longest_side"))
        if self.resize == KEEP:
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
        given = (self.orientation, self.resize, self.encoding, self.unsupported_formats)
        return given != (KEEP, KEEP, KEEP, "reject")

    @property
    def stored_bytes(self) -> int | None:
        """Bytes of every stored image, where that is known beforehand; shards are planned with it."""
        if self.encoding not in ("tensor", "raw") or not isinstance(self.size, tuple):
            return None
        height, width = self.size
        return height * width * 3


def images_config(options: Mapping[str, Any]) -> ImagesConfig:
    """Returns the section for plain values from a manifest or a model; missing options have their defaults.

    Raises:
        ConfigError: an option is unknown, or a value is not allowed.
    """
    for name in sorted(options.keys() - {field.name for field in fields(ImagesConfig)}):
        raise ConfigError(f"images.{name}", "this version has no such option", "Use a newer shardwright.")
    size = options.get("size")
    return ImagesConfig(**{**options, "size": tuple(size) if isinstance(size, list) else size})


FIRST, FAIL = "first", "fail"
REPORT, REJECT = "report", "reject"
HASHES = ("average", "perceptual", "difference", "wavelet")
_ACTIONS = (KEEP, FIRST, FAIL)
# Beyond that, pictures of different things are as close.
_FARTHEST = 16


@dataclass(frozen=True)
class NearConfig:
    """The images that count as near duplicates, and what becomes of them.

    Attributes:
        max_distance: Number of bits in which the hashes of two images may differ.
        action: `keep` all, keep the `first` by key, or `fail`.
        hash: Hash that is compared.
        confirm_hash: Second hash that must be similar, too.
        confirm_distance: Number of bits in which the second hashes may differ; by default as `max_distance`.
    """

    PATH: ClassVar[str] = "duplicates.near"

    max_distance: int
    action: str = KEEP
    hash: str = "perceptual"
    confirm_hash: str | None = None
    confirm_distance: int | None = None

    def __post_init__(self) -> None:
        between("duplicates.near.max_distance", self.max_distance, 0, _FARTHEST)
        one_of("duplicates.near.action", self.action, _ACTIONS)
        one_of("duplicates.near.hash", self.hash, HASHES)
        if self.confirm_hash is not None:
            others = tuple(name for name in HASHES if name != self.hash)
            one_of("duplicates.near.confirm_hash", self.confirm_hash, others)
        if self.confirm_distance is None:
            return
        between("duplicates.near.confirm_distance", self.confirm_distance, 0, _FARTHEST)
        if self.confirm_hash is None:
            raise ConfigError(
                "duplicates.near.confirm_distance",
                f"{self.confirm_distance!r} without duplicates.near.confirm_hash",
                "Set duplicates.near.confirm_hash too, or remove duplicates.near.confirm_distance.",
            )


@dataclass(frozen=True)
class DuplicatesConfig:
    """The treatment of images that are the same. Kept duplicates are all in the same split.

    Attributes:
        exact: Files of the same bytes: `keep` all, keep the `first` by key, or `fail`.
        pixels: Files of any format that display the same pixels: `keep`, `first` or `fail`. Needs `images.verify:
            full`.
        near: Images that look alike. Needs `images.verify: full`.
        conflicts: Treatment of duplicates whose labels differ: `report` it, `reject` all of them, or `fail`.
    """

    PATH: ClassVar[str] = "duplicates"

    exact: str = KEEP
    pixels: str | None = None
    near: NearConfig | None = None
    conflicts: str = REPORT

    def __post_init__(self) -> None:
        one_of("duplicates.exact", self.exact, _ACTIONS)
        if self.pixels is not None:
            one_of("duplicates.pixels", self.pixels, _ACTIONS)
        one_of("duplicates.conflicts", self.conflicts, (REPORT, REJECT, FAIL))
        self._check_actions()

    @property
    def looks_at_pixels(self) -> bool:
        """True if pixels must be compared, not only bytes."""
        return self.pixels is not None or self.near is not None

    def _check_actions(self) -> None:
        """Refuses to keep a kind of duplicates that is part of a kind to remove: equal bytes are equal pixels."""
        kinds = [("exact", self.exact), ("pixels", self.pixels)]
        if self.near is not None:
            kinds.append(("near.action", self.near.action))
        given = [(name, action) for name, action in kinds if action is not None]
        for (narrow, kept), (wide, action) in pairwise(given):
            if kept == KEEP and action != KEEP:
                raise ConfigError(
                    f"duplicates.{wide}",
                    f"{action!r}, but duplicates.{narrow} is 'keep', and all its duplicates are of this kind too",
                    f"Set duplicates.{narrow}: {action} too.",
                )
