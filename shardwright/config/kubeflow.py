"""`kubeflow`: the nodes, volumes and folders of a cluster for Kubeflow Pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.cloud import (
    IMAGE,
    MOST_RETRIES,
    RETRIES,
    Resources,
    check_components,
    check_no_span,
)
from shardwright.config.kubernetes_names import (
    CLAIM,
    SECRET_NAME,
    SHARED_MEMORY,
    check_mount,
    is_label_value,
    is_qualified,
    mount_point,
)
from shardwright.config.options import Pattern, Section, option
from shardwright.config.pods import (
    ALL,
    JobSetConfig,
    KubeflowNotify,
    PodConfig,
)
from shardwright.errors import ConfigError
from shardwright.storage.paths import MINIO, MOUNTED_SCHEMES, SCHEMES, scheme_of

_VERSION = Pattern(
    re.compile(r"2\.[0-9]{1,3}(\.[0-9]{1,3})?"),
    'Write e.g. "2.5", in quotes.',
    "is not a version of Kubeflow Pipelines 2",
)


def _check_pipeline_root(path: str, folder: str) -> None:
    if not any(scheme.is_folder_url(folder) for scheme in MOUNTED_SCHEMES):
        prefixes = ", ".join(scheme.prefix for scheme in SCHEMES)
        fix = f"Write {prefixes} or {MINIO.prefix}, then BUCKET/FOLDER."
        raise ConfigError(path, f"{folder!r} is not a folder on an object store", fix)


def _check_data_root(path: str, folder: str) -> None:
    check_no_span(path, folder)
    scheme = scheme_of(folder)
    if scheme is not None and not scheme.is_folder_url(folder):
        raise ConfigError(path, f"{folder!r} is not a folder of a bucket", f"Write {scheme.prefix}BUCKET/FOLDER.")


@dataclass(frozen=True)
class KubeflowTrainer(Section):
    """The accelerator of the pod that trains."""

    machine: str | None = option(None, help="TPU machine type of the node pool, such as `ct5lp-hightpu-4t`.")
    topology: str | None = option(None, help="Topology of its slice, such as `2x2`.")
    slices: int = option(1, least=1, help="Number of such slices, of several hosts each, that train together.")
    gpu: str | None = option(None, help="Resource that a device plugin offers, such as `nvidia.com/gpu`.")
    gpus: int = option(0, least=0, help="Number of GPUs.")

    def check(self, path: str) -> None:
        """Refuses half a TPU or half a GPU, and both."""
        super().check(path)
        if (self.machine is None) != (self.topology is None):
            raise ConfigError(
                path,
                "a TPU needs a machine and a topology",
                "Give kubeflow.trainer.machine and kubeflow.trainer.topology, or neither.",
            )
        if self.slices > 1 and self.machine is None:
            problem = f"{self.slices} slices without a machine"
            raise ConfigError(f"{path}.slices", problem, "Give kubeflow.trainer.machine and kubeflow.trainer.topology.")
        if (self.gpu is None) != (self.gpus == 0):
            problem = f"{self.gpus}, and kubeflow.trainer.gpu is {self.gpu or 'not set'}"
            raise ConfigError(f"{path}.gpus", problem, "Give both, or none.")
        if self.gpu is not None and not is_qualified(self.gpu, prefixed=True):
            problem = f"{self.gpu!r} is not a resource of a node"
            raise ConfigError(f"{path}.gpu", problem, "Write nvidia.com/gpu, or what your device plugin offers.")
        if self.machine is not None and self.gpu is not None:
            problem = "a pod has a TPU or GPUs, not both"
            raise ConfigError(f"{path}.gpu", problem, "Remove machine and topology, or gpu.")


@dataclass(frozen=True)
class Toleration(Section):
    """A taint that pods may live with, as Kubernetes writes it."""

    key: str = option(help="Key of the taint.")
    operator: str = option("Exists", choices=("Exists", "Equal"), help="`Exists` or `Equal`.")
    value: str | None = option(None, help="Value, with `Equal`.")
    effect: str | None = option(
        None, choices=("NoSchedule", "PreferNoSchedule", "NoExecute"), help="Effect of the taint; by default any."
    )

    def check(self, path: str) -> None:
        """Refuses what is not the key or the value of a taint."""
        super().check(path)
        if not is_qualified(self.key):
            raise ConfigError(f"{path}.key", f"{self.key!r} is not the key of a taint", "Write e.g. google.com/tpu.")
        if (self.value is not None) != (self.operator == "Equal"):
            problem = f"{self.value!r} with operator {self.operator}"
            raise ConfigError(f"{path}.value", problem, "Give a value with Equal, and none with Exists.")
        if self.value is not None and not is_label_value(self.value):
            fix = "Use at most 63 letters, digits, -, _ and dots."
            raise ConfigError(f"{path}.value", f"{self.value!r} is not the value of a taint", fix)


@dataclass(frozen=True)
class Volume(Section):
    """A persistent volume claim, mounted in every pod."""

    claim: str = option(form=CLAIM, help="Name of the PersistentVolumeClaim.")
    path: str = option(form=check_mount, help="Where it is mounted.")


@dataclass(frozen=True)
class KubeflowConfig(Section):
    """The options of `compile --target kubeflow`."""

    PATH: ClassVar[str] = "kubeflow"

    image: str | None = option(None, form=IMAGE, help="Shardwright's image.")
    version: str | None = option(
        None,
        form=_VERSION,
        help='Of Kubeflow Pipelines, such as `"2.5"`, if it is older than 2.16; by default a current one.',
    )
    retries: int = option(RETRIES, least=0, most=MOST_RETRIES, help="How often a failed task is retried.")
    image_parameter: bool = option(
        False, help="Whether the image is a parameter of a run; needs Kubeflow's backend 2.4 or later."
    )
    pipeline_root: str | None = option(
        None, form=_check_pipeline_root, help="Folder of all artifacts; by default the cluster's own."
    )
    data_root: str | None = option(
        None,
        form=_check_data_root,
        help="Folder on a volume or a bucket that replaces the one in `input` during a run; by default the same.",
    )
    push_directory: str | None = option(None, help="Folder of blessed models, on a volume.")
    resources: Mapping[str, Resources] = option(
        factory=dict, help="Component -> resources of its pod; by default none."
    )
    node_selectors: Mapping[str, Mapping[str, str]] = option(
        factory=dict, help="Component -> labels of the nodes it may run on."
    )
    tolerations: Mapping[str, tuple[Toleration, ...]] = option(
        factory=dict, help="Component -> taints that it tolerates."
    )
    volumes: tuple[Volume, ...] = option((), help="Claims mounted in every pod.")
    pods: Mapping[str, PodConfig] = option(factory=dict, help="Component, or `all` -> further settings of its pods.")
    image_pull_secrets: tuple[str, ...] = option(
        (), form=SECRET_NAME, help="Secrets with the credentials of the image's registry."
    )
    trainer: KubeflowTrainer = option(factory=KubeflowTrainer)
    jobset: JobSetConfig = option(factory=JobSetConfig)
    notify: KubeflowNotify = option(factory=KubeflowNotify)

    def check(self, path: str) -> None:
        """Refuses unknown components, and what Kubernetes refuses."""
        super().check(path)
        for name in ("resources", "node_selectors", "tolerations"):
            check_components(f"{path}.{name}", getattr(self, name))
        check_components(f"{path}.pods", (name for name in self.pods if name != ALL))
        for component, labels in self.node_selectors.items():
            for label, value in labels.items():
                if not is_qualified(label) or not is_label_value(value):
                    place = f"{path}.node_selectors.{component}.{label}"
                    raise ConfigError(place, f"{value!r} is not a label of a node", "Write key: value.")
        if len({mount_point(volume.path) for volume in self.volumes}) < len(self.volumes):
            raise self.error("volumes", "two claims at one path", "Give each its own path.")
        if len({volume.claim for volume in self.volumes}) < len(self.volumes):
            raise self.error("volumes", "one claim at two paths", "Mount it once, above both folders.")
        if self.image_parameter and not self.is_at_least(4):
            problem = f"Kubeflow Pipelines {self.version} takes no image of the run"
            raise self.error("image_parameter", problem, "Remove it, or use a backend from 2.4 on.")
        self._check_mounts()

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
        around = (volume for volume in self.volumes if below.startswith(f"{mount_point(volume.path)}/"))
        return max(around, key=lambda volume: len(mount_point(volume.path)), default=None)

    def _check_mounts(self) -> None:
        """Refuses two volumes at one path of a pod."""
        for component, own in self.pods.items():
            pod, of_all = self.pod_of(component), self.pods.get(ALL, PodConfig())
            mounted = {mount_point(volume.path): "kubeflow.volumes" for volume in self.volumes}
            wanted = []
            if pod.shared_memory is not None:
                owner = ALL if own.shared_memory is None else component
                wanted.append((f"kubeflow.pods.{owner}.shared_memory", SHARED_MEMORY))
            owner = ALL if pod.scratch is of_all.scratch else component
            for number, volume in enumerate(pod.scratch):
                wanted.append((f"kubeflow.pods.{owner}.scratch[{number}].path", volume.path))
            for path, folder in wanted:
                if taken := mounted.get(mount_point(folder)):
                    raise ConfigError(path, f"{folder!r} is a path of {taken}, too", "Use another path.")
                if folder == SHARED_MEMORY:
                    mounted[folder] = path
