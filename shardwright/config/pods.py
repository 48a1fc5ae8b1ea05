"""`kubeflow.pods` and `kubeflow.jobset`: what Kubernetes gives the pods of a pipeline, beyond resources and nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shardwright.config.kubernetes_names import (
    SUBDOMAIN_FIX,
    check_mount,
    is_key,
    is_label_value,
    is_qualified,
    is_subdomain,
    mount_point,
)
from shardwright.config.parsing import at_least, between, one_of
from shardwright.errors import ConfigError
from shardwright.redaction import is_secret
from shardwright.untrusted import TRUST_VARIABLE

# The key of `kubeflow.pods` for all components; a component's own settings are added, and win.
ALL = "all"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = "SHARDWRIGHT_"
NOTIFY_WHEN = ("failure", "always")


@dataclass(frozen=True)
class ScratchVolume:
    """A volume that is made with a pod and deleted with it (a generic ephemeral volume).

    Attributes:
        path: where it is mounted, such as `/gcs`, where Kubeflow's launcher puts copies of artifacts.
        size: bytes.
        storage_class: of the claim; by default that of the cluster.
    """

    path: str
    size: int
    storage_class: str | None = None


@dataclass(frozen=True)
class PodConfig:
    """Settings of the pods of a component, or of all.

    Attributes:
        env: environment variables.
        secret_env: environment variable -> `SECRET/KEY`.
        config_map_env: environment variable -> `CONFIGMAP/KEY`.
        labels: labels of the pod.
        annotations: annotations of the pod.
        timeout_hours: hours after which Kubernetes ends the pod; by default never.
        shared_memory: bytes of `/dev/shm`; by default those of the container runtime (64 MB).
        scratch: volumes that exist as long as the pod.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, str] = field(default_factory=dict)
    config_map_env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    timeout_hours: float | None = None
    shared_memory: int | None = None
    scratch: tuple[ScratchVolume, ...] = ()

    def over(self, other: PodConfig) -> PodConfig:
        """Returns these settings, and those of `other` where these have none.

        A variable that these set in any way is not that of `other`.
        """
        own = {*self.env, *self.secret_env, *self.config_map_env}

        def others(variables: Mapping[str, str]) -> dict[str, str]:
            return {name: value for name, value in variables.items() if name not in own}

        return PodConfig(
            env={**others(other.env), **self.env},
            secret_env={**others(other.secret_env), **self.secret_env},
            config_map_env={**others(other.config_map_env), **self.config_map_env},
            labels={**other.labels, **self.labels},
            annotations={**other.annotations, **self.annotations},
            timeout_hours=other.timeout_hours if self.timeout_hours is None else self.timeout_hours,
            shared_memory=other.shared_memory if self.shared_memory is None else self.shared_memory,
            scratch=self.scratch or other.scratch,
        )


@dataclass(frozen=True)
class JobSetConfig:
    """The JobSet that trains on a slice of several hosts.

    Attributes:
        queue: local queue of Kueue that admits it.
        service_account: Kubernetes service account of its pods.
        max_restarts: how often it starts again after a failure. After a preemption it always starts again.
        privileged: whether its containers are privileged, which some TPU drivers need to open `/dev/vfio`.
        host_network: whether its pods use the network of their nodes, which is faster between the hosts of a v6e slice.
        heartbeat_minutes: minutes after which the hosts stop a training whose task was killed, with a checkpoint.
        owned: whether Kubernetes deletes it with the pod of its task, where a cluster keeps pods no longer than runs.
    """

    queue: str | None = None
    service_account: str | None = None
    max_restarts: int = 3
    privileged: bool = False
    host_network: bool = False
    heartbeat_minutes: float = 10
    owned: bool = False


@dataclass(frozen=True)
class KubeflowNotify:
    """The webhook that a run posts to when it has ended.

    Attributes:
        webhook: `SECRET/KEY` with the address, which takes `{"text": …}`: Slack, Mattermost, Google Chat.
        when: `failure`, or `always`.
    """

    webhook: str | None = None
    when: str = NOTIFY_WHEN[0]


def check_notify(path: str, notify: KubeflowNotify) -> None:
    """Refuses the reference of a Secret that is not one, and unknown values."""
    one_of(f"{path}.when", notify.when, NOTIFY_WHEN)
    if notify.webhook is not None:
        if notify.webhook.startswith(("http://", "https://")):
            problem = "is an address, which everyone who reads the pipeline would have"
            raise ConfigError(f"{path}.webhook", problem, "Put it into a Secret, and write SECRET/KEY.")
        _check_reference(f"{path}.webhook", notify.webhook)


def check_variables(path: str, variables: Sequence[str]) -> None:
    """Refuses names that no environment variable can have, names of Shardwright's own, and names given twice."""
    for name, count in Counter(variables).items():
        if not _VARIABLE.fullmatch(name):
            raise ConfigError(path, f"{name!r} is not a variable's name", "Use A-Z, a-z, 0-9 and _.")
        if name.startswith(_RESERVED) and name != TRUST_VARIABLE:
            raise ConfigError(path, f"{name!r} is set by Shardwright itself", "Use another name.")
        if count > 1:
            raise ConfigError(path, f"{name!r} has two values", "Name it in one of env, secret_env and config_map_env.")


def check_no_secrets(path: str, variables: Mapping[str, str], fix: str) -> None:
    """Refuses values that look like secrets: everyone who reads a compiled pipeline would have them."""
    for name, value in variables.items():
        if is_secret(name, value):
            problem = "looks like a secret, which everyone who reads the compiled pipeline would have"
            raise ConfigError(f"{path}.{name}", problem, fix.format(name=name))


def check_pod(path: str, pod: PodConfig) -> None:
    """Refuses settings that Kubernetes refuses."""
    check_variables(f"{path}.env", [*pod.env, *pod.secret_env, *pod.config_map_env])
    secret = path.rpartition(".")[2]
    fix = f"Put it into a Secret, and write kubeflow.pods.{secret}.secret_env: {{{{{{name}}: SECRET/KEY}}}}."
    check_no_secrets(f"{path}.env", pod.env, fix)
    for option, references in (("secret_env", pod.secret_env), ("config_map_env", pod.config_map_env)):
        for name, reference in references.items():
            _check_reference(f"{path}.{option}.{name}", reference)
    for label, value in pod.labels.items():
        if not is_qualified(label) or not is_label_value(value):
            raise ConfigError(f"{path}.labels.{label}", f"{value!r} is not a label of a pod", "Write key: value.")
    for annotation in pod.annotations:
        if not is_qualified(annotation):
            raise ConfigError(
                f"{path}.annotations.{annotation}", "is not the name of an annotation", "Write key: value."
            )
    if pod.timeout_hours is not None:
        between(f"{path}.timeout_hours", pod.timeout_hours, 0.01, 24 * 365)
    if pod.shared_memory is not None:
        at_least(f"{path}.shared_memory", pod.shared_memory, 1 << 20)
    for number, volume in enumerate(pod.scratch):
        _check_scratch(f"{path}.scratch[{number}]", volume)
    if len({mount_point(volume.path) for volume in pod.scratch}) < len(pod.scratch):
        raise ConfigError(f"{path}.scratch", "two volumes at one path", "Give each its own path.")


def _check_reference(path: str, reference: str) -> None:
    owner, _, key = reference.partition("/")
    if not is_subdomain(owner) or not is_key(key):
        raise ConfigError(path, f"{reference!r} is not NAME/KEY", "Write e.g. wandb/token.")


def check_jobset(path: str, jobset: JobSetConfig) -> None:
    """Refuses settings that Kubernetes refuses."""
    for option in ("queue", "service_account"):
        value = getattr(jobset, option)
        if value is not None and not is_subdomain(value):
            raise ConfigError(f"{path}.{option}", f"{value!r} is not a name", SUBDOMAIN_FIX)
    if jobset.queue is not None and not is_label_value(jobset.queue):
        # Kueue finds the queue by the value of a label.
        problem = f"{jobset.queue!r} has {len(jobset.queue)} characters, and the value of a label at most 63"
        raise ConfigError(f"{path}.queue", problem, "Name a queue with a shorter name.")
    between(f"{path}.max_restarts", jobset.max_restarts, 0, 100)
    # The task may wait four minutes for a busy API server.
    between(f"{path}.heartbeat_minutes", jobset.heartbeat_minutes, 5, 24 * 60)


def check_secret_names(path: str, names: tuple[str, ...]) -> None:
    """Refuses names that no Secret can have."""
    for number, name in enumerate(names):
        if not is_subdomain(name):
            raise ConfigError(f"{path}[{number}]", f"{name!r} is not the name of a Secret", SUBDOMAIN_FIX)


def _check_scratch(path: str, volume: ScratchVolume) -> None:
    check_mount(f"{path}.path", volume.path)
    at_least(f"{path}.size", volume.size, 1 << 20)
    if volume.storage_class is not None and not is_subdomain(volume.storage_class):
        raise ConfigError(f"{path}.storage_class", f"{volume.storage_class!r} is not a name", SUBDOMAIN_FIX)
