"""`cache`: decoded images and masks are kept from the first epoch on, in memory or in a folder, and bounded."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from typing import Any

from shardwright.errors import UsageError
from shardwright.fingerprint import fingerprint

MEMORY = "memory"

# What part of what is free a cache may take.
_OF_MEMORY, _OF_DISK = 0.5, 0.9

# The locks of the folders that this process fills: held until it ends.
_held: dict[str, int] = {}


def cached(examples: Any, cache: str, bytes_: int, identity: Any) -> Any:
    """Examples that are made once.

    Args:
        examples: a `tf.data.Dataset`.
        cache: `memory`, or a folder on this machine; made where missing.
        bytes_: what all of them take.
        identity: plain values that tell these examples from all others.

    Raises:
        UsageError: they do not fit, or another process is filling this cache.
    """
    if cache == MEMORY:
        _check_room(bytes_, room_in_memory(), "half of the memory that is free", "a folder")
        return examples.cache()
    folder = Path(cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cache: {folder} cannot be made ({error.strerror}). Give another folder, or 'memory'."
        ) from None
    file = folder / f"decoded-{fingerprint(identity)[:24]}"
    # TensorFlow writes the index last.
    if not Path(f"{file}.index").is_file():
        _begin(file)
        free = int(shutil.disk_usage(folder).free * _OF_DISK)
        _check_room(bytes_, free, f"nine tenths of what is free at {folder}", "a folder on a larger disk")
    return examples.cache(str(file))


def room_in_memory() -> int:
    """Bytes that a cache in memory may take."""
    return int(_available_memory() * _OF_MEMORY)


def _begin(file: Path) -> None:
    """Takes the right to fill a cache, and clears away what a process left that was killed over it."""
    if str(file) in _held:
        return
    lock = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise UsageError(f"cache: another process is filling {file}. Wait for it, or give another folder.") from None
    _held[str(file)] = lock
    for left in file.parent.glob(f"{file.name}*"):
        if not left.name.endswith(".lock"):
            left.unlink()


def _check_room(needed: int, room: int, what: str, instead: str) -> None:
    if needed > room:
        raise UsageError(
            f"cache: the decoded examples take {needed / 1e9:.2f} GB, and {what} is {room / 1e9:.2f} GB. Leave `cache` "
            f"out, or give {instead}."
        )


def _available_memory() -> int:
    """Bytes of memory that can be had, and within the limit of the container."""
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, used = (_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            pages = int(line.split()[1]) * 1024
    return pages if limit is None or used is None else min(pages, limit - used)


def _number(file: str) -> int | None:
    try:
        return int(Path(file).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
