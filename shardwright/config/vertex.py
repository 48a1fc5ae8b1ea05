"""`vertex`: project, region, machines and folders for Vertex AI Pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.cloud import (
    MOST_RETRIES,
    RETRIES,
    Resources,
    check_bucket,
    check_components,
    check_image,
    check_label,
    check_resources,
)
from shardwright.config.parsing import at_least, between
from shardwright.errors import ConfigError

# The components whose workers may be on any machine, since they read and write buckets directly.
ON_DATAFLOW = ("ImageExampleGen", "StatisticsGen", "ImageTransform")

_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+")
_SERVICE_ACCOUNT = re.compile(r"[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com")
_CRON_FIELDS = 5


@dataclass(frozen=True)
class VertexTrainer:
    """The machine that trains, as a CustomJob; without one the pipeline's own step does.

    Attributes:
        machine: machine type, `ct5lp-hightpu-4t` or `g2-standard-8`.
        topology: of a TPU slice, `2x2`.
        gpu: kind of accelerator, `NVIDIA_L4`.
        gpus: how many.
        max_hours: hours after which Vertex AI ends the job.
    """

    machine: str | None = None
    topology: str | None = None
    gpu: str | None = None
    gpus: int = 0
    max_hours: float = 168


@dataclass(frozen=True)
class DataflowConfig:
    """The components that run on Dataflow, and their workers.

    Attributes:
        components: their names.
        machine: machine type of the workers.
        max_workers: upper limit of Dataflow's own scaling.
        subnetwork: `regions/REGION/subnetworks/NAME`.
        public_ips: whether workers have public addresses.
    """

    components: tuple[str, ...] = ()
    machine: str = "n2-standard-4"
    max_workers: int = 10
    subnetwork: str | None = None
    public_ips: bool = True


@dataclass(frozen=True)
class ScheduleConfig:
    """The times at which a schedule starts runs.

    Attributes:
        cron: five fields, after `TZ=ZONE ` if wanted.
        max_runs: after how many it ends, `None` for never.
        concurrent: number of concurrent runs.
    """

    cron: str | None = None
    max_runs: int | None = None
    concurrent: int = 1


@dataclass(frozen=True)
class VertexConfig:
    """The options of `compile --target vertex`, `submit` and `schedule`.

    Attributes:
        project: Google Cloud project.
        region: where pipelines, training and Dataflow run.
        service_account: the account of the runs.
        pipeline_root: folder of all artifacts.
        data_root: folder that stands for the one of `input`; by default that one itself.
        push_directory: folder of blessed models; by default `pushed` below `pipeline_root`.
        image: Shardwright's image.
        retries: how often a task that fails is run again.
        network: a peered network, `projects/NUMBER/global/networks/NAME`.
        labels: labels of runs and jobs.
        machines: component -> resources of its machine.
        trainer: the machine that trains.
        dataflow: what runs on Dataflow.
        schedule: when.
    """

    PATH: ClassVar[str] = "vertex"

    project: str | None = None
    region: str | None = None
    service_account: str | None = None
    pipeline_root: str | None = None
    data_root: str | None = None
    push_directory: str | None = None
    image: str | None = None
    retries: int = RETRIES
    network: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    machines: Mapping[str, Resources] = field(default_factory=dict)
    trainer: VertexTrainer = field(default_factory=VertexTrainer)
    dataflow: DataflowConfig = field(default_factory=DataflowConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)

    def __post_init__(self) -> None:
        _matches("vertex.project", self.project, _PROJECT, "Write the project's id, such as my-project.")
        _matches("vertex.region", self.region, _REGION, "Write a region such as europe-west4.")
        account = "Write NAME@PROJECT.iam.gserviceaccount.com."
        _matches("vertex.service_account", self.service_account, _SERVICE_ACCOUNT, account)
        for name in ("pipeline_root", "data_root", "push_directory"):
            check_bucket(f"vertex.{name}", getattr(self, name))
        check_image("vertex.image", self.image)
        between("vertex.retries", self.retries, 0, MOST_RETRIES)
        for label, value in self.labels.items():
            check_label("vertex.labels", label, value)
        check_components("vertex.machines", self.machines)
        for component, resources in self.machines.items():
            check_resources(f"vertex.machines.{component}", resources)
        _check_dataflow(self.dataflow)
        _check_trainer(self.trainer)
        _check_schedule(self.schedule)


def _matches(path: str, value: str | None, pattern: re.Pattern[str], fix: str) -> None:
    if value is not None and not pattern.fullmatch(value):
        raise ConfigError(path, f"{value!r} is not well formed", fix)


def _check_dataflow(dataflow: DataflowConfig) -> None:
    if "Evaluator" in dataflow.components:
        raise ConfigError(
            "vertex.dataflow.components.Evaluator",
            "the Evaluator works on folders of its machine, where TFMA's workers would look for the model",
            "Give it a large machine (vertex.machines.Evaluator) and processes on it (docs/dataflow.md).",
        )
    check_components("vertex.dataflow.components", dataflow.components, ON_DATAFLOW)
    at_least("vertex.dataflow.max_workers", dataflow.max_workers, 1)


def _check_trainer(trainer: VertexTrainer) -> None:
    at_least("vertex.trainer.gpus", trainer.gpus, 0)
    at_least("vertex.trainer.max_hours", trainer.max_hours, 0.1)
    if trainer.machine is None and (trainer.topology or trainer.gpu or trainer.gpus):
        raise ConfigError("vertex.trainer.machine", "missing", "Add it: g2-standard-8 or ct5lp-hightpu-4t.")
    if (trainer.gpu is None) != (trainer.gpus == 0):
        raise ConfigError("vertex.trainer.gpus", f"{trainer.gpus} of {trainer.gpu}", "Give both gpu and gpus, or none.")


def _check_schedule(schedule: ScheduleConfig) -> None:
    if schedule.cron is not None:
        zone, _, rest = schedule.cron.rpartition("TZ=")
        fields = schedule.cron.split() if not zone and "TZ=" not in schedule.cron else rest.split()[1:]
        if len(fields) != _CRON_FIELDS or not all(re.fullmatch(r"[0-9A-Za-z*/,?#-]+", part) for part in fields):
            raise ConfigError(
                "vertex.schedule.cron", f"{schedule.cron!r} has no five fields", "Write `TZ=Europe/Paris 0 3 1 * *`."
            )
    if schedule.max_runs is not None:
        at_least("vertex.schedule.max_runs", schedule.max_runs, 1)
    at_least("vertex.schedule.concurrent", schedule.concurrent, 1)
