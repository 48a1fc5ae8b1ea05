"""A map with several calls in flight, and reading ahead of local files."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, TypeVar

from shardwright.storage.file_pins import check_state
from shardwright.storage.limits import MOST_BYTES, check_size, regular
from shardwright.storage.paths import Part

_THREADS = 8

# Bytes of all items in flight; one item always is, however large.
_MOST_BYTES = 256 << 20

_In = TypeVar("_In")
_Out = TypeVar("_Out")
# Items that `in_groups` takes together, and their bytes.
_GROUP, _GROUP_BYTES = 16, 32 << 20
_AHEAD = 8
_Item = TypeVar("_Item")


def map_threads(
    function: Callable[[_In], _Out],
    items: Iterable[_In],
    threads: int = _THREADS,
    weigh: Callable[[_In], int] | None = None,
) -> Iterator[_Out]:
    """Calls a function with several calls in flight; yields results in order, of which only a few wait to be taken.

    Args:
        function: what to call.
        items: its arguments, taken as they are needed.
        threads: concurrent calls; 1: the caller's thread makes them, each when its result is taken.
        weigh: bytes that an item and its result take; fewer calls are in flight when they weigh much.
    """
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[tuple[Future[_Out], int]] = deque()
    held = 0
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                weight = weigh(item) if weigh else 0
                while waiting and (len(waiting) >= 2 * threads or held + weight > _MOST_BYTES):
                    future, released = waiting.popleft()
                    yield future.result()
                    held -= released
                waiting.append((pool.submit(function, item), weight))
                held += weight
            while waiting:
                yield waiting.popleft()[0].result()
        finally:
            for future, _ in waiting:
                future.cancel()


def in_groups(items: Iterable[_In], weigh: Callable[[_In], int]) -> Iterator[_In]:
    """Takes several items together, and yields them one by one.

    Each pass over the bytes of an image empties the processor's caches. If the steps before take several images in one
    go, and then those after, each step finds its code and small values in the caches, and takes half the time.

    Args:
        items: what to yield.
        weigh: bytes that an item takes; fewer are taken together when they weigh much.
    """
    group: list[_In] = []
    size = 0
    for item in items:
        group.append(item)
        size += weigh(item)
        if len(group) == _GROUP or size > _GROUP_BYTES:
            yield from group
            group, size = [], 0
    yield from group


class _Opened(NamedTuple):
    """A part of a file that is open, or was not to be opened: `None`; and the state that the file must have."""

    part: Part
    pin: str
    descriptor: int | None


def prefetch(
    items: Iterable[_Item], part_of: Callable[[_Item], Part], pin_of: Callable[[_Item], str] = lambda _: ""
) -> Iterator[tuple[_Item, bytes | None]]:
    """Reads files of this machine, or parts of them.

    The system gets a hint about the next few files and reads them meanwhile. There are no threads: for a file that is
    in memory already, a switch between threads would take longer than the read.

    Args:
        items: what the files are for, taken a few ahead.
        part_of: the file of an item.
        pin_of: the state that it must have (`shardwright.storage.file_pins`); empty for any.

    Yields:
        Each item with its bytes; `None` where they cannot be read.

    Raises:
        CheckFailed: a file has another state.
    """
    waiting: deque[tuple[_Item, _Opened]] = deque()
    try:
        for item in items:
            if len(waiting) == _AHEAD:
                yield _taken(waiting)
            waiting.append((item, _opened(part_of(item), pin_of(item))))
        while waiting:
            yield _taken(waiting)
    finally:
        for _, opened in waiting:
            if opened.descriptor is not None:
                os.close(opened.descriptor)


def _taken(waiting: deque[tuple[_Item, _Opened]]) -> tuple[_Item, bytes | None]:
    item, (part, pin, descriptor) = waiting.popleft()
    if descriptor is None:
        return item, None
    try:
        data = _read(descriptor, part)
        if pin:
            check_state(part.path, descriptor, pin)
        return item, data
    except OSError:
        return item, None
    finally:
        os.close(descriptor)


def _read(descriptor: int, part: Part) -> bytes:
    position, pieces = part.start, []
    stop = os.fstat(descriptor).st_size if part.stop is None else part.stop
    check_size(part.path, stop - part.start, MOST_BYTES)
    # One call, but for a file of gigabytes, and for one that has become shorter.
    while position < stop and (piece := os.pread(descriptor, stop - position, position)):
        pieces.append(piece)
        position += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _opened(part: Part, pin: str) -> _Opened:
    try:
        descriptor = regular(part.path, os.O_RDONLY)
    except OSError:
        return _Opened(part, pin, None)
    if hasattr(os, "posix_fadvise"):  # Not on macOS.
        with suppress(OSError):  # It is advice only, and some file systems take none.
            length = 0 if part.stop is None else part.stop - part.start
            os.posix_fadvise(descriptor, part.start, length, os.POSIX_FADV_WILLNEED)
    return _Opened(part, pin, descriptor)
