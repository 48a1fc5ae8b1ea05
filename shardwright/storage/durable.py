"""Files and folders that survive a power failure: every writer of the project flushes through this module.

A file system may lose what was not flushed: the name, the data, or both. If only the data is lost, a file of the right
name is empty or full of NUL bytes. So a file is flushed before it is renamed to its name, and its folder after. A
folder that is published whole has all its files flushed first, then the folders in it, then the folder above.

Files that may be lost, such as a cache whose content is checked when it is read, are not flushed: flushing waits for
the disk.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from shardwright.storage.parallel import map_threads

# Errors of file systems that cannot flush, or are read-only: some that are mounted over a network cannot do it for
# folders. A writer can do nothing about it.
_CANNOT_FLUSH = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EROFS}
# A folder that this user may write to and not list.
_CANNOT_OPEN = {errno.EACCES, errno.EPERM}
# macOS: fsync leaves the data in the cache of the drive.
_FULL_FLUSH: int | None = getattr(fcntl, "F_FULLFSYNC", None)
# Linux: sync_file_range(2) with SYNC_FILE_RANGE_WRITE, which Python does not offer.
_WRITE = 2
_begin: Callable[..., int] | None = (
    getattr(ctypes.CDLL(None), "sync_file_range", None) if sys.platform.startswith("linux") else None
)
# A thread first asks for the writing of so many files and then waits for each: the disk takes them together. To start a
# thread takes longer than to flush a file whose data is written, so few files need none.
_TOGETHER, _THREADS = 16, 16


def flush_file(file: IO[Any]) -> None:
    """Flushes an open file: Python's buffer, then the system's.

    Raises:
        OSError: the data cannot be written.
    """
    file.flush()
    flush_descriptor(file.fileno())


def flush(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Flushes files and folders, several concurrently.

    Raises:
        OSError: one of them is missing, or its data cannot be written.
    """
    unique = list(dict.fromkeys(os.fspath(path) for path in paths))
    parts = [unique[start : start + _TOGETHER] for start in range(0, len(unique), _TOGETHER)]
    for _ in map_threads(_flush_paths, parts, min(_THREADS, len(parts) or 1)):
        continue


def flush_tree(folder: str | os.PathLike[str]) -> None:
    """Flushes all files and folders below a folder, and the folder."""
    folders, files = [os.fspath(folder)], []
    for here in folders:  # It grows on the way.
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.path)
    flush(files)
    flush(folders)


def make_folder(folder: str | os.PathLike[str]) -> None:
    """Makes a folder and those above it where they are missing, and flushes their names."""
    if os.path.isdir(folder):
        return
    missing = []
    path = Path(folder)
    while not path.exists():
        missing.append(path)
        path = path.parent
    Path(folder).mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        flush([made.parent])


def replace(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Renames a file, in place of another one if there is one: after a power failure the name has all of the file."""
    flush([source])
    Path(source).replace(target)
    flush([Path(target).parent])


def remove(file: str | os.PathLike[str]) -> None:
    """Deletes a file if it is there: after a power failure it does not come back."""
    with suppress(FileNotFoundError):
        os.unlink(file)
        flush([Path(file).parent])


def rename_folder(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Renames a folder: after a power failure the name has all that is in it, or does not exist."""
    flush_tree(source)
    os.rename(source, target)
    flush(dict.fromkeys((Path(target).parent, Path(source).parent)))


def write_file(target: str | os.PathLike[str], data: str | bytes) -> None:
    """Writes a small file, which appears under its name whole; text is written as UTF-8."""
    target = Path(target)
    # Unique: two processes that write the same file never write into each other's.
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(data.encode("utf-8") if isinstance(data, str) else data)
            flush_file(file)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    flush([target.parent])


def copy_file(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copies a file, which appears under its name whole, and flushes it."""
    target = Path(target)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with open(source, "rb") as data, temporary.open("xb") as copy:
            shutil.copyfileobj(data, copy)
        replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def begin_flush(descriptor: int, start: int, size: int) -> None:
    """Asks the system to write a part of a file to the disk now, and returns at once; a flush later waits for less.

    Nothing is promised: errors are reported by the flush, and other systems than Linux are not asked.

    Args:
        descriptor: the file.
        start: first byte.
        size: number of bytes; 0: all to the end.
    """
    if _begin is not None:
        _begin(descriptor, ctypes.c_int64(start), ctypes.c_int64(size), _WRITE)


def _flush_paths(paths: Sequence[str]) -> None:
    with ExitStack() as stack:
        opened = []
        for path in paths:
            try:
                descriptor = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                if error.errno in _CANNOT_OPEN and os.path.isdir(path):
                    continue
                raise
            stack.callback(os.close, descriptor)
            opened.append(descriptor)
            begin_flush(descriptor, 0, 0)
        for descriptor in opened:
            flush_descriptor(descriptor)


def flush_descriptor(descriptor: int) -> None:
    """Flushes an open file or folder, as far as its file system can.

    Raises:
        OSError: the data cannot be written.
    """
    try:
        if _FULL_FLUSH is None or not _flush_drive(descriptor, _FULL_FLUSH):
            os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_FLUSH:
            raise


def _flush_drive(descriptor: int, command: int) -> bool:
    """Flushes a file and the cache of its drive; returns False where the file system has no such command.

    Raises:
        OSError: the data cannot be written. A later `fsync` would not report this again.
    """
    try:
        fcntl.fcntl(descriptor, command)
    except OSError as error:
        if error.errno in (*_CANNOT_FLUSH, errno.ENOTTY):
            return False
        raise
    return True
