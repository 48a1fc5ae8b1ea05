"""The JobSet that trains on TPU slices of several hosts: a Job for each slice, a pod for each host, started together.

A task of Kubeflow Pipelines is one pod, so the Trainer's pod starts this set and waits for it
(`shardwright.components.runtime.run_jobset`). That module adds the name of the set, and command and places of its pods.

Source of the fields: kubernetes-sigs/jobset at 08dfbdf, api/jobset/v1alpha2; of the hosts' names: its `Network`.
"""

from __future__ import annotations

from typing import Any

from shardwright.components.runtime.heartbeat import SECONDS, Abandoned
from shardwright.config import KubeflowConfig
from shardwright.config.pods import JobSetConfig
from shardwright.errors import Stopped, UsageError
from shardwright.pipelines import tpu
from shardwright.pipelines.cloud.pod_documents import add_to_pod, mounted_claims, restrict

API_VERSION = "jobset.x-k8s.io/v1alpha2"
JOB = "trainer"
# The ports of JAX's coordinator and of the TPU's runtimes.
_PORTS = (8476, 8471)
# A restart changes nothing about the first; the second is for a training that nobody waits for.
_FINAL = (UsageError.exit_code, Abandoned.exit_code)
# The first rule that fits a pod ends the Job. Kubernetes marks pods that it evicts, and those of a node that is taken
# away. The other hosts of the training then end with the exit code of a stop, often before the marked one.
_JOB_RULES = (
    {"onExitCodes": {"operator": "In", "values": list(_FINAL)}},
    {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {"onExitCodes": {"operator": "In", "values": [Stopped.exit_code]}},
)
# All of them give the Job one reason, `PodFailurePolicy`; the message has the exit code. Any other failure counts.
_SET_RULES = (
    {
        "name": "final",
        "action": "FailJobSet",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": [f"failed with exit code ({'|'.join(map(str, _FINAL))}) matching"],
    },
    {
        "name": "preempted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
    },
)
_QUEUE = "kueue.x-k8s.io/queue-name"
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
    restrict(template, privileged=section.jobset.privileged)
    failures = {"maxRestarts": section.jobset.max_restarts, "rules": list(_SET_RULES)}
    return {
        "apiVersion": API_VERSION,
        "kind": "JobSet",
        # All pods of a Job on one slice, which is one node pool.
        "metadata": {"annotations": _ONE_POOL, **_metadata(section.jobset)},
        "spec": {
            # With it comes the headless service that lets the pods find each other.
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "failurePolicy": failures,
            "ttlSecondsAfterFinished": _SECONDS_KEPT,
            "replicatedJobs": [
                {"name": JOB, "replicas": section.trainer.slices, "template": {"spec": _job(found.hosts, template)}}
            ],
        },
    }


def _job(hosts: int, template: dict[str, Any]) -> dict[str, Any]:
    """Returns the Job: a pod for each host, none of which starts again alone."""
    return {
        "completionMode": "Indexed",
        "completions": hosts,
        "parallelism": hosts,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [{"action": "FailJob", **rule} for rule in _JOB_RULES]},
        "template": template,
    }


def _pod(section: KubeflowConfig, container: dict[str, Any], placing: dict[str, Any]) -> dict[str, Any]:
    """Returns a pod without the settings of `kubeflow.pods`."""
    pod = {
        **placing,
        # A pod that fails ends the whole set, which begins again at the last checkpoint.
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _SECONDS_TO_END,
        "containers": [container],
        "volumes": mounted_claims(section)[0],
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
        "volumeMounts": mounted_claims(section)[1],
        "env": [{"name": SECONDS, "value": f"{section.jobset.heartbeat_minutes * 60:g}"}],
    }


def _metadata(jobset: JobSetConfig) -> dict[str, Any]:
    """Returns the label by which Kueue admits the set, and the pod that owns it, whose name the task fills in."""
    found: dict[str, Any] = {} if jobset.queue is None else {"labels": {_QUEUE: jobset.queue}}
    return {**found, "ownerReferences": [{"apiVersion": "v1", "kind": "Pod"}]} if jobset.owned else found
