"""`shardwright submit` and `shardwright schedule`: runs on Vertex AI, now or on a schedule."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.parsers import Commands, refuse_unused
from shardwright.pipelines.commands.results import print_json

if TYPE_CHECKING:
    from shardwright.config import Config

_SCHEDULE_ACTIONS = {
    "list": "list the schedules of this name, and send nothing",
    "pause": "pause them",
    "resume": "resume them; missed runs are not made up for",
    "delete": "delete them; runs that have begun continue",
}
_OF_A_NEW_SCHEDULE = ("--dry-run", "--replace", "--cron", "--image", "--pipeline-root", "--parameter", "--no-cache")


def add(commands: Commands) -> None:
    """Adds the commands to the parser of `shardwright`."""
    for name, summary in (("submit", "run on Vertex AI now"), ("schedule", "run on Vertex AI on a schedule")):
        command = commands.add(name)
        command.add_argument("config", metavar="CONFIG", help="YAML file")
        command.add_argument("--image", metavar="NAME", help="image (default: vertex.image)")
        command.add_argument(
            "--pipeline-root", metavar="URL", help="folder of artifacts (default: vertex.pipeline_root)"
        )
        command.add_argument(
            "--parameter", action="append", default=[], metavar="NAME=VALUE", help="data_root or span; may be repeated"
        )
        command.add_argument("--no-cache", action="store_true", help="run all steps again")
        command.add_argument("--dry-run", action="store_true", help="show the request and send nothing")
        command.add_argument("--json", action="store_true", help="print what was made, or listed, as JSON")
        command.set_defaults(command=_run, action=name, cron=None, replace=False, change=None, run_name=None)
        if name == "schedule":
            command.add_argument("--cron", metavar="FIELDS", help="when (default: vertex.schedule.cron)")
            command.add_argument("--replace", action="store_true", help="delete earlier schedules of the same name")
            instead = command.add_mutually_exclusive_group()
            for action, summary in _SCHEDULE_ACTIONS.items():
                instead.add_argument(f"--{action}", dest="change", action="store_const", const=action, help=summary)
        else:
            command.add_argument("--run-name", metavar="ID", help="ID of the run (default: the name and the time)")
            command.add_argument("--wait", action="store_true", help="wait until the run has ended; 1 if it failed")


def _run(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.errors import UsageError
    from shardwright.pipelines.runs.logs import quiet_libraries

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with quiet_libraries():
        from shardwright.pipelines.cloud.vertex_requests import SubmitOptions, schedule, submit, submit_request

    parameters = {}
    for text in options.parameter:
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise UsageError(f"--parameter {text}: has no value. Write NAME=VALUE.")
        parameters[name] = value
    wanted = SubmitOptions(
        image=options.image,
        pipeline_root=options.pipeline_root,
        parameters=parameters,
        cached=not options.no_cache,
        cron=options.cron,
        run_name=options.run_name,
        dry_run=options.dry_run,
        replace=options.replace,
    )
    config, file = load_config(options.config), Path(options.config).absolute()
    if options.change is not None:
        refuse_unused(options, f"--{options.change}", *_OF_A_NEW_SCHEDULE)
        return _change_schedules(config, options.change, as_json=options.json)
    if options.action == "schedule":
        made = schedule(config, file, wanted)
        if options.json and not options.dry_run:
            print_json({"link": made})
        else:
            print(made)  # A request that is only shown is JSON already.
        return 0
    if options.dry_run:
        refuse_unused(options, "--dry-run", "--wait")
        print(submit_request(config, file, wanted))
        return 0
    run = submit(config, file, wanted)
    if not options.json:
        print(run.link)
    code = _wait(config, run.name) if options.wait else 0
    if options.json:
        print_json({"name": run.name, "link": run.link, "succeeded": code == 0 if options.wait else None})
    return code


def _wait(config: Config, name: str) -> int:
    """Waits for a run; returns 0 if it succeeded, else 1."""
    from shardwright.pipelines.cloud.vertex_runs import SUCCEEDED, wait_for_run

    def log(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        run = wait_for_run(config, name, log)
    except KeyboardInterrupt:
        log(f"run {name} continues on Vertex AI; `shardwright cancel CONFIG {name}` ends it")
        raise
    log(f"run {name}: {run.state}" + (f" ({run.error})" if run.error else ""))
    return 0 if run.state == SUCCEEDED else 1


def _change_schedules(config: Config, action: str, *, as_json: bool) -> int:
    from shardwright.pipelines.cloud.vertex_runs import change_schedules, list_schedules

    found = list_schedules(config) if action == "list" else change_schedules(config, action)
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
        return 0
    done = {"pause": "paused", "resume": "resumed", "delete": "deleted"}.get(action)
    for one in found:
        following = f", next run {one.next_run}" if one.next_run and one.state == "active" else ""
        print(f"{done or one.state}  {one.cron}  {one.link}{'' if done else following}")
    if not found:
        print(f"schedule {config.name!r}: does not exist", file=sys.stderr)
    return 0
