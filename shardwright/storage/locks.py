"""Locks of files and folders, which end with the process that has them; no other module calls `flock`."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from shardwright.errors import NO_ROOM, StorageError, UsageError

LOCK_FILE = ".lock"
_OF_INGEST = "Make room, or set run.staging to a folder with more; finished shards are kept."


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


# Descriptor -> device and inode of each file that this process has locked alone.
_locked: dict[int, tuple[int, int]] = {}


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
        UsageError: another run is at work.
    """
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(open(run_root / ".lock", "a", encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{run_root}: cannot be locked ({error.strerror}). Give a folder of your own.") from None
        if not lock_file(lock):
            raise UsageError(f"{run_root}: another run is at work here. Wait for it, or give --root DIR.")
        yield


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


def lock_folder(folder: Path, *, waiting: Callable[[], None] | None = None) -> IO[str]:
    """Makes a folder where it is missing and locks it, until the file that is returned is closed.

    Args:
        folder: the folder.
        waiting: is called again and again while another run has locked it, to pause or to raise; without it, that
            is an error.

    Raises:
        UsageError: another run is at work there.
    """
    path = folder / LOCK_FILE
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            # A link is not followed: its target may be outside of the folder.
            file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666), "w", encoding="utf-8")
        except FileNotFoundError:
            continue  # Deleted in this moment by the run before us.
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise UsageError(f"{path}: is a link, which no run of ours made. Remove the link.") from None
        try:
            if not lock_file(file):
                file.close()
                if waiting is None:
                    raise UsageError(f"{folder}: another run is at work there. Wait for it or end it.")
                waiting()
                continue
        except OSError as error:
            file.close()
            raise UsageError(f"{folder}: cannot be locked ({error.strerror}). Stage on another disk.") from None
        try:
            # The run before us may have deleted the folder between our opening and locking the file.
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        except FileNotFoundError:
            pass
        file.close()
