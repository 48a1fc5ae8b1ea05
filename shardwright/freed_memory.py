"""Memory that a process has freed but still holds: given back, or kept for what comes next."""

from __future__ import annotations

import ctypes

# Numbers of glibc's mallopt(3); the largest that it takes for the second.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _IN_ONE_HEAP = 64 << 20, 32 << 20


def give_back() -> None:
    """Gives the system what was freed between objects that live on; without glibc nothing happens.

    The C library keeps such pages, where they count as this process's for as long as it runs.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def keep_freed() -> None:
    """Lets this process keep up to 64 MB that it has freed; without glibc nothing happens.

    Else a file that is read, and freed, and the next one's bytes are new memory each time: the system has to clear
    each page again.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, _KEPT)
        set_option(_MMAP_THRESHOLD, _IN_ONE_HEAP)
