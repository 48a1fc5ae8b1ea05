"""The Trainer's task that starts a JobSet: its requests to Kubernetes, its inputs and its results."""

import json
import os
import signal
import subprocess
import sys
import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import FakeCluster

from shardwright.components.runtime import container
from shardwright.components.runtime import run_jobset as jobset
from shardwright.components.runtime.run_jobset import PROXY_VARIABLE, Cluster, JobSetTask, run_as_jobset
from shardwright.errors import CheckFailed, ShardwrightError, UsageError

DONE = {"conditions": [{"type": "Completed", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True", "message": "no room"}]}
TEMPLATE = {
    "metadata": {},
    "spec": {
        "replicatedJobs": [
            {"name": "trainer", "template": {"spec": {"completions": 2, "template": {"spec": {"containers": [{}]}}}}}
        ]
    },
}


@pytest.fixture
def opened(tmp_path):
    """A task's ExecutorInput with one input that is there and one output that is to be made."""
    (tmp_path / "in" / "examples").mkdir(parents=True)
    (tmp_path / "in" / "examples" / "manifest.json").write_text("{}")
    (tmp_path / "out" / "model").mkdir(parents=True)

    def artifact(*parts):
        return {"artifacts": [{"name": "1", "uri": str(tmp_path.joinpath(*parts))}]}

    return {
        "inputs": {"artifacts": {"examples": artifact("in", "examples")}, "parameterValues": {"recipe": "{}"}},
        "outputs": {
            "artifacts": {"model": artifact("out", "model")},
            "outputFile": str(tmp_path / "own" / "output.json"),
        },
    }


@pytest.fixture
def task(tmp_path):
    return JobSetTask(TEMPLATE, ["--args", "{}", "--more"], 1, tmp_path / "shared")


def trained(task):
    """Writes the outputs of the pods."""
    model = task.folder / "outputs" / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "saved_model.pb").write_text("model")
    report = {"artifacts": {"model": {"artifacts": [{"name": "1", "uri": str(model), "metadata": {"n": 1}}]}}}
    (task.folder / "executor_output.json").write_text(json.dumps(report))


def run(task, opened, kubernetes):
    with kubernetes.serving() as url:
        run_as_jobset(task, opened, Cluster.of_this_pod({PROXY_VARIABLE: url}))


def test_what_the_pods_made_is_filed(task, opened, tmp_path, capsys):
    kubernetes = FakeCluster(statuses=[{}, {"replicatedJobsStatus": [{"ready": 1}], "restarts": 1}, DONE])
    trained(task)
    run(task, opened, kubernetes)
    assert (tmp_path / "out" / "model" / "saved_model.pb").read_text() == "model"
    found = json.loads((tmp_path / "own" / "output.json").read_text())["artifacts"]["model"]["artifacts"]
    assert found == [{"name": "1", "uri": str(tmp_path / "out" / "model"), "metadata": {"n": 1}}]
    assert kubernetes.asked[0] == ("POST", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/pipelines/jobsets")
    assert kubernetes.asked[-1][0] == "DELETE"
    assert not task.folder.exists()
    assert "1 ready; restarts 1" in capsys.readouterr().out


def test_the_pods_get_all_they_need(task, opened, tmp_path):
    manifest = task.manifest(opened)
    (container,) = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    assert container["command"] == [
        "python",
        "-m",
        "shardwright.components.runtime.container",
        "--artifacts",
        "as-they-are",
    ]
    assert container["args"][::2] == ["--args", "--more"]
    handed = json.loads(container["args"][1])
    folder = tmp_path / "shared" / task.name
    assert handed["inputs"]["artifacts"]["examples"]["artifacts"][0]["uri"] == str(folder / "inputs" / "examples")
    assert handed["outputs"]["artifacts"]["model"]["artifacts"][0]["uri"] == str(folder / "outputs" / "model")
    assert handed["inputs"]["parameterValues"] == {"recipe": "{}"}
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert variables == {
        "SHARDWRIGHT_COORDINATOR": f"{task.name}-trainer-0-0.{task.name}:8476",
        "SHARDWRIGHT_HOSTS": "2",
        "SHARDWRIGHT_STAGING": str(tmp_path / "shared" / "staging"),
        "SHARDWRIGHT_HEARTBEAT": str(tmp_path / "shared" / task.name / "heartbeat"),
    }
    # The template may be used again.
    assert TEMPLATE["metadata"] == {}


def test_another_attempt_waits_for_the_set_that_runs(task, opened, capsys):
    kubernetes = FakeCluster(statuses=[DONE])
    kubernetes.made[task.name] = {}
    (task.folder / "inputs" / "examples").mkdir(parents=True)
    trained(task)
    run(task, opened, kubernetes)
    assert "exists already" in capsys.readouterr().out
    other = JobSetTask(TEMPLATE, ["--args", '{"other": 1}', "--more"], 1, task.shared)
    assert other.name != task.name


def test_a_set_that_failed_is_left_for_its_logs(task, opened):
    kubernetes = FakeCluster(statuses=[FAILED])
    with pytest.raises(CheckFailed, match=r"pipelines/shardwright-.* failed: no room\. See `kubectl logs -n pipelines"):
        run(task, opened, kubernetes)
    assert task.name in kubernetes.made
    # The copies are of no use to anyone.
    assert not task.folder.exists()


def test_a_set_that_failed_makes_room_for_the_next_attempt(task, opened, capsys):
    kubernetes = FakeCluster(statuses=[FAILED, DONE])
    kubernetes.made[task.name] = {"of": "an earlier attempt"}
    start = kubernetes.start

    def begin(manifest):
        start(manifest)
        trained(task)

    kubernetes.start = begin
    run(task, opened, kubernetes)
    assert "started" in capsys.readouterr().out
    assert [method for method, _ in kubernetes.asked] == ["POST", "GET", "DELETE", "POST", "GET", "DELETE"]


def test_an_attempt_waits_while_the_last_set_is_deleted(task, opened, capsys):
    """Its pods save their state, for up to two minutes."""
    kubernetes = FakeCluster(statuses=[DONE])
    kubernetes.made[task.name] = {"metadata": {"deletionTimestamp": "2026-11-27T00:00:00Z"}}
    answer, looks = kubernetes.answer, []

    def answered(method, path, body):
        looks.extend([method] if method == "GET" else [])
        if looks == ["GET"] * 2:
            kubernetes.made.pop(task.name, None)
        return answer(method, path, body)

    kubernetes.answer = answered
    trained(task)
    run(task, opened, kubernetes)
    said = capsys.readouterr().out
    assert said.index("waiting until the last one is deleted") < said.index("started")


def test_a_jobset_that_drops_rules_trains_nothing(task, opened):
    """An old definition has no patterns: every preemption would then end the set."""
    rules = [{"name": "final", "onJobFailureMessagePatterns": ["2"]}]
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "failurePolicy": {"rules": rules}}}
    kubernetes = FakeCluster(statuses=[{}])
    answer = kubernetes.answer

    def old(method, path, body):
        status, value = answer(method, path, body)
        for rule in value.get("spec", {}).get("failurePolicy", {}).get("rules", ()):
            rule.pop("onJobFailureMessagePatterns", None)
        return status, value

    kubernetes.answer = old
    with pytest.raises(UsageError, match=r"rules\[0\]\.onJobFailureMessagePatterns\. Install JobSet 0\.10"):
        run(replace(task, template=template), opened, kubernetes)
    assert kubernetes.made == {}


def test_a_set_may_be_owned_by_the_pod_of_its_task(task, opened, monkeypatch):
    template = {**TEMPLATE, "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod"}]}}
    owned = replace(task, template=template)
    with pytest.raises(UsageError, match="KFP_POD_NAME: not set.*leave kubeflow.jobset.owned out"):
        owned.manifest(opened)
    monkeypatch.setenv("KFP_POD_NAME", "trainer")
    monkeypatch.setenv("KFP_POD_UID", "1-2")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "trainer", "uid": "1-2"}
    assert owned.manifest(opened)["metadata"]["ownerReferences"] == [owner]


@pytest.mark.parametrize(
    ("status", "days", "goes"),
    [(None, 2, True), (FAILED, 2, True), (DONE, 2, True), ({"restarts": 1}, 2, False), (None, 0.5, False)],
)
def test_copies_that_others_left_go_with_the_next_run(task, opened, status, days, goes):
    """A set that runs is never disturbed, nor a task that copies and has not made its set yet."""
    kubernetes = FakeCluster(statuses=[DONE])
    left = task.shared / "shardwright-0123456789ab"
    examples = left / "inputs" / "examples"
    examples.mkdir(parents=True)
    (task.shared / "staging").mkdir()
    (task.shared / "shardwright-mine").mkdir()
    for place in (examples, left / "inputs", left, task.shared / "staging", task.shared / "shardwright-mine"):
        os.utime(place, (time.time() - days * 86400,) * 2)
    if status is not None:
        kubernetes.made[left.name] = {}
        kubernetes.statuses = [status, DONE]
    trained(task)
    run(task, opened, kubernetes)
    assert left.exists() is not goes
    assert sorted(path.name for path in task.shared.iterdir() if path != left) == ["shardwright-mine", "staging"]


def test_copies_that_cannot_be_removed_fail_no_training(task, opened, tmp_path, monkeypatch):
    def busy(folder, ignore_errors=False):
        if not ignore_errors and Path(folder) == task.folder:
            raise OSError("Directory not empty")

    monkeypatch.setattr(jobset.shutil, "rmtree", busy)
    trained(task)
    run(task, opened, FakeCluster(statuses=[DONE]))
    assert (tmp_path / "out" / "model" / "saved_model.pb").exists()


def test_copies_that_could_not_be_removed_keep_no_later_ones(task, opened, monkeypatch):
    """On NFS a file that somebody has open stays in its folder."""
    left = task.shared / "shardwright-0123456789ab"
    remove = jobset.shutil.rmtree
    monkeypatch.setattr(jobset.shutil, "rmtree", lambda one, **how: one.name.startswith(".gone") or remove(one, **how))
    for _ in range(2):
        (left / "inputs").mkdir(parents=True)
        for place in (left / "inputs", left):
            os.utime(place, (time.time() - 2 * 86400,) * 2)
        trained(task)
        run(task, opened, FakeCluster(statuses=[DONE]))
        assert not left.exists()


def test_copies_that_an_attempt_takes_up_after_days_are_in_use_again(task, opened, monkeypatch):
    """They were whole, so they are not copied again: only the attempt itself shows that they are needed."""
    other = JobSetTask(TEMPLATE, ["--args", '{"other": 1}', "--more"], 1, task.shared)
    examples = task.folder / "inputs" / "examples"
    examples.mkdir(parents=True)
    for place in (examples, examples.parent, task.folder):
        os.utime(place, (time.time() - 2 * 86400,) * 2)
    create = jobset._create

    def create_late(*given):
        monkeypatch.undo()
        trained(other)
        run(other, opened, FakeCluster(statuses=[DONE]))
        assert examples.exists()
        trained(task)
        return create(*given)

    monkeypatch.setattr(jobset, "_create", create_late)
    run(task, opened, FakeCluster(statuses=[DONE]))
    assert not task.folder.exists()


def test_a_task_that_waits_for_a_set_keeps_its_copies(task, opened, monkeypatch):
    monkeypatch.setattr(jobset.time, "sleep", lambda _: None)
    kubernetes, touched = FakeCluster(statuses=[{}, {}, DONE]), []
    status = kubernetes.status

    def looked_at(name):
        touched.append((task.folder / "heartbeat").stat().st_mtime)
        os.utime(task.folder / "heartbeat", (1, 1))
        return status(name)

    kubernetes.status = looked_at
    trained(task)
    run(task, opened, kubernetes)
    assert len(touched) == 3
    assert min(touched) > 1


def test_each_namespace_has_a_folder_of_its_own_on_the_volume(tmp_path, monkeypatch):
    """The state of another namespace's sets is unknown."""
    tasks = []
    monkeypatch.setattr(container, "run_as_jobset", lambda task, *_: tasks.append(task))
    for namespace in ("one", "two"):
        monkeypatch.setenv(PROXY_VARIABLE, f"http://127.0.0.1:1/{namespace}")
        options = Namespace(jobset=json.dumps(TEMPLATE), shared=str(tmp_path))
        arguments = ["--json_serialized_invocation_args", "{}"]
        container._work(options, arguments)(arguments)
    one, two = (task.folder for task in tasks)
    assert one.name == two.name
    assert (one.parent, two.parent) == (tmp_path / "one", tmp_path / "two")


def test_what_goes_while_a_task_looks_at_it_is_left_to_others(task, opened):
    """Another task renames its copies, or deletes them at the same time."""
    left = task.shared / "shardwright-0123456789ab"
    left.mkdir(parents=True)
    # It is listed, and not there.
    (left / "gone").symlink_to("nowhere")
    os.utime(left, (time.time() - 2 * 86400,) * 2)
    trained(task)
    run(task, opened, FakeCluster(statuses=[DONE]))
    assert left.exists()


@pytest.mark.parametrize(
    ("refuses", "message"),
    [
        (
            {"POST": (403, {"message": "no right"})},
            r"create .*: no right\. Let the run's service account create",
        ),
        ({"POST": (404, {"message": "not found"})}, r"JobSet is not installed in the cluster"),
        ({"POST": (422, {"message": "bad"})}, r"create .*: bad\. Look at the manifest"),
        ({"GET": (403, {"message": "no right"})}, r"refused to get JobSet pipelines/shardwright-.*: no right"),
    ],
)
def test_refusals_of_kubernetes_are_reported_with_the_fix(task, opened, refuses, message):
    with pytest.raises(ShardwrightError, match=message):
        run(task, opened, FakeCluster(statuses=[DONE], refuses=refuses))


def test_a_busy_cluster_is_asked_again():
    kubernetes = FakeCluster(statuses=[DONE])
    kubernetes.made["x"] = {"n": 1}
    answer, busy = kubernetes.answer, [503, 429, 500]
    kubernetes.answer = lambda *asked: (busy.pop(), {}) if busy else answer(*asked)
    with kubernetes.serving() as url:
        assert replace(Cluster.of_this_pod({PROXY_VARIABLE: url}), pause=0).get("x")["n"] == 1
    assert busy == []
    kubernetes.answer = lambda *_: (503, {"message": "overloaded"})
    with kubernetes.serving() as url, pytest.raises(ShardwrightError, match="get JobSet pipelines/x: overloaded"):
        replace(Cluster.of_this_pod({PROXY_VARIABLE: url}), pause=0).get("x")


def test_no_pod_and_no_answer():
    with pytest.raises(ShardwrightError, match="This is not a pod with a service account"):
        Cluster.of_this_pod({})
    with FakeCluster().serving() as url:
        gone = replace(Cluster.of_this_pod({PROXY_VARIABLE: url}), pause=0)
    with pytest.raises(ShardwrightError, match="does not answer"):
        gone.get("x")


def test_a_task_that_receives_sigterm_deletes_its_set(task, opened, tmp_path):
    """Kubeflow ends the pod of a run that is terminated."""
    kubernetes = FakeCluster(statuses=[{"restarts": 0}])
    code = (
        "import json, os, sys; from pathlib import Path\n"
        "from shardwright.components.runtime.run_jobset import Cluster\n"
        "from shardwright.components.runtime.run_jobset import JobSetTask, run_as_jobset\n"
        "from shardwright.running.processes import sigterm_raises\n"
        "template, opened, shared = json.load(sys.stdin)\n"
        "task = JobSetTask(template, ['--args', '{}', '--more'], 1, Path(shared))\n"
        "try:\n"
        "    with sigterm_raises(): run_as_jobset(task, opened, Cluster.of_this_pod(os.environ))\n"
        "except Exception as error: sys.exit(error.exit_code)\n"
    )
    with kubernetes.serving() as url:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, PROXY_VARIABLE: url},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        process.stdin.write(json.dumps([TEMPLATE, opened, str(Path(task.shared))]))
        process.stdin.close()
        assert "started" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
        process.stdout.close()
    assert kubernetes.made == {}
