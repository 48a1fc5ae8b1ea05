"""Hashes of the files of a listing: of a million of them, in forty megabytes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

_SHA256_BYTES = 32


class Contents:
    """SHA-256 and CRC-32C of every file of a listing, in its order; neither where a file cannot be read.

    The SHA-256 says what a file is. That it still is what it was, when it is read again to be written, the CRC-32C
    says at a tenth of the cost.
    """

    def __init__(self) -> None:
        self._sha256 = bytearray()
        self._crc32c = array("I")
        self._readable = bytearray()

    def __len__(self) -> int:
        return len(self._readable)

    def append(self, sha256: bytes | None, crc32c: int = 0) -> None:
        """Adds the next file; `None` when it cannot be read."""
        self._readable.append(sha256 is not None)
        self._sha256 += sha256 or bytes(_SHA256_BYTES)
        self._crc32c.append(crc32c)

    def sha256(self, position: int) -> bytes | None:
        """SHA-256 of a file, `None` when it cannot be read."""
        if not self._readable[position]:
            return None
        return bytes(self._sha256[position * _SHA256_BYTES : (position + 1) * _SHA256_BYTES])

    def crc32c(self, position: int) -> int:
        """CRC-32C of a file that can be read."""
        return self._crc32c[position]

    def digests(self) -> npt.NDArray[np.uint8]:
        """SHA-256 of all files, uint8 (n, 32); of those that cannot be read it says nothing."""
        return np.frombuffer(self._sha256, np.uint8).reshape(-1, _SHA256_BYTES)

    def unreadable(self) -> Iterator[int]:
        """Positions of the files that cannot be read."""
        return (position for position, readable in enumerate(self._readable) if not readable)
