"""`vertex`: project, region, machines and folders for Vertex AI Pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.cloud import (
    IMAGE,
    LEAST_CPU,
    LEAST_MEMORY,
    MOST_RETRIES,
    RETRIES,
    Resources,
    check_bucket,
    check_components,
    check_data_root,
    check_label,
)
from shardwright.config.cron import check_cron
from shardwright.config.options import BYTES, Pattern, Section, option
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
_MOST_CPU, _MOST_MEMORY = 96, 624 * _GIGABYTE
# The API takes so many labels of a resource.
_MOST_LABELS = 64
_NETWORK_FIX = "Write projects/NUMBER/global/networks/NAME, with the number of the project."
_RESERVATION_NAME = Pattern(_RESERVATION, "Write projects/P/zones/Z/reservations/NAME.")


@dataclass(frozen=True)
class StepResources(Resources):
    """The resources that a step's machine must have, up to those of the largest one."""

    cpu: float | None = option(None, least=LEAST_CPU, most=_MOST_CPU, help="Virtual cores.")
    memory: int | None = option(None, least=LEAST_MEMORY, most=_MOST_MEMORY, form=BYTES, help="Memory in bytes.")


@dataclass(frozen=True)
class DiskConfig(Section):
    """A boot disk."""

    type: str | None = option(
        None,
        choices=_DISKS,
        help="`pd-ssd`, `pd-standard` or `hyperdisk-balanced`; by default that of the machine type.",
    )
    size: int | None = option(
        None, least=100 * _GIGABYTE, most=64_000 * _GIGABYTE, form=BYTES, help="Size in bytes; by default 100 GB."
    )


@dataclass(frozen=True)
class VertexTrainer(Section):
    """The machine that trains, as a CustomJob; without one the pipeline's own step does."""

    machine: str | None = option(None, help="Machine type, such as `ct5lp-hightpu-4t` or `g2-standard-8`.")
    topology: str | None = option(None, help="Topology of a TPU slice, such as `2x2`.")
    gpu: str | None = option(None, help="Kind of accelerator, such as `NVIDIA_L4`.")
    gpus: int = option(0, least=0, help="Number of accelerators.")
    max_hours: float = option(168.0, least=0.1, help="Hours after which Vertex AI ends the job.")
    capacity: str = option(
        ON_DEMAND,
        choices=CAPACITIES,
        help="`on_demand`; `spot` machines, which may be taken away; `flex_start`, which waits for machines; or "
        "`reservation`.",
    )
    max_wait_hours: float | None = option(None, least=0, help="Hours that `flex_start` waits at most.")
    reservation: str | None = option(
        None, form=_RESERVATION_NAME, help="`projects/PROJECT/zones/ZONE/reservations/NAME`."
    )
    disk: DiskConfig = option(factory=DiskConfig, help="The boot disk.")
    env: Mapping[str, str] = option(factory=dict, help="Environment variables of the container.")
    restart_on_worker_restart: bool = option(False, help="Whether the whole job starts again when one machine does.")
    persistent_resource: str | None = option(
        None,
        form=Pattern(_RESOURCE, "Write the ID of the resource."),
        help="ID of the persistent resource that runs it.",
    )

    def check(self, path: str) -> None:
        """Refuses options that contradict each other, and secrets in variables."""
        super().check(path)
        if (self.gpu is None) != (self.gpus == 0):
            raise ConfigError(f"{path}.gpus", f"{self.gpus} of {self.gpu}", "Give both gpu and gpus, or none.")
        if self.machine is None and self != VertexTrainer(max_hours=self.max_hours):
            raise ConfigError(f"{path}.machine", "missing", "Add it: g2-standard-8 or ct5lp-hightpu-4t.")
        if (self.reservation is None) != (self.capacity != RESERVATION):
            raise ConfigError(
                f"{path}.reservation",
                f"{self.reservation!r} with {path}.capacity: {self.capacity}",
                "Give both capacity: reservation and the reservation, or neither.",
            )
        if self.max_wait_hours is not None and self.capacity != FLEX_START:
            problem = f"has no effect with {path}.capacity: {self.capacity}"
            raise ConfigError(f"{path}.max_wait_hours", problem, "Use capacity: flex_start.")
        check_variables(f"{path}.env", tuple(self.env))
        fix = (
            "Put {name} into Secret Manager, and read it there in trainer.callbacks; a CustomJob refers to no secrets."
        )
        check_no_secrets(f"{path}.env", self.env, fix)


@dataclass(frozen=True)
class VertexNotify(Section):
    """The recipients of a mail after each run."""

    emails: tuple[str, ...] = option(
        (),
        form=Pattern(_EMAIL, "Write NAME@EXAMPLE.COM."),
        help="At most three addresses; Vertex AI writes to them after every run, whether it failed or not.",
    )

    def check(self, path: str) -> None:
        """Refuses more addresses than Vertex AI takes."""
        super().check(path)
        if len(self.emails) > _MOST_EMAILS:
            problem = f"{len(self.emails)} addresses, and Vertex AI takes at most {_MOST_EMAILS}"
            raise ConfigError(f"{path}.emails", problem, "Name the address of a group.")


@dataclass(frozen=True)
class DataflowConfig(Section):
    """The components that run on Dataflow, and their workers."""

    components: tuple[str, ...] = option((), help="Components that run on Dataflow.")
    machine: str = option(
        "n2-standard-4",
        form=Pattern(MACHINE, "Write a machine type such as n2-standard-4."),
        help="Machine type of the workers.",
    )
    max_workers: int = option(10, least=1, help="Upper limit of Dataflow's own scaling.")
    subnetwork: str | None = option(
        None,
        form=Pattern(_SUBNETWORK, "Write regions/REGION/subnetworks/NAME."),
        help="`regions/REGION/subnetworks/NAME`.",
    )
    public_ips: bool = option(True, help="Whether workers have public addresses.")

    def check(self, path: str) -> None:
        """Refuses components that do not run on Dataflow."""
        super().check(path)
        if "Evaluator" in self.components:
            raise ConfigError(
                f"{path}.components.Evaluator",
                "the Evaluator works on folders of its machine, where TFMA's workers would look for the model",
                "Give it a large machine (vertex.resources.Evaluator) and processes on it "
                "(`shardwright docs deploy/beam-runners`).",
            )
        check_components(f"{path}.components", self.components, ON_DATAFLOW)


@dataclass(frozen=True)
class ScheduleConfig(Section):
    """The times at which a schedule starts runs."""

    cron: str | None = option(None, form=check_cron, help="Cron expression of five fields; `TZ=ZONE ` may precede it.")
    max_runs: int | None = option(None, least=1, help="Number of runs after which it ends; by default it never does.")
    max_concurrent_runs: int = option(1, least=1, help="Number of concurrent runs.")


@dataclass(frozen=True)
class VertexConfig(Section):
    """The options of `compile --target vertex`, `submit` and `schedule`."""

    PATH: ClassVar[str] = "vertex"

    project: str | None = option(
        None, form=Pattern(_PROJECT, "Write the project's id, such as my-project."), help="Google Cloud project."
    )
    region: str | None = option(
        None,
        form=Pattern(_REGION, "Write a region such as europe-west4."),
        help="Where pipelines, training and Dataflow run.",
    )
    service_account: str | None = option(
        None,
        form=Pattern(_SERVICE_ACCOUNT, "Write NAME@PROJECT.iam.gserviceaccount.com."),
        help="The account of the runs.",
    )
    pipeline_root: str | None = option(None, form=check_bucket, help="Folder of all artifacts.")
    data_root: str | None = option(
        None, form=check_data_root, help="Folder that stands for the one of `input`; by default that one itself."
    )
    push_directory: str | None = option(
        None, form=check_bucket, help="Folder of blessed models; by default `pushed` below `pipeline_root`."
    )
    image: str | None = option(None, form=IMAGE, help="Shardwright's image.")
    retries: int = option(RETRIES, least=0, most=MOST_RETRIES, help="How often a task that fails is run again.")
    network: str | None = option(
        None, form=Pattern(_NETWORK, _NETWORK_FIX), help="A peered network, `projects/NUMBER/global/networks/NAME`."
    )
    reserved_ip_ranges: tuple[str, ...] = option(
        (),
        form=Pattern(_RESOURCE, "Write the name of the range."),
        help="Names of ranges of that network that runs and jobs may use.",
    )
    network_attachment: str | None = option(
        None,
        form=Pattern(_ATTACHMENT, "Write projects/P/regions/R/networkAttachments/NAME."),
        help="Attachment of a Private Service Connect interface, for the job that trains.",
    )
    kms_key: str | None = option(
        None,
        form=Pattern(_KMS_KEY, "Write projects/P/locations/L/keyRings/R/cryptoKeys/K."),
        help="Key that encrypts runs and jobs, `projects/…/locations/…/keyRings/…/cryptoKeys/NAME`.",
    )
    experiment: str | None = option(
        None,
        form=Pattern(_ID, "Use a-z, 0-9 and -, at most 128."),
        help="Experiment of Vertex AI that runs of `submit` are added to. Runs of a schedule have none.",
    )
    labels: Mapping[str, str] = option(factory=dict, help="Labels of runs and jobs.")
    resources: Mapping[str, StepResources] = option(factory=dict, help="Component -> resources of its machine.")
    trainer: VertexTrainer = option(factory=VertexTrainer, help="The machine that trains.")
    dataflow: DataflowConfig = option(factory=DataflowConfig)
    schedule: ScheduleConfig = option(factory=ScheduleConfig)
    notify: VertexNotify = option(factory=VertexNotify)

    def check(self, path: str) -> None:
        """Refuses options that contradict each other, and what Vertex AI refuses."""
        super().check(path)
        if self.reserved_ip_ranges and self.network is None:
            problem = "are ranges of vertex.network, which is missing"
            raise self.error("reserved_ip_ranges", problem, _NETWORK_FIX)
        if self.network is not None and self.network_attachment is not None:
            raise self.error(
                "network_attachment", "vertex.network is given, too", "Use peering (network) or an attachment."
            )
        for label, value in self.labels.items():
            check_label("vertex.labels", label, value)
        if len(self.labels) > _MOST_LABELS:
            raise self.error("labels", f"{len(self.labels)} are too many", f"Use at most {_MOST_LABELS}.")
        check_components("vertex.resources", self.resources)
        for place, name, pattern in (
            ("vertex.kms_key", self.kms_key, _KMS_KEY),
            ("vertex.network_attachment", self.network_attachment, _ATTACHMENT),
            ("vertex.dataflow.subnetwork", self.dataflow.subnetwork, _SUBNETWORK),
            ("vertex.trainer.reservation", self.trainer.reservation, _RESERVATION),
        ):
            match = pattern.fullmatch(name or "")
            if match is not None and self.region is not None and match["region"] != self.region:
                problem = f"is in {match['region']}, and vertex.region is {self.region}"
                raise ConfigError(place, problem, "Use one of the same region.")
