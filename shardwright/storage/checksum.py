"""Checksums of contents: the only module that knows algorithms.

Everything of ours has BLAKE3-256: shards, indexes, ledgers, fingerprints, caches, models. `images.checksum: sha256`
selects SHA-256 for the content IDs of images, so that they can be compared with an existing inventory. On processors
without instructions for SHA, BLAKE3 is ten times as fast.

MD5 and CRC-32C stay where the protocol of another party demands them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from blake3 import blake3

if TYPE_CHECKING:
    from typing_extensions import Buffer

BLAKE3, SHA256 = "blake3", "sha256"
# Names of algorithms for content IDs; the default comes first.
ALGORITHMS = (BLAKE3, SHA256)
# Every algorithm returns as many bytes.
DIGEST_BYTES = 32
_CHUNK = 1 << 20


class Checksum(Protocol):
    """A checksum that grows with the bytes that it gets."""

    def update(self, data: Buffer, /) -> object:
        """Adds bytes."""

    def digest(self) -> bytes:
        """Returns the checksum of the bytes so far."""

    def hexdigest(self) -> str:
        """Returns it as hex digits."""


def new_checksum(algorithm: str = BLAKE3) -> Checksum:
    """Returns the checksum of no bytes."""
    return blake3() if algorithm == BLAKE3 else hashlib.sha256()


def digest_of(data: Buffer, algorithm: str = BLAKE3) -> bytes:
    """Returns the checksum of bytes."""
    return (blake3(data) if algorithm == BLAKE3 else hashlib.sha256(data)).digest()


def checksum_of(data: Buffer, algorithm: str = BLAKE3) -> str:
    """Returns the checksum of bytes, as 64 hex digits."""
    return digest_of(data, algorithm).hex()


def checksum_file(path: str | os.PathLike[str]) -> str:
    """Returns the checksum of a file's bytes, as 64 hex digits, read in pieces of 1 MiB; a pipe counts as empty."""
    checksum = new_checksum()
    # To open a pipe without O_NONBLOCK is to wait for somebody who writes into it.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
        while chunk := file.read(_CHUNK):
            checksum.update(chunk)
    return checksum.hexdigest()


def md5_of(data: Buffer) -> str:
    """Returns the MD5 of bytes, as 32 hex digits: the checksum that object stores list."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def image_feature(algorithm: str) -> str:
    """Returns the name of the feature with the checksum of an image's original file."""
    return f"image/{algorithm}"


def stored_algorithm(features: Iterable[str], names: Mapping[str, str]) -> str:
    """Returns the algorithm of the image checksums that examples contain; the default one if they contain none.

    Args:
        features: the stored names of the features.
        names: our name of a feature -> its stored name, where they differ.
    """
    there = set(features)
    stored = {algorithm: names.get(image_feature(algorithm), image_feature(algorithm)) for algorithm in ALGORITHMS}
    return next((algorithm for algorithm, name in stored.items() if name in there), BLAKE3)
