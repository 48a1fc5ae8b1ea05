"""Estimates the disk space of a run before it starts, from the sizes of files and the options."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from shardwright.components.image_transform.encoding import choose_encoding
from shardwright.config import ImagesConfig
from shardwright.config.config import WARN
from shardwright.config.images import KEEP
from shardwright.config.transform import AUTO, TransformConfig
from shardwright.errors import StorageError
from shardwright.storage import is_remote

# Bytes per pixel of photographs, rounded up: JPEG of quality 90 takes 0.2 to 0.45, PNG 1.5 to 2.
_JPEG = 0.5
_BYTES_A_PIXEL = {"png": 2.0, "tensor": 3.0, "raw": 3.0}
# If sizes are unknown: factors for the bytes of JPEG files, whose pixels take a few bits.
_TIMES = {KEEP: 1.0, "jpeg": 1.25, "png": 6.0, "tensor": 10.0, "raw": 10.0}
# A record's other features and its lines of the index and of the ledger.
_OVERHEAD = 2_000
# Checkpoints, copies of the model, statistics, the report, logs.
_REST = 200_000_000


@dataclass(frozen=True)
class Space:
    """Bytes that a run takes.

    Attributes:
        dataset: the dataset.
        transformed: the transformed dataset.
        rest: all else.
    """

    dataset: int
    transformed: int
    rest: int = _REST

    @property
    def total(self) -> int:
        """All of it."""
        return self.dataset + self.transformed + self.rest


def estimate_space(
    images: int, size: int, stored: ImagesConfig, trained: TransformConfig, *, jpeg: float = _JPEG
) -> Space:
    """Estimates the disk space of a run.

    Args:
        images: how many there are.
        size: bytes of their files.
        stored: `images`.
        trained: `transform`.
        jpeg: bytes of a JPEG for each of its pixels; rounded up by default, so that the space is enough.
    """
    fixed = stored.size if isinstance(stored.size, tuple) else None
    encoding = stored.encoding if fixed is None or stored.encoding != KEEP else "jpeg"
    rates = {**_BYTES_A_PIXEL, "jpeg": jpeg}
    dataset = _estimate(images, size, fixed, encoding, rates)
    encoding = choose_encoding(trained, images)[0] if trained.encoding == AUTO else trained.encoding
    transformed = _estimate(images, size, trained.size, encoding, rates)
    return Space(dataset, transformed)


def _estimate(images: int, size: int, shape: tuple[int, int] | None, encoding: str, rates: Mapping[str, float]) -> int:
    pixels = size * _TIMES[encoding] if shape is None else images * shape[0] * shape[1] * rates[encoding]
    return round(pixels) + images * _OVERHEAD


def check_disk_space(place: str, needed: int, what: str, *, only_warn: bool = False) -> str:
    """Checks that there is enough disk space.

    Args:
        place: folder on this machine, which need not exist yet; on a bucket there is always enough.
        needed: bytes, estimated.
        what: what needs them, for messages.
        only_warn: return a warning instead of an error (`run.space`).

    Returns:
        A line to show; empty for a bucket.

    Raises:
        StorageError: the disk has less, and `only_warn` is not set.
    """
    if is_remote(place):
        return ""
    free = shutil.disk_usage(_nearest_existing(place)).free
    estimate = f"{what} takes about {_format_bytes(needed)} in {place}, where {_format_bytes(free)} are free"
    if free >= needed:
        return estimate
    if only_warn:
        return f"{estimate}: too little by this estimate; the run starts all the same (run.space: {WARN})"
    raise StorageError(
        f"{estimate}. Free some space (`shardwright clean` removes old runs), or set run.root or run.staging to "
        f"another disk. If the estimate, from the images' number and sizes, is wrong, set run.space: {WARN}."
    )


def same_disk(one: str, other: str) -> bool:
    """Returns whether two folders, which need not exist yet, are on one disk."""
    return os.stat(_nearest_existing(one)).st_dev == os.stat(_nearest_existing(other)).st_dev


def _nearest_existing(folder: str) -> str:
    """Returns the folder, or the nearest one above it that exists."""
    folder = os.path.abspath(folder)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _format_bytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 10**9 else f"{size / 1e6:,.0f} MB"
