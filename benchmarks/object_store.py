"""Compares reading many small objects concurrently and one after the other, with a delay for every request.

The store is an emulator in a separate process, with 30 ms added to each request; the client is the real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from benchmarks.figures import AT_LEAST, Figure, seconds
from shardwright.errors import CheckFailed
from shardwright.storage import buckets, map_threads, read_bytes, readers

DELAY = 0.03
NO_EMULATOR = "needs the development tools"
_SIZE = 20_000
_OBJECTS = 256
_ALONE = 48
_ROUNDS = 4
_BUCKET = "bench"
STORE_NAMES = {"s3": "S3", "gs": "Google's"}
_TARGETS = {"s3": 8.0, "gs": 4.0}


def store_figures() -> list[Figure]:
    """Measures how many times faster many readers are than one, on each store."""
    return [_figure(scheme) for scheme in STORE_NAMES]


def _figure(scheme: str) -> Figure:
    name = f"objects/s on {STORE_NAMES[scheme]} storage, {DELAY * 1000:.0f} ms per request: concurrent / serial"
    measured = measured_on(scheme, __name__, str(_OBJECTS))
    if measured is None:
        return Figure(name, None, "x", AT_LEAST, _TARGETS[scheme], NO_EMULATOR)
    at_once = readers(f"{scheme}://{_BUCKET}")
    # Limits: the cycle of a single reader, times the readers; a core's work for one read.
    waiting, working = at_once / measured["alone"], 1 / measured["work"]
    note = (
        f"{1 / measured['alone']:.0f} -> {1 / measured['together']:.0f} objects/s; by arithmetic at most "
        f"{waiting:.0f} ({at_once} readers), {working:.0f} by the client's {measured['work'] * 1000:.1f} ms of "
        "processor an object; the emulator works on the same machine"
    )
    return Figure(name, measured["alone"] / measured["together"], "x", AT_LEAST, _TARGETS[scheme], note)


def measured_on(scheme: str, module: str, *arguments: str) -> Any:
    """Returns what a module prints as JSON when it runs with an empty bucket; `None` without the development tools.

    The emulator has a process of its own, and adds 30 ms to each request. So has the module, so that the variables of
    the clients direct nothing else to the emulator.

    Args:
        scheme: of the store.
        module: the module; its first argument is the bucket's URL.
        *arguments: its further arguments.

    Raises:
        CheckFailed: it has failed.
    """
    try:
        from tests.support import emulators
    except ImportError:
        return None
    call = [sys.executable, "-m", "tests.support.emulators", scheme, str(DELAY)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            emulators.make_bucket(scheme, url, _BUCKET)
            done = subprocess.run(
                [sys.executable, "-m", module, f"{scheme}://{_BUCKET}", *arguments],
                env={**os.environ, **emulators.client_variables(scheme, url)},
                stdout=subprocess.PIPE,
                check=False,
            )
        finally:
            server.terminate()
    if done.returncode:
        raise CheckFailed(f"the benchmark on {STORE_NAMES[scheme]} storage has ended with {done.returncode}.")
    return json.loads(done.stdout)


def measure(bucket: str, objects: int) -> dict[str, float]:
    """Measures the seconds per object with one reader and with many, and the processor seconds with many.

    Args:
        bucket: URL of an empty bucket.
        objects: how many it is given.
    """
    urls = [f"{bucket}/{number:04d}.jpg" for number in range(objects)]
    list(map_threads(lambda url: buckets.create(url, bytes(_SIZE)), urls, readers(bucket)))
    first = urls[:_ALONE]
    alone = seconds(lambda: [read_bytes(url) for url in first], 2) / len(first)

    def together() -> list[bytes]:
        return list(map_threads(read_bytes, urls * _ROUNDS, readers(bucket), weigh=lambda _: _SIZE))

    together()
    worked = time.process_time()
    taken = seconds(together)
    reads = objects * _ROUNDS
    return {"alone": alone, "together": taken / reads, "work": (time.process_time() - worked) / reads}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
