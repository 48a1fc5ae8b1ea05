"""A map with several calls in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_THREADS = 8

# What the items in flight may weigh together, in bytes; one always is.
_MOST_BYTES = 256 << 20

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def in_parallel(
    function: Callable[[_In], _Out],
    items: Iterable[_In],
    threads: int = _THREADS,
    weigh: Callable[[_In], int] | None = None,
) -> Iterator[_Out]:
    """`map` with several calls in flight; results come in order, and only a few of them wait at a time.

    Args:
        function: what to call.
        items: its arguments, taken as they are needed.
        threads: calls at a time.
        weigh: bytes that an item and its result take; fewer calls are in flight when they weigh much.
    """
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
