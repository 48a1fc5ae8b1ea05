"""One run, or one cleaning, in a run's folder at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from shardwright.errors import UsageError


@contextmanager
def only_run_in(run_root: Path) -> Iterator[None]:
    """Holds the folder: two runs in one would write the same metadata and staging.

    Raises:
        UsageError: another run is at work.
    """
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(open(run_root / ".lock", "a", encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{run_root}: cannot be locked ({error.strerror}). Give a folder of yours.") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{run_root}: another run is at work here. Wait for it, or give --root DIR.") from None
        yield
