"""`shardwright status` and `shardwright cancel`: the runs of a configuration on Vertex AI."""

from __future__ import annotations

from argparse import Namespace

from shardwright.pipelines.cloud.vertex_runs import SUCCEEDED, cancel_run, get_run, list_runs
from shardwright.pipelines.commands.parsers import refuse_unused
from shardwright.pipelines.commands.results import finish
from shardwright.pipelines.commands.settings import config_words, configuration


def status(options: Namespace) -> int:
    """Lists the runs, or the tasks of one; returns 1 if that one failed or was cancelled."""
    config = configuration(options)
    if options.run is None:
        runs = list_runs(config, options.limit)
        none = f"{config.name}: no runs in {config.vertex.region} of {config.vertex.project}"
        lines = [f"{run.state:<11} {run.created:<28} {run.name}  {run.link}" for run in runs] or [none]
        return finish(options, runs, *lines)
    refuse_unused(options, "the status of one run", "--limit")
    run = get_run(config, options.run)
    tasks = (f"  {task.state:<13} {task.name}" + (f": {task.error}" if task.error else "") for task in run.tasks)
    errors = [f"  {run.error}"] if run.error else []
    ended_well = run.is_running or run.state == SUCCEEDED
    return finish(options, run, f"{run.name}: {run.state}  {run.link}", *tasks, *errors, failed=not ended_well)


def cancel(options: Namespace) -> int:
    """Cancels a run."""
    run = cancel_run(configuration(options), options.run)
    following = f"shardwright status {config_words(options)} {run.name}"
    return finish(options, run, f"{run.name}: Vertex AI was asked to cancel it  {run.link}", following=following)
