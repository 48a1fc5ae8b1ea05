"""The table of benchmarks/CLOUD_SETTINGS.md: each setting of `kubeflow`, its place, the line that reads it.

A row is proven as far as it can be here: the value is found at its place. The lines are those of one commit of
Kubeflow, read in its sources, which no package has.
"""

import copy
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from shardwright.config import parse_config
from shardwright.config.json_schema import leaves
from shardwright.pipelines.cloud.jobset_document import jobset_template
from shardwright.pipelines.compile_kubeflow import (
    _add_notification,
    _add_variables,
    _notifies,
    add_accelerator,
    add_image_parameter,
    platform_document,
)
from shardwright.pipelines.tpu import TpuSlice

PAGE = Path(__file__).parents[2] / "benchmarks" / "CLOUD_SETTINGS.md"
BEGIN, END = "<!-- generated: kubeflow -->\n", "<!-- end: kubeflow -->\n"
GOLDEN = Path(__file__).parent / "golden" / "kubeflow.yaml"
IMAGE = "europe-docker.pkg.dev/my-project/ml/shardwright:1.0"
COMMITS = {
    "kubeflow/pipelines": "7b70c7b",
    "kubernetes-sigs/jobset": "08dfbdf",
    "kubernetes-sigs/kueue": "ff69552",
    "kubernetes/kubernetes": "v1.34.4",
}
OURS = "this project"
# The controller copies the template of the job, with that of its pods.
COPIED = "kubernetes-sigs/jobset: pkg/controllers/jobset_controller.go:946"

TPU = {"machine": "ct5lp-hightpu-4t", "topology": "2x2"}
HOSTS = {"machine": "ct5lp-hightpu-4t", "topology": "4x4"}
TASK = "root.dag.tasks.Pusher"
TRAINER = "deploymentSpec.executors.Trainer_executor.container"
PODS = "spec.replicatedJobs.0.template.spec.template"


class Row(NamedTuple):
    """A setting: `value` ends as `found` at `place` of `document`; `line` of the backend reads it there."""

    document: str
    place: str
    line: str
    section: dict[str, Any]
    found: Any


def pipeline(place: str, line: str, found: Any, **section: Any) -> Row:
    """A field of the first document."""
    return Row("pipeline", place, line, section, found)


def pod(option: str, field: str, line: str, value: Any, found: Any) -> Row:
    """A setting of `kubeflow.pods`, as a field of the second document."""
    return Row("platform", field, line, {"pods": {"Trainer": {option: value}}}, found)


def platform(field: str, line: str, found: Any, **section: Any) -> Row:
    """A field of the second document."""
    return Row("platform", field, line, section, found)


def jobset(place: str, line: str, found: Any, **values: Any) -> Row:
    """A field of the JobSet, which its controller or Kueue reads; what is of the pods goes from there to Kubernetes."""
    return Row("JobSet", place, line, {"trainer": HOSTS, "jobset": values}, found)


SCRATCH = {"path": "/gcs", "size": "5GB", "storage_class": "fast"}
ROWS: dict[str, Row] = {
    "kubeflow.image": pipeline(
        "deploymentSpec.executors.Pusher_executor.container.image", "driver/driver.go:441", IMAGE
    ),
    "kubeflow.image_parameter": pipeline(
        "deploymentSpec.executors.Pusher_executor.container.image", "driver/driver.go:441",
        "{{$.inputs.parameters['image']}}", image_parameter=True,
    ),
    # The tasks stay in the outermost graph: earlier versions take no exit task with a state.
    "kubeflow.version": pipeline(
        "root.dag.tasks.Pusher.taskInfo.name", "compiler/argocompiler/dag.go:72", "Pusher",
        version="2.5", notify={"webhook": "chat/url"},
    ),
    "kubeflow.retries": pipeline(f"{TASK}.retryPolicy.maxRetryCount", "compiler/argocompiler/container.go:628", 2),
    "kubeflow.pipeline_root": pipeline(
        # The backend has no line that reads it: a client gives the folder to the run.
        "defaultPipelineRoot", "frontend/src/pages/NewRunV2.tsx:338", "gs://bucket/kfp"
    ),
    "kubeflow.data_root": pipeline(
        "root.inputDefinitions.parameters.data_root.defaultValue", "compiler/argocompiler/argo.go:107",
        "gs://bucket/clouds",
    ),
    "kubeflow.push_directory": pipeline(
        f"{TASK}.inputs.parameters.push_destination.runtimeValue.constant", "driver/resolve.go:426", "/models/clouds"
    ),
    "kubeflow.resources.*.cpu": pipeline(
        f"{TRAINER}.resources.cpuLimit", "driver/driver.go:381", 8
    ),
    "kubeflow.resources.*.memory": pipeline(
        f"{TRAINER}.resources.memoryLimit", "driver/driver.go:355", 32
    ),
    "kubeflow.node_selectors": platform(
        "nodeSelector.labels.pool", "driver/k8s.go:196", "a", node_selectors={"Trainer": {"pool": "a"}}
    ),
    **{
        f"kubeflow.tolerations.*.*.{field}": platform(
            f"tolerations.0.{field}", f"driver/k8s.go:{line}", value,
            tolerations={"Trainer": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}]},
        )
        for field, line, value in (
            ("key", 284, "k"), ("operator", 285, "Equal"), ("value", 286, "v"), ("effect", 287, "NoSchedule")
        )
    },
    "kubeflow.volumes.*.claim": platform("pvcMount.0.constant", "driver/k8s.go:1252", "models"),
    "kubeflow.volumes.*.path": platform("pvcMount.0.mountPath", "driver/k8s.go:1273", "/models"),
    "kubeflow.pods.*.env": Row(
        "pipeline", f"{TRAINER}.env", "driver/driver.go:293", {"pods": {"Trainer": {"env": {"A": "1"}}}},
        {"name": "A", "value": "1"},
    ),
    "kubeflow.pods.*.secret_env": pod(
        "secret_env", "secretAsEnv.0", "driver/k8s.go:349", {"A": "s/k"},
        {"secretName": "s", "keyToEnv": [{"secretKey": "k", "envVar": "A"}]},
    ),
    "kubeflow.pods.*.config_map_env": pod(
        "config_map_env", "configMapAsEnv.0", "driver/k8s.go:445", {"A": "m/k"},
        {"configMapName": "m", "keyToEnv": [{"configMapKey": "k", "envVar": "A"}]},
    ),
    "kubeflow.pods.*.labels": pod(
        "labels", "podMetadata.labels", "compiler/argocompiler/container.go:594", {"a": "b"}, {"a": "b"}
    ),
    "kubeflow.pods.*.annotations": pod(
        "annotations", "podMetadata.annotations", "compiler/argocompiler/container.go:594", {"a": "b"}, {"a": "b"}
    ),
    "kubeflow.pods.*.timeout_hours": pod(
        "timeout_hours", "activeDeadlineSeconds", "driver/k8s.go:542", 2, "7200"
    ),
    "kubeflow.pods.*.shared_memory": pod(
        "shared_memory", "emptyDirMounts.0.sizeLimit", "driver/k8s.go:598", "8GB", "8000000000"
    ),
    "kubeflow.pods.*.scratch.*.path": pod(
        "scratch", "genericEphemeralVolume.0.mountPath", "driver/k8s.go:587", [SCRATCH], "/gcs"
    ),
    "kubeflow.pods.*.scratch.*.size": pod(
        "scratch", "genericEphemeralVolume.0.size", "driver/k8s.go:559", [SCRATCH], "5000000000"
    ),
    "kubeflow.pods.*.scratch.*.storage_class": pod(
        "scratch", "genericEphemeralVolume.0.storageClassName", "driver/k8s.go:556", [SCRATCH], "fast"
    ),
    "kubeflow.image_pull_secrets": platform(
        "imagePullSecret.0.secretName", "driver/k8s.go:507", "registry", image_pull_secrets=["registry"]
    ),
    "kubeflow.trainer.machine": pipeline(
        f"{TRAINER}.resources.accelerator.type", "driver/driver.go:416", "google.com/tpu", trainer=TPU
    ),
    "kubeflow.trainer.topology": platform(
        "nodeSelector.labels", "driver/k8s.go:212",
        {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice", "cloud.google.com/gke-tpu-topology": "2x2"},
        trainer=TPU,
    ),
    "kubeflow.trainer.slices": Row(
        "JobSet", "spec.replicatedJobs.0.replicas", "kubernetes-sigs/jobset: pkg/controllers/jobset_controller.go:927",
        {"trainer": {**HOSTS, "slices": 2}}, 2,
    ),
    "kubeflow.trainer.gpu": pipeline(
        f"{TRAINER}.resources.accelerator.type", "driver/driver.go:416", "nvidia.com/gpu",
        trainer={"gpu": "nvidia.com/gpu", "gpus": 2},
    ),
    "kubeflow.trainer.gpus": pipeline(
        f"{TRAINER}.resources.accelerator.count", "driver/driver.go:429", "2",
        trainer={"gpu": "nvidia.com/gpu", "gpus": 2},
    ),
    "kubeflow.jobset.queue": jobset(
        "metadata.labels", "kubernetes-sigs/kueue: pkg/controller/jobframework/utils.go:181",
        {"kueue.x-k8s.io/queue-name": "tpus"}, queue="tpus",
    ),
    "kubeflow.jobset.service_account": jobset(
        f"{PODS}.spec.serviceAccountName", COPIED, "trainer", service_account="trainer"
    ),
    "kubeflow.jobset.max_restarts": jobset(
        "spec.failurePolicy.maxRestarts", "kubernetes-sigs/jobset: pkg/controllers/failure_policy.go:226", 7,
        max_restarts=7,
    ),
    "kubeflow.jobset.privileged": jobset(
        f"{PODS}.spec.containers.0.securityContext", COPIED, {"privileged": True}, privileged=True
    ),
    "kubeflow.jobset.host_network": jobset(f"{PODS}.spec.hostNetwork", COPIED, True, host_network=True),
    "kubeflow.jobset.heartbeat_minutes": jobset(
        f"{PODS}.spec.containers.0.env.0.value", f"{OURS}: components/runtime/heartbeat.py", "720", heartbeat_minutes=12
    ),
    "kubeflow.jobset.owned": jobset(
        "metadata.ownerReferences.0.kind",
        "kubernetes/kubernetes: pkg/controller/garbagecollector/garbagecollector.go:498", "Pod", owned=True,
    ),
    "kubeflow.notify.webhook": Row(
        "platform", "secretAsEnv.0.secretName", "driver/k8s.go:349", {"notify": {"webhook": "chat/url"}}, "chat"
    ),
    "kubeflow.notify.when": pipeline(
        "deploymentSpec.executors.Notify_executor.container.args", "driver/driver.go:317", "always",
        notify={"webhook": "chat/url", "when": "always"},
    ),
}  # fmt: skip


def at(value: Any, path: str) -> Any:
    """The value at a path of a document."""
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def made(row: Row) -> Any:
    """The document of a row, made of the compiled pipeline of test_compile and its section of the configuration."""
    section = {
        "image": IMAGE,
        "push_directory": "/models/clouds",
        "volumes": [{"claim": "models", "path": "/models"}],
        **row.section,
    }
    hosts = 4 if section.get("trainer") == HOSTS else 1
    plain = {"name": "clouds", "input": {"images": "gs://bucket/x"}, "trainer": {"hosts": hosts}, "kubeflow": section}
    config = parse_config(plain, base="/")
    if row.document == "JobSet":
        return jobset_template(config.kubeflow, TpuSlice(HOSTS["machine"], HOSTS["topology"]), IMAGE, {})
    if row.document == "platform":
        executors = platform_document(config)["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
        return executors["Notify_executor" if "notify" in row.section else "Trainer_executor"]
    spec = copy.deepcopy(next(yaml.safe_load_all(GOLDEN.read_text(encoding="utf-8"))))
    if "trainer" in row.section:
        del at(spec, TRAINER)["resources"]["accelerator"]
    _add_variables(config, {"pipelineSpec": spec})
    add_accelerator(config, {"pipelineSpec": spec})
    if config.kubeflow.image_parameter:
        add_image_parameter(spec, IMAGE)
    if _notifies(config.kubeflow):
        _add_notification(config, spec)
    return spec


def test_every_setting_has_a_row() -> None:
    assert set(ROWS) == {path for path, _, _ in leaves() if path.startswith("kubeflow.")}


@pytest.mark.parametrize("setting", ROWS)
def test_a_setting_ends_where_the_table_says(setting: str) -> None:
    row = ROWS[setting]
    found = at(made(row), row.place)
    assert row.found == found or (isinstance(found, (str, list)) and row.found in found)
    elsewhere = rf"{OURS}: [\w/.]+|((backend/src/v2|frontend/src)|kubernetes(-sigs)?/\w+: pkg)/[\w/.]+:\d+"
    assert re.fullmatch(elsewhere, file_of(row))


def file_of(row: Row) -> str:
    """The line that reads a row, in the repository of Kubeflow or the one that it names."""
    return row.line if row.line.startswith(("frontend/", "kubernetes", OURS)) else f"backend/src/v2/{row.line}"


def table() -> str:
    named = [f"{repository} at {commit}" for repository, commit in COMMITS.items()]
    lines = [
        f"Lines of {' and '.join(', '.join(named).rsplit(', ', 1))}. Those without a repository are of the first one.",
        "Fields of the platform document are those of an executor.",
        "",
        "| setting | where it ends | read by |",
        "|---|---|---|",
    ]
    for setting, row in ROWS.items():
        reader = f"`{file_of(row)}`"
        executor = "Notify" if "notify" in row.section and row.document == "platform" else ""
        name = f"{row.document} of {executor}" if executor else row.document
        lines.append(f"| `{setting}` | {name}: `{row.place}` | {reader} |")
    return "\n".join(lines) + "\n"


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition(BEGIN)[2].partition(END)[0]
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        PAGE.write_text(page.replace(f"{BEGIN}{shown}{END}", f"{BEGIN}{table()}{END}"), encoding="utf-8")
        shown = table()
    assert shown == table(), "renew it with SHARDWRIGHT_RENEW_GOLDEN=1"
