"""Which of Beam's runners is used where nobody names one, and what is not shipped to workers that have it already."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions, WorkerOptions

from shardwright.errors import UsageError
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage import is_remote

_IMAGE = "--sdk_container_image"
# Their workers are processes of this machine and this installation.
_LOCAL_RUNNERS = {None, "DirectRunner", "FnApiRunner", "BundleBasedDirectRunner", "SwitchingDirectRunner"}

_ON_OTHER_MACHINES = "DataflowRunner"


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


def in_process_pipeline() -> beam.Pipeline:
    """A pipeline that runs in this process, whatever the runner of all others is."""
    with in_process_beam():
        return beam.Pipeline(argv=[])


def staging_root(options: Sequence[str], temporary: Callable[[], str]) -> str:
    """Where shards are staged, for workers that may be on other machines.

    Args:
        options: of Beam.
        temporary: gives a folder where `SHARDWRIGHT_STAGING` names none.

    Raises:
        UsageError: workers cannot reach it.
    """
    root = os.environ.get(STAGING_VARIABLE) or temporary()
    reachable(options, "the staging folder (run.staging)", root)
    return root


def reachable(options: Sequence[str], what: str, place: str) -> None:
    """Looks whether Beam's workers can reach a place; only of Dataflow's it is known that they share no folder.

    Raises:
        UsageError: they cannot.
    """
    runner = PipelineOptions(list(options)).view_as(StandardOptions).runner
    if runner is not None and runner.rpartition(".")[2] == _ON_OTHER_MACHINES and not is_remote(place):
        raise UsageError(
            f"{what}, {place}, is a folder of this machine, and the workers of {_ON_OTHER_MACHINES} are on others. "
            "Name a place on a bucket, gs://BUCKET/FOLDER."
        )


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
