"""Shardwright's JobSets on a real control plane: `make engines`.

API server, scheduler, controllers and JobSet are the real ones (`control_plane`); nodes have GKE's labels, and a
stand-in for the kubelet reports of the pods what a test says. `docs/deploy/kubeflow.md` promises what is asserted here.
"""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import api_server
import control_plane
import pytest
import yaml
from api_server import until
from cluster_objects import KUBEFLOW, NAMESPACE, PAGES, ROOT, config, create, of_the_pages
from control_plane import MERGE, Kubelet
from kubeflow_driver import pod_of, secured
from kubernetes.client import ApiException

from shardwright.components.runtime import run_jobset as jobset
from shardwright.components.runtime.heartbeat import HEARTBEAT, SECONDS
from shardwright.components.runtime.run_jobset import Cluster, JobSetTask, run_as_jobset
from shardwright.errors import CheckFailed
from shardwright.pipelines.cloud import kserve
from shardwright.pipelines.cloud.batch import predict_job
from shardwright.pipelines.cloud.exit_task import EXECUTOR, NOTIFY
from shardwright.pipelines.cloud.jobset_document import jobset_template
from shardwright.pipelines.cloud.kserve import kserve_manifest
from shardwright.pipelines.compile_kubeflow import platform_document
from shardwright.pipelines.tpu import TpuSlice

PROGRAMS = Path(os.environ.get("SHARDWRIGHT_CLUSTER", "/nonexistent"))
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not control_plane.programs_in(PROGRAMS), reason="needs the programs of `make engines`"),
]
KUEUE = (PROGRAMS / "kueue-controller").exists()
KSERVE = (PROGRAMS / "kserve-controller").exists()
SETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NAMESPACE}/jobsets"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
QUEUES = "/apis/kueue.x-k8s.io/v1beta2"
POOL, CHIPS = "cloud.google.com/gke-nodepool", "google.com/tpu"
SLICE = TpuSlice("ct5lp-hightpu-4t", "4x4")
NUMBERS = itertools.count()
SPEC = next(yaml.safe_load_all((ROOT / "tests/pipelines/golden/kubeflow.yaml").read_text(encoding="utf-8")))
SCRATCH = {"path": "/gcs", "size": "5GB"}
OPENED = {"inputs": {}, "outputs": {"artifacts": {}, "outputFile": "/x"}}


def becomes(true):
    def look():
        assert true()

    until(look)


class World:
    """The cluster, and what tests look at."""

    def __init__(self, server, kubelet, folder):
        self.call, self.kubelet, self.server, self.folder = server.call, kubelet, server, folder

    def pools(self, *names):
        """Makes node pools of four hosts, as they are when new, and no others."""
        for one in self.call("GET", "/api/v1/nodes")["items"]:
            self.call("DELETE", f"/api/v1/nodes/{one['metadata']['name']}")
        ready = [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}]
        capacity = {"cpu": "112", "memory": "192Gi", "pods": "110", CHIPS: "4"}
        taints = [{"key": CHIPS, "value": "present", "effect": "NoSchedule"}]
        for pool, number in itertools.product(names, range(4)):
            name = f"{pool}-{number}"
            labels = {POOL: pool, "kubernetes.io/hostname": name, **SLICE.node_selector}
            node = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}}
            self.call("POST", "/api/v1/nodes", node)
            status = {"status": {"capacity": capacity, "allocatable": capacity, "conditions": ready}}
            self.call("PATCH", f"/api/v1/nodes/{name}/status", status, kind=MERGE)

    def task(self, slices=1, **options):
        trainer = {"machine": SLICE.machine, "topology": SLICE.topology, "slices": slices}
        section = config(hosts=4 * slices, trainer=trainer, jobset=options)
        placing = {"nodeSelector": SLICE.node_selector, "tolerations": [{"key": CHIPS, "operator": "Exists"}]}
        template = jobset_template(section.kubeflow, SLICE, KUBEFLOW["image"], placing)
        return JobSetTask(template, ["--executor_class_path", f"x{next(NUMBERS)}", "{}"], 2, self.folder / "shared")

    def started(self, **options):
        """Creates a set; returns its name and its pods, as soon as all run."""
        made = self.task(**options).manifest(OPENED)
        self.call("POST", SETS, made)
        return made["metadata"]["name"], self.running(made["metadata"]["name"], 4 * options.get("slices", 1))

    def set(self, name):
        return self.call("GET", f"{SETS}/{name}")

    def pods(self, name):
        label = [("labelSelector", f"jobset.sigs.k8s.io/jobset-name={name}")]
        found = self.call("GET", PODS, query=label)["items"]
        return sorted(found, key=lambda pod: pod["metadata"]["name"])

    def running(self, name, count=4):
        def look():
            pods = [pod for pod in self.pods(name) if not pod["metadata"].get("deletionTimestamp")]
            assert [pod["status"]["phase"] for pod in pods] == ["Running"] * count
            return pods

        return until(look)

    def restarts(self, name):
        """(restarts, those that count), once there is one."""

        def look():
            status = self.set(name)["status"]
            assert status.get("restarts"), status
            return status["restarts"], status.get("restartsCountTowardsMax", 0)

        return until(look, 90)

    def condition(self, name, kind):
        def look():
            found = {one["type"]: one for one in self.set(name)["status"]["conditions"]}
            assert found[kind]["status"] == "True", found
            return found[kind]

        return until(look, failures=(AssertionError, KeyError, ApiException))

    def gone(self, name):
        def look():
            assert name not in [one["metadata"]["name"] for one in self.call("GET", SETS)["items"]]
            assert not self.pods(name)

        until(look)

    def end(self, pods, code):
        for pod in pods:
            with suppress(ApiException):
                self.kubelet.end(pod, code)


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with control_plane.running(PROGRAMS, tmp_path_factory.mktemp("plane"), kueue=KUEUE, kserve=KSERVE) as server:
        for name in (NAMESPACE, "strict"):
            server.send("/api/v1/namespaces", {"metadata": {"name": name}})
            api_server.until(lambda name=name: server.call("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default"))
        for manifest in of_the_pages():
            create(server, manifest)
        for name in ("models", "data"):
            volume = {
                "capacity": {"storage": "1Ti"},
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "standard-rwx",
                "nfs": {"server": "10.0.0.2", "path": f"/{name}"},
                "claimRef": {"name": name, "namespace": NAMESPACE},
            }
            server.send("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume})
            if name == "data":
                wanted = {key: volume[key] for key in ("accessModes", "storageClassName")}
                claim = {**wanted, "resources": {"requests": {"storage": "1Ti"}}}
                made = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": name}, "spec": claim}
                create(server, made)
        with Kubelet(server, NAMESPACE) as kubelet:
            yield server, kubelet


@pytest.fixture
def world(plane, tmp_path):
    server, kubelet = plane
    made = World(server, kubelet, tmp_path)
    made.pools("pool-a")
    yield made
    kubelet.ends = lambda pod: (0.3, 143)
    for one in made.call("GET", SETS)["items"]:
        made.call("DELETE", f"{SETS}/{one['metadata']['name']}", {"propagationPolicy": "Foreground"})
        made.gone(one["metadata"]["name"])


def test_a_set_becomes_the_pods_of_one_pool(world):
    world.pools("pool-a", "pool-b")
    name, pods = world.started()
    nodes = [pod["spec"]["nodeName"] for pod in pods]
    assert len(set(nodes)) == 4
    assert len({node.rpartition("-")[0] for node in nodes}) == 1
    for index, pod in enumerate(pods):
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (f"{name}-trainer-0-{index}", name)
        values = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
        assert values["SHARDWRIGHT_COORDINATOR"] == f"{name}-trainer-0-0.{name}:8476"
        assert "JOB_COMPLETION_INDEX" in values
    service = world.call("GET", f"/api/v1/namespaces/{NAMESPACE}/services/{name}")["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)


def test_each_slice_has_a_pool_and_a_number(world):
    world.pools("pool-a", "pool-b", "pool-c")
    name, pods = world.started(slices=2)
    pools = [{pod["spec"]["nodeName"].rpartition("-")[0] for pod in pods[start : start + 4]} for start in (0, 4)]
    assert [len(pool) for pool in pools] == [1, 1]
    assert pools[0].isdisjoint(pools[1])
    for number, pod in enumerate(pods):
        given = {one["name"]: one for one in pod["spec"]["containers"][0]["env"]}
        assert given["MEGASCALE_COORDINATOR_ADDRESS"]["value"] == f"{name}-trainer-0-0.{name}"
        source = given["MEGASCALE_SLICE_ID"]["valueFrom"]["fieldRef"]["fieldPath"]
        assert pod["metadata"]["annotations"][source.partition("'")[2].rstrip("']")] == str(number // 4)
    # A slice that is taken away starts all of them again.
    world.end(pods[5:6], 143)
    world.kubelet.ends = lambda pod: (0.3, 143)
    assert world.restarts(name) == (1, 0)


def test_two_sets_share_no_pool(world):
    name, pods = world.started()
    other = world.task().manifest(OPENED)
    second = other["metadata"]["name"]
    world.call("POST", SETS, other)
    becomes(lambda: [pod["spec"].get("nodeName") for pod in world.pods(second)] == [None])
    world.end(pods, 0)
    world.condition(name, "Completed")
    world.running(second)


def evict(world, pod):
    name = pod["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    world.call("POST", f"{PODS}/{name}/eviction", body)


def taint(world, pod):
    node = f"/api/v1/nodes/{pod['spec']['nodeName']}"
    taints = [*world.call("GET", node)["spec"]["taints"], {"key": "gone", "effect": "NoExecute"}]
    world.call("PATCH", node, {"spec": {"taints": taints}}, kind=MERGE)


def lose_node(world, pod):
    world.call("DELETE", f"/api/v1/nodes/{pod['spec']['nodeName']}")


@pytest.mark.parametrize("how", [evict, taint, lose_node])
@pytest.mark.parametrize("order", ["the pod alone", "the pod first", "all at once", "the others first"])
def test_a_preemption_never_counts(world, how, order):
    """The hosts of a training agree to stop, and end in any order, often before Kubernetes marks the pod."""
    if how is lose_node and order != "the pod alone":
        pytest.skip("its kubelet is gone, too")
    name, pods = world.started(max_restarts=1)
    gone, others = pods[2], [*pods[:2], pods[3]]
    world.kubelet.ends = lambda pod: None if pod["metadata"]["name"] == gone["metadata"]["name"] else (0.3, 143)
    how(world, gone)
    if order == "the pod first":
        world.end([gone], 143)
        time.sleep(2)
    if order != "the pod alone":
        world.end(others, 143)
    if order == "the others first":
        time.sleep(2)
    if how is not lose_node:
        world.end([gone], 143)
    world.kubelet.ends = lambda pod: (0.3, 143)
    assert world.restarts(name) == (1, 0)


def test_failures_count_until_the_set_fails(world):
    name, pods = world.started(max_restarts=1)
    world.end(pods[1:2], 137)
    assert world.restarts(name) == (1, 1)

    def other():
        found = world.running(name)
        assert {pod["metadata"]["uid"] for pod in found}.isdisjoint(pod["metadata"]["uid"] for pod in pods)
        return found

    world.end(until(other)[:1], 1)
    assert world.condition(name, "Failed")["reason"] == "ReachedMaxRestarts"
    assert any(pod["status"]["phase"] == "Failed" for pod in world.pods(name)), "no logs are left"


@pytest.mark.parametrize("code", [2, 3])
def test_a_wrong_call_fails_the_set_at_once(world, code):
    name, pods = world.started()
    world.end(pods, code)
    world.condition(name, "Failed")
    assert not world.set(name)["status"].get("restarts")


def test_a_set_is_deleted_after_its_time(world):
    made = world.task().manifest(OPENED)
    assert made["spec"]["ttlSecondsAfterFinished"] == 86400
    made["spec"]["ttlSecondsAfterFinished"] = 2
    world.call("POST", SETS, made)
    world.end(world.running(made["metadata"]["name"]), 0)
    world.gone(made["metadata"]["name"])


@pytest.fixture
def account(world, tmp_path, monkeypatch):
    """Makes this process a pod with the service account of the page."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    place = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/pipeline-runner/token"
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text(world.call("POST", place, request)["status"]["token"])
    (folder / "ca.crt").write_bytes(world.server.certificate.read_bytes())
    (folder / "namespace").write_text(NAMESPACE)
    host, port = world.server.url.removeprefix("https://").split(":")
    monkeypatch.setattr(jobset, "_ACCOUNT", folder)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    return folder


@pytest.fixture
def opened(tmp_path):
    (tmp_path / "out" / "model").mkdir(parents=True)
    artifact = {"artifacts": [{"name": "1", "uri": str(tmp_path / "out" / "model")}]}
    return {"inputs": {}, "outputs": {"artifacts": {"model": artifact}, "outputFile": str(tmp_path / "own.json")}}


def in_background(task, opened):
    """Runs the product in a thread; returns it and the list of its failure."""
    failures = []

    def run():
        try:
            run_as_jobset(task, opened, Cluster.of_this_pod({}))
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, failures


def train(world, task):
    """The pods write the model and end."""
    pods, model = world.running(task.name), task.folder / "outputs" / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "saved_model.pb").write_text("model")
    report = {"artifacts": {"model": {"artifacts": [{"name": "1", "uri": str(model)}]}}}
    (task.folder / "executor_output.json").write_text(json.dumps(report))
    world.end(pods, 0)


def test_the_task_files_the_model_and_deletes_the_set(world, account, opened, tmp_path):
    task = world.task()
    thread, failures = in_background(task, opened)
    train(world, task)
    thread.join(60)
    assert failures == []
    assert (tmp_path / "out" / "model" / "saved_model.pb").read_text() == "model"
    world.gone(task.name)


def test_an_attempt_while_the_last_set_is_deleted_waits_and_starts(world, account, opened):
    task = world.task()
    world.call("POST", SETS, task.manifest(opened))
    world.running(task.name)
    first = world.set(task.name)["metadata"]["uid"]
    world.kubelet.ends = lambda pod: (5, 143)
    Cluster.of_this_pod({}).delete(task.name)
    thread, failures = in_background(task, opened)
    becomes(lambda: world.set(task.name)["metadata"]["uid"] != first)
    train(world, task)
    thread.join(60)
    assert failures == []


def test_a_set_that_failed_is_replaced(world, account, opened):
    task = world.task(max_restarts=0)
    thread, failures = in_background(task, opened)
    world.end(world.running(task.name)[:1], 1)
    thread.join(60)
    assert [type(one) for one in failures] == [CheckFailed]
    thread, failures = in_background(task, opened)
    train(world, task)
    thread.join(60)
    assert failures == []


# The waiting task and host 0, each a process: the product's own waiting and watching, without a training.
TASK = """
import json, os, sys
from pathlib import Path
from shardwright.components.runtime import run_jobset as jobset
template, opened, shared, account, name = json.load(sys.stdin)
jobset._ACCOUNT = Path(account)
task = jobset.JobSetTask(template, ["--executor_class_path", name, "{}"], 2, Path(shared))
jobset.run_as_jobset(task, opened, jobset.Cluster.of_this_pod({}))
"""
HOST = """
import os, sys, time
from shardwright.components.runtime.heartbeat import watched
from shardwright.errors import ShardwrightError, Stopped
from shardwright.running.processes import sigterm_raises
try:
    with watched(os.environ), sigterm_raises():
        try:
            time.sleep(600)
        except Stopped:
            print("saved its state", flush=True)
            raise
except ShardwrightError as error:
    sys.exit(error.exit_code)
"""


def test_a_task_killed_with_sigkill_frees_the_pool(world, account, opened):
    """Nothing runs when the launcher of Kubeflow is killed: the hosts see that the heartbeat stops."""
    task = world.task()
    arguments = [task.template, opened, str(task.shared), str(account), task.arguments[1]]
    waiting = subprocess.Popen([sys.executable, "-c", TASK], stdin=subprocess.PIPE, text=True)
    waiting.stdin.write(json.dumps(arguments))
    waiting.stdin.close()
    pods = world.running(task.name)
    values = {one["name"]: one.get("value") for one in pods[0]["spec"]["containers"][0]["env"]}
    assert values[SECONDS] == "600"
    watched = {**os.environ, HEARTBEAT: values[HEARTBEAT], SECONDS: "40"}
    host = subprocess.Popen([sys.executable, "-c", HOST], env=watched, stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(5)
        assert host.poll() is None
        waiting.send_signal(signal.SIGKILL)
        waiting.wait()
        killed = time.monotonic()
        said, _ = host.communicate(timeout=160)
        assert (said, host.returncode) == ("saved its state\n", 3)
        world.end(pods[:1], host.returncode)
        world.condition(task.name, "Failed")
        becomes(lambda: [pod["status"]["phase"] for pod in world.pods(task.name)].count("Running") == 0)
        print(f"the pool is free {time.monotonic() - killed:.0f} s after the task was killed, with 40 s of patience")
        assert not world.set(task.name)["status"].get("restarts")
    finally:
        for process in (waiting, host):
            process.kill()
            process.wait()


def test_an_owned_set_goes_with_the_pod_of_its_task(world, account, opened, monkeypatch):
    container = {"name": "main", "image": "x"}
    pod = world.call("POST", PODS, {"metadata": {"name": "task"}, "spec": {"containers": [container]}})
    monkeypatch.setenv("KFP_POD_NAME", "task")
    monkeypatch.setenv("KFP_POD_UID", pod["metadata"]["uid"])
    task = world.task(owned=True)
    assert Cluster.of_this_pod({}).create(task.manifest(opened))
    world.running(task.name)
    world.call("DELETE", f"{PODS}/task", {"gracePeriodSeconds": 0})
    world.gone(task.name)


@pytest.fixture
def refused(world):
    """(level, pod) -> what a namespace that enforces this Pod Security Standard says against it."""

    def ask(level, spec):
        labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}
        world.call("PATCH", "/api/v1/namespaces/strict", labels, kind=MERGE)
        body = {"metadata": {"name": "x"}, "spec": {**spec, "serviceAccountName": "default"}}
        try:
            world.server.send("/api/v1/namespaces/strict/pods", body, dry_run=True)
        except ApiException as error:
            return json.loads(error.body)["message"]
        return ""

    return ask


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_pod_security_admits_every_pod_that_we_write(world, refused, level):
    def pod(**options):
        manifest = world.task(**options).manifest(OPENED)
        return manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]

    batch = yaml.safe_load(predict_job(config(), "gs://bucket/new", "/models/predicted.csv"))
    for own in (pod(), pod(slices=2), pod(queue="tpus", service_account="a")):
        assert refused(level, own) == ""
    assert refused(level, batch["spec"]["template"]["spec"]) == ""
    # The exceptions of the page.
    assert "privileged" in refused(level, pod(privileged=True))
    assert "host namespaces" in refused(level, pod(host_network=True))
    (owner,) = [one for one in of_the_pages() if one["kind"] == "Job"]
    assert bool(refused(level, owner["spec"]["template"]["spec"])) is (level == "restricted")


@pytest.mark.parametrize("task", [*sorted(SPEC["components"]), NOTIFY])
def test_pod_security_admits_the_pods_of_tasks(world, refused, task):
    """As Kubeflow's compiler and driver write them from 2.16 on: what they leave open is the user."""
    trainer = {"machine": SLICE.machine, "topology": SLICE.topology}

    def spec(**changes):
        section = config(hosts=4, trainer=trainer, notify={"webhook": "chat/url"}, **changes)
        own = {"components": {NOTIFY: {"executorLabel": EXECUTOR}}, "deploymentSpec": {"executors": {}}}
        own["deploymentSpec"]["executors"][EXECUTOR] = {"container": {"image": "x", "command": ["python"]}}
        return secured(pod_of(task, own if task == NOTIFY else SPEC, platform_document(section)))["spec"]

    assert refused("restricted", spec()) == ""
    assert refused("restricted", spec(pods={"all": {"shared_memory": "1GB", "scratch": [SCRATCH]}})) == ""
    assert "runAsNonRoot" in refused("restricted", spec(version="2.15"))


SERVICES = f"/apis/serving.kserve.io/v1beta1/namespaces/{NAMESPACE}/inferenceservices"


@pytest.mark.parametrize("traffic", [100, 10])
def test_kserves_definition_takes_the_service(world, traffic):
    made = yaml.safe_load(kserve_manifest(config(), traffic, "17"))
    assert world.server.send(SERVICES, made, dry_run=True)["spec"]["predictor"]["model"]


@pytest.fixture
def served(world):
    """Applies manifests of services; gives the templates of the pods that KServe makes of each."""
    if not KSERVE:
        pytest.skip("needs KServe's controller, which `tools/engines.sh build` builds")
    names = set()

    def apply(manifest):
        made = yaml.safe_load(manifest)
        name = made["metadata"]["name"]
        if name in names:
            world.call("PATCH", f"{SERVICES}/{name}", made, kind=MERGE)
        else:
            world.call("POST", SERVICES, made)
        names.add(name)
        wanted = made["spec"]["predictor"]["model"].get("volumeMounts") or made["spec"]["predictor"]["storageUris"]

        def look():
            found = world.call("GET", PODS, query=[("labelSelector", f"app=isvc.{name}-predictor")])["items"]
            pods = [pod for pod in found if wanted[0]["mountPath"] in json.dumps(pod["spec"])]
            assert pods, world.call("GET", f"{SERVICES}/{name}").get("status")
            return pods[0]["spec"]

        spec = until(look)
        spec.pop("nodeName", None)
        return spec

    yield apply
    for name in names:
        world.call("DELETE", f"{SERVICES}/{name}")
        label = [("labelSelector", f"app=isvc.{name}-predictor")]
        becomes(lambda label=label: not world.call("GET", PODS, query=label)["items"])


def test_kserve_mounts_the_version_of_a_claim(world, served, refused):
    for version in ("17", "18"):
        spec = served(kserve_manifest(config(), 100, version))
        assert refused("restricted", spec) == ""
        # Without a `storageUri`, KServe adds its agent and an empty folder around the mount; it finds nothing to do.
        container, agent = spec["containers"]
        assert (container["name"], agent["name"]) == ("kserve-container", "agent")
        assert "--model_base_path=/mnt/models" in container["args"]
        (mount,) = [one for one in container["volumeMounts"] if one["name"] == "pushed"]
        assert (mount["mountPath"], mount["readOnly"]) == (f"/mnt/models/{version}", True)
        assert mount["subPath"].endswith(f"/{version}")


def test_kserve_copies_the_version_of_a_bucket(world, served, refused, monkeypatch):
    # No bucket is read here: the version is named.
    monkeypatch.setattr(kserve, "read_blessing", lambda place: None)
    text = PAGES[0].read_text(encoding="utf-8")
    # KServe's own container can do it, and its manifest does not say so; the second one is for Pod Security.
    patches = [
        json.loads(one) for one in re.findall(r"clusterstoragecontainer default .*?-p \\?\s*'(.*?)'", text, re.S)
    ]
    assert len(patches) == 2
    for version, patch in zip(("17", "18"), patches, strict=True):
        world.call("PATCH", "/apis/serving.kserve.io/v1alpha1/clusterstoragecontainers/default", patch, kind=MERGE)
        spec = served(kserve_manifest(config(push_directory="gs://bucket/pushed"), 100, version))
        (initializer,) = spec["initContainers"]
        assert initializer["args"] == [f"gs://bucket/pushed/{version}", f"/mnt/models/{version}"]
        assert ("storage-initializer" in refused("restricted", spec)) is (version == "17")
        assert refused("baseline", spec) == ""
    assert refused("restricted", spec) == ""


def test_standard_mode_splits_no_traffic(world, served):
    served(kserve_manifest(config(), 100, "17"))
    made = yaml.safe_load(kserve_manifest(config(), 10, "18"))
    with pytest.raises(ApiException, match="deploymentMode cannot be changed"):
        world.call("PATCH", f"{SERVICES}/clouds", made, kind=MERGE)
    del made["metadata"]["annotations"]["serving.kserve.io/deploymentMode"]
    served(yaml.safe_dump(made))
    deployments = world.call("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")["items"]
    assert [one["metadata"]["name"] for one in deployments] == ["clouds-predictor"]


@pytest.fixture
def queue(world):
    if not KUEUE:
        pytest.skip("needs Kueue, which `tools/engines.sh build` builds")
    resources = [
        {"name": name, "nominalQuota": quota} for name, quota in ((CHIPS, 16), ("cpu", 1000), ("memory", "4Ti"))
    ]
    group = {
        "coveredResources": [one["name"] for one in resources],
        "flavors": [{"name": "tpu", "resources": resources}],
    }
    cluster = {
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [group],
    }
    objects = [
        (
            "ResourceFlavor",
            "resourceflavors",
            "tpu",
            {"spec": {"nodeLabels": {"cloud.google.com/gke-tpu-topology": "4x4"}}},
        ),
        ("ClusterQueue", "clusterqueues", "tpus", {"spec": cluster}),
        ("LocalQueue", f"namespaces/{NAMESPACE}/localqueues", "tpus", {"spec": {"clusterQueue": "tpus"}}),
        ("WorkloadPriorityClass", "workloadpriorityclasses", "high", {"value": 1000}),
    ]
    for kind, place, name, body in objects:
        made = {"apiVersion": QUEUES.removeprefix("/apis/"), "kind": kind, "metadata": {"name": name}, **body}
        try:
            world.call("POST", f"{QUEUES}/{place}", made)
        except ApiException as error:
            if error.reason != "Conflict":
                raise


def test_kueue_admits_one_set_after_the_other(world, queue):
    world.pools("pool-a", "pool-b")
    name, pods = world.started(queue="tpus")
    other = world.task(queue="tpus").manifest(OPENED)
    world.call("POST", SETS, other)
    second = other["metadata"]["name"]
    time.sleep(3)
    assert world.set(second)["spec"]["suspend"] is True
    assert world.pods(second) == []
    world.end(pods, 0)
    world.condition(name, "Completed")
    world.running(second)


def test_kueues_preemption_does_not_count(world, queue):
    world.pools("pool-a", "pool-b")
    name, _ = world.started(queue="tpus")
    high = world.task(queue="tpus").manifest(OPENED)
    high["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    world.call("POST", SETS, high)
    world.end(world.running(high["metadata"]["name"]), 0)
    world.running(name)
    assert world.set(name)["status"].get("restartsCountTowardsMax", 0) == 0
