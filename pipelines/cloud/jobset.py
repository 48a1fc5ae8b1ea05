"""The JobSet that trains on a TPU slice of several hosts: one pod per host, started together.

A task of Kubeflow Pipelines is one pod, so the Trainer's pod starts this set and waits for it
(`shardwright.components.runtime.jobset`). That module adds the name of the set and the command of its pods.

Source of the fields: kubernetes-sigs/jobset at 08dfbdf, api/jobset/v1alpha2; of the hosts' names: its `Network`.
"""

from __future__ import annotations

from typing import Any

from shardwright.config import KubeflowConfig
from shardwright.config.pods import JobSetConfig
from shardwright.pipelines import tpu
from shardwright.pipelines.cloud.pods import add_to_pod

API_VERSION = "jobset.x-k8s.io/v1alpha2"
JOB = "trainer"
# The ports of JAX's coordinator and of the TPU's runtimes.
_PORTS = (8476, 8471)
# Kubernetes marks pods that it evicts, and those of a node that is taken away.
_PREEMPTED = {"type": "DisruptionTarget", "status": "True"}
_QUEUE = "kueue.x-k8s.io/queue-name"
# The user and the group of the image.
_USER = 1000
_SECONDS_KEPT = 24 * 3600
# Enough to save the state of a training that is asked to end.
_SECONDS_TO_END = 120
_ONE_POOL = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}


def jobset_template(
    section: KubeflowConfig, found: tpu.TpuSlice, image: str, placing: dict[str, Any]
) -> dict[str, Any]:
    """Returns the manifest of a training's JobSet, without its name and the pods' command.

    Args:
        section: volumes and resources.
        found: the slice.
        image: of the pods.
        placing: `nodeSelector` and `tolerations` of the pods.
    """
    template: dict[str, Any] = {"spec": _pod(section, _container(section, found, image), placing)}
    add_to_pod(section.pod_of("Trainer"), template)
    failures = {
        "maxRestarts": section.jobset.max_restarts,
        "rules": [
            {
                "name": "preempted",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
            }
        ],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "JobSet",
        # All pods on one slice, which is one node pool.
        "metadata": {"annotations": _ONE_POOL, **_queue(section.jobset)},
        "spec": {
            # With it comes the headless service that lets the pods find each other.
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "failurePolicy": failures,
            "ttlSecondsAfterFinished": _SECONDS_KEPT,
            "replicatedJobs": [{"name": JOB, "replicas": 1, "template": {"spec": _job(found.hosts, template)}}],
        },
    }


def _job(hosts: int, template: dict[str, Any]) -> dict[str, Any]:
    """Returns the Job: a pod for each host, none of which starts again alone."""
    return {
        "completionMode": "Indexed",
        "completions": hosts,
        "parallelism": hosts,
        "backoffLimit": 0,
        # The set distinguishes a preemption from a failure by the reason of the Job, `PodFailurePolicy`.
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [_PREEMPTED]}]},
        "template": template,
    }


def _pod(section: KubeflowConfig, container: dict[str, Any], placing: dict[str, Any]) -> dict[str, Any]:
    """Returns a pod without the settings of `kubeflow.pods`."""
    pod = {
        **placing,
        # A pod that fails ends the whole set, which begins again at the last checkpoint.
        "restartPolicy": "Never",
        # A claim that is new belongs to root, and the container is not root.
        "securityContext": {"fsGroup": _USER, "fsGroupChangePolicy": "OnRootMismatch"},
        "terminationGracePeriodSeconds": _SECONDS_TO_END,
        "containers": [container],
        "volumes": [
            {"name": f"volume-{i}", "persistentVolumeClaim": {"claimName": v.claim}}
            for i, v in enumerate(section.volumes)
        ],
    }
    if section.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in section.image_pull_secrets]
    if section.jobset.service_account is not None:
        pod["serviceAccountName"] = section.jobset.service_account
    if section.jobset.host_network:
        pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return pod


def _container(section: KubeflowConfig, found: tpu.TpuSlice, image: str) -> dict[str, Any]:
    limits = {tpu.RESOURCE: str(found.chips_per_host)}
    asked = section.resources.get("Trainer")
    if asked is not None:
        limits |= {} if asked.cpu is None else {"cpu": f"{asked.cpu:g}"}
        limits |= {} if asked.memory is None else {"memory": str(asked.memory)}
    return {
        "name": JOB,
        "image": image,
        "ports": [{"containerPort": port} for port in _PORTS],
        "resources": {"limits": limits, "requests": limits},
        "volumeMounts": [{"name": f"volume-{i}", "mountPath": v.path} for i, v in enumerate(section.volumes)],
        "securityContext": _security(section.jobset),
    }


def _queue(jobset: JobSetConfig) -> dict[str, Any]:
    """Returns the label by which Kueue admits the set, if a queue is named."""
    return {} if jobset.queue is None else {"labels": {_QUEUE: jobset.queue}}


def _security(jobset: JobSetConfig) -> dict[str, Any]:
    if jobset.privileged:
        return {"privileged": True}
    return {"runAsNonRoot": True, "runAsUser": _USER, "runAsGroup": _USER, "allowPrivilegeEscalation": False}
