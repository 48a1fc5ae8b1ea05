"""States of this machine's files: size and the times of the last change, by which an unchanged file is recognized.

`mtime` can be set back by anyone, `ctime` by nobody. Device and inode are left out: mounted buckets change them. A file
that changed too recently has no state to rely on, since two changes within a tick of the clock leave the same times.

`cached_hashes` keeps the hashes of files that were read a moment ago, so that one run reads none of them twice. There a
file is identified by device, inode and its state. The cache is in this process, and an entry is used once. Writers
compare the bytes that they read with the checksum anyway, so wrong times of a file system end a run and never reach a
dataset.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from shardwright.errors import CheckFailed
from shardwright.storage.checksum import DIGEST_BYTES, digest_of
from shardwright.storage.limits import regular
from shardwright.storage.paths import display_path

# File systems and clocks of other machines (NFS) count in up to two seconds.
_SETTLED_NANOSECONDS = 2_000_000_000
KEY_BYTES = 16
# Start of a state. The version of an object that was unpacked to this machine has another one.
_STATE = "state:"
_SAMPLE = 4096
_active: _Remembered | None = None


def is_settled(file: os.stat_result, now: int) -> bool:
    """Returns whether a file's last change is so long ago that another one would change its times.

    Args:
        file: the file.
        now: nanoseconds since the epoch.
    """
    return now - max(file.st_mtime_ns, file.st_ctime_ns) > _SETTLED_NANOSECONDS


def state_text(file: os.stat_result) -> str:
    """Returns size and times of a file."""
    return f"{file.st_size} {file.st_mtime_ns} {file.st_ctime_ns}"


def short_digest(text: str) -> bytes:
    """Returns a digest of `KEY_BYTES` bytes."""
    return digest_of(text.encode())[:KEY_BYTES]


def states_of(paths: Iterable[str]) -> bytes:
    """Returns a digest of fixed length of the state of each file, zeros for one that is not there."""
    return b"".join(map(_state, paths))


def _state(path: str) -> bytes:
    try:
        return short_digest(state_text(os.stat(path)))
    except OSError:
        return bytes(KEY_BYTES)


def look(path: str, now: int, *, sampled: bool) -> tuple[str, bytes]:
    """Returns the state of a file, and a digest of some of its bytes.

    Args:
        path: the file.
        now: nanoseconds since the epoch.
        sampled: whether bytes are read: some at the start and in the middle, where files of one size differ.

    Returns:
        The state; empty if the file cannot be opened, or changed too recently. A digest of `KEY_BYTES` bytes, zeros
        where nothing was read.
    """
    try:
        descriptor = regular(path, os.O_RDONLY)
    except OSError:
        return "", bytes(KEY_BYTES)
    try:
        file = os.fstat(descriptor)
        parts = [os.pread(descriptor, _SAMPLE, start) for start in ((0, file.st_size // 2) if sampled else ())]
    except OSError:
        return "", bytes(KEY_BYTES)
    finally:
        os.close(descriptor)
    sample = digest_of(b"".join(parts))[:KEY_BYTES] if sampled else bytes(KEY_BYTES)
    return _pin(file) if is_settled(file, now) else "", sample


def check_state(path: str, descriptor: int, pin: str) -> None:
    """Checks after a file was read that it has been the same since `look`, if `pin` is a state.

    Raises:
        CheckFailed: it has changed.
    """
    if pin.startswith(_STATE) and pin != _pin(os.fstat(descriptor)):
        raise file_changed(path)


def file_changed(path: str) -> CheckFailed:
    """Returns the error for a file that is not the one that was planned."""
    return CheckFailed(f"{display_path(path)}: the file has changed while the run was reading the input. Run it again.")


def _pin(file: os.stat_result) -> str:
    return _STATE + short_digest(state_text(file)).hex()


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
