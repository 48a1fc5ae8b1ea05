"""The folder that a dataset is put together in, beside the output it is renamed to: one run's at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shardwright.errors import UsageError
from shardwright.storage.durable import make_folder
from shardwright.writing.damaged import replaced_folder


@contextmanager
def assembling(target: Path, fingerprint: str) -> Iterator[Path]:
    """Yields an empty folder beside an output, within the same file system; it goes unless the block renames it.

    Two runs of one configuration that stage in different places meet here. The folder is named by content, so that
    whoever comes after a killed run finds what it left, and locked, so that nobody takes a living run's for that.

    Args:
        target: the output, absolute.
        fingerprint: of the dataset.

    Raises:
        UsageError: another run is putting the same dataset together.
    """
    folder = _folder(target, fingerprint)
    descriptor = _locked(folder, make=True)
    if descriptor is None:
        raise UsageError(f"{target}: another run is publishing this very dataset there. Wait for it or end it.")
    try:
        shutil.rmtree(replaced_folder(target, fingerprint), ignore_errors=True)
        for child in list(folder.iterdir()):
            if child.is_dir():
                shutil.rmtree(child)
            else:
                child.unlink()
        yield folder
    finally:
        if _is_at(descriptor, folder):
            shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def discard(target: Path, fingerprint: str) -> None:
    """Deletes what a killed run has left beside an output; that of a living one is let alone."""
    folder = _folder(target, fingerprint)
    shutil.rmtree(replaced_folder(target, fingerprint), ignore_errors=True)
    with suppress(FileNotFoundError):
        descriptor = _locked(folder, make=False)
        if descriptor is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


def _folder(target: Path, fingerprint: str) -> Path:
    return target.parent / f".partial-{fingerprint[:16]}"


def _locked(folder: Path, make: bool) -> int | None:
    """A descriptor that holds the folder as long as it is open; `None` where another run does.

    Raises:
        FileNotFoundError: it is not there, and `make` was not asked for.
    """
    while True:
        if make:
            make_folder(folder)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            if make:
                continue
            raise
        if not _lock(descriptor):
            os.close(descriptor)
            return None
        # Whoever held it before us may have renamed or deleted it between our opening and locking it.
        if _is_at(descriptor, folder):
            return descriptor
        os.close(descriptor)


def _is_at(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    """Locks a folder; false where another run holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # Some network file systems lock no folders; there nobody can tell.
    return True
