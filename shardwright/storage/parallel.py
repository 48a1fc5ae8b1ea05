"""A map with several calls in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_THREADS = 8

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def in_parallel(function: Callable[[_In], _Out], items: Iterable[_In], threads: int = _THREADS) -> Iterator[_Out]:
    """`map` with several calls in flight; results come in order, and only a few of them wait at a time."""
    waiting: deque[Future[_Out]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
