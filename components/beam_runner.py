"""Which of Beam's runners is used where nobody names one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from apache_beam.options.pipeline_options import StandardOptions


@contextmanager
def in_process_beam() -> Iterator[None]:
    """Makes the Fn API runner the default one where Beam knows it by name (2.77); in 2.59 DirectRunner is the same.

    Beam 2.77 would otherwise first try to download Prism, another runner, for every pipeline.
    """
    before = StandardOptions.DEFAULT_RUNNER
    if "FnApiRunner" in StandardOptions.KNOWN_RUNNER_NAMES:
        StandardOptions.DEFAULT_RUNNER = "FnApiRunner"
    try:
        yield
    finally:
        StandardOptions.DEFAULT_RUNNER = before
