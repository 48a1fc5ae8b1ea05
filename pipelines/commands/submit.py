"""`shardwright submit` and `shardwright schedule`: runs on Vertex AI, now or on a schedule."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TypeAlias

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add(commands: _Commands) -> None:
    """Adds the commands to the parser of `shardwright`."""
    for name, summary in (("submit", "run on Vertex AI now"), ("schedule", "run on Vertex AI on a schedule")):
        command = commands.add_parser(name, help=summary)
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
        command.set_defaults(command=_run, action=name, cron=None, replace=False)
        if name == "schedule":
            command.add_argument("--cron", metavar="FIELDS", help="when (default: vertex.schedule.cron)")
            command.add_argument("--replace", action="store_true", help="delete earlier schedules of the same name")


def _run(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.errors import UsageError
    from shardwright.pipelines.cloud.submit import SubmitOptions, schedule, submit

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
        dry_run=options.dry_run,
        replace=options.replace,
    )
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    work = {"submit": submit, "schedule": schedule}[options.action]
    print(work(load_config(options.config), Path(options.config).absolute(), wanted))
    return 0
