"""Beam's default runner, places that workers can reach, and options that keep TFX from packing itself for workers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions, WorkerOptions

from shardwright.components.runtime.beam_compat import on_loopback, quick_start
from shardwright.errors import UsageError
from shardwright.staging.staging import STAGING_VARIABLE, given_staging
from shardwright.storage import is_remote

_IMAGE = "--sdk_container_image"
# Their workers are processes of this machine and this installation.
_LOCAL_RUNNERS = {None, "DirectRunner", "FnApiRunner", "BundleBasedDirectRunner", "SwitchingDirectRunner"}

_ON_OTHER_MACHINES = "DataflowRunner"
# Beam starts a cluster on this machine if none is named, and its workers are then threads of the program.
_OWN_CLUSTER = {"FlinkRunner": ("flink_master", r"\[(auto|local)\]"), "SparkRunner": ("spark_master_url", r"local.*")}
_IN_THE_PROGRAM = ("LOOPBACK", "SUBPROCESS_SDK", "beam:env:embedded")


@contextmanager
def in_process_beam() -> Iterator[None]:
    """Makes the Fn API runner the default one where Beam knows it by name (2.77); in 2.59 DirectRunner is the same.

    Beam 2.77 would otherwise first try to download Prism, another runner, for every pipeline. Pipelines also begin
    sooner, and their workers are not reached from other machines, see `beam_compat`.
    """
    before = StandardOptions.DEFAULT_RUNNER
    if "FnApiRunner" in StandardOptions.KNOWN_RUNNER_NAMES:
        StandardOptions.DEFAULT_RUNNER = "FnApiRunner"
    try:
        with quick_start(), on_loopback():
            yield
    finally:
        StandardOptions.DEFAULT_RUNNER = before


def in_process_pipeline() -> beam.Pipeline:
    """Returns a pipeline that runs in this process, also if a runner is configured."""
    with in_process_beam():
        return beam.Pipeline(argv=[])


def spread(pipeline: beam.Pipeline, items: Iterable[Any], name: str = "Numbers") -> Any:
    """Returns items, spread over the workers; `name` is that of the step.

    Without the reshuffle they stay in one bundle, and one worker does all of the work.
    """
    return pipeline | name >> beam.Create(items) | "Spread" >> beam.Reshuffle()


def staging_root(options: Sequence[str], temporary: Callable[[], str]) -> str:
    """Returns the staging folder for workers that may be on other machines.

    Args:
        options: Beam's options.
        temporary: returns a folder, in case `SHARDWRIGHT_STAGING` is not set.

    Raises:
        UsageError: workers cannot reach it, or it is not ours, see `given_staging`.
    """
    given = given_staging()
    root = given or temporary()
    check_staging(options, given, root)
    return root


def check_staging(options: Sequence[str], given: str | None, otherwise: str) -> None:
    """Checks that Beam's workers can reach the staging folder.

    A folder of Flink's and Spark's workers may be a volume that all machines mount: one that somebody chose is taken.

    Args:
        options: Beam's options.
        given: the folder that was chosen; `None` or empty for none.
        otherwise: the folder in its place, which only this machine is known to have.

    Raises:
        UsageError: they cannot.
    """
    what = "the staging folder (run.staging)"
    reachable(options, what, given or otherwise)
    runner = cluster_of(options)
    if runner and not given and not is_remote(otherwise):
        raise UsageError(
            f"{what}, {otherwise}, is a folder of this machine, and the workers of {runner} are on others. "
            "Use a folder on a bucket, gs://BUCKET/FOLDER, or on a volume that all machines mount: set run.staging, or "
            f"{STAGING_VARIABLE}."
        )


def cluster_of(options: Sequence[str]) -> str:
    """Returns the runner if its workers may be on other machines; else an empty text."""
    known = PipelineOptions(list(options))
    name = known.view_as(StandardOptions).runner
    runner = None if name is None else name.rpartition(".")[2]
    portable = known.view_as(PortableOptions)
    environment = portable.environment_type or ""
    if runner in (*_LOCAL_RUNNERS, "PrismRunner") or environment.startswith(_IN_THE_PROGRAM):
        return ""
    if portable.job_endpoint == "embed":
        return ""
    if runner in _OWN_CLUSTER and not environment:
        option, own = _OWN_CLUSTER[runner]
        master = known.get_all_options().get(option)
        if master is None or re.fullmatch(own, master):
            return ""
    return str(runner)


def reachable(options: Sequence[str], what: str, place: str) -> None:
    """Checks that Beam's workers can reach a place; only workers of Dataflow are known to share no folder.

    Raises:
        UsageError: they cannot.
    """
    runner = PipelineOptions(list(options)).view_as(StandardOptions).runner
    if runner is not None and runner.rpartition(".")[2] == _ON_OTHER_MACHINES and not is_remote(place):
        raise UsageError(
            f"{what}, {place}, is a folder of this machine, and the workers of {_ON_OTHER_MACHINES} are on others. "
            "Use a folder on a bucket, gs://BUCKET/FOLDER."
        )


def beam_args(options: Sequence[str]) -> list[str]:
    """Adds an option to Beam's so that TFX does not build a package of itself.

    TFX builds one for every component with options, in seconds and with 49 MB in the temporary folder each, unless the
    options name the workers' image. Local workers need no image, and a configured environment already contains
    Shardwright (source: tfx/utils/dependency_utils.py).
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
