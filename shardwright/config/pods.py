"""`kubeflow.pods` and `kubeflow.jobset`: what Kubernetes gives the pods of a pipeline, beyond resources and nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardwright.config.kubernetes_names import (
    KEY_REFERENCE,
    NAME,
    check_mount,
    is_label_value,
    is_qualified,
    mount_point,
)
from shardwright.config.options import BYTES, Section, option
from shardwright.errors import ConfigError
from shardwright.text.redaction import is_secret
from shardwright.untrusted.json_text import TRUST_VARIABLE

# The key of `kubeflow.pods` for all components; a component's own settings are added, and win.
ALL = "all"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = "SHARDWRIGHT_"
NOTIFY_WHEN = ("failure", "always")


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


def _check_webhook(path: str, reference: str) -> None:
    if reference.startswith(("http://", "https://")):
        problem = "is an address, which everyone who reads the pipeline would have"
        raise ConfigError(path, problem, "Put it into a Secret, and write SECRET/KEY.")
    KEY_REFERENCE(path, reference)


@dataclass(frozen=True)
class ScratchVolume(Section):
    """A volume that is made with a pod and deleted with it (a generic ephemeral volume)."""

    path: str = option(
        form=check_mount,
        help="Where it is mounted, such as `/gcs`, where Kubeflow's launcher puts copies of artifacts.",
    )
    size: int = option(least=1 << 20, form=BYTES, help="Size in bytes.")
    storage_class: str | None = option(None, form=NAME, help="Storage class of the claim; by default the cluster's.")


@dataclass(frozen=True)
class PodConfig(Section):
    """Settings of the pods of a component, or of all."""

    env: Mapping[str, str] = option(factory=dict, help="Environment variables.")
    secret_env: Mapping[str, str] = option(
        factory=dict, form=KEY_REFERENCE, help="Environment variable -> `SECRET/KEY`."
    )
    config_map_env: Mapping[str, str] = option(
        factory=dict, form=KEY_REFERENCE, help="Environment variable -> `CONFIGMAP/KEY`."
    )
    labels: Mapping[str, str] = option(factory=dict, help="Labels of the pod.")
    annotations: Mapping[str, str] = option(factory=dict, help="Annotations of the pod.")
    timeout_hours: float | None = option(
        None, least=0.01, most=24 * 365, help="Hours after which Kubernetes ends the pod; by default never."
    )
    shared_memory: int | None = option(
        None, least=1 << 20, form=BYTES, help="Bytes of `/dev/shm`; by default those of the container runtime (64 MB)."
    )
    scratch: tuple[ScratchVolume, ...] = option((), help="Volumes that exist as long as the pod.")

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

    def check(self, path: str) -> None:
        """Refuses settings that Kubernetes refuses."""
        super().check(path)
        check_variables(f"{path}.env", [*self.env, *self.secret_env, *self.config_map_env])
        component = path.rpartition(".")[2]
        fix = f"Put it into a Secret, and write kubeflow.pods.{component}.secret_env: {{{{{{name}}: SECRET/KEY}}}}."
        check_no_secrets(f"{path}.env", self.env, fix)
        for label, value in self.labels.items():
            if not is_qualified(label) or not is_label_value(value):
                raise ConfigError(f"{path}.labels.{label}", f"{value!r} is not a label of a pod", "Write key: value.")
        for annotation in self.annotations:
            if not is_qualified(annotation):
                problem = "is not the name of an annotation"
                raise ConfigError(f"{path}.annotations.{annotation}", problem, "Write key: value.")
        if len({mount_point(volume.path) for volume in self.scratch}) < len(self.scratch):
            raise ConfigError(f"{path}.scratch", "two volumes at one path", "Give each its own path.")


@dataclass(frozen=True)
class JobSetConfig(Section):
    """The JobSet that trains on a slice of several hosts."""

    queue: str | None = option(None, form=NAME, help="Local queue of Kueue that admits it.")
    service_account: str | None = option(
        None, form=NAME, help="Service account of its pods; by default that of the namespace."
    )
    max_restarts: int = option(
        3,
        least=0,
        most=100,
        help="How often it restarts after a failure. After a preemption it always restarts.",
    )
    privileged: bool = option(
        False, help="Whether its containers are privileged, which some TPU drivers need to open `/dev/vfio`."
    )
    host_network: bool = option(
        False, help="Whether its pods use the network of their nodes, which is faster between the hosts of a v6e slice."
    )
    # The task may wait four minutes for a busy API server.
    heartbeat_minutes: float = option(
        10,
        least=5,
        most=24 * 60,
        help="Minutes after which the hosts save a checkpoint and stop if their task was killed.",
    )
    owned: bool = option(
        False,
        help="Whether Kubernetes deletes it with the pod of its task, also where that pod's node is drained.",
    )

    def check(self, path: str) -> None:
        """Refuses the name of a queue that is no value of a label, by which Kueue finds it."""
        super().check(path)
        if self.queue is not None and not is_label_value(self.queue):
            problem = f"{self.queue!r} has {len(self.queue)} characters, and the value of a label at most 63"
            raise ConfigError(f"{path}.queue", problem, "Name a queue with a shorter name.")


@dataclass(frozen=True)
class KubeflowNotify(Section):
    """The webhook that a run posts to when it has ended."""

    webhook: str | None = option(
        None,
        form=_check_webhook,
        help='`SECRET/KEY` with the address, which takes `{"text": …}`: Slack, Mattermost, Google Chat.',
    )
    when: str = option(NOTIFY_WHEN[0], choices=NOTIFY_WHEN, help="`failure`, or `always`.")
