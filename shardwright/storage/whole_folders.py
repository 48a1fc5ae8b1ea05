"""A folder that is there whole or not at all: put together next to its place, then renamed.

It is put together in a working folder of ours (`shardwright.storage.own_names`), named by content, so that the next run
finds the files of a killed one and deletes them. It is locked, so that no run deletes the files of a running one.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shardwright.errors import NO_ROOM, UsageError, unwritable
from shardwright.storage.durable import flush, rename_folder
from shardwright.storage.locks import lock_folder
from shardwright.storage.own_names import LOCK_FILE, empty_folder, is_own, remove_tree

_WHOLE = "whole"
# What the target may be by the time of the rename: a folder with files, or a file.
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}


@contextmanager
def assembling(target: Path, fingerprint: str) -> Iterator[Path]:
    """Yields an empty folder next to an output, within the same file system, for `appear`; deletes it in the end.

    Two runs of one configuration with different staging folders meet here. The folder above it is for this run alone.

    Args:
        target: the output, absolute.
        fingerprint: of the content.

    Raises:
        UsageError: another run is putting the same together, or what is under the folder's name is not ours.
        StorageError: the disk is full.
    """

    def refuse() -> None:
        raise UsageError(f"{target}: another run is publishing the same dataset there. Wait for it or end it.")

    working = _working_folder(target, fingerprint)
    try:
        with lock_folder(working, waiting=refuse, needed=False):
            try:
                empty_folder(working, keep=(LOCK_FILE,))
                whole = working / _WHOLE
                whole.mkdir()
                yield whole
            finally:
                remove_tree(working)
                flush([working.parent])  # After a power failure it does not come back.
    except OSError as error:
        if error.errno in NO_ROOM:
            raise unwritable(f"{target}:", error, "") from None
        raise


def appear(whole: Path, target: Path) -> None:
    """Gives an assembled folder its name; an empty folder there is replaced.

    Raises:
        UsageError: somebody has put something else there meanwhile.
    """
    try:
        rename_folder(whole, target)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        raise UsageError(f"{target}: something else was put there meanwhile. Name another folder.") from None


def discard(target: Path, fingerprint: str) -> None:
    """Deletes the files that a killed run has left next to an output; those of a living one, and others, stay."""
    working = _working_folder(target, fingerprint)
    with suppress(UsageError):
        if is_own(working):
            with lock_folder(working, needed=False):
                remove_tree(working)


def _working_folder(target: Path, fingerprint: str) -> Path:
    return target.parent / f".partial-{fingerprint[:16]}"
