"""`kubeflow`: the nodes, volumes and folders of a cluster for Kubeflow Pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.cloud import (
    MOST_RETRIES,
    RETRIES,
    Resources,
    check_components,
    check_image,
    check_no_span,
    check_resources,
)
from shardwright.config.kubernetes_names import (
    SHARED_MEMORY,
    check_mount,
    is_label,
    is_label_value,
    is_qualified,
    mount_point,
)
from shardwright.config.parsing import at_least, between, one_of
from shardwright.config.pods import (
    ALL,
    JobSetConfig,
    KubeflowNotify,
    PodConfig,
    check_jobset,
    check_notify,
    check_pod,
    check_secret_names,
)
from shardwright.errors import ConfigError
from shardwright.storage.paths import MINIO, MOUNTED_SCHEMES, SCHEMES, scheme_of

_VERSION = re.compile(r"2\.\d{1,3}(\.\d{1,3})?", re.ASCII)


@dataclass(frozen=True)
class KubeflowTrainer:
    """The accelerator of the pod that trains.

    Attributes:
        machine: TPU machine type of the node pool, `ct5lp-hightpu-4t`.
        topology: of its slice, `2x2`.
        gpu: resource that a device plugin offers, `nvidia.com/gpu`.
        gpus: how many.
    """

    machine: str | None = None
    topology: str | None = None
    gpu: str | None = None
    gpus: int = 0


@dataclass(frozen=True)
class Toleration:
    """A taint that pods may live with, as Kubernetes writes it.

    Attributes:
        key: Key of the taint.
        operator: `Exists` or `Equal`.
        value: Value, with `Equal`.
        effect: Effect of the taint; by default any.
    """

    key: str
    operator: str = "Exists"
    value: str | None = None
    effect: str | None = None


@dataclass(frozen=True)
class Volume:
    """A persistent volume claim, mounted in every pod.

    Attributes:
        claim: name of the PersistentVolumeClaim.
        path: where it is mounted.
    """

    claim: str
    path: str


@dataclass(frozen=True)
class KubeflowConfig:
    """The options of `compile --target kubeflow`.

    Attributes:
        image: Shardwright's image.
        version: of Kubeflow Pipelines' backend, such as `"2.5"`, if it is older than 2.14; by default a current one.
        retries: how often a task that fails is run again.
        image_parameter: whether a run may be given another image, which Kubeflow's backend takes from 2.4 on.
        pipeline_root: folder of all artifacts; by default the cluster's own.
        data_root: folder that stands for the one of `input`, on a volume or a bucket; by default that one itself.
        push_directory: folder of blessed models, on a volume.
        resources: component -> resources of its pod.
        node_selectors: component -> labels of the nodes it may run on.
        tolerations: component -> taints it lives with.
        volumes: claims mounted in every pod.
        pods: component, or `all` -> further settings of its pods.
        image_pull_secrets: Secrets with the credentials of the image's registry.
        trainer: the accelerator of the pod that trains.
        jobset: the JobSet that trains on a slice of several hosts.
        notify: the webhook that a run posts to when it has ended.
    """

    PATH: ClassVar[str] = "kubeflow"

    image: str | None = None
    version: str | None = None
    retries: int = RETRIES
    image_parameter: bool = False
    pipeline_root: str | None = None
    data_root: str | None = None
    push_directory: str | None = None
    resources: Mapping[str, Resources] = field(default_factory=dict)
    node_selectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tolerations: Mapping[str, tuple[Toleration, ...]] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    pods: Mapping[str, PodConfig] = field(default_factory=dict)
    image_pull_secrets: tuple[str, ...] = ()
    trainer: KubeflowTrainer = field(default_factory=KubeflowTrainer)
    jobset: JobSetConfig = field(default_factory=JobSetConfig)
    notify: KubeflowNotify = field(default_factory=KubeflowNotify)

    def __post_init__(self) -> None:
        check_image("kubeflow.image", self.image)
        if self.version is not None and not _VERSION.fullmatch(self.version):
            problem = f"{self.version!r} is not a version of Kubeflow Pipelines 2"
            raise ConfigError("kubeflow.version", problem, 'Write e.g. "2.5", in quotes.')
        if self.image_parameter and not self.is_at_least(4):
            problem = f"Kubeflow Pipelines {self.version} takes no image of the run"
            raise ConfigError("kubeflow.image_parameter", problem, "Remove it, or use a backend from 2.4 on.")
        between("kubeflow.retries", self.retries, 0, MOST_RETRIES)
        if self.pipeline_root is not None and not any(
            scheme.is_folder_url(self.pipeline_root) for scheme in MOUNTED_SCHEMES
        ):
            raise ConfigError(
                "kubeflow.pipeline_root",
                f"{self.pipeline_root!r} is not a folder on an object store",
                f"Write {', '.join(scheme.prefix for scheme in SCHEMES)} or {MINIO.prefix}, then BUCKET/FOLDER.",
            )
        check_no_span("kubeflow.data_root", self.data_root)
        scheme = None if self.data_root is None else scheme_of(self.data_root)
        if scheme is not None and not scheme.is_folder_url(str(self.data_root)):
            problem = f"{self.data_root!r} is not a folder of a bucket"
            raise ConfigError("kubeflow.data_root", problem, f"Write {scheme.prefix}BUCKET/FOLDER.")
        for name, mapping in (
            ("resources", self.resources),
            ("node_selectors", self.node_selectors),
            ("tolerations", self.tolerations),
        ):
            check_components(f"kubeflow.{name}", mapping)
        for component, resources in self.resources.items():
            check_resources(f"kubeflow.resources.{component}", resources)
        for component, labels in self.node_selectors.items():
            for label, value in labels.items():
                if not is_qualified(label) or not is_label_value(value):
                    path = f"kubeflow.node_selectors.{component}.{label}"
                    raise ConfigError(path, f"{value!r} is not a label of a node", "Write key: value.")
        for component, tolerations in self.tolerations.items():
            for i, toleration in enumerate(tolerations):
                _check_toleration(f"kubeflow.tolerations.{component}[{i}]", toleration)
        _check_volumes(self.volumes)
        _check_trainer(self.trainer)
        check_components("kubeflow.pods", (name for name in self.pods if name != ALL))
        for component, pod in self.pods.items():
            check_pod(f"kubeflow.pods.{component}", pod)
        self._check_mounts()
        check_secret_names("kubeflow.image_pull_secrets", self.image_pull_secrets)
        check_jobset("kubeflow.jobset", self.jobset)
        check_notify("kubeflow.notify", self.notify)

    def is_at_least(self, minor: int) -> bool:
        """Returns whether the backend is Kubeflow Pipelines 2.`minor` or later."""
        return self.version is None or int(self.version.split(".")[1]) >= minor

    def pod_of(self, component: str) -> PodConfig:
        """Returns the settings of a component's pods: its own over those of all."""
        return self.pods.get(component, PodConfig()).over(self.pods.get(ALL, PodConfig()))

    def volume_of(self, folder: str) -> Volume | None:
        """Returns the innermost volume that a folder of a pod is on."""
        if not folder.startswith("/"):
            return None
        below = f"{mount_point(folder)}/"
        found = (volume for volume in self.volumes if below.startswith(f"{mount_point(volume.path)}/"))
        return max(found, key=lambda volume: len(mount_point(volume.path)), default=None)

    def _check_mounts(self) -> None:
        """Refuses two volumes at one path of a pod."""
        for component, own in self.pods.items():
            pod, of_all = self.pod_of(component), self.pods.get(ALL, PodConfig())
            mounted = {mount_point(volume.path): "kubeflow.volumes" for volume in self.volumes}
            if pod.shared_memory is not None:
                owner = ALL if own.shared_memory is None else component
                path = f"kubeflow.pods.{owner}.shared_memory"
                _check_free(path, SHARED_MEMORY, mounted)
                mounted[SHARED_MEMORY] = path
            owner = ALL if pod.scratch is of_all.scratch else component
            for number, volume in enumerate(pod.scratch):
                _check_free(f"kubeflow.pods.{owner}.scratch[{number}].path", volume.path, mounted)


_TAINT_FIX = "Use at most 63 letters, digits, -, _ and dots."


def _check_free(path: str, folder: str, mounted: Mapping[str, str]) -> None:
    taken = mounted.get(mount_point(folder))
    if taken is not None:
        raise ConfigError(path, f"{folder!r} is a path of {taken}, too", "Use another path.")


def _check_toleration(path: str, toleration: Toleration) -> None:
    if not is_qualified(toleration.key):
        raise ConfigError(f"{path}.key", f"{toleration.key!r} is not the key of a taint", "Write e.g. google.com/tpu.")
    one_of(f"{path}.operator", toleration.operator, ("Exists", "Equal"))
    if (toleration.value is not None) != (toleration.operator == "Equal"):
        problem = f"{toleration.value!r} with operator {toleration.operator}"
        raise ConfigError(f"{path}.value", problem, "Give a value with Equal, and none with Exists.")
    if toleration.value is not None and not is_label_value(toleration.value):
        raise ConfigError(f"{path}.value", f"{toleration.value!r} is not the value of a taint", _TAINT_FIX)
    if toleration.effect is not None:
        one_of(f"{path}.effect", toleration.effect, ("NoSchedule", "PreferNoSchedule", "NoExecute"))


def _check_volumes(volumes: tuple[Volume, ...]) -> None:
    for i, volume in enumerate(volumes):
        # Kubeflow names the volume of a pod like its claim, and volumes may have no dots.
        if not is_label(volume.claim):
            fix = "Use a-z, 0-9 and -, at most 63."
            raise ConfigError(f"kubeflow.volumes[{i}].claim", f"{volume.claim!r} is not the name of a volume", fix)
        check_mount(f"kubeflow.volumes[{i}].path", volume.path)
    if len({mount_point(volume.path) for volume in volumes}) < len(volumes):
        raise ConfigError("kubeflow.volumes", "two claims at one path", "Give each its own path.")
    if len({volume.claim for volume in volumes}) < len(volumes):
        raise ConfigError("kubeflow.volumes", "one claim at two paths", "Mount it once, above both folders.")


def _check_trainer(trainer: KubeflowTrainer) -> None:
    at_least("kubeflow.trainer.gpus", trainer.gpus, 0)
    if (trainer.machine is None) != (trainer.topology is None):
        raise ConfigError(
            "kubeflow.trainer",
            "a TPU needs a machine and a topology",
            "Give kubeflow.trainer.machine and kubeflow.trainer.topology, or neither.",
        )
    if (trainer.gpu is None) != (trainer.gpus == 0):
        raise ConfigError(
            "kubeflow.trainer.gpus",
            f"{trainer.gpus}, and kubeflow.trainer.gpu is {trainer.gpu or 'not set'}",
            "Give both, or none.",
        )
    if trainer.gpu is not None and not is_qualified(trainer.gpu, prefixed=True):
        problem = f"{trainer.gpu!r} is not a resource of a node"
        raise ConfigError("kubeflow.trainer.gpu", problem, "Write nvidia.com/gpu, or what your device plugin offers.")
    if trainer.machine is not None and trainer.gpu is not None:
        raise ConfigError(
            "kubeflow.trainer.gpu", "a pod has a TPU or GPUs, not both", "Remove machine and topology, or gpu."
        )
