"""How much disk a run takes, told before it starts: from the sizes of files and the options, no image is opened."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from shardwright.config import ImagesConfig
from shardwright.config.transform import TransformConfig
from shardwright.errors import StorageError
from shardwright.storage import is_remote

# Bytes a pixel of photographs, rather more than less: JPEG of quality 90 takes 0.2 to 0.45, PNG 1.5 to 2.
_BYTES_A_PIXEL = {"jpeg": 0.5, "png": 2.0, "tensor": 3.0, "raw": 3.0}
# The same where sizes are not known: times the bytes of JPEG files, whose pixels take a few bits.
_TIMES = {"none": 1.0, "jpeg": 1.25, "png": 6.0, "tensor": 10.0, "raw": 10.0}
# A record's other features and its line of the index and of the ledger.
_BESIDE = 2_000
# Checkpoints, copies of the model, statistics, the report, logs.
_REST = 200_000_000


@dataclass(frozen=True)
class Space:
    """Bytes that a run takes.

    Attributes:
        dataset: the dataset.
        transformed: what is trained on.
        rest: all else.
    """

    dataset: int
    transformed: int
    rest: int = _REST

    @property
    def total(self) -> int:
        """All of it."""
        return self.dataset + self.transformed + self.rest


def space_needed(images: int, size: int, stored: ImagesConfig, trained: TransformConfig) -> Space:
    """Estimates what a run takes.

    Args:
        images: how many there are.
        size: bytes of their files.
        stored: `images`.
        trained: `transform`.
    """
    fixed = stored.size if isinstance(stored.size, tuple) else None
    encoding = stored.reencode if fixed is None or stored.reencode != "none" else "jpeg"
    dataset = _estimate(images, size, fixed, encoding)
    transformed = _estimate(images, size, trained.size, trained.encoding)
    return Space(dataset, transformed)


def _estimate(images: int, size: int, shape: tuple[int, int] | None, encoding: str) -> int:
    pixels = size * _TIMES[encoding] if shape is None else images * shape[0] * shape[1] * _BYTES_A_PIXEL[encoding]
    return round(pixels) + images * _BESIDE


def check_disk_space(place: str, needed: int, what: str, *, only_tell: bool = False) -> str:
    """Looks whether there is room.

    Args:
        place: folder on this machine, which need not be there yet; on a bucket there is always room.
        needed: bytes, estimated.
        what: what takes them, for people.
        only_tell: whether a lack of room is only told (`run.space`).

    Returns:
        A line for people; empty for a bucket.

    Raises:
        StorageError: the disk has less, and that is not only to be told.
    """
    if is_remote(place):
        return ""
    free = shutil.disk_usage(_existing(place)).free
    told = f"{what} takes about {_shown(needed)} in {place}, where {_shown(free)} are free"
    if free >= needed:
        return told
    if only_tell:
        return f"{told}: too few by that estimate; it is tried, since run.space says so"
    raise StorageError(
        f"{told}. Make room (`shardwright clean` removes old runs), or set run.root or run.staging to another disk. It "
        "is an estimate by the images' number and sizes: where you know better, run.space: tell starts all the same."
    )


def same_disk(one: str, other: str) -> bool:
    """Whether two folders, which need not be there yet, are on one disk."""
    return os.stat(_existing(one)).st_dev == os.stat(_existing(other)).st_dev


def _existing(folder: str) -> str:
    """The folder, or the nearest above it that is there."""
    folder = os.path.abspath(folder)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _shown(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 10**9 else f"{size / 1e6:,.0f} MB"
