"""`images`: checks and changes of each image. `duplicates`: the treatment of images that are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar

from shardwright.config.options import BYTES, PIXELS, Section, one_of, option
from shardwright.config.transform import CHROMAS, ENCODINGS
from shardwright.errors import ConfigError
from shardwright.storage.checksum import ALGORITHMS, BLAKE3

HEADER, FULL = "header", "full"
KEEP = "keep"
FIRST, FAIL = "first", "fail"
REPORT, REJECT = "report", "reject"
HASHES = ("average", "perceptual", "difference", "wavelet")
_ACTIONS = (KEEP, FIRST, FAIL)
# Beyond that, pictures of different things are as close.
_FARTHEST = 16
# Largest side that an image may be resized to; as `transform.size`.
_LARGEST_SIDE = 16384
# No record can be larger: protocol buffers end at 2 GiB.
_MOST_BYTES = 2**31 - 1


@dataclass(frozen=True)
class ImagesConfig(Section):
    """Checks and changes of each image. By default images are not changed: stored bytes are the file's own."""

    PATH: ClassVar[str] = "images"

    verify: str = option(
        HEADER,
        choices=(HEADER, FULL),
        help="`header` checks the header of a file. `full` also decodes it, rejects files that cannot be decoded, and "
        "adds the features `image/hash/*` and `image/quality/*`.",
    )
    max_pixels: int = option(
        200_000_000,
        least=1,
        form=PIXELS,
        help="Larger images are rejected before decoding.",
    )
    max_bytes: int = option(
        1 << 30,
        least=1,
        most=_MOST_BYTES,
        form=BYTES,
        help="Larger files are rejected unread.",
    )
    orientation: str = option(
        KEEP,
        choices=(KEEP, "apply"),
        help="`apply` turns images as their Exif orientation states, and encodes these again.",
    )
    resize: str = option(
        KEEP,
        choices=(KEEP, "stretch", "fill_crop", "letterbox", "longest_side"),
        help="How pixels are brought to `size`, after that turn.",
    )
    size: tuple[int, int] | int | None = option(
        None, least=1, most=_LARGEST_SIDE, help="`[height, width]`; one number for `longest_side`."
    )
    encoding: str = option(
        KEEP,
        choices=(KEEP, *ENCODINGS),
        help="Encoding of all stored images; `keep` re-encodes only what another option changes.",
    )
    quality: int = option(90, least=1, most=100, help="JPEG quality of images that are encoded again.")
    optimize: bool = option(False, help="Makes JPEG and PNG files smaller, which takes longer to encode.")
    chroma: int = option(420, choices=CHROMAS, help="Chroma samples of JPEG files that are encoded again.")
    unsupported_formats: str = option(
        "reject",
        choices=("reject", "png", "jpeg"),
        help="Formats other than JPEG and PNG: `reject` them, or store them as `png` or `jpeg`.",
    )
    strip_metadata: str = option(
        "none", choices=("none", "private", "all"), help="Losslessly removes `private` or `all` metadata."
    )
    checksum: str = option(
        BLAKE3,
        choices=ALGORITHMS,
        help="Algorithm of content IDs and of the feature with the checksum of each file, `image/blake3` or "
        "`image/sha256`.",
    )

    def check(self, path: str) -> None:
        """Refuses a size without a way to bring images to it, and the reverse."""
        super().check(path)
        if self.resize == KEEP:
            if self.size is not None:
                raise self.error("size", f"{self.size!r} has no effect without images.resize", "Set images.resize too.")
            return
        one_number = self.resize == "longest_side"
        if self.size is None or isinstance(self.size, int) != one_number:
            wanted = "one number, e.g. 512" if one_number else "[height, width], e.g. [512, 512]"
            raise self.error("size", f"{self.size!r} is not a size for {self.resize}", f"Give {wanted}.")

    @property
    def may_encode(self) -> bool:
        """True if an image may be stored with other pixels or as another file than in the input."""
        chosen = (self.orientation, self.resize, self.encoding, self.unsupported_formats)
        return chosen != (KEEP, KEEP, KEEP, "reject")

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


@dataclass(frozen=True)
class NearConfig(Section):
    """The images that count as near duplicates, and what becomes of them."""

    PATH: ClassVar[str] = "duplicates.near"

    max_distance: int = option(least=0, most=_FARTHEST, help="How many bits the hashes of two images may differ in.")
    action: str = option(KEEP, choices=_ACTIONS, help="`keep` all, keep the `first` by key, or `fail`.")
    hash: str = option("perceptual", choices=HASHES, help="Hash that is compared.")
    confirm_hash: str | None = option(None, choices=HASHES, help="Second hash that must be similar, too.")
    confirm_distance: int | None = option(
        None,
        least=0,
        most=_FARTHEST,
        help="Number of bits in which the second hashes may differ; by default as `max_distance`.",
    )

    def check(self, path: str) -> None:
        """Refuses a second hash that is the first, and a distance of none."""
        super().check(path)
        if self.confirm_hash is not None:
            one_of(f"{path}.confirm_hash", self.confirm_hash, tuple(name for name in HASHES if name != self.hash))
        elif self.confirm_distance is not None:
            raise self.error(
                "confirm_distance",
                f"{self.confirm_distance!r} without {path}.confirm_hash",
                f"Set {path}.confirm_hash too, or remove {path}.confirm_distance.",
            )


@dataclass(frozen=True)
class DuplicatesConfig(Section):
    """The treatment of images that are the same. Kept duplicates are all in the same split."""

    PATH: ClassVar[str] = "duplicates"

    exact: str = option(
        KEEP, choices=_ACTIONS, help="Files of the same bytes: `keep` all, keep the `first` by key, or `fail`."
    )
    pixels: str | None = option(
        None,
        choices=_ACTIONS,
        help="Files of any format that display the same pixels: `keep`, `first` or `fail`. Needs `images.verify: "
        "full`.",
    )
    near: NearConfig | None = option(None, help="Images that look alike. Needs `images.verify: full`.")
    conflicts: str = option(
        REPORT,
        choices=(REPORT, REJECT, FAIL, KEEP),
        help="Duplicates with different labels: `report` them, unless more than a tenth of the images are copies by "
        "name and bytes; `keep` any number, `reject` all of them, or `fail`.",
    )

    @property
    def looks_at_pixels(self) -> bool:
        """True if pixels must be compared, not only bytes."""
        return self.pixels is not None or self.near is not None

    def check(self, path: str) -> None:
        """Refuses to keep a kind of duplicates that is part of a kind to remove: equal bytes are equal pixels."""
        super().check(path)
        kinds = [("exact", self.exact), ("pixels", self.pixels)]
        if self.near is not None:
            kinds.append(("near.action", self.near.action))
        chosen = [(name, action) for name, action in kinds if action is not None]
        for (narrow, kept), (wide, action) in pairwise(chosen):
            if kept == KEEP and action != KEEP:
                raise self.error(
                    wide,
                    f"{action!r}, but {path}.{narrow} is 'keep', and all its duplicates are of this kind too",
                    f"Set {path}.{narrow}: {action} too.",
                )
