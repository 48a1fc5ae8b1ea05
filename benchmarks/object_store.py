"""Compares reading many small objects concurrently and one after the other, with a delay for every request.

The store is an emulator in a separate process, with 30 ms added to each request; the client is the real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.figures import AT_LEAST, Figure, seconds
from shardwright.storage import buckets, map_threads, read_bytes, readers

DELAY = 0.03
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
    try:
        import tests.support.emulators as emulators
    except ImportError as error:
        return Figure(name, None, "x", AT_LEAST, _TARGETS[scheme], f"needs the development tools ({error.name})")
    with served(scheme) as url:
        emulators.make_bucket(scheme, url, _BUCKET)
        # A separate process, so that the clients' variables direct nothing else to the emulator.
        done = subprocess.run(
            [sys.executable, "-m", __name__, f"{scheme}://{_BUCKET}", str(_OBJECTS)],
            env={**os.environ, **emulators.client_variables(scheme, url)},
            stdout=subprocess.PIPE,
            check=True,
        )
    measured = json.loads(done.stdout)
    at_once = readers(f"{scheme}://{_BUCKET}")
    # Limits: the cycle of a single reader, times the readers; a core's work for one read.
    waiting, working = at_once / measured["alone"], 1 / measured["work"]
    note = (
        f"{1 / measured['alone']:.0f} -> {1 / measured['together']:.0f} objects/s; by arithmetic at most "
        f"{waiting:.0f} ({at_once} readers), {working:.0f} by the client's {measured['work'] * 1000:.1f} ms of "
        "processor an object; the emulator works on the same machine"
    )
    return Figure(name, measured["alone"] / measured["together"], "x", AT_LEAST, _TARGETS[scheme], note)


@contextmanager
def served(scheme: str) -> Iterator[str]:
    """Runs an emulator in a separate process, with 30 ms added to each request; yields its URL."""
    call = [sys.executable, "-m", "tests.support.emulators", scheme, str(DELAY)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


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
