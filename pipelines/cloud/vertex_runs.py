"""Runs and schedules that Vertex AI has of a configuration: list them, wait for one, cancel, pause, resume, delete.

All of them are found by their display name, which is the configuration's `name`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardwright.config import Config
from shardwright.errors import ConfigError, ShardwrightError, UsageError

if TYPE_CHECKING:
    from google.cloud import aiplatform

RUNNING = ("queued", "pending", "running", "cancelling", "paused")
SUCCEEDED = "succeeded"
_RESOURCE = re.compile(r"projects/([^/]+)/locations/([^/]+)/(pipelineJobs|schedules)/([^/]+)")
_CONSOLE = "https://console.cloud.google.com/vertex-ai/locations"
_PAGES = {"pipelineJobs": "pipelines/runs", "schedules": "pipelines/schedules"}
# Between two requests for the state of a run.
SECONDS_BETWEEN = 15.0
_STATE_PREFIX = re.compile(r"^(PIPELINE_STATE_|PIPELINE_TASK_STATE_)")


@dataclass(frozen=True)
class Task:
    """A task of a run: its name, its state (`running`, `succeeded`, `failed`, …), and its error if it has one."""

    name: str
    state: str
    error: str | None = None


@dataclass(frozen=True)
class Run:
    """A run of a pipeline.

    Attributes:
        name: its ID, which `status` and `cancel` take.
        state: `queued`, `pending`, `running`, `succeeded`, `failed`, `cancelling`, `cancelled` or `paused`.
        created: when, in UTC (RFC 3339).
        ended: when, or `None` while it runs.
        link: its page in the console.
        error: why it failed, if it did.
        tasks: its tasks, by name.
    """

    name: str
    state: str
    created: str
    ended: str | None
    link: str
    error: str | None = None
    tasks: tuple[Task, ...] = ()

    @property
    def is_running(self) -> bool:
        """True until it has ended."""
        return self.state in RUNNING


@dataclass(frozen=True)
class Schedule:
    """A schedule: its ID, its state (`active`, `paused` or `completed`), its times, and when it starts the next run."""

    name: str
    state: str
    cron: str
    next_run: str | None
    link: str


def list_runs(config: Config, limit: int = 10) -> list[Run]:
    """Returns the latest runs of a configuration, the newest first.

    Args:
        config: names the project, the region and the runs.
        limit: at most so many.

    Raises:
        ShardwrightError: there are no credentials, or Vertex AI refuses.
    """
    with google_errors():
        from google.cloud import aiplatform

        jobs = aiplatform.PipelineJob.list(
            filter=f'display_name="{config.name}"', order_by="create_time desc", **_place(config)
        )
        return [run_of(job.to_dict()) for job in jobs[:limit]]


def get_run(config: Config, name: str) -> Run:
    """Returns one run with its tasks.

    Args:
        config: names the project and the region.
        name: the run's ID, as `list_runs` returns it.

    Raises:
        UsageError: there is no such run.
        ShardwrightError: there are no credentials, or Vertex AI refuses.
    """
    return run_of(_job(config, name).to_dict())


def cancel_run(config: Config, name: str) -> Run:
    """Asks Vertex AI to cancel a run, and with it the CustomJob that trains; returns the run.

    Args:
        config: names the project and the region.
        name: the run's ID.

    Raises:
        UsageError: there is no such run.
        ShardwrightError: it has ended, there are no credentials, or Vertex AI refuses.
    """
    job = _job(config, name)
    found = run_of(job.to_dict())
    if not found.is_running:
        raise ShardwrightError(f"run {name!r}: has ended ({found.state}). Nothing was cancelled.")
    with google_errors():
        job.cancel()
    return found


def wait_for_run(config: Config, name: str, log: Callable[[str], None]) -> Run:
    """Waits until a run has ended; returns it.

    Args:
        config: names the project and the region.
        name: the run's ID.
        log: called with a line whenever a task changes its state.

    Raises:
        ShardwrightError: there are no credentials, or Vertex AI refuses.
    """
    reported: dict[str, str] = {}
    while True:
        found = get_run(config, name)
        for task in found.tasks:
            if reported.get(task.name) != task.state:
                log(f"{task.name}: {task.state}")
                reported[task.name] = task.state
        if not found.is_running:
            return found
        time.sleep(SECONDS_BETWEEN)


def list_schedules(config: Config) -> list[Schedule]:
    """Returns the schedules of a configuration's name that may still start runs.

    Raises:
        ShardwrightError: there are no credentials, or Vertex AI refuses.
    """
    with google_errors():
        return [_schedule(one.to_dict()) for one in schedules_of(config)]


def change_schedules(config: Config, action: str) -> list[Schedule]:
    """Pauses, resumes or deletes all schedules of a configuration's name; returns them as they were.

    Args:
        config: names the project, the region and the schedules.
        action: `pause`, `resume` or `delete`. Runs that were missed during a pause are not made up for.

    Raises:
        UsageError: there is no schedule of that name.
        ShardwrightError: there are no credentials, or Vertex AI refuses.
    """
    with google_errors():
        found = schedules_of(config)
        if not found:
            raise UsageError(
                f"schedule {config.name!r}: does not exist. `shardwright schedule CONFIG` makes one, --list shows all."
            )
        before = [_schedule(one.to_dict()) for one in found]
        for one, was in zip(found, before, strict=True):
            if action == "delete":
                one.delete()
            elif action == "pause" and was.state == "active":
                one.pause()
            elif action == "resume" and was.state == "paused":
                one.resume(catch_up=False)
        return before


def schedules_of(config: Config) -> list[aiplatform.PipelineJobSchedule]:
    """Returns the client's objects of the schedules of a configuration's name that may still start runs."""
    from google.cloud import aiplatform

    found = aiplatform.PipelineJobSchedule.list(filter=f'display_name="{config.name}"', **_place(config))
    return [one for one in found if one.display_name == config.name and not one.done()]


def console_link(resource: str) -> str:
    """Returns the page of a run or a schedule in Google's console.

    Args:
        resource: `projects/P/locations/L/pipelineJobs/ID` or `…/schedules/ID`.
    """
    match = _RESOURCE.fullmatch(resource)
    if match is None:
        return resource
    project, region, kind, name = match.groups()
    return f"{_CONSOLE}/{region}/{_PAGES[kind]}/{name}?project={project}"


def run_of(resource: dict[str, Any]) -> Run:
    """Returns a run as Vertex AI describes it.

    Args:
        resource: a `PipelineJob` as JSON.
    """
    details = resource.get("jobDetail", {}).get("taskDetails", [])
    # The run itself is a task without a parent. Each attempt of a task is listed; the last one counts.
    inner = [one for one in details if one.get("parentTaskId")] or details
    tasks = {
        one.get("taskName", ""): Task(
            one.get("taskName", ""), _state(one.get("state")), one.get("error", {}).get("message")
        )
        for one in inner
    }
    return Run(
        name=resource["name"].rpartition("/")[2],
        state=_state(resource.get("state")),
        created=resource.get("createTime", ""),
        ended=resource.get("endTime"),
        link=console_link(resource["name"]),
        error=resource.get("error", {}).get("message"),
        tasks=tuple(tasks[name] for name in sorted(tasks)),
    )


@contextmanager
def google_errors(*, shows_request: bool = False) -> Iterator[None]:
    """Reports errors of Google's libraries in one line.

    Args:
        shows_request: whether the command has `--dry-run`, which needs no credentials.

    Raises:
        UsageError: there are no credentials.
        ConfigError: the client knows no such region.
        ShardwrightError: Vertex AI refuses.
    """
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except GoogleAuthError as error:
        instead = ", or add --dry-run to see the request" if shows_request else ""
        raise UsageError(
            f"Google Cloud: no credentials ({_first_line(error)}). Run `gcloud auth application-default "
            f"login`{instead}."
        ) from None
    except GoogleAPICallError as error:
        raise ShardwrightError(f"Vertex AI refused: {_first_line(error)}") from None
    except ValueError as error:
        if not str(error).startswith("Unsupported region"):
            raise
        regions = "https://cloud.google.com/vertex-ai/docs/general/locations"
        raise ConfigError("vertex.region", "Vertex AI has no such region", f"Use one of {regions}.") from None


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _place(config: Config) -> dict[str, str | None]:
    return {"project": config.vertex.project, "location": config.vertex.region}


def _job(config: Config, name: str) -> aiplatform.PipelineJob:
    from google.api_core.exceptions import NotFound

    with google_errors():
        from google.cloud import aiplatform

        try:
            return aiplatform.PipelineJob.get(name, **_place(config))
        except NotFound:
            raise UsageError(
                f"run {name!r}: does not exist in {config.vertex.region} of {config.vertex.project}. "
                "`shardwright status CONFIG` lists the runs."
            ) from None


def _schedule(resource: dict[str, Any]) -> Schedule:
    return Schedule(
        name=resource["name"].rpartition("/")[2],
        state=_state(resource.get("state")),
        cron=resource.get("cron", ""),
        next_run=resource.get("nextRunTime"),
        link=console_link(resource["name"]),
    )


def _state(value: str | None) -> str:
    """Returns `running` for `PIPELINE_STATE_RUNNING`."""
    return _STATE_PREFIX.sub("", value or "unknown").lower()
