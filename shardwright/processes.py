"""Calls spread over processes: the one pool that everything uses which works on whole shards."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import connection, forkserver, util
from multiprocessing.context import BaseContext
from multiprocessing.synchronize import Event
from typing import Any, TypeVar

from shardwright.errors import ShardwrightError
from shardwright.escaping import escaping
from shardwright.freed_memory import keep_freed

_In = TypeVar("_In")
_Out = TypeVar("_Out")

# Each imports the main module of who calls: a script that calls at once calls again there.
_NONE_BEGAN = (
    'No worker process got as far as its work. A script that starts them needs `if __name__ == "__main__":` around '
    "what it does; where it has that, the machine has no memory for them."
)

# The longest name of a folder in which the server of `_context` can have its socket: the system takes 107 bytes.
_LONGEST = 107 - len("/listener-12345678")


def in_processes(function: Callable[[_In], _Out], items: Iterable[_In], workers: int, lost: str) -> Iterator[_Out]:
    """`map` over worker processes; results come as they are done. With one worker the calls are made here.

    Args:
        function: a picklable function.
        items: its picklable arguments.
        workers: processes.
        lost: what to say when a process dies, e.g. for want of memory.

    Raises:
        ShardwrightError: a process has died, or none could begin.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    warm_up(function)
    context = _context()
    begun = context.Event()
    start = partial(_start, dict(os.environ), begun)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=start) as pool:
        try:
            for future in as_completed({pool.submit(function, item) for item in items}):
                yield future.result()
        except BrokenProcessPool:
            raise ShardwrightError(lost if begun.is_set() else _NONE_BEGAN) from None
        finally:
            pool.shutdown(cancel_futures=True)


def warm_up(function: Callable[..., Any]) -> None:
    """Starts what workers are going to be forked from, and returns at once; nothing where it runs already.

    Args:
        function: what they will be asked to do; its module is imported there.
    """
    while isinstance(function, partial):
        function = function.func
    context = _context()
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([function.__module__])
        forkserver.ensure_running()


def _context() -> BaseContext:
    """How workers are started.

    A process that has started TensorFlow or threads cannot safely be forked. A server that has done nothing but import
    what workers need can, and so that is imported once, and not by each of them.
    """
    fits = len(os.fsencode(util.get_temp_dir())) <= _LONGEST
    return multiprocessing.get_context("forkserver" if fits else "spawn")


def _start(environment: Mapping[str, str], begun: Event) -> None:
    """Prepares a worker.

    Args:
        environment: that of the process which works with it; the server may have been started under another one.
        begun: is set.
    """
    os.environ.clear()
    os.environ.update(environment)
    _end_with_parent()
    sys.stderr = escaping(sys.stderr)  # Warnings of libraries may name what is in a file.
    keep_freed()
    begun.set()


def _end_with_parent() -> None:
    """Ends this worker when the process that started it is killed; it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
