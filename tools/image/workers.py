"""Run inside the image by `tools/image.sh try`: Beam's workers, started by the image's own entry point.

A pool of workers listens as on Flink and Spark, a small pipeline runs on it, and its worker must be a process of the
image's own environment. The launcher is the real one where the image was built with it (BEAM_SDK), else `boot`.
"""

import subprocess
import sys
import time
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to

_PORT = 50000
_SECONDS = 120


def environment_of(parent: int) -> tuple[str, bool, bool]:
    """Returns a worker's environment, whether it is another process than the pipeline's, and whether it is root."""
    import os
    import sys

    import shardwright  # noqa: F401 -- the worker finds the code

    return sys.prefix, os.getpid() == parent, os.getuid() == 0


def main(entrypoint: str) -> None:
    """Runs the pipeline.

    Args:
        entrypoint: program of the image that gets the runner's options.
    """
    import os

    pool = subprocess.Popen([entrypoint, "--worker_pool"])
    try:
        _wait_for(pool)
        options = PipelineOptions(
            [
                *("--runner=PortableRunner", "--job_endpoint=embed", "--sdk_location=container"),
                *("--environment_type=EXTERNAL", f"--environment_config=localhost:{_PORT}"),
            ]
        )
        with beam.Pipeline(options=options) as pipeline:
            seen = pipeline | beam.Create([os.getpid()]) | beam.Map(environment_of)
            assert_that(seen, equal_to([(sys.prefix, False, os.getuid() == 0)]))
    finally:
        pool.terminate()
        pool.wait()
    print(f"Beam: a worker of {sys.prefix} ran")


def _wait_for(pool: "subprocess.Popen[bytes]") -> None:
    """Waits until the pool listens."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        if pool.poll() is not None:
            sys.exit(f"Beam: the pool of workers ended with {pool.returncode}")
        if _is_listened_to():
            return
        time.sleep(0.2)
    sys.exit(f"Beam: no pool of workers listens at {_PORT} after {_SECONDS} s")


def _is_listened_to() -> bool:
    """Asks the kernel: a connection can succeed without a listener, from the port to itself, and then blocks it."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            if local.endswith(f":{_PORT:04X}") and state == "0A":
                return True
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
