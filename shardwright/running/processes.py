"""Worker processes: the pool for all work on whole shards; processors, memory and garbage collection of a process.

`sigterm_raises` ends a process in order. `trim_heap` and `keep_heap` return freed memory to the system, or keep it for
the next file. `keep_tensors` keeps that of TensorFlow's tensors. `gc_paused` imports large packages, TFX above all,
without garbage collection.
"""

from __future__ import annotations

import ctypes
import gc
import math
import multiprocessing
import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import connection, forkserver, resource_tracker, util
from multiprocessing.context import BaseContext
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from shardwright.errors import ShardwrightError, Stopped
from shardwright.text.escaping import escaping

# Numbers of glibc's mallopt(3); the largest that it takes for the second.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _IN_ONE_HEAP = 64 << 20, 32 << 20
# TensorFlow's allocator for GPUs, for the CPU too. Its limit, in MB, would be 64 GB; this is more than any host has.
_TENSORS = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(1 << 24)}
# It has one lock. From so many processors on, drawing masks waits longer for it than the system takes to clear pages.
_MANY = 8


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Lets SIGTERM raise `Stopped` in the block. The first process of a container would ignore it otherwise."""
    if threading.current_thread() is not threading.main_thread():
        # A signal handler can only be set there.
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise Stopped(f"stopped by {signal.Signals(number).name}. Run it again: finished work is used.")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def trim_heap() -> None:
    """Returns freed memory to the system; without glibc nothing happens.

    The C library keeps free pages between live objects, and they count as memory of this process.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def keep_heap() -> None:
    """Lets this process keep up to 64 MB that it has freed; without glibc nothing happens.

    Otherwise the bytes of each file that is read are new memory, of which the system has to clear every page.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, _KEPT)
        set_option(_MMAP_THRESHOLD, _IN_ONE_HEAP)


def keep_tensors(environment: Mapping[str, str], processors: int | None = None) -> dict[str, str]:
    """Returns variables by which TensorFlow keeps the memory of deleted tensors for its next ones; none for many cores.

    Otherwise a batch of more than 32 MB is new memory each time, of which the system has to clear every page: more work
    than decoding its images. TensorFlow reads the variables when it makes the first tensor of a process. The process
    then never returns this memory, so they are only for processes that load batches until they end.

    Args:
        environment: `os.environ`; values that it has remain.
        processors: those that threads share; by default `usable_cores`.
    """
    if (processors or usable_cores()) >= _MANY:
        return {}
    return {name: environment.get(name, value) for name, value in _TENSORS.items()}


def usable_cores(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Returns how many processors this process may use: those of its affinity, at most its container's quota.

    `os.cpu_count` counts those of the machine: in a container with 2 of a node's 64, 64 processes would start.

    Args:
        cgroups: where a container sees its own cgroup; with version 2, the quota and its period are in `cpu.max`, with
            version 1 in `cpu/cpu.cfs_quota_us` and `cpu/cpu.cfs_period_us`.
    """
    # macOS does not know which processors a process may use.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):
            quota, period = " ".join((cgroups / file).read_text(encoding="ascii") for file in files).split()
            # Without a quota there is the word `max`, or -1.
            if quota.isdecimal() and period.isdecimal() and int(period):
                cores = min(cores, max(1, math.ceil(int(quota) / int(period))))
    return cores


_In = TypeVar("_In")
_Out = TypeVar("_Out")

# The variable by which `running.preload` gets the name of the module to import.
PRELOADED = "_SHARDWRIGHT_PRELOADED"
# Packages that start threads or keep connections open.
_CLIENTS = {"boto3", "botocore", "google.cloud.storage", "grpc", "requests", "urllib3"}
_THREADED = _CLIENTS | {"apache_beam", "cv2", "jax", "pyarrow", "tensorflow", "torch"}

# The longest name of a folder in which the server of `_context` can have its socket: the system takes 107 bytes.
_LONGEST = 107 - len("/listener-12345678")


def map_processes(
    function: Callable[[_In], _Out], items: Iterable[_In], workers: int, lost: str, *, fork: bool = False
) -> Generator[_Out, None, None]:
    """Calls a function for each item in worker processes, or in this one if `workers` is 1; yields results when done.

    The workers start at once, before the first result is asked for: a progress bar, whose thread keeps this process
    from being forked, may follow.

    Args:
        function: a picklable function.
        items: its picklable arguments.
        workers: processes.
        lost: message of the error when a process dies, e.g. because of too little memory.
        fork: the workers are forks of this process, since `can_fork` has said so and they need what is in its memory.

    Returns:
        The results. A caller that does not take all of them calls `close`, which ends the processes.

    Raises:
        ShardwrightError: a process has died; as results are taken.
    """
    if workers <= 1:
        return (function(item) for item in items)
    if not fork:
        warm_up(function)
    context = multiprocessing.get_context("fork") if fork else _context()
    pool = ProcessPoolExecutor(workers, context, partial(_start, dict(os.environ)))
    calls: set[Future[_Out]] = set()
    with suppress(BrokenProcessPool):  # The calls before, of which there is at least one, fail with it.
        for item in items:
            with _uninterrupted(), _without_main():
                calls.add(pool.submit(function, item))
    results = _results(pool, calls, lost)
    next(results)  # From now on `close` ends the processes.
    return results


def _results(pool: ProcessPoolExecutor, calls: set[Future[_Out]], lost: str) -> Generator[Any, None, None]:
    with pool:
        try:
            yield None
            for future in as_completed(calls):
                yield future.result()
        except BrokenProcessPool:
            raise ShardwrightError(lost) from None
        finally:
            pool.shutdown(cancel_futures=True)


def warm_up(function: Callable[..., Any]) -> None:
    """Starts the server that workers are forked from, and returns at once; does nothing where it runs already.

    If workers are forks of this process (`can_fork`), there is nothing to start.

    Args:
        function: the function that they will call; its module is imported there.
    """
    while isinstance(function, partial):
        function = function.func
    context = _context()
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(["shardwright.running.preload"])
        resource_tracker.ensure_running()  # It would end the block below.
        with _uninterrupted():
            os.environ[PRELOADED] = function.__module__  # Read by a server that this starts.
            forkserver.ensure_running()
            del os.environ[PRELOADED]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Holds back an interruption (Ctrl-C) within the block, and for good in the processes that start in it.

    The terminal sends it to them, too, and Python would show a traceback of each. Workers accept it in `_start`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Lets the processes that start in the block import no main module: no function of a worker is in it.

    A script without `if __name__ == "__main__":` would otherwise run again in each of them.
    """
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _context() -> BaseContext:
    """Returns the way to start workers.

    A process that has started TensorFlow or threads cannot be forked safely. A server that has only imported the
    modules of the workers can, so that they are imported once, and not by each worker.
    """
    if can_fork():
        return multiprocessing.get_context("fork")
    fits = len(os.fsencode(util.get_temp_dir())) <= _LONGEST
    return multiprocessing.get_context("forkserver" if fits else "spawn")


def can_fork() -> bool:
    """Returns whether workers can be forks of this process, which costs a hundredth of what the server's imports do.

    A fork has one thread, and locks that other threads held at that moment stay locked in it. So no other thread may
    run but those of numpy's linear algebra, which ends them before a fork. Packages that start threads at
    any time, or have connections that a fork would share, exclude it too. On macOS system libraries do.
    """
    if not sys.platform.startswith("linux") or threading.active_count() > 1 or not _THREADED.isdisjoint(sys.modules):
        return False
    return len(os.listdir("/proc/self/task")) <= max(1, os.cpu_count() or 1)


def _start(environment: Mapping[str, str]) -> None:
    """Prepares a worker.

    Args:
        environment: of the calling process; the server may have been started with another one.
    """
    # An interruption ends a worker at once, without a traceback: it is one of the kills that leave no half shard.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.clear()
    os.environ.update(environment)
    _end_with_parent()
    sys.stderr = escaping(sys.stderr)  # Warnings of libraries may quote the content of a file.
    keep_heap()
    gc.freeze()  # Pages that a fork shares with its parent stay shared: no collection writes into them.


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
    """Excludes the modules that are imported in the block from garbage collection, then and later.

    TFX makes a million objects, none of which is garbage: scanning them repeatedly is a third of its import's processor
    time.
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
    """Returns the peak resident memory of a running process in bytes; on macOS of this process only.

    Not `getrusage` on Linux: its figure outlives `exec`, so that a process started by a large one would report the
    parent's.
    """
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None, f"/proc/{process}/status contains no VmHWM"
    return int(found[1]) * 1024
