"""`shardwright status` and `shardwright cancel`: the runs of a configuration on Vertex AI."""

from __future__ import annotations

import argparse
import dataclasses

from shardwright.pipelines.commands.parsers import Commands, refuse_unused
from shardwright.pipelines.commands.results import print_json


def add(commands: Commands) -> None:
    """Adds the commands to the parser of `shardwright`."""
    status = commands.add("status")
    status.add_argument("config", metavar="CONFIG", help="YAML file")
    status.add_argument("run", metavar="RUN", nargs="?", help="ID of a run; exit code 1 if it failed or was cancelled")
    status.add_argument("--limit", type=int, default=10, metavar="N", help="list at most so many runs (default 10)")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(command=_status)
    cancel = commands.add("cancel")
    cancel.add_argument("config", metavar="CONFIG", help="YAML file")
    cancel.add_argument("run", metavar="RUN", help="ID of the run, as `status` lists it")
    cancel.add_argument("--json", action="store_true", help="print the run as JSON")
    cancel.set_defaults(command=_cancel)


def _status(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.pipelines.cloud.vertex_runs import SUCCEEDED, get_run, list_runs

    config = load_config(options.config)
    if options.run is None:
        runs = list_runs(config, options.limit)
        if options.json:
            print_json([dataclasses.asdict(run) for run in runs])
        else:
            for run in runs:
                print(f"{run.state:<11} {run.created:<28} {run.name}  {run.link}")
            if not runs:
                print(f"{config.name}: no runs in {config.vertex.region} of {config.vertex.project}")
        return 0
    refuse_unused(options, "the status of one run", "--limit")
    run = get_run(config, options.run)
    if options.json:
        print_json(dataclasses.asdict(run))
    else:
        print(f"{run.name}: {run.state}  {run.link}")
        for task in run.tasks:
            print(f"  {task.state:<13} {task.name}" + (f": {task.error}" if task.error else ""))
        if run.error:
            print(f"  {run.error}")
    return 0 if run.is_running or run.state == SUCCEEDED else 1


def _cancel(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.pipelines.cloud.vertex_runs import cancel_run

    run = cancel_run(load_config(options.config), options.run)
    if options.json:
        print_json(dataclasses.asdict(run))
        return 0
    print(f"{run.name}: Vertex AI was asked to cancel it  {run.link}")
    return 0
