"""A folder that one run at a time works in, and what such a run says when the disk is full."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from shardwright.errors import StorageError, UsageError

# What a write meets when there is no room for it.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Holds a staging folder for this run; a killed process lets go by itself.

    Raises:
        UsageError: another run is writing the same dataset.
        StorageError: the disk is full.
    """
    with _locked_file(folder / ".lock"):
        try:
            yield
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise StorageError(
                f"{error.filename or folder}: cannot be written ({error.strerror}). Nothing was published. Make "
                "room, or set run.staging to a folder with more; finished shards are kept."
            ) from None


def _locked_file(path: Path) -> IO[str]:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise UsageError(f"{path.parent}: another run is writing this dataset. Wait for it or end it.") from None
        try:
            # The run before us may have deleted the folder between our opening and locking the file.
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        except FileNotFoundError:
            pass
        file.close()
