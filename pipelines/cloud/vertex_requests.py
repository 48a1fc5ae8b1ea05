"""`shardwright submit` and `schedule`: requests to Vertex AI, with the user's credentials."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardwright.config import Config
from shardwright.config.cloud import check_data_root
from shardwright.config.vertex import ScheduleConfig
from shardwright.errors import ConfigError, UsageError
from shardwright.pipelines.cloud.aiplatform_compat import reserve_ranges
from shardwright.pipelines.cloud.deliver_model import location_of
from shardwright.pipelines.cloud.pipeline_document import DATA_ROOT, SPAN, Compiled
from shardwright.pipelines.cloud.vertex_runs import Run, console_link, google_errors, run_of, schedules_of
from shardwright.pipelines.compile_vertex import compile_vertex, vertex_document
from shardwright.storage.spans import NEWEST, Choice

if TYPE_CHECKING:
    from google.cloud import aiplatform

PARAMETERS = (DATA_ROOT, SPAN)
# An ID of a run, by the API of Vertex AI.
_RUN_NAME = re.compile(r"[a-z][a-z0-9-]{0,127}")


@dataclasses.dataclass(frozen=True)
class SubmitOptions:
    """The options of the command line.

    Attributes:
        parameters: values of the run's parameters.
        cached: whether finished work is used again.
        cron: replaces `vertex.schedule.cron`.
        run_name: ID of the run; by default the configuration's name and the time.
        dry_run: show the request and send nothing.
        replace: whether a new schedule replaces those of the same name.
    """

    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cached: bool = True
    cron: str | None = None
    run_name: str | None = None
    dry_run: bool = False
    replace: bool = False


def submit_request(config: Config, config_file: Path, wanted: SubmitOptions) -> str:
    """Returns the request of a run as JSON; sends nothing and needs no credentials.

    Raises:
        ShardwrightError: the configuration is wrong.
    """
    config, compiled = _compile(config, config_file, wanted)
    with google_errors(shows_request=True), _job(config, compiled, wanted) as job:
        return _to_json({"parent": location_of(config), "pipelineJob": _with_account(config, job.to_dict())})


def submit(config: Config, config_file: Path, wanted: SubmitOptions) -> Run:
    """Starts a run; returns it.

    Raises:
        ShardwrightError: the configuration is wrong, there are no credentials, or Vertex AI refuses.
    """
    config, compiled = _compile(config, config_file, wanted)
    with google_errors(shows_request=True), _job(config, compiled, wanted) as job:
        job.submit(
            service_account=config.vertex.service_account,
            network=config.vertex.network,
            reserved_ip_ranges=list(config.vertex.reserved_ip_ranges) or None,
            experiment=config.vertex.experiment,
        )
        return run_of(job.to_dict())


def schedule(config: Config, config_file: Path, wanted: SubmitOptions) -> str:
    """Starts recurring runs; see `submit`. A configuration has one schedule, of its name.

    Returns:
        Its link, or the request as JSON where nothing is to be sent. A schedule that exists with the same times stays.

    Raises:
        UsageError: a schedule of that name exists with other times, and it is not to be replaced.
        ShardwrightError: as of `submit`.
    """
    options = config.vertex.schedule
    if wanted.cron is not None:
        # The section checks it like a value of the file.
        options = dataclasses.replace(options, cron=wanted.cron)
        config = dataclasses.replace(config, vertex=dataclasses.replace(config.vertex, schedule=options))
    if options.cron is None:
        raise ConfigError("vertex.schedule.cron", "missing", "Write `TZ=Europe/Paris 0 3 1 * *`, or give --cron.")
    if config.vertex.experiment is not None:
        # The client adds a run to an experiment after it has made the run. A job has no field for it.
        problem = "Vertex AI does not add scheduled runs to an experiment. Runs of `shardwright submit` are added"
        print(f"vertex.experiment: {problem}.", file=sys.stderr)
    config, compiled = _compile(config, config_file, wanted)
    with google_errors(shows_request=True), _job(config, compiled, wanted) as job:
        from google.cloud import aiplatform

        reserve_ranges(job, config.vertex.reserved_ip_ranges)
        runs = aiplatform.PipelineJobSchedule(
            pipeline_job=job, display_name=config.name, credentials=_credentials(wanted)
        )
        if wanted.dry_run:
            request = runs.to_dict()
            created = request["createPipelineJobRequest"]
            created["pipelineJob"] = _with_account(config, created["pipelineJob"])
            request |= {"cron": options.cron, "maxConcurrentRunCount": str(options.max_concurrent_runs)}
            if options.max_runs is not None:
                request["maxRunCount"] = str(options.max_runs)
            return _to_json({"schedule": request})
        earlier = schedules_of(config)
        if earlier and not wanted.replace:
            return _link_of_existing(config.name, options, earlier)
        runs.create(
            cron=options.cron,
            max_run_count=options.max_runs,
            max_concurrent_run_count=options.max_concurrent_runs,
            service_account=config.vertex.service_account,
            network=config.vertex.network,
        )
        # Only now that the new one exists: an error before must not end the runs.
        for schedule in earlier:
            schedule.delete()
            print(f"schedule {config.name!r}: replaced {schedule.resource_name}", file=sys.stderr)
        return console_link(runs.resource_name)


def _link_of_existing(name: str, options: ScheduleConfig, earlier: list[aiplatform.PipelineJobSchedule]) -> str:
    """Returns the link of the schedule that exists; nothing is sent.

    Raises:
        UsageError: there are several, or it starts runs at other times.
    """
    first, *others = earlier
    fix = "Add --replace to replace it."
    if others:
        links = ", ".join(console_link(schedule.resource_name) for schedule in earlier)
        raise UsageError(f"schedule {name!r}: {len(earlier)} schedules of that name exist: {links}. {fix}")
    exists = {
        "cron": first.cron,
        "max_concurrent_runs": first.max_concurrent_run_count,
        "max_runs": first.max_run_count or None,
    }
    asked = {name: getattr(options, name) for name in exists}
    for key, value in exists.items():
        if value != asked[key]:
            raise UsageError(
                f"schedule {name!r}: exists with {key} {value!r}, and vertex.schedule.{key} is {asked[key]!r}. {fix}"
            )
    print(
        f"schedule {name!r}: exists already, so nothing was sent. Its runs keep their earlier pipeline. {fix}",
        file=sys.stderr,
    )
    return console_link(first.resource_name)


def _compile(config: Config, config_file: Path, wanted: SubmitOptions) -> tuple[Config, Compiled]:
    if wanted.run_name is not None and not _RUN_NAME.fullmatch(wanted.run_name):
        raise UsageError(f"--run-name: {wanted.run_name!r} is not an ID. Use a-z, 0-9 and -, a letter first.")
    for name in wanted.parameters:
        if name not in PARAMETERS:
            raise UsageError(f"--parameter {name}: is not a parameter of a run. Use: {', '.join(PARAMETERS)}.")
    data_root = wanted.parameters.get(DATA_ROOT)
    if data_root is not None:
        check_data_root(f"--parameter {DATA_ROOT}", data_root)
        config = dataclasses.replace(config, vertex=dataclasses.replace(config.vertex, data_root=data_root))
    Choice.parse(f"--parameter {SPAN}", _parameters(wanted).get(SPAN, NEWEST))
    return config, compile_vertex(config, config_file)


def _parameters(wanted: SubmitOptions) -> dict[str, str]:
    """Returns the values of the run's parameters, with the number of a date that is its span."""
    return {name: str(Choice.written(text)) if name == SPAN else text for name, text in wanted.parameters.items()}


@contextmanager
def _job(config: Config, compiled: Compiled, wanted: SubmitOptions) -> Iterator[aiplatform.PipelineJob]:
    from google.cloud import aiplatform

    with tempfile.TemporaryDirectory(prefix="shardwright-") as folder:
        file = Path(folder, "pipeline.json")
        file.write_text(vertex_document(compiled), encoding="utf-8")
        yield aiplatform.PipelineJob(
            display_name=config.name,
            template_path=str(file),
            project=config.vertex.project,
            location=config.vertex.region,
            pipeline_root=config.vertex.pipeline_root,
            parameter_values=_parameters(wanted),
            # None keeps each task's own setting; some are never cached.
            enable_caching=None if wanted.cached else False,
            labels=dict(config.vertex.labels),
            encryption_spec_key_name=config.vertex.kms_key,
            job_id=wanted.run_name,
            credentials=_credentials(wanted),
        )


def _credentials(wanted: SubmitOptions) -> Any:
    if not wanted.dry_run:
        return None
    from google.auth.credentials import AnonymousCredentials

    return AnonymousCredentials()


def _with_account(config: Config, job: dict[str, Any]) -> dict[str, Any]:
    """Adds the fields that the library adds when it sends the job."""
    section = config.vertex
    further = {
        "serviceAccount": section.service_account,
        "network": section.network,
        "reservedIpRanges": list(section.reserved_ip_ranges) or None,
    }
    return {**job, **{name: value for name, value in further.items() if value is not None}}


def _to_json(request: dict[str, Any]) -> str:
    return json.dumps(request, sort_keys=True, indent=1, ensure_ascii=False)
