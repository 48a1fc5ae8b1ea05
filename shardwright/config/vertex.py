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
    check_data_root,
    check_image,
    check_label,
    check_resources,
)
from shardwright.config.cron import check_cron
from shardwright.config.parsing import at_least, between, one_of
from shardwright.config.pods import check_no_secrets, check_variables
from shardwright.errors import ConfigError

# The components whose workers may be on any machine, since they read and write buckets directly.
ON_DATAFLOW = ("ImageExampleGen", "StatisticsGen", "ImageTransform")

_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+")
_GIGABYTE = 10**9
_SERVICE_ACCOUNT = re.compile(r"[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com")
_KMS_KEY = re.compile(r"projects/[^/]+/locations/(?P<region>[^/]+)/keyRings/[^/]+/cryptoKeys/[^/]+")
# The name of a resource of Compute Engine, such as a network or a range of addresses.
_RESOURCE = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_NETWORK = re.compile(rf"projects/[0-9]+/global/networks/{_RESOURCE.pattern}")
_SUBNETWORK = re.compile(
    rf"(https://www\.googleapis\.com/compute/v1/)?(projects/[^/\s]+/)?regions/(?P<region>[^/\s]+)/subnetworks/{_RESOURCE.pattern}"
)
MACHINE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_ATTACHMENT = re.compile(r"projects/[^/]+/regions/(?P<region>[^/]+)/networkAttachments/[^/]+")
_RESERVATION = re.compile(r"projects/[^/]+/zones/(?P<region>[a-z]+-[a-z]+[0-9]+)-[^/]+/reservations/[^/]+")
_ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,126}[a-z0-9])?")
ON_DEMAND, SPOT, FLEX_START, RESERVATION = "on_demand", "spot", "flex_start", "reservation"
CAPACITIES = (ON_DEMAND, SPOT, FLEX_START, RESERVATION)
_DISKS = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
_EMAIL = re.compile(r"[^@\s,<>]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
# cloud.google.com/vertex-ai/docs/pipelines/email-notifications
_MOST_EMAILS = 3
# cloud.google.com/vertex-ai/docs/pipelines/machine-types
LARGEST_STEP = Resources(96, 624 * _GIGABYTE)
# The API takes so many labels of a resource.
_MOST_LABELS = 64


@dataclass(frozen=True)
class DiskConfig:
    """A boot disk.

    Attributes:
        type: `pd-ssd`, `pd-standard` or `hyperdisk-balanced`; by default that of the machine type.
        size: bytes; by default 100 GB.
    """

    type: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class VertexTrainer:
    """The machine that trains, as a CustomJob; without one the pipeline's own step does.

    Attributes:
        machine: machine type, `ct5lp-hightpu-4t` or `g2-standard-8`.
        topology: of a TPU slice, `2x2`.
        gpu: kind of accelerator, `NVIDIA_L4`.
        gpus: how many.
        max_hours: hours after which Vertex AI ends the job.
        capacity: `on_demand`; `spot` machines, which may be taken away; `flex_start`, which waits for machines; or
            `reservation`.
        max_wait_hours: hours that `flex_start` waits at most.
        reservation: `projects/PROJECT/zones/ZONE/reservations/NAME`.
        disk: the boot disk.
        env: environment variables of the container.
        restart_on_worker_restart: whether the whole job starts again when one machine does.
        persistent_resource: ID of the persistent resource that runs it.
    """

    machine: str | None = None
    topology: str | None = None
    gpu: str | None = None
    gpus: int = 0
    max_hours: float = 168.0
    capacity: str = ON_DEMAND
    max_wait_hours: float | None = None
    reservation: str | None = None
    disk: DiskConfig = field(default_factory=DiskConfig)
    env: Mapping[str, str] = field(default_factory=dict)
    restart_on_worker_restart: bool = False
    persistent_resource: str | None = None


@dataclass(frozen=True)
class VertexNotify:
    """The recipients of a mail after each run.

    Attributes:
        emails: at most three addresses; Vertex AI writes to them after every run, whether it failed or not.
    """

    emails: tuple[str, ...] = ()


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
        max_concurrent_runs: number of concurrent runs.
    """

    cron: str | None = None
    max_runs: int | None = None
    max_concurrent_runs: int = 1


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
        reserved_ip_ranges: names of ranges of that network that runs and jobs may use.
        network_attachment: attachment of a Private Service Connect interface, for the job that trains.
        kms_key: key that encrypts runs and jobs, `projects/…/locations/…/keyRings/…/cryptoKeys/NAME`.
        experiment: experiment of Vertex AI that runs of `submit` are added to. Runs of a schedule have none.
        labels: labels of runs and jobs.
        resources: component -> resources of its machine.
        trainer: the machine that trains.
        dataflow: what runs on Dataflow.
        schedule: when.
        notify: recipients of a mail after each run.
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
    reserved_ip_ranges: tuple[str, ...] = ()
    network_attachment: str | None = None
    kms_key: str | None = None
    experiment: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Resources] = field(default_factory=dict)
    trainer: VertexTrainer = field(default_factory=VertexTrainer)
    dataflow: DataflowConfig = field(default_factory=DataflowConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    notify: VertexNotify = field(default_factory=VertexNotify)

    def __post_init__(self) -> None:
        _matches("vertex.project", self.project, _PROJECT, "Write the project's id, such as my-project.")
        _matches("vertex.region", self.region, _REGION, "Write a region such as europe-west4.")
        account = "Write NAME@PROJECT.iam.gserviceaccount.com."
        _matches("vertex.service_account", self.service_account, _SERVICE_ACCOUNT, account)
        for name in ("pipeline_root", "push_directory"):
            check_bucket(f"vertex.{name}", getattr(self, name))
        check_data_root("vertex.data_root", self.data_root)
        check_image("vertex.image", self.image)
        _matches("vertex.kms_key", self.kms_key, _KMS_KEY, "Write projects/P/locations/L/keyRings/R/cryptoKeys/K.")
        _matches("vertex.experiment", self.experiment, _ID, "Use a-z, 0-9 and -, at most 128.")
        attachment = "Write projects/P/regions/R/networkAttachments/NAME."
        _matches("vertex.network_attachment", self.network_attachment, _ATTACHMENT, attachment)
        network = "Write projects/NUMBER/global/networks/NAME, with the number of the project."
        _matches("vertex.network", self.network, _NETWORK, network)
        for number, name in enumerate(self.reserved_ip_ranges):
            _matches(f"vertex.reserved_ip_ranges[{number}]", name, _RESOURCE, "Write the name of the range.")
        if self.reserved_ip_ranges and self.network is None:
            raise ConfigError("vertex.reserved_ip_ranges", "are ranges of vertex.network, which is missing", network)
        if self.network is not None and self.network_attachment is not None:
            raise ConfigError(
                "vertex.network_attachment", "vertex.network is given, too", "Use peering (network) or an attachment."
            )
        between("vertex.retries", self.retries, 0, MOST_RETRIES)
        for label, value in self.labels.items():
            check_label("vertex.labels", label, value)
        if len(self.labels) > _MOST_LABELS:
            raise ConfigError("vertex.labels", f"{len(self.labels)} are too many", f"Use at most {_MOST_LABELS}.")
        check_components("vertex.resources", self.resources)
        for component, resources in self.resources.items():
            check_resources(f"vertex.resources.{component}", resources, LARGEST_STEP)
        _check_dataflow(self.dataflow)
        _check_trainer(self.trainer)
        for path, place, pattern in (
            ("vertex.kms_key", self.kms_key, _KMS_KEY),
            ("vertex.network_attachment", self.network_attachment, _ATTACHMENT),
            ("vertex.dataflow.subnetwork", self.dataflow.subnetwork, _SUBNETWORK),
            ("vertex.trainer.reservation", self.trainer.reservation, _RESERVATION),
        ):
            found = pattern.fullmatch(place or "")
            if found is not None and self.region is not None and found["region"] != self.region:
                problem = f"is in {found['region']}, and vertex.region is {self.region}"
                raise ConfigError(path, problem, "Use one of the same region.")
        _check_schedule(self.schedule)
        _check_notify(self.notify)


def _matches(path: str, value: str | None, pattern: re.Pattern[str], fix: str) -> None:
    if value is not None and not pattern.fullmatch(value):
        raise ConfigError(path, f"{value!r} is not well formed", fix)


def _check_dataflow(dataflow: DataflowConfig) -> None:
    if "Evaluator" in dataflow.components:
        raise ConfigError(
            "vertex.dataflow.components.Evaluator",
            "the Evaluator works on folders of its machine, where TFMA's workers would look for the model",
            "Give it a large machine (vertex.resources.Evaluator) and processes on it "
            "(`shardwright docs deploy/beam-runners`).",
        )
    check_components("vertex.dataflow.components", dataflow.components, ON_DATAFLOW)
    _matches("vertex.dataflow.machine", dataflow.machine, MACHINE, "Write a machine type such as n2-standard-4.")
    subnetwork = "Write regions/REGION/subnetworks/NAME."
    _matches("vertex.dataflow.subnetwork", dataflow.subnetwork, _SUBNETWORK, subnetwork)
    at_least("vertex.dataflow.max_workers", dataflow.max_workers, 1)


def _check_trainer(trainer: VertexTrainer) -> None:
    at_least("vertex.trainer.gpus", trainer.gpus, 0)
    at_least("vertex.trainer.max_hours", trainer.max_hours, 0.1)
    if (trainer.gpu is None) != (trainer.gpus == 0):
        raise ConfigError("vertex.trainer.gpus", f"{trainer.gpus} of {trainer.gpu}", "Give both gpu and gpus, or none.")
    if trainer.machine is None and trainer != VertexTrainer(max_hours=trainer.max_hours):
        raise ConfigError("vertex.trainer.machine", "missing", "Add it: g2-standard-8 or ct5lp-hightpu-4t.")
    _check_capacity(trainer)
    if trainer.disk.type is not None:
        one_of("vertex.trainer.disk.type", trainer.disk.type, _DISKS)
    if trainer.disk.size is not None:
        between("vertex.trainer.disk.size", trainer.disk.size, 100 * _GIGABYTE, 64_000 * _GIGABYTE)
    check_variables("vertex.trainer.env", tuple(trainer.env))
    fix = "Put {name} into Secret Manager, and read it there in trainer.callbacks; a CustomJob refers to no secrets."
    check_no_secrets("vertex.trainer.env", trainer.env, fix)
    resource = "Write the ID of the resource."
    _matches("vertex.trainer.persistent_resource", trainer.persistent_resource, _RESOURCE, resource)


def _check_capacity(trainer: VertexTrainer) -> None:
    path = "vertex.trainer"
    one_of(f"{path}.capacity", trainer.capacity, CAPACITIES)
    _matches(f"{path}.reservation", trainer.reservation, _RESERVATION, "Write projects/P/zones/Z/reservations/NAME.")
    if (trainer.reservation is None) != (trainer.capacity != RESERVATION):
        raise ConfigError(
            f"{path}.reservation",
            f"{trainer.reservation!r} with {path}.capacity: {trainer.capacity}",
            "Give both capacity: reservation and the reservation, or neither.",
        )
    if trainer.max_wait_hours is not None:
        at_least(f"{path}.max_wait_hours", trainer.max_wait_hours, 0)
        if trainer.capacity != FLEX_START:
            raise ConfigError(
                f"{path}.max_wait_hours",
                f"has no effect with {path}.capacity: {trainer.capacity}",
                "Use capacity: flex_start.",
            )


def _check_notify(notify: VertexNotify) -> None:
    for number, address in enumerate(notify.emails):
        _matches(f"vertex.notify.emails[{number}]", address, _EMAIL, "Write NAME@EXAMPLE.COM.")
    if len(notify.emails) > _MOST_EMAILS:
        raise ConfigError(
            "vertex.notify.emails",
            f"{len(notify.emails)} addresses, and Vertex AI takes at most {_MOST_EMAILS}",
            "Name the address of a group.",
        )


def _check_schedule(schedule: ScheduleConfig) -> None:
    if schedule.cron is not None:
        check_cron("vertex.schedule.cron", schedule.cron)
    if schedule.max_runs is not None:
        at_least("vertex.schedule.max_runs", schedule.max_runs, 1)
    at_least("vertex.schedule.max_concurrent_runs", schedule.max_concurrent_runs, 1)
