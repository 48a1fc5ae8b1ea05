"""Every pod and the JobSet of a compiled pipeline are valid for Kubernetes, checked strictly."""

import copy
import json
import os
import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from emulator import fits
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from kubeflow_driver import pod_of
from kubernetes_rules import check_jobset, strictly

from shardwright.components.image_trainer.devices.hosts import this_host
from shardwright.components.runtime.run_jobset import JobSetTask
from shardwright.config import parse_config
from shardwright.errors import ConfigError
from shardwright.pipelines.cloud.jobset_document import jobset_template
from shardwright.pipelines.compile_kubeflow import (
    _add_variables,
    add_image_parameter,
    add_jobset,
    check_for_backend,
    platform_document,
)
from shardwright.pipelines.tpu import TpuSlice

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).parents[2] / "docs" / "deploy" / "kubeflow.md"
SPEC, PLATFORM = yaml.safe_load_all((GOLDEN / "kubeflow.yaml").read_text(encoding="utf-8"))
KUBEFLOW = {
    "image": "registry.example/shardwright:1.0",
    "push_directory": "/models/clouds",
    "resources": {"Trainer": {"cpu": 100, "memory": "180GB"}},
    "node_selectors": {"Trainer": {"cloud.google.com/gke-nodepool": "tpu"}},
    "volumes": [{"claim": "models", "path": "/models"}, {"claim": "data", "path": "/data"}],
    "trainer": {"machine": "ct5lp-hightpu-4t", "topology": "4x4"},
}


def config(hosts=4, **changes):
    plain = {"name": "clouds", "input": {"images": "gs://bucket/x"}, "trainer": {"hosts": hosts}}
    return parse_config({**plain, "kubeflow": {**KUBEFLOW, **changes}}, base="/")


@pytest.mark.parametrize("component", sorted(SPEC["components"]))
def test_kubernetes_takes_every_pod(component):
    pod = pod_of(component, SPEC, PLATFORM)
    strictly(pod)
    assert [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]] == ["/models"]


def test_the_check_is_strict():
    pod = pod_of("Trainer", SPEC, PLATFORM)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["google.com/tpu"] == "4"
    pod["spec"]["nodeSelectors"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        strictly(pod)


def manifest(**changes):
    found = TpuSlice("ct5lp-hightpu-4t", "4x4")
    placing = {
        "nodeSelector": {**found.node_selector},
        "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}],
    }
    template = jobset_template(config(**changes).kubeflow, found, KUBEFLOW["image"], placing)
    task = JobSetTask(template, ["--executor_class_path", "x", "{}"], 2, Path("/models"))
    return task.manifest({"outputs": {"artifacts": {}, "outputFile": "/x"}})


def test_the_jobset_has_a_pod_for_every_host():
    made = manifest()
    check_jobset(made)
    (job,) = made["spec"]["replicatedJobs"]
    assert job["template"]["spec"]["completions"] == 4
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"google.com/tpu": "4", "cpu": "100", "memory": "180000000000"}
    made["spec"]["replicatedJobs"][0]["template"]["spec"]["completion"] = 4
    with pytest.raises(kubernetes_validate.ValidationError):
        check_jobset(made)


def test_several_slices_are_jobs_that_know_each_other():
    trainer = {"machine": "ct5lp-hightpu-4t", "topology": "4x4", "slices": 4}
    made = manifest(hosts=16, trainer=trainer)
    check_jobset(made)
    (job,) = made["spec"]["replicatedJobs"]
    assert (job["replicas"], job["template"]["spec"]["completions"]) == (4, 4)
    assert made["metadata"]["annotations"] == {
        "alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"
    }
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    given = {one["name"]: one.get("value") for one in container["env"]}
    first = f"{made['metadata']['name']}-trainer-0-0.{made['metadata']['name']}"
    assert (given["MEGASCALE_NUM_SLICES"], given["MEGASCALE_COORDINATOR_ADDRESS"]) == ("4", first)
    assert given["SHARDWRIGHT_HOSTS"] == "16"
    # As Kubernetes and JobSet fill in the rest: the hosts of all slices have different numbers.
    given = {name: value for name, value in given.items() if value is not None}
    places = [
        this_host({**given, "MEGASCALE_SLICE_ID": str(slice_), "JOB_COMPLETION_INDEX": str(pod)}, 16)
        for slice_ in range(4)
        for pod in range(4)
    ]
    assert [place.index for place in places] == list(range(16))
    assert {place.coordinator for place in places} == {f"{first}:8476"}


@pytest.mark.parametrize(
    ("hosts", "trainer", "message"),
    [
        (4, {"topology": "4x4"}, r"trainer\.hosts: 4, .* has 2 slices 4x4 of ct5lp-hightpu-4t, together 8\. Set .* 8"),
        (2, {"topology": "2x2"}, r"slices: 2, and a slice 2x2 .* has one host: GKE joins slices of several\. Use a"),
        (1, {"machine": None}, r"slices: 2 slices without a machine\. Give kubeflow\.trainer\.machine"),
    ],
)
def test_slices_that_cannot_train_together(hosts, trainer, message):
    with pytest.raises(ConfigError, match=message):
        platform_document(config(hosts=hosts, trainer={"machine": "ct5lp-hightpu-4t", "slices": 2, **trainer}))


def test_what_changed_in_the_jobset_is_seen():
    """After a change that is meant: SHARDWRIGHT_RENEW_GOLDEN=1 and look at the difference."""
    file = GOLDEN / "jobset.yaml"
    shown = yaml.safe_dump(manifest(), sort_keys=True, width=4096)
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


PODS = {
    "all": {"env": {"LOG": "info", "MODE": "all"}, "labels": {"team": "clouds"}, "timeout_hours": 48},
    "Trainer": {
        "env": {"MODE": "own"},
        "secret_env": {"WANDB_API_KEY": "wandb/token"},
        "config_map_env": {"OWNER": "people/owner"},
        "annotations": {"example.org/owner": "clouds"},
        "timeout_hours": 0.5,
        "shared_memory": "8GB",
        "scratch": [
            {"path": "/gcs", "size": "500GB", "storage_class": "premium-rwo"},
            {"path": "/scratch", "size": "1GiB"},
        ],
    },
}


def compiled_with(section):
    """The golden pipeline as `kubeflow.pods` changes it, and its platform document."""
    spec = copy.deepcopy(SPEC)
    _add_variables(section, {"pipelineSpec": spec})
    return spec, platform_document(section)


def test_settings_of_pods_reach_kubernetes():
    one_host = {"machine": "ct5lp-hightpu-4t", "topology": "2x2"}
    section = config(hosts=1, trainer=one_host, pods=PODS, image_pull_secrets=["registry"])
    spec, platform = compiled_with(section)
    pod = pod_of("Trainer", spec, platform)
    strictly(pod)
    (container,) = pod["spec"]["containers"]
    found = {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}
    assert (found["LOG"], found["MODE"]) == ("info", "own")
    assert found["WANDB_API_KEY"] == {"secretKeyRef": {"name": "wandb", "key": "token"}}
    assert found["OWNER"] == {"configMapKeyRef": {"name": "people", "key": "owner"}}
    assert pod["metadata"]["labels"] == {"team": "clouds"}
    assert pod["metadata"]["annotations"] == {"example.org/owner": "clouds"}
    assert pod["spec"]["activeDeadlineSeconds"] == 1800
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {"/gcs", "/scratch", "/dev/shm"}
    other = pod_of("DataGate", spec, platform)
    strictly(other)
    assert other["spec"]["activeDeadlineSeconds"] == 48 * 3600
    assert {one["name"]: one.get("value") for one in other["spec"]["containers"][0]["env"]}["MODE"] == "all"


def test_the_platform_document_is_of_kubeflows_own_message():
    executors = pytest.importorskip("kfp.kubernetes.kubernetes_executor_config_pb2", reason="kfp-kubernetes")
    platform = platform_document(config(pods=PODS, image_pull_secrets=["registry"]))
    for executor in platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"].values():
        json_format.ParseDict(executor, executors.KubernetesExecutorConfig())


def test_settings_of_pods_reach_the_jobset():
    jobset = {"queue": "tpus", "service_account": "trainer", "max_restarts": 1, "host_network": True}
    made = manifest(pods=PODS, image_pull_secrets=["registry"], jobset=jobset)
    check_jobset(made)
    assert made["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "tpus"}
    policy = made["spec"]["failurePolicy"]
    assert policy["maxRestarts"] == 1
    job = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    assert (pod["serviceAccountName"], pod["hostNetwork"]) == ("trainer", True)
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    (container,) = pod["containers"]
    names = [one["name"] for one in container["env"]]
    assert {"LOG", "MODE", "WANDB_API_KEY", "OWNER"} <= set(names)
    assert len(names) == len(set(names))
    assert job["template"]["metadata"]["annotations"] == {"example.org/owner": "clouds"}
    assert {"name": "temporary", "mountPath": "/tmp"} in container["volumeMounts"]
    own = manifest(pods={"all": {"scratch": [{"path": "/tmp/", "size": "1GB"}]}})["spec"]["replicatedJobs"][0]
    mounts = own["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert [one["name"] for one in mounts if one["mountPath"].startswith("/tmp")] == ["scratch-0"]
    privileged = manifest(jobset={"privileged": True})["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert privileged["template"]["spec"]["containers"][0]["securityContext"] == {"privileged": True}


@pytest.mark.parametrize(
    ("ended", "action"),
    [
        ({"code": 143}, "RestartJobSetAndIgnoreMaxRestarts"),
        ({"code": 1, "evicted": True}, "RestartJobSetAndIgnoreMaxRestarts"),
        ({"code": 2}, "FailJobSet"),
        ({"code": 3}, "FailJobSet"),
        ({"code": 1}, "RestartJobSet"),
        *(({"code": code}, "RestartJobSet") for code in (127, 130, 134, 137, 139)),
        # Killed at the end of its grace period: Kubernetes has marked it.
        ({"code": 137, "evicted": True}, "RestartJobSetAndIgnoreMaxRestarts"),
        ({"code": 2, "evicted": True}, "FailJobSet"),
        ({"code": 3, "evicted": True}, "FailJobSet"),
    ],
)
def test_how_a_host_ends_decides_what_becomes_of_the_set(ended, action):
    """By the rules of the Job controller (pkg/controller/job/pod_failure_policy.go) and of JobSet's."""
    spec = manifest()["spec"]
    reason, message = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    for index, rule in enumerate(spec["replicatedJobs"][0]["template"]["spec"]["podFailurePolicy"]["rules"]):
        if ended["code"] in rule.get("onExitCodes", {}).get("values", ()):
            reason = "PodFailurePolicy"
            message = (
                f"Container trainer for pod k/x failed with exit code {ended['code']} matching FailJob rule at {index}"
            )
            break
        if "onPodConditions" in rule and ended.get("evicted"):
            reason, message = (
                "PodFailurePolicy",
                f"Pod k/x has condition DisruptionTarget matching FailJob rule at {index}",
            )
            break
    rules = spec["failurePolicy"]["rules"]
    found = [
        rule["action"]
        for rule in rules
        if reason in rule["onJobFailureReasons"]
        and any(re.search(pattern, message) for pattern in rule.get("onJobFailureMessagePatterns", (".",)))
    ]
    assert [*found, "RestartJobSet"][0] == action


@pytest.mark.parametrize("hosts", [1, 4])
def test_spot_machines_of_the_page_are_those_that_train(hosts):
    """One pod by the platform document, or the pods of a JobSet."""
    (example,) = re.findall(r"```yaml\n([^`]*?gke-spot.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = yaml.safe_load(example)["kubeflow"]
    if hosts > 1:
        shown["trainer"] = KUBEFLOW["trainer"]
    section = config(hosts=hosts, **shown)
    if hosts > 1:
        spec = copy.deepcopy(SPEC)
        add_jobset(section, {"pipelineSpec": spec})
        arguments = spec["deploymentSpec"]["executors"]["Trainer_executor"]["container"]["args"]
        made = json.loads(arguments[arguments.index("--jobset") + 1])
        pod = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        limits = pod["containers"][0]["resources"]["limits"]
    else:
        pod = pod_of("Trainer", *compiled_with(section))["spec"]
        limits = pod["containers"][0]["resources"]["limits"]
    slices = TpuSlice(**shown["trainer"]).node_selector
    spot = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}
    taints = [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]
    node = {
        "labels": {**slices, "cloud.google.com/gke-spot": "true"},
        "taints": [*taints, spot],
        "capacity": {"google.com/tpu": 4},
    }
    assert fits(pod, limits, node)
    assert not fits(pod, limits, {**node, "labels": slices, "taints": taints})
    pod["tolerations"] = [one for one in pod["tolerations"] if one["key"] != spot["key"]]
    assert not fits(pod, limits, node)


def test_the_example_of_the_page_is_a_configuration():
    (example,) = re.findall(r"```yaml\n([^`]*?\n  pods:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    config(**yaml.safe_load(example)["kubeflow"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pods": {"Trainr": {}}}, "Did you mean Trainer"),
        ({"pods": {"all": {"env": {"A-B": "1"}}}}, "'A-B' is not a variable's name"),
        ({"pods": {"all": {"env": {"SHARDWRIGHT_IMAGE": "x"}}}}, "is set by Shardwright itself"),
        ({"pods": {"all": {"env": {"A": "1"}, "secret_env": {"A": "s/k"}}}}, "'A' has two values"),
        ({"pods": {"all": {"secret_env": {"A": "token"}}}}, "'token' is not NAME/KEY"),
        ({"pods": {"all": {"labels": {"team": "a b"}}}}, "'a b' is not a label of a pod"),
        ({"pods": {"all": {"annotations": {"a b": "x"}}}}, "is not the name of an annotation"),
        ({"pods": {"all": {"timeout_hours": 0}}}, r"all\.timeout_hours: 0"),
        ({"pods": {"all": {"scratch": [{"path": "x", "size": "1GB"}]}}}, "'x' is not a folder to mount at"),
        ({"pods": {"all": {"scratch": [{"path": "/x", "size": 1}]}}}, r"scratch\[0\]\.size: 1 is too small"),
        ({"pods": {"all": {"scratch": [{"path": "/models", "size": "1GB"}]}}}, "a path of kubeflow.volumes, too"),
        ({"image_pull_secrets": ["My Secret"]}, "'My Secret' is not the name of a Secret"),
        ({"jobset": {"queue": "a b"}}, r"jobset\.queue: 'a b' is not a name"),
        ({"jobset": {"heartbeat_minutes": 1}}, r"heartbeat_minutes: 1"),
        ({"version": "1.8"}, r"kubeflow\.version: '1\.8' is not a version .*in quotes"),
        ({"version": 2.5}, r"kubeflow\.version: 2\.5"),
        ({"version": "2.3", "image_parameter": True}, "Pipelines 2.3 takes no image"),
        ({"jobset": {"max_restarts": -1}}, r"jobset\.max_restarts"),
    ],
)
def test_settings_that_no_pod_could_have(changes, message):
    with pytest.raises(ConfigError, match=message):
        config(**changes)


def test_the_pod_that_starts_a_jobset_needs_no_tpu():
    executors = platform_document(config())["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(executors["Trainer_executor"]) == {"pvcMount", "securityContext"}


def test_the_trainer_must_count_its_hosts():
    with pytest.raises(ConfigError, match=r"trainer\.hosts: 1, .* which has 4\. Set trainer\.hosts to 4\."):
        platform_document(config(hosts=1))


@pytest.mark.parametrize(
    ("volumes", "message"),
    [
        ([{"claim": "my.models", "path": "/models"}], r"volumes\[0\]\.claim: 'my\.models' is not the name of a volume"),
        ([{"claim": "m", "path": "/models"}, {"claim": "m", "path": "/x"}], "one claim at two paths"),
        ([{"claim": "m", "path": "/models"}, {"claim": "n", "path": "/models"}], "two claims at one path"),
    ],
)
def test_volumes_that_no_pod_could_have(volumes, message):
    with pytest.raises(ConfigError, match=message):
        config(volumes=volumes)


def test_the_image_as_a_parameter_of_the_run():
    spec = copy.deepcopy(SPEC)
    add_image_parameter(spec, "registry.example/shardwright:2.0")
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    check_for_backend(spec)
    assert spec["root"]["inputDefinitions"]["parameters"]["image"]["defaultValue"] == "registry.example/shardwright:2.0"
    for name, task in spec["root"]["dag"]["tasks"].items():
        component = spec["components"][task["componentRef"]["name"]]
        assert component["inputDefinitions"]["parameters"]["image"] == {"parameterType": "STRING"}, name
        assert task["inputs"]["parameters"]["image"] == {"componentInputParameter": "image"}
    images = {one["container"]["image"] for one in spec["deploymentSpec"]["executors"].values()}
    # The pattern inputPipelineChannelPattern of the backend's driver.
    assert [re.search(r"\$.inputs.parameters\['(.+?)'\]", image)[1] for image in images] == ["image"]


def test_the_manifests_of_the_page_are_taken():
    """Claims and rights, as docs/deploy/kubeflow.md and its tutorial show them."""
    pages = (PAGE, PAGE.parents[1] / "tutorials" / "gke-tpu.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    blocks = re.findall(r"```yml\n(.*?)```", text, re.DOTALL)
    manifests = [one for block in blocks for one in yaml.safe_load_all(block)]
    kinds = {"PersistentVolumeClaim", "Job", "Role", "RoleBinding", "ServiceAccount"}
    assert {one["kind"] for one in manifests} == kinds
    for one in manifests:
        strictly(one)
