"""Which of Beam's runners is used where nobody names one, and what is not shipped to workers that have it already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions, WorkerOptions

_IMAGE = "--sdk_container_image"
# Their workers are processes of this machine and this installation.
_LOCAL_RUNNERS = {None, "DirectRunner", "FnApiRunner", "BundleBasedDirectRunner", "SwitchingDirectRunner"}


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


def beam_args(options: Sequence[str]) -> list[str]:
    """Options of Beam with which TFX packs up no copy of itself.

    TFX does that for every component that has options, seconds and 49 MB in the temporary folder each, unless they name
    the image that the workers run. Local workers run none, and those with an environment of their own have all of
    Shardwright in it (source: tfx/utils/dependency_utils.py).
    """
    if not options:
        return []
    known = PipelineOptions(list(options))
    portable = known.view_as(PortableOptions)
    if known.view_as(WorkerOptions).sdk_container_image:
        return list(options)
    if portable.environment_type:
        return [*options, f"{_IMAGE}={portable.environment_config or 'none'}"]
    runner = known.view_as(StandardOptions).runner
    return [*options, f"{_IMAGE}=none"] if runner in _LOCAL_RUNNERS else list(options)
