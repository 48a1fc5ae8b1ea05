"""Calls spread over processes: the one pool that everything uses which works on whole shards."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from typing import TypeVar

from shardwright.errors import ShardwrightError

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def in_processes(function: Callable[[_In], _Out], items: Iterable[_In], workers: int, lost: str) -> Iterator[_Out]:
    """`map` over worker processes; results come as they are done. With one worker the calls are made here.

    Args:
        function: a picklable function.
        items: its picklable arguments.
        workers: processes.
        lost: what to say when a process dies, e.g. for want of memory.

    Raises:
        ShardwrightError: a process has died.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    # Spawned, because a process that has started TensorFlow or threads cannot safely be forked.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent) as pool:
        running = {pool.submit(function, item) for item in items}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BrokenProcessPool:
            raise ShardwrightError(lost) from None
        finally:
            for future in running:
                future.cancel()


def _end_with_parent() -> None:
    """Ends this worker when the process that started it is killed; it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
