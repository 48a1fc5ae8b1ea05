"""`kubeflow.pods` as the two documents that start pods have it: Kubeflow's platform document, and a JobSet.

Source of the first: kubeflow/pipelines at 7b70c7b, kubernetes_platform/proto/kubernetes_executor_config.proto, read by
backend/src/v2/driver/k8s.go, `extendPodSpecPatch`. Source of the second: the Pod of Kubernetes' API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardwright.config.pods import PodConfig, ScratchVolume

_SHARED_MEMORY, _SHARED_MEMORY_PATH = "shared-memory", "/dev/shm"  # noqa: S108 -- a path in a pod
_ACCESS = "ReadWriteOnce"


def pod_settings(pod: PodConfig) -> dict[str, Any]:
    """Returns the settings as fields of Kubeflow's `KubernetesExecutorConfig`; `env` is in the other document."""
    found: dict[str, Any] = {}
    if pod.secret_env:
        found["secretAsEnv"] = [
            {"secretName": owner, "keyToEnv": [{"secretKey": key, "envVar": name}]}
            for name, owner, key in _references(pod.secret_env)
        ]
    if pod.config_map_env:
        found["configMapAsEnv"] = [
            {"configMapName": owner, "keyToEnv": [{"configMapKey": key, "envVar": name}]}
            for name, owner, key in _references(pod.config_map_env)
        ]
    if pod.labels or pod.annotations:
        found["podMetadata"] = {
            key: dict(values) for key, values in (("labels", pod.labels), ("annotations", pod.annotations)) if values
        }
    if pod.timeout_hours is not None:
        found["activeDeadlineSeconds"] = str(_seconds(pod.timeout_hours))
    if pod.shared_memory is not None:
        # Nothing in the backend reads `enabledSharedMemory`.
        found["emptyDirMounts"] = [
            {
                "volumeName": _SHARED_MEMORY,
                "mountPath": _SHARED_MEMORY_PATH,
                "medium": "Memory",
                "sizeLimit": str(pod.shared_memory),
            }
        ]
    if pod.scratch:
        found["genericEphemeralVolume"] = [
            {
                "volumeName": f"scratch-{number}",
                "mountPath": volume.path,
                "accessModes": [_ACCESS],
                "size": str(volume.size),
                **_storage_class(volume),
            }
            for number, volume in enumerate(pod.scratch)
        ]
    return found


def _storage_class(volume: ScratchVolume) -> dict[str, Any]:
    return {"defaultStorageClass": True} if volume.storage_class is None else {"storageClassName": volume.storage_class}


def add_to_pod(pod: PodConfig, template: dict[str, Any]) -> None:
    """Adds the settings to the pods of a Job.

    Args:
        pod: the settings.
        template: `metadata` and `spec` of the pods, with one container; changed in place.
    """
    spec = template["spec"]
    (container,) = spec["containers"]
    variables = [
        *({"name": name, "value": value} for name, value in sorted(pod.env.items())),
        *(
            {"name": name, "valueFrom": {kind: {"name": owner, "key": key}}}
            for kind, references in (("secretKeyRef", pod.secret_env), ("configMapKeyRef", pod.config_map_env))
            for name, owner, key in _references(references)
        ),
    ]
    if variables:
        container["env"] = [*container.get("env", ()), *variables]
    for key, values in (("labels", pod.labels), ("annotations", pod.annotations)):
        if values:
            template.setdefault("metadata", {})[key] = dict(values)
    if pod.timeout_hours is not None:
        spec["activeDeadlineSeconds"] = _seconds(pod.timeout_hours)
    if pod.shared_memory is not None:
        memory = {"medium": "Memory", "sizeLimit": str(pod.shared_memory)}
        _mount(spec, {"name": _SHARED_MEMORY, "emptyDir": memory}, _SHARED_MEMORY_PATH)
    for number, volume in enumerate(pod.scratch):
        claim: dict[str, Any] = {"accessModes": [_ACCESS], "resources": {"requests": {"storage": str(volume.size)}}}
        if volume.storage_class is not None:
            claim["storageClassName"] = volume.storage_class
        ephemeral = {"volumeClaimTemplate": {"spec": claim}}
        _mount(spec, {"name": f"scratch-{number}", "ephemeral": ephemeral}, volume.path)


def _mount(spec: dict[str, Any], volume: dict[str, Any], path: str) -> None:
    spec["volumes"] = [*spec.get("volumes", ()), volume]
    (container,) = spec["containers"]
    container["volumeMounts"] = [*container.get("volumeMounts", ()), {"name": volume["name"], "mountPath": path}]


def _references(references: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Returns variable, owner and key of each `OWNER/KEY`, in the order of the variables."""
    return [(name, *_pair(reference)) for name, reference in sorted(references.items())]


def _pair(reference: str) -> tuple[str, str]:
    owner, _, key = reference.partition("/")
    return owner, key


def _seconds(hours: float) -> int:
    return round(hours * 3600)
