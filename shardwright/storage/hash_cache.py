"""Hashes of this machine's files that were read a moment ago, so that one run reads none of them twice.

A file is identified by device, inode and its state (`shardwright.storage.file_pins`). One that changed too recently
is not cached. The cache is in this process, and an entry is used once. Writers compare the bytes that they read with
the checksum anyway, so wrong times of a file system end a run and never reach a dataset.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from shardwright.storage.checksum import DIGEST_BYTES
from shardwright.storage.file_pins import is_settled, short_digest, state_text


class FileHash(NamedTuple):
    """Hashes of a file's bytes: `content_id` identifies them, `crc32c` is quick to compare."""

    content_id: bytes
    crc32c: int


class _Remembered:
    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._hashes: dict[bytes, bytes] = {}

    def take(self, known_by: os.stat_result, algorithm: str) -> FileHash | None:
        packed = self._hashes.pop(_key(known_by, algorithm), None)
        if packed is None:
            return None
        return FileHash(packed[:DIGEST_BYTES], int.from_bytes(packed[DIGEST_BYTES:], "big"))

    def keep(self, before: os.stat_result, after: os.stat_result, file: FileHash, algorithm: str) -> None:
        key = _key(before, algorithm)
        if key == _key(after, algorithm) and is_settled(before, self._clock()):
            self._hashes[key] = file.content_id + file.crc32c.to_bytes(4, "big")


_active: _Remembered | None = None


@contextmanager
def cached_hashes(clock: Callable[[], int] = time.time_ns) -> Iterator[None]:
    """Caches hashes within the block: hashing a file of this machine a second time does not read it again.

    An entry takes some 200 bytes, until the file is hashed for the second time.

    Args:
        clock: nanoseconds since the epoch.
    """
    global _active
    before, _active = _active, _Remembered(clock)
    try:
        yield
    finally:
        _active = before


def hash_cached(descriptor: int, algorithm: str, read: Callable[[], FileHash]) -> FileHash:
    """Returns the hashes of an open file, cached or read.

    Args:
        descriptor: the file.
        algorithm: of the content ID.
        read: reads and hashes it.
    """
    remembered = _active
    if remembered is None:
        return read()
    before = os.fstat(descriptor)
    known = remembered.take(before, algorithm)
    if known is None:
        known = read()
        remembered.keep(before, os.fstat(descriptor), known, algorithm)
    return known


def _key(of: os.stat_result, algorithm: str) -> bytes:
    return short_digest(f"{algorithm} {of.st_dev} {of.st_ino} {state_text(of)}")
