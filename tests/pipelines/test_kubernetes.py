"""Every pod and the JobSet of a compiled pipeline are valid for Kubernetes, checked strictly."""

import copy
import os
import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from kubernetes_rules import check_jobset, pod_of, strictly

from shardwright.components.runtime.jobset import JobSetTask
from shardwright.config import parse_config
from shardwright.errors import ConfigError
from shardwright.pipelines.cloud.jobset import jobset_template
from shardwright.pipelines.kubeflow import add_image_parameter, check_for_backend, platform_document
from shardwright.pipelines.tpu import TpuSlice

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).parents[2] / "docs" / "kubeflow.md"
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


def manifest():
    found = TpuSlice("ct5lp-hightpu-4t", "4x4")
    placing = {
        "nodeSelector": {**found.node_selector},
        "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}],
    }
    template = jobset_template(config().kubeflow, found, KUBEFLOW["image"], placing)
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


def test_what_changed_in_the_jobset_is_seen():
    """After a change that is meant: SHARDWRIGHT_RENEW_GOLDEN=1 and look at the difference."""
    file = GOLDEN / "jobset.yaml"
    shown = yaml.safe_dump(manifest(), sort_keys=True, width=4096)
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


def test_the_pod_that_starts_a_jobset_needs_no_tpu():
    executors = platform_document(config())["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(executors["Trainer_executor"]) == {"pvcMount"}


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
    """Claims, service account and rights, as docs/kubeflow.md shows them."""
    blocks = re.findall(r"```yml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    manifests = [one for block in blocks for one in yaml.safe_load_all(block)]
    assert {one["kind"] for one in manifests} == {"PersistentVolumeClaim", "ServiceAccount", "Role", "RoleBinding"}
    for one in manifests:
        strictly(one)
