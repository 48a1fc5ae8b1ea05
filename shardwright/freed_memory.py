"""Memory that a process has freed but still holds."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Gives the system what was freed between objects that live on; without glibc nothing happens.

    The C library keeps such pages, where they count as this process's for as long as it runs.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
