"""Locks of files and folders, which end with the process that has them; no other module calls `flock`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from shardwright.errors import NO_ROOM, StorageError, UsageError
from shardwright.storage.own_names import (
    LOCK_FILE,
    check_own_tree,
    is_foreign,
    make_own_folder,
    mark,
    not_ours,
    open_own_file,
)

_OF_INGEST = "Free some space, or set run.staging to a folder with more; finished shards are kept."
# Descriptor -> device and inode of each file that this process has locked alone.
_locked: dict[int, tuple[int, int]] = {}


def lock_file(file: int | IO[str], *, shared: bool = False, wait: bool = False) -> bool:
    """Locks an open file or folder until it is closed.

    Args:
        file: the open file, or its descriptor.
        shared: share it with others that share it, instead of holding it alone.
        wait: wait for it, instead of returning at once.

    Returns:
        False where another process has locked it.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    if not shared:
        _note_locked(file if isinstance(file, int) else file.fileno())
    return True


def _note_locked(descriptor: int) -> None:
    """Notes a file that forks of this process let go: its lock is to end with this process, not with the last fork."""
    if not _locked:
        os.register_at_fork(after_in_child=_let_go)
    _locked[descriptor] = _identity(descriptor)


def _let_go() -> None:
    for descriptor, identity in _locked.items():
        with suppress(OSError):
            # Another file may have the number by now.
            if _identity(descriptor) == identity:
                nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                os.dup2(nothing, descriptor, inheritable=False)
                os.close(nothing)


def _identity(descriptor: int) -> tuple[int, int]:
    state = os.fstat(descriptor)
    return state.st_dev, state.st_ino


@contextmanager
def run_lock(run_root: Path) -> Iterator[None]:
    """Holds the folder: two runs in one would write the same metadata and staging.

    Raises:
        UsageError: another run is active.
    """
    try:
        lock = open_own_file(run_root / LOCK_FILE, os.O_WRONLY | os.O_CREAT)
    except OSError as error:
        raise UsageError(f"{run_root}: cannot be locked ({error.strerror}). Give a folder of your own.") from None
    try:
        if not lock_file(lock):
            raise UsageError(f"{run_root}: another run is active here. Wait for it, or give --root DIR.")
        yield
    finally:
        os.close(lock)


@contextmanager
def locked_folder(folder: Path, fix: str = _OF_INGEST) -> Iterator[None]:
    """Locks a staging folder for this run; the lock ends with the process.

    Args:
        folder: the staging folder.
        fix: what to do if its disk is full.

    Raises:
        UsageError: another run is writing the same dataset.
        StorageError: the disk is full.
    """
    with lock_folder(folder):
        try:
            yield
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            place = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else str(folder)
            problem = f"{place}: cannot be written ({error.strerror})"
            if not Path(place).is_relative_to(folder):
                raise StorageError(f"{problem}. Make room there, or give another path.") from None
            raise StorageError(f"{problem}. Nothing was published. {fix}") from None


def lock_folder(
    folder: Path, *, waiting: Callable[[], None] | None = None, working: bool = True, needed: bool = True
) -> IO[str]:
    """Makes a folder where it is missing and locks it, until the file that is returned is closed.

    Args:
        folder: the folder, under a name of ours.
        waiting: is called again and again while another run has locked it, to pause or to raise; without it, that
            is an error.
        working: whether the folder is a working folder, which we may empty; otherwise it may contain other files.
        needed: whether a file system without locks is an error; otherwise other runs cannot be detected there.

    Raises:
        UsageError: another run is active there; or it is not ours, or contains what no run of ours makes.
    """
    while True:
        make_own_folder(folder)
        file = _open_lock(folder, working=working)
        if file is None:
            continue  # Another run has made or deleted it in this moment.
        try:
            try:
                locked = lock_file(file)
            except OSError as error:
                if needed:
                    raise UsageError(f"{folder}: cannot be locked ({error.strerror}). Stage on another disk.") from None
                locked = True
            if not locked and waiting is None:
                raise UsageError(f"{folder}: another run is active there. Wait for it or end it.")
            # The run before us may have deleted the folder between our opening and locking the file.
            if locked and _is_at(file, folder / LOCK_FILE):
                if not mark(folder, file.fileno()) and working:
                    raise not_ours(folder)
                if working:
                    check_own_tree(folder)
                return file
        except BaseException:
            file.close()
            raise
        file.close()
        if not locked and waiting is not None:
            waiting()


def _open_lock(folder: Path, *, working: bool) -> IO[str] | None:
    """Opens the file to lock in a folder, and makes it where it is missing."""
    path = folder / LOCK_FILE
    try:
        try:
            descriptor = open_own_file(path, os.O_RDWR)
        except FileNotFoundError:
            if working and is_foreign(folder):
                raise not_ours(folder) from None
            descriptor = open_own_file(path, os.O_RDWR | os.O_CREAT)
    except FileNotFoundError:
        return None
    return os.fdopen(descriptor, "r+", encoding="utf-8")


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False
