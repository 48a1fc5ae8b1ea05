"""`shardwright submit` and `shardwright schedule`: runs on Vertex AI, now or on a schedule."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardwright.config import Config
from shardwright.errors import UsageError
from shardwright.pipelines.commands.parsers import refuse_unused
from shardwright.pipelines.commands.results import finish, print_json
from shardwright.pipelines.commands.settings import config_words, configuration

if TYPE_CHECKING:
    from shardwright.pipelines.cloud.vertex_requests import SubmitOptions

# What changes, or lists, earlier schedules -> how a line about a changed one begins.
_CHANGES = {"list": "", "pause": "paused", "resume": "resumed", "delete": "deleted"}
_OF_A_NEW_SCHEDULE = ("--dry-run", "--replace", "--cron", "--parameter", "--no-cache")


def run_now(options: Namespace) -> int:
    """Starts a run; with `--wait` returns 1 if it fails."""
    wanted = _submit_options(options, run_name=options.run_name)
    from shardwright.pipelines.cloud.vertex_requests import submit, submit_request

    config, file = configuration(options), Path(options.config).absolute()
    if options.dry_run:
        refuse_unused(options, "--dry-run", "--wait")
        print(submit_request(config, file, wanted))
        return 0
    run = submit(config, file, wanted)
    if not options.json:
        print(run.link, flush=True)
    code = _wait(config, run.name) if options.wait else 0
    if options.json:
        print_json({"name": run.name, "link": run.link, "succeeded": code == 0 if options.wait else None})
    elif not options.wait and not options.quiet:
        print(f"Next: shardwright status {config_words(options)} {run.name}")
    return code


def run_on_schedule(options: Namespace) -> int:
    """Makes a schedule, or lists or changes earlier ones."""
    change = next((name for name in _CHANGES if getattr(options, name)), None)
    wanted = _submit_options(options, cron=options.cron, replace=options.replace)
    from shardwright.pipelines.cloud.vertex_requests import schedule

    config = configuration(options)
    if change is not None:
        refuse_unused(options, f"--{change}", *_OF_A_NEW_SCHEDULE)
        from shardwright.pipelines.cloud.vertex_runs import change_schedules, list_schedules

        schedules = list_schedules(config) if change == "list" else change_schedules(config, change)
        lines = []
        for known in schedules:
            following = f", next run {known.next_run}" if known.next_run and known.state == "active" else ""
            done = _CHANGES[change]
            lines.append(f"{done or known.state}  {known.cron}  {known.link}{'' if done else following}")
        if not schedules and not options.json:
            print(f"schedule {config.name!r}: does not exist", file=sys.stderr)
        return finish(options, schedules, *lines)
    made = schedule(config, Path(options.config).absolute(), wanted)
    if options.dry_run:
        print(made)  # The request is JSON.
        return 0
    return finish(options, {"link": made}, made, following=f"shardwright schedule {config_words(options)} --list")


def _submit_options(options: Namespace, **further: Any) -> SubmitOptions:
    from shardwright.pipelines.runs.logs import quiet_libraries

    with quiet_libraries():
        from shardwright.pipelines.cloud.vertex_requests import SubmitOptions

    parameters = {}
    for text in options.parameter:
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise UsageError(f"--parameter {text}: has no value. Write NAME=VALUE.")
        parameters[name] = value
    return SubmitOptions(
        parameters=parameters,
        cached=not options.no_cache,
        dry_run=options.dry_run,
        **further,
    )


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
