"""Calls spread over processes: the one pool that everything uses which works on whole shards.

Memory that a process has freed but still holds: given back, or kept for what comes next.

Importing much at once, TFX above all, without looking through it for garbage again and again.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import connection, forkserver, util
from multiprocessing.context import BaseContext
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, TypeVar

from shardwright.errors import ShardwrightError
from shardwright.escaping import escaping

# Numbers of glibc's mallopt(3); the largest that it takes for the second.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _IN_ONE_HEAP = 64 << 20, 32 << 20


def trim_heap() -> None:
    """Gives the system what was freed between objects that live on; without glibc nothing happens.

    The C library keeps such pages, where they count as this process's for as long as it runs.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def keep_heap() -> None:
    """Lets this process keep up to 64 MB that it has freed; without glibc nothing happens.

    Else a file that is read, and freed, and the next one's bytes are new memory each time: the system has to clear
    each page again.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, _KEPT)
        set_option(_MMAP_THRESHOLD, _IN_ONE_HEAP)


_In = TypeVar("_In")
_Out = TypeVar("_Out")

# Each imports the main module of who calls: a script that calls at once calls again there.
_NONE_BEGAN = (
    'No worker process got as far as its work. A script that starts them needs `if __name__ == "__main__":` around '
    "what it does; where it has that, the machine has no memory for them."
)

# The longest name of a folder in which the server of `_context` can have its socket: the system takes 107 bytes.
_LONGEST = 107 - len("/listener-12345678")


def map_processes(function: Callable[[_In], _Out], items: Iterable[_In], workers: int, lost: str) -> Iterator[_Out]:
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
    keep_heap()
    begun.set()


def _end_with_parent() -> None:
    """Ends this worker when the process that started it is killed; it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def gc_paused() -> Iterator[None]:
    """What is imported in the block is left out of all garbage collection, while it comes in and from then on.

    TFX makes a million objects, none of which is garbage: to go through them over and over is a third of its import's
    processor time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def peak_memory(process: int | str = "self") -> int:
    """Bytes of the most memory that a running process has had resident at a time (Linux).

    Not `getrusage`: its figure outlives `exec`, so a process that was started by a large one tells that one's.
    """
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None, f"/proc/{process}/status holds no VmHWM"
    return int(found[1]) * 1024
