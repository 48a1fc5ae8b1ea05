"""`kubeflow.pods` as the two documents that start pods have it: Kubeflow's platform document, and a JobSet.

Source of the first: kubeflow/pipelines at 7b70c7b, kubernetes_platform/proto/kubernetes_executor_config.proto, read by
backend/src/v2/driver/k8s.go, `extendPodSpecPatch`. Source of the second: the Pod of Kubernetes' API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from shardwright.config import KubeflowConfig
from shardwright.config.cloud import Resources
from shardwright.config.kubernetes_names import SHARED_MEMORY, mount_point
from shardwright.config.pods import PodConfig, ScratchVolume

_SHARED_MEMORY = "shared-memory"
_ACCESS = "ReadWriteOnce"
# The user and the group of the image.
_USER = 1000
RUN_AS = MappingProxyType({"runAsUser": _USER, "runAsGroup": _USER, "runAsNonRoot": True})
SECCOMP = MappingProxyType({"seccompProfile": {"type": "RuntimeDefault"}})
_TEMPORARY = "/tmp"  # noqa: S108 - a volume of the pod

_Document = dict[str, Any]


def pod_settings(pod: PodConfig) -> _Document:
    """Returns the settings as fields of Kubeflow's `KubernetesExecutorConfig`; `env` is in the other document."""
    found: _Document = {}
    for setting in _SETTINGS:
        if value := getattr(pod, setting.option):
            for field, part in setting.kubeflow(value).items():
                found[field] = {**found.get(field, {}), **part} if isinstance(part, dict) else part
    return found


def pod_template(
    section: KubeflowConfig,
    pod: PodConfig,
    container: _Document,
    *,
    resources: Resources | None,
    devices: Mapping[str, str] = MappingProxyType({}),
    privileged: bool = False,
    **spec: Any,
) -> _Document:
    """Returns the pods of a Job: `metadata`, and `spec` with one container, to which all claims are mounted.

    Args:
        section: volumes, and the secrets of the registry.
        pod: further settings.
        container: without mounts and resources.
        resources: what it must have.
        devices: what it must have beyond that.
        privileged: see `_restrict`.
        **spec: fields of the pods.
    """
    named = [(f"volume-{number}", volume) for number, volume in enumerate(section.volumes)]
    limits = dict(devices)
    if resources is not None:
        limits |= {} if resources.cpu is None else {"cpu": f"{resources.cpu:g}"}
        limits |= {} if resources.memory is None else {"memory": str(resources.memory)}
    container = {**container, "volumeMounts": [{"name": name, "mountPath": volume.path} for name, volume in named]}
    if limits:
        container["resources"] = {"limits": limits, "requests": limits}
    template: _Document = {
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": one.claim}} for name, one in named],
            **spec,
        }
    }
    if section.image_pull_secrets:
        template["spec"]["imagePullSecrets"] = [{"name": name} for name in section.image_pull_secrets]
    for setting in _SETTINGS:
        if value := getattr(pod, setting.option):
            setting.add(value, template)
    _restrict(template, privileged=privileged)
    return template


def _restrict(template: _Document, *, privileged: bool) -> None:
    """Gives the pods of a Job no more than the Pod Security Standard "restricted" allows, and a read-only root.

    Args:
        template: the pods, with all mounts; changed in place.
        privileged: whether the container is privileged instead, which that standard refuses.
    """
    spec = template["spec"]
    (container,) = spec["containers"]
    # A claim that is new belongs to root, and the container is not root.
    group = {"fsGroup": _USER, "fsGroupChangePolicy": "OnRootMismatch"}
    if privileged:
        spec["securityContext"], container["securityContext"] = group, {"privileged": True}
        return
    spec["securityContext"] = {**RUN_AS, **group, **SECCOMP}
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    if _TEMPORARY not in {mount_point(one["mountPath"]) for one in container.get("volumeMounts", ())}:
        _mount({"name": "temporary", "emptyDir": {}}, _TEMPORARY, template)


def _kubeflow_env(owner: str, value: Mapping[str, str]) -> _Document:
    field = {"secret": "secretAsEnv", "configMap": "configMapAsEnv"}[owner]
    return {
        field: [
            {f"{owner}Name": named, "keyToEnv": [{f"{owner}Key": key, "envVar": variable}]}
            for variable, named, key in _references(value)
        ]
    }


def _add_references(owner: str, value: Mapping[str, str], template: _Document) -> None:
    _add_env(
        [
            {"name": variable, "valueFrom": {f"{owner}KeyRef": {"name": named, "key": key}}}
            for variable, named, key in _references(value)
        ],
        template,
    )


def _add_env(variables: Sequence[_Document], template: _Document) -> None:
    (container,) = template["spec"]["containers"]
    container["env"] = [*container.get("env", ()), *variables]


def _add_metadata(field: str, value: Mapping[str, str], template: _Document) -> None:
    template.setdefault("metadata", {})[field] = dict(value)


def _memory(size: int) -> _Document:
    return {"medium": "Memory", "sizeLimit": str(size)}


def _kubeflow_scratch(volumes: Sequence[ScratchVolume]) -> _Document:
    return {
        "genericEphemeralVolume": [
            {
                "volumeName": f"scratch-{number}",
                "mountPath": volume.path,
                "accessModes": [_ACCESS],
                "size": str(volume.size),
                **({"storageClassName": name} if (name := volume.storage_class) else {"defaultStorageClass": True}),
            }
            for number, volume in enumerate(volumes)
        ]
    }


def _add_scratch(volumes: Sequence[ScratchVolume], template: _Document) -> None:
    for number, volume in enumerate(volumes):
        claim: _Document = {"accessModes": [_ACCESS], "resources": {"requests": {"storage": str(volume.size)}}}
        if volume.storage_class is not None:
            claim["storageClassName"] = volume.storage_class
        ephemeral = {"volumeClaimTemplate": {"spec": claim}}
        _mount({"name": f"scratch-{number}", "ephemeral": ephemeral}, volume.path, template)


def _mount(volume: _Document, path: str, template: _Document) -> None:
    spec = template["spec"]
    spec["volumes"] = [*spec.get("volumes", ()), volume]
    (container,) = spec["containers"]
    container["volumeMounts"] = [*container.get("volumeMounts", ()), {"name": volume["name"], "mountPath": path}]


def _references(references: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Returns variable, owner and key of each `OWNER/KEY`, in the order of the variables."""
    split = ((variable, *reference.partition("/")) for variable, reference in sorted(references.items()))
    return [(variable, owner, key) for variable, owner, _, key in split]


def _seconds(hours: float) -> int:
    return round(hours * 3600)


class _Setting(NamedTuple):
    """A setting in both documents. One that is not given is in neither.

    Attributes:
        option: field of `PodConfig`.
        kubeflow: returns the fields of `KubernetesExecutorConfig`.
        add: adds it to the template of a Job's pods.
    """

    option: str
    kubeflow: Callable[[Any], _Document]
    add: Callable[[Any, _Document], None]


_SETTINGS = (
    _Setting(
        "env",
        lambda value: {},
        lambda value, pod: _add_env([{"name": name, "value": text} for name, text in sorted(value.items())], pod),
    ),
    _Setting("secret_env", partial(_kubeflow_env, "secret"), partial(_add_references, "secret")),
    _Setting("config_map_env", partial(_kubeflow_env, "configMap"), partial(_add_references, "configMap")),
    _Setting("labels", lambda value: {"podMetadata": {"labels": dict(value)}}, partial(_add_metadata, "labels")),
    _Setting(
        "annotations",
        lambda value: {"podMetadata": {"annotations": dict(value)}},
        partial(_add_metadata, "annotations"),
    ),
    _Setting(
        "timeout_hours",
        lambda hours: {"activeDeadlineSeconds": str(_seconds(hours))},
        lambda hours, pod: pod["spec"].update(activeDeadlineSeconds=_seconds(hours)),
    ),
    _Setting(
        "shared_memory",
        # Nothing in the backend reads `enabledSharedMemory`.
        lambda size: {"emptyDirMounts": [{"volumeName": _SHARED_MEMORY, "mountPath": SHARED_MEMORY, **_memory(size)}]},
        lambda size, pod: _mount({"name": _SHARED_MEMORY, "emptyDir": _memory(size)}, SHARED_MEMORY, pod),
    ),
    _Setting("scratch", _kubeflow_scratch, _add_scratch),
)
