"""Every manifest and pod of Shardwright on a Kubernetes API server: `make cluster-test`.

The server is 1.20, the last whose whole source a Debian release has. Newer fields are unknown to it. The definitions of
JobSet and KServe are not part of this project: SHARDWRIGHT_CRDS is a folder with their files. Without it sets are
stored unchecked, and services are left out.
"""

import json
import os
from pathlib import Path

import api_server
import pytest
import yaml
from cluster_objects import KUBEFLOW, NAMESPACE, PLACES, ROOT, config, create, of_the_pages
from kubeflow_driver import pod_of
from kubernetes import client
from kubernetes.utils.quantity import parse_quantity as quantity

from shardwright.components.runtime import run_jobset as jobset
from shardwright.components.runtime.run_jobset import Cluster, JobSetTask, run_as_jobset
from shardwright.errors import CheckFailed, ShardwrightError
from shardwright.pipelines.cloud.batch import predict_job
from shardwright.pipelines.cloud.jobset_document import jobset_template
from shardwright.pipelines.cloud.kserve import kserve_manifest
from shardwright.pipelines.compile_kubeflow import _add_variables, platform_document
from shardwright.pipelines.tpu import TpuSlice

pytestmark = pytest.mark.cluster

SPEC, PLATFORM = yaml.safe_load_all((ROOT / "tests/pipelines/golden/kubeflow.yaml").read_text(encoding="utf-8"))
ACCOUNT = "pipeline-runner"
PODS = {
    "all": {"env": {"LOG": "info"}, "labels": {"team": "clouds"}, "timeout_hours": 48},
    "Trainer": {
        "secret_env": {"WANDB_API_KEY": "wandb/token"},
        "config_map_env": {"OWNER": "people/owner"},
        "annotations": {"example.org/owner": "clouds"},
        "shared_memory": "8GB",
        "scratch": [{"path": "/gcs", "size": "500GB", "storage_class": "premium-rwo"}, {"path": "/s", "size": "1GiB"}],
    },
}
# Stores any JobSet: what is there if the real definition is not.
ANY_JOBSET = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "jobsets.jobset.x-k8s.io"},
    "spec": {
        "group": "jobset.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "JobSet", "plural": "jobsets", "singular": "jobset"},
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def definitions():
    """The definitions of JobSet and KServe, of the files in SHARDWRIGHT_CRDS."""
    folder = os.environ.get("SHARDWRIGHT_CRDS")
    files = sorted(Path(folder).rglob("*.yaml")) if folder else []
    found = [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one]
    return {
        one["metadata"]["name"]: without_empty_defaults(one)
        for one in found
        if one["kind"] == "CustomResourceDefinition"
    }


def without_empty_defaults(value):
    """This server reads the default `""` as null, and refuses it; the keys of a list must then be required."""
    if isinstance(value, list):
        return [without_empty_defaults(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: without_empty_defaults(one) for key, one in value.items() if (key, one) != ("default", "")}
    for key in made.get("x-kubernetes-list-map-keys", ()):
        if "default" not in made["items"]["properties"][key]:
            made["items"]["required"] = sorted({*made["items"].get("required", ()), key})
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    programs = api_server.programs_in(os.environ["SHARDWRIGHT_CLUSTER"])
    assert programs, "SHARDWRIGHT_CLUSTER is not a folder with etcd and kube-apiserver. `make cluster-test` makes one."
    with api_server.running(programs, tmp_path_factory.mktemp("server")) as made:
        for name in (NAMESPACE, "other"):
            create(made, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            create(made, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, name)
        known = definitions()
        for definition in [known.pop("jobsets.jobset.x-k8s.io", ANY_JOBSET), *known.values()]:
            create(made, definition)
        for manifest in of_the_pages():
            create(made, manifest)
        api_server.until(lambda: made.call("GET", PLACES["JobSet"].format(NAMESPACE)))
        yield made


def kept(sent, stored, path=""):
    """Returns the fields that the server dropped or changed; it drops empty ones, and writes quantities its own way."""
    if not sent and isinstance(sent, (dict, list)):
        return []
    if isinstance(sent, dict):
        if not isinstance(stored, dict):
            return [path]
        return [found for key, value in sent.items() for found in kept(value, stored.get(key), f"{path}.{key}")]
    if isinstance(sent, list):
        if not isinstance(stored, list) or len(stored) < len(sent):
            return [path]
        return [found for i, value in enumerate(sent) for found in kept(value, stored[i], f"{path}[{i}]")]
    same = sent == stored or ((".resources." in path or "sizeLimit" in path) and quantity(sent) == quantity(stored))
    return [] if same else [f"{path}: {sent!r} became {stored!r}"]


def test_the_pages_manifests_are_stored_as_they_are(server):
    """The fixture has created them."""
    for manifest in of_the_pages():
        place = f"{PLACES[manifest['kind']].format(NAMESPACE)}/{manifest['metadata']['name']}"
        stored = server.call("GET", place)
        assert kept(manifest, stored) == []


@pytest.mark.parametrize("component", sorted(SPEC["components"]))
def test_every_task_is_a_pod(server, component):
    pod = pod_of(component, SPEC, PLATFORM)
    pod["metadata"]["name"] = component.lower()
    assert kept(pod, create(server, pod, dry_run=True)) == []


def test_every_setting_of_pods_is_kept(server):
    one_host = {"machine": "ct5lp-hightpu-4t", "topology": "2x2"}
    section = config(trainer=one_host, pods=PODS, image_pull_secrets=["registry"])
    spec = json.loads(json.dumps(SPEC))
    _add_variables(section, {"pipelineSpec": spec})
    for component in ("Trainer", "DataGate"):
        pod = pod_of(component, spec, platform_document(section))
        stored = create(server, pod, dry_run=True)
        assert kept(pod, stored) == []


def test_the_server_refuses_what_no_pod_can_have(server):
    pod = pod_of("Trainer", SPEC, PLATFORM)
    pod["spec"]["containers"][0]["volumeMounts"].append({"name": "missing", "mountPath": "/x"})
    with pytest.raises(client.ApiException, match="volumeMounts.*missing"):
        create(server, pod, dry_run=True)


def test_the_job_of_batch_prediction(server):
    job = yaml.safe_load(predict_job(config(pods=PODS), "gs://bucket/new", "/models/predicted.csv"))
    job["metadata"].setdefault("generateName", "x-")
    assert kept(job["spec"], create(server, job, dry_run=True)["spec"]) == []


def manifest(tmp_path, **changes):
    """The JobSet of a training on four hosts, as the Trainer's task sends it."""
    found = TpuSlice("ct5lp-hightpu-4t", "4x4")
    section = config(hosts=4, trainer={"machine": found.machine, "topology": found.topology}, **changes)
    placing = {
        "nodeSelector": {**found.node_selector},
        "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}],
    }
    template = jobset_template(section.kubeflow, found, KUBEFLOW["image"], placing)
    # The name of a set follows from its arguments: each test has another one.
    return JobSetTask(template, ["--executor_class_path", tmp_path.name, "{}"], 2, tmp_path / "shared")


OPTIONS = {"queue": "tpus", "service_account": "trainer", "max_restarts": 1, "host_network": True}


@pytest.mark.parametrize("options", [{}, OPTIONS, {"privileged": True}])
def test_no_field_of_the_jobset_is_dropped(server, tmp_path, options):
    task = manifest(tmp_path, pods=PODS, image_pull_secrets=["registry"], jobset=options)
    made = task.manifest({"outputs": {"artifacts": {}, "outputFile": "/x"}})
    assert kept(made, create(server, made, dry_run=True)) == []


@pytest.mark.skipif("jobsets.jobset.x-k8s.io" not in definitions(), reason="needs SHARDWRIGHT_CRDS with that of JobSet")
def test_jobsets_definition_refuses_other_actions(server, tmp_path):
    made = manifest(tmp_path).manifest({"outputs": {"artifacts": {}, "outputFile": "/x"}})
    made["spec"]["failurePolicy"]["rules"][0]["action"] = "Restart"
    with pytest.raises(client.ApiException, match="Unsupported value"):
        create(server, made, dry_run=True)


@pytest.mark.skipif(
    "inferenceservices.serving.kserve.io" not in definitions(), reason="needs SHARDWRIGHT_CRDS with those of KServe"
)
@pytest.mark.parametrize("traffic", [100, 10])
def test_no_field_of_the_inference_service_is_dropped(server, traffic):
    made = yaml.safe_load(kserve_manifest(config(), traffic, "17"))
    assert kept(made, create(server, made, dry_run=True)) == []


@pytest.fixture
def account(server, tmp_path, monkeypatch):
    """Makes this process a pod with a service account: the one of the page, or another one."""

    def become(name, namespace=NAMESPACE):
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
        place = f"{PLACES['ServiceAccount'].format(namespace)}/{name}/token"
        answer = server.call("POST", place, request)
        folder = tmp_path / f"{namespace}-{name}"
        folder.mkdir()
        (folder / "token").write_text(answer["status"]["token"])
        (folder / "ca.crt").write_bytes(server.certificate.read_bytes())
        (folder / "namespace").write_text(namespace)
        monkeypatch.setattr(jobset, "_ACCOUNT", folder)
        host, port = server.url.removeprefix("https://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        return Cluster.of_this_pod({})

    return become


@pytest.fixture
def opened(tmp_path):
    """A task's ExecutorInput with one output."""
    model = tmp_path / "out" / "model"
    model.mkdir(parents=True)
    artifact = {"artifacts": [{"name": "1", "uri": str(model)}]}
    return {"inputs": {}, "outputs": {"artifacts": {"model": artifact}, "outputFile": str(tmp_path / "own.json")}}


def trained(task):
    """Writes the outputs of the pods."""
    model = task.folder / "outputs" / "model"
    model.mkdir(parents=True)
    (model / "saved_model.pb").write_text("model")
    report = {"artifacts": {"model": {"artifacts": [{"name": "1", "uri": str(model)}]}}}
    (task.folder / "executor_output.json").write_text(json.dumps(report))


def ended(kind):
    """The condition of a set that has ended."""
    return {"type": kind, "reason": "Tested", "message": "because of the test"}


def gone(cluster, task):
    """Waits until a set that is being deleted is gone."""

    def look():
        assert cluster.find(task.name) is None

    api_server.until(look)


def test_the_role_of_the_page_is_all_that_a_training_needs(server, account, opened, tmp_path):
    cluster, task = account(ACCOUNT), manifest(tmp_path)
    trained(task)
    with api_server.Controllers(server, NAMESPACE, ended("Completed")).working() as made:
        run_as_jobset(task, opened, cluster)
        gone(cluster, task)
    assert len(made.seen) == 1
    assert (tmp_path / "out" / "model" / "saved_model.pb").read_text() == "model"


def test_a_set_that_failed_is_left_for_its_logs_and_replaced(server, account, opened, tmp_path):
    cluster, task = account(ACCOUNT), manifest(tmp_path, jobset={"max_restarts": 0})
    with api_server.Controllers(server, NAMESPACE, ended("Failed")).working() as made:
        with pytest.raises(CheckFailed, match="because of the test"):
            run_as_jobset(task, opened, cluster)
        first = cluster.get(task.name)["metadata"]["uid"]
        made.ends = ended("Completed")
        trained(task)
        run_as_jobset(task, opened, cluster)
        gone(cluster, task)
    assert made.seen[0] == first
    assert len(made.seen) == 2


@pytest.mark.parametrize("namespace", [NAMESPACE, "other"])
def test_an_account_without_rights_is_refused_with_the_fix(account, opened, tmp_path, namespace):
    cluster = account("default", namespace)
    with pytest.raises(ShardwrightError, match=r"refused to create JobSet .*forbidden.*has the Role"):
        run_as_jobset(manifest(tmp_path), opened, cluster)


def test_a_token_that_is_not_one_is_refused_with_the_fix(account, opened, tmp_path):
    cluster = account(ACCOUNT)
    (jobset._ACCOUNT / "token").write_text("x")
    with pytest.raises(ShardwrightError, match="Give the run a service account"):
        run_as_jobset(manifest(tmp_path), opened, cluster)
