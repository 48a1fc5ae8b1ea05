"""The Trainer's task on a slice of several hosts: it creates a JobSet, waits for it, and copies its results.

The pods of the set run the same task, on copies of its artifacts in a folder of a volume that all of them mount. Host 0
writes the outputs there; they are then copied to the folders of Kubeflow's launcher. A task that is started again waits
for the set that still runs. A task that receives SIGTERM deletes its set; run again, the training continues from its
last checkpoint.

The copies are deleted when the set has ended or failed. A later task of the same namespace deletes those of a killed
task, once they have not been used for a day; starting and waiting tasks mark their copies as used. Sets of other
namespaces are not visible, so each namespace has a separate folder on the volume.

`Cluster` is the Kubernetes API of a pod: it creates, reads and deletes one object with the pod's service account.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import ssl
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shardwright.components.image_trainer.devices.hosts import COORDINATOR, HOSTS
from shardwright.components.runtime.mounts import AS_THEY_ARE, MODULE, change_uris, elsewhere
from shardwright.errors import CheckFailed, ShardwrightError
from shardwright.fingerprint import fingerprint
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage import durable
from shardwright.storage.mirror import put_folder

# The address of `kubectl proxy`, outside a pod.
PROXY_VARIABLE = "SHARDWRIGHT_KUBERNETES"
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 60.0
# About four minutes, the time to upgrade a control plane without a replica.
_ATTEMPTS, _LONGEST_PAUSE = 16, 30.0
_BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


@dataclass(frozen=True)
class Cluster:
    """The Kubernetes API.

    Attributes:
        host: its name.
        port: its port.
        namespace: namespace of this pod.
        account: folder with the pod's token and the authority's certificate; `None` connects without both.
        pause: seconds before the first retry without an answer; later ones wait longer.
    """

    host: str
    port: int
    namespace: str
    account: Path | None
    pause: float = 2.0

    @staticmethod
    def of_this_pod(environment: Mapping[str, str]) -> Cluster:
        """Returns the cluster of this pod.

        Raises:
            ShardwrightError: this is not a pod, or it has no service account.
        """
        proxy = environment.get(PROXY_VARIABLE)
        if proxy:
            parts = urlsplit(proxy)
            return Cluster(parts.hostname or "127.0.0.1", parts.port or 8001, parts.path.strip("/") or "default", None)
        try:
            host, port = environment["KUBERNETES_SERVICE_HOST"], int(environment["KUBERNETES_SERVICE_PORT"])
            namespace = (_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
        except (KeyError, ValueError, OSError) as error:
            raise ShardwrightError(
                f"This is not a pod with a service account ({error}). Give the run one that may create JobSets "
                f"(docs/kubeflow.md), or set {PROXY_VARIABLE} to http://HOST:PORT/NAMESPACE of `kubectl proxy`."
            ) from None
        return Cluster(host, port, namespace, _ACCOUNT)

    def create(self, path: str, manifest: Mapping[str, Any]) -> bool:
        """Creates an object; returns `False` if one of that name exists."""
        status, answer = self._ask("POST", path, json.dumps(manifest))
        if status == HTTPStatus.CONFLICT:
            return False
        self._check("create", path, status, answer)
        return True

    def get(self, path: str) -> dict[str, Any]:
        """Returns an object."""
        status, answer = self._ask("GET", path)
        self._check("get", path, status, answer)
        return answer

    def find(self, path: str) -> dict[str, Any] | None:
        """Returns an object; `None` if it does not exist."""
        status, answer = self._ask("GET", path)
        if status == HTTPStatus.NOT_FOUND:
            return None
        self._check("get", path, status, answer)
        return answer

    def delete(self, path: str) -> None:
        """Deletes an object, if it exists, and all objects that it owns."""
        status, answer = self._ask("DELETE", f"{path}?propagationPolicy=Foreground")
        if status != HTTPStatus.NOT_FOUND:
            self._check("delete", path, status, answer)

    def _check(self, verb: str, path: str, status: int, answer: dict[str, Any]) -> None:
        if status < HTTPStatus.BAD_REQUEST:
            return
        fixes: dict[int, str] = {
            HTTPStatus.FORBIDDEN: f"Let the run's service account {verb} it: docs/kubeflow.md has the Role.",
            HTTPStatus.UNAUTHORIZED: "Give the run a service account: docs/kubeflow.md.",
            HTTPStatus.NOT_FOUND: "It does not exist: it was deleted, or JobSet is not installed in the cluster.",
        }
        fix = fixes.get(status, "Look at the manifest in the pipeline's document.")
        raise ShardwrightError(f"Kubernetes refused to {verb} {path}: {answer.get('message', status)}. {fix}")

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int, dict[str, Any]]:
        """Sends a request, and repeats it without an answer: the API's servers are replaced now and then."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                status, answer = self._ask_once(method, path, body)
                if status not in _BUSY or attempt == _ATTEMPTS:
                    return status, answer
            except (OSError, http.client.HTTPException) as error:
                if attempt == _ATTEMPTS:
                    raise ShardwrightError(f"Kubernetes at {self.host}:{self.port} does not answer: {error}.") from None
            time.sleep(min(self.pause * attempt, _LONGEST_PAUSE))
        raise AssertionError("unreachable")

    def _ask_once(self, method: str, path: str, body: str | None) -> tuple[int, dict[str, Any]]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        connection: http.client.HTTPConnection
        if self.account is None:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=_SECONDS)
        else:
            # Read each time: tokens are renewed while a pod runs.
            headers["Authorization"] = f"Bearer {(self.account / 'token').read_text(encoding='utf-8').strip()}"
            context = ssl.create_default_context(cafile=os.fspath(self.account / "ca.crt"))
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=_SECONDS, context=context)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {}
        return response.status, answer if isinstance(answer, dict) else {}


_JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets"
_PORT = 8476
_FIRST_LOOK, _LAST_LOOK = 0.25, 30.0
_NAME = re.compile(r"shardwright-[0-9a-f]{12}")
# Longer than any task needs from its first copy to its set.
_SECONDS_LEFT_ALONE = 24 * 3600
_GONE = ".gone-"


@dataclass(frozen=True)
class JobSetTask:
    """A task to run as a JobSet.

    Attributes:
        template: the manifest without name and command.
        arguments: arguments of TFX's entry point; one of them is the ExecutorInput.
        place: the index of that argument.
        shared: this namespace's folder on a volume that this pod and those of the set mount.
    """

    template: dict[str, Any]
    arguments: list[str]
    place: int
    shared: Path

    @property
    def name(self) -> str:
        """The name of the set: the same for the same task, so that its next attempt finds it."""
        return f"shardwright-{fingerprint(self.arguments)[:12]}"

    @property
    def folder(self) -> Path:
        """The folder of the set on the volume."""
        return self.shared / self.name

    def pod_input(self, invocation: dict[str, Any]) -> dict[str, Any]:
        """Returns the ExecutorInput of the pods: every artifact is in the shared folder."""
        return elsewhere(invocation, str(self.folder), "inputs", "outputs")

    def manifest(self, invocation: dict[str, Any]) -> dict[str, Any]:
        """Returns the complete manifest."""
        manifest: dict[str, Any] = json.loads(json.dumps(self.template))
        manifest["metadata"]["name"] = self.name
        (job,) = manifest["spec"]["replicatedJobs"]
        spec = job["template"]["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        arguments = list(self.arguments)
        arguments[self.place] = json.dumps(self.pod_input(invocation), sort_keys=True)
        container["command"] = ["python", "-m", MODULE, "--artifacts", AS_THEY_ARE]
        container["args"] = arguments
        # Kubernetes sets the number of a pod, JOB_COMPLETION_INDEX.
        variables = {
            COORDINATOR: f"{self.name}-{job['name']}-0-0.{self.name}:{_PORT}",
            HOSTS: str(spec["completions"]),
            # Not in the folder of the set: another run of the same training continues from its checkpoints.
            STAGING_VARIABLE: os.environ.get(STAGING_VARIABLE) or str(self.shared / "staging"),
        }
        container["env"] = [{"name": name, "value": value} for name, value in variables.items()]
        return manifest


def run_as_jobset(task: JobSetTask, opened: dict[str, Any], cluster: Cluster) -> None:
    """Runs a task as a JobSet.

    Args:
        task: the task.
        opened: its ExecutorInput with folders of this pod; its `outputFile` gets TFX's report of the outputs.
        cluster: the cluster of this pod.

    Raises:
        CheckFailed: the set failed.
        ShardwrightError: the cluster refused a request.
    """
    pod_input = task.pod_input(opened)
    _mark_used(task)
    sets = _JOBSETS.format(namespace=cluster.namespace)
    _delete_unused_copies(cluster, sets, task)
    for source, target in _places(opened, pod_input, "inputs"):
        _copy_once(Path(source), Path(target))
    with _deleted_at_the_end(cluster, f"{sets}/{task.name}"):
        created = _create(cluster, sets, task, opened)
        print(f"JobSet {cluster.namespace}/{task.name} {'started' if created else 'exists already'}", flush=True)
        _wait(cluster, f"{sets}/{task.name}", task)
        _copy_outputs(opened, pod_input)
    # Some files may stay, for example those that NFS keeps for an ending pod; a later task deletes them.
    shutil.rmtree(task.folder, ignore_errors=True)


def _copy_outputs(opened: dict[str, Any], pod_input: dict[str, Any]) -> None:
    """Copies the outputs of the pods, and TFX's report of them with the URIs of this task."""
    uris = {}
    for target, source in _places(opened, pod_input, "outputs"):
        put_folder(Path(source), target)
        uris[source] = target
    report = json.loads(Path(pod_input["outputs"]["outputFile"]).read_text(encoding="utf-8"))
    change_uris(report.get("artifacts", {}), lambda uri: uris.get(uri, uri))
    output_file = Path(opened["outputs"]["outputFile"])
    output_file.parent.mkdir(parents=True, exist_ok=True)
    output_file.write_text(json.dumps(report, sort_keys=True), encoding="utf-8")


def _create(cluster: Cluster, sets: str, task: JobSetTask, opened: dict[str, Any]) -> bool:
    """Creates the set, and replaces the failed one of an earlier attempt; returns `False` if one runs already."""
    path, manifest = f"{sets}/{task.name}", task.manifest(opened)
    if cluster.create(sets, manifest):
        return True
    found = cluster.find(path)
    if found is not None and "Failed" not in _conditions(found):
        return False
    cluster.delete(path)
    while cluster.find(path) is not None:
        time.sleep(_FIRST_LOOK)
    return cluster.create(sets, manifest)


def _delete_unused_copies(cluster: Cluster, sets: str, task: JobSetTask) -> None:
    """Deletes the copies of killed tasks whose sets have ended, too."""
    for folder in sorted(task.shared.glob("shardwright-*")):
        if not _NAME.fullmatch(folder.name) or folder == task.folder or not folder.is_dir():
            continue
        try:
            touched = max(place.stat().st_mtime for place in (folder, *folder.glob("*"), *folder.glob("*/*")))
        except FileNotFoundError:
            # The task of these copies is running, or another one deletes them, too.
            continue
        if time.time() - touched < _SECONDS_LEFT_ALONE:
            continue
        found = cluster.find(f"{sets}/{folder.name}")
        if found is None or {"Completed", "Failed"} & _conditions(found).keys():
            # A task that starts right now finds all of the folder, or nothing.
            with suppress(FileNotFoundError):
                folder.rename(folder.with_name(f"{_GONE}{folder.name}-{uuid.uuid4().hex}"))
    for gone in task.shared.glob(f"{_GONE}*"):
        shutil.rmtree(gone, ignore_errors=True)


def _mark_used(task: JobSetTask) -> None:
    task.folder.mkdir(parents=True, exist_ok=True)
    os.utime(task.folder)


def _conditions(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the true conditions of a set by their type."""
    listed = found.get("status", {}).get("conditions", [])
    return {one["type"]: one for one in listed if one.get("status") == "True"}


def _places(opened: dict[str, Any], pod_input: dict[str, Any], side: str) -> list[tuple[str, str]]:
    """Returns the URIs of artifacts in this task and in the pods."""
    here, there = (value.get(side, {}).get("artifacts", {}) for value in (opened, pod_input))
    return [
        (one["uri"], other["uri"])
        for key in sorted(here)
        for one, other in zip(here[key]["artifacts"], there[key]["artifacts"], strict=True)
    ]


def _copy_once(source: Path, target: Path) -> None:
    """Copies a folder, which appears whole, unless an earlier attempt did."""
    if target.exists():
        return
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(source, part)
    durable.rename_folder(part, target)


def _wait(cluster: Cluster, path: str, task: JobSetTask) -> None:
    pause, shown = _FIRST_LOOK, ""
    while True:
        _mark_used(task)
        found = cluster.get(path)
        status, conditions = found.get("status", {}), _conditions(found)
        if "Completed" in conditions:
            return
        if "Failed" in conditions:
            # No pod of it runs any more. The set itself is kept for its logs.
            shutil.rmtree(task.folder, ignore_errors=True)
            reason = conditions["Failed"].get("message", "no reason given")
            raise CheckFailed(
                f"JobSet {cluster.namespace}/{task.name} failed: {reason}. See `kubectl logs -n {cluster.namespace} -l "
                f"jobset.sigs.k8s.io/jobset-name={task.name}`. Checkpoints are kept: run the step again, and it "
                "continues from the last one."
            )
        jobs = ", ".join(f"{job.get('ready', 0)} ready" for job in status.get("replicatedJobsStatus", []))
        now = f"{jobs or 'waiting for nodes'}; restarts {status.get('restarts', 0)}"
        if now != shown:
            print(f"JobSet {cluster.namespace}/{task.name}: {now}", flush=True)
            shown = now
        time.sleep(pause)
        pause = min(pause * 1.5, _LAST_LOOK)


@contextmanager
def _deleted_at_the_end(cluster: Cluster, path: str) -> Iterator[None]:
    """Deletes the set at the end and on SIGTERM; a failed set is kept for its logs."""

    def end(number: int, frame: object) -> None:
        del frame
        cluster.delete(path)
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
    cluster.delete(path)
