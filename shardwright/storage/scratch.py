"""Temporary folders for what is unpacked or fetched: the space is compared first, and a full disk names the folder."""

from __future__ import annotations

import errno
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from shardwright.errors import UsageError
from shardwright.storage import buckets
from shardwright.storage.paths import is_remote

# Other programs need some space, too: less is not used up.
_SPARED = 64 << 20
# Bytes between two looks at the free space.
_STEP = 64 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


def scratch_folder(least: int) -> tempfile.TemporaryDirectory[str]:
    """Makes a temporary folder.

    Args:
        least: bytes that will be written at least.

    Raises:
        UsageError: there is less space; or no folder for temporary files.
    """
    try:
        folder = tempfile.gettempdir()
    except OSError as error:
        raise UsageError(f"{error.strerror}. Set TMPDIR to a folder with space for unpacked files.") from None
    _check_space(folder, least)
    return tempfile.TemporaryDirectory(prefix="shardwright-", dir=folder)


@contextmanager
def scratch_file(path: str, most: Callable[[int], None]) -> Iterator[IO[bytes]]:
    """Opens a new file in a temporary folder for writing.

    Args:
        path: the file.
        most: raises an error where so many bytes are too many.

    Raises:
        UsageError: the disk is full, or would be.
    """
    try:
        with io.BufferedWriter(_SparingFile(path, most)) as file:
            yield file
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise _full(os.path.dirname(path), str(error.strerror)) from None


@contextmanager
def local_copy(path: str, pin: str = "") -> Iterator[str]:
    """Yields the path of a file on this machine: the file itself, or a copy of an object.

    Args:
        path: the file.
        pin: see `shardwright.storage.read_bytes`.

    Raises:
        UsageError: there is no space for a copy.
        OSError: it cannot be read.
    """
    if not is_remote(path):
        yield path
        return
    with buckets.open_object(path, pin) as stream, scratch_folder(stream.seek(0, os.SEEK_END)) as folder:
        stream.seek(0)
        copy = os.path.join(folder, "copy")
        with scratch_file(copy, lambda _: None) as file:
            shutil.copyfileobj(stream, file)
        yield copy


class _SparingFile(io.FileIO):
    """A file that leaves some space of its disk to others. For the arguments see `scratch_file`."""

    def __init__(self, path: str, most: Callable[[int], None]) -> None:
        super().__init__(path, "xb")
        self._most = most
        self._size, self._due = 0, _STEP

    def write(self, data: Any, /) -> int:
        """Writes bytes as long as the disk keeps its reserve."""
        self._size += (written := super().write(data))
        self._most(self._size)
        if self._size > self._due:
            self._due += _STEP
            _check_space(os.path.dirname(str(self.name)), 0)
        return written


def _check_space(folder: str, least: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < least + _SPARED:
        raise _full(folder, f"{free:,} bytes are free, and {least + _SPARED:,} are needed at least")


def _full(folder: str, problem: str) -> UsageError:
    return UsageError(
        f"{folder}: no space for unpacked files: {problem}. Free some, or set TMPDIR to a folder with more."
    )
