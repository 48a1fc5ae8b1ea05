"""One run, or one cleaning, in a run's folder at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shardwright.errors import UsageError


@contextmanager
def only_run_in(run_root: Path) -> Iterator[None]:
    """Holds the folder: two runs in one would write the same metadata and staging.

    Raises:
        UsageError: another run is at work.
    """
    with open(run_root / ".lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{run_root}: another run is at work here. Wait for it, or give --root DIR.") from None
        yield
