"""The JobSet that trains on TPU slices of several hosts: a Job for each slice, a pod for each host, started together.

A task of Kubeflow Pipelines is one pod, so the Trainer's pod starts this set and waits for it
(`shardwright.components.runtime.run_jobset`). That module adds the name of the set, and command and places of its pods.

Source of the fields: kubernetes-sigs/jobset at 08dfbdf, api/jobset/v1alpha2; of the hosts' names: its `Network`.
"""

from __future__ import annotations

from typing import Any

from shardwright.components.runtime.heartbeat import SECONDS, Abandoned
from shardwright.config import KubeflowConfig
from shardwright.errors import Stopped, UsageError
from shardwright.pipelines import tpu
from shardwright.pipelines.cloud.pod_documents import pod_template

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
    jobset = section.jobset
    spec: dict[str, Any] = {**placing, "terminationGracePeriodSeconds": _SECONDS_TO_END}
    if jobset.service_account is not None:
        spec["serviceAccountName"] = jobset.service_account
    if jobset.host_network:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    container = {
        "name": JOB,
        "image": image,
        "ports": [{"containerPort": port} for port in _PORTS],
        "env": [{"name": SECONDS, "value": f"{jobset.heartbeat_minutes * 60:g}"}],
    }
    template = pod_template(
        section,
        section.pod_of("Trainer"),
        container,
        resources=section.resources.get("Trainer"),
        devices={tpu.RESOURCE: str(found.chips_per_host)},
        privileged=jobset.privileged,
        **spec,
    )
    # A pod for each host, none of which starts again alone: the whole set begins again at the last checkpoint.
    job = {
        "completionMode": "Indexed",
        "completions": found.hosts,
        "parallelism": found.hosts,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [{"action": "FailJob", **rule} for rule in _JOB_RULES]},
        "template": template,
    }
    # All pods of a Job on one slice, which is one node pool.
    metadata: dict[str, Any] = {"annotations": _ONE_POOL}
    if jobset.queue is not None:
        metadata["labels"] = {_QUEUE: jobset.queue}
    if jobset.owned:
        # The task fills in the name of its pod.
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod"}]
    return {
        "apiVersion": API_VERSION,
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {
            # With it comes the headless service that lets the pods find each other.
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "failurePolicy": {"maxRestarts": jobset.max_restarts, "rules": list(_SET_RULES)},
            "ttlSecondsAfterFinished": _SECONDS_KEPT,
            "replicatedJobs": [{"name": JOB, "replicas": section.trainer.slices, "template": {"spec": job}}],
        },
    }
