"""The Trainer's task on a slice of several hosts: it starts a JobSet, waits, and files what that made.

The pods of the set run the very task that this one was given, on copies of its artifacts in a folder of a volume that
all of them mount. Host 0 publishes there; then it is copied to where Kubeflow's launcher looks. A task that starts
again finds the set that runs and waits for it; one that is told to end takes it away, and the training goes on from its
last checkpoint when the task is run again.

The copies go when the set has ended, well or not. What a task has left that could not clear up, a later one of the
same namespace does: of other namespaces' sets it could not know, so each has a folder of its own on the volume. Whoever
starts, and whoever waits, marks the copies as used.

The Kubernetes API as a pod sees it: create, look at and delete one object, with the pod's own service account.
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
# About four minutes: so long takes the upgrade of a control plane that has no second one.
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
    """Where the API is.

    Attributes:
        host: its name.
        port: its port.
        namespace: this pod's.
        account: folder with the pod's token and the authority's certificate; `None` talks without both.
        pause: seconds to wait before asking again where there is no answer, longer each time.
    """

    host: str
    port: int
    namespace: str
    account: Path | None
    pause: float = 2.0

    @staticmethod
    def of_this_pod(environment: Mapping[str, str]) -> Cluster:
        """The cluster that this pod runs in.

        Raises:
            ShardwrightError: this is no pod, or it has no service account.
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
                f"This is no pod with a service account ({error}). Give the run one that may create JobSets "
                f"(docs/kubeflow.md), or set {PROXY_VARIABLE} to http://HOST:PORT/NAMESPACE of `kubectl proxy`."
            ) from None
        return Cluster(host, port, namespace, _ACCOUNT)

    def create(self, path: str, manifest: Mapping[str, Any]) -> bool:
        """Creates an object; `False` where there is one of that name."""
        status, answer = self._ask("POST", path, json.dumps(manifest))
        if status == HTTPStatus.CONFLICT:
            return False
        self._check("create", path, status, answer)
        return True

    def get(self, path: str) -> dict[str, Any]:
        """An object."""
        status, answer = self._ask("GET", path)
        self._check("get", path, status, answer)
        return answer

    def find(self, path: str) -> dict[str, Any] | None:
        """An object; `None` where there is none."""
        status, answer = self._ask("GET", path)
        if status == HTTPStatus.NOT_FOUND:
            return None
        self._check("get", path, status, answer)
        return answer

    def delete(self, path: str) -> None:
        """Deletes an object and all that it made; nothing where there is none."""
        status, answer = self._ask("DELETE", f"{path}?propagationPolicy=Foreground")
        if status != HTTPStatus.NOT_FOUND:
            self._check("delete", path, status, answer)

    def _check(self, verb: str, path: str, status: int, answer: dict[str, Any]) -> None:
        if status < HTTPStatus.BAD_REQUEST:
            return
        fixes: dict[int, str] = {
            HTTPStatus.FORBIDDEN: f"Let the run's service account {verb} it: docs/kubeflow.md has the Role.",
            HTTPStatus.UNAUTHORIZED: "Give the run a service account: docs/kubeflow.md.",
            HTTPStatus.NOT_FOUND: "It is not there; was it deleted, or is JobSet not installed in the cluster?",
        }
        fix = fixes.get(status, "Look at the manifest in the pipeline's document.")
        raise ShardwrightError(f"Kubernetes refused to {verb} {path}: {answer.get('message', status)}. {fix}")

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int, dict[str, Any]]:
        """Asks, and asks again where the API does not answer: its servers are replaced now and then."""
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
            # Tokens are replaced while a pod runs.
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
# Longer than any task takes from its first copy to its set.
_SECONDS_LEFT_ALONE = 24 * 3600
_GONE = ".gone-"


@dataclass(frozen=True)
class JobSetTask:
    """What a task hands over to a JobSet.

    Attributes:
        template: the manifest, but for name and command.
        arguments: those of TFX's entry point, `choose_placement` of them the ExecutorInput.
        place: its position.
        shared: this namespace's own folder of a volume that this pod and those of the set mount.
    """

    template: dict[str, Any]
    arguments: list[str]
    place: int
    shared: Path

    @property
    def name(self) -> str:
        """The same for the same task, so that its next attempt finds it."""
        return f"shardwright-{fingerprint(self.arguments)[:12]}"

    @property
    def folder(self) -> Path:
        """The set's own folder."""
        return self.shared / self.name

    def handed_over(self, invocation: dict[str, Any]) -> dict[str, Any]:
        """The ExecutorInput of the pods: every artifact in the shared folder."""
        return elsewhere(invocation, str(self.folder), "inputs", "outputs")

    def manifest(self, invocation: dict[str, Any]) -> dict[str, Any]:
        """The whole manifest."""
        manifest: dict[str, Any] = json.loads(json.dumps(self.template))
        manifest["metadata"]["name"] = self.name
        (job,) = manifest["spec"]["replicatedJobs"]
        spec = job["template"]["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        arguments = list(self.arguments)
        arguments[self.place] = json.dumps(self.handed_over(invocation), sort_keys=True)
        container["command"] = ["python", "-m", MODULE, "--artifacts", AS_THEY_ARE]
        container["args"] = arguments
        # The number of a pod is JOB_COMPLETION_INDEX, which Kubernetes sets.
        told = {
            COORDINATOR: f"{self.name}-{job['name']}-0-0.{self.name}:{_PORT}",
            HOSTS: str(spec["completions"]),
            # Not in the set's own folder: another run of the same training goes on from its checkpoints.
            STAGING_VARIABLE: os.environ.get(STAGING_VARIABLE) or str(self.shared / "staging"),
        }
        container["env"] = [{"name": name, "value": value} for name, value in told.items()]
        return manifest


def run_as_jobset(task: JobSetTask, opened: dict[str, Any], cluster: Cluster) -> None:
    """Runs a task as a JobSet.

    Args:
        task: the task.
        opened: its ExecutorInput with folders of this pod; what TFX tells of the outputs goes to its `outputFile`.
        cluster: where.

    Raises:
        CheckFailed: the set failed.
        ShardwrightError: the cluster refused.
    """
    handed = task.handed_over(opened)
    _mark_used(task)
    sets = _JOBSETS.format(namespace=cluster.namespace)
    _clear_up_after_others(cluster, sets, task)
    for source, target in _places(opened, handed, "inputs"):
        _copy_once(Path(source), Path(target))
    with _taken_away_at_the_end(cluster, f"{sets}/{task.name}"):
        made = _create(cluster, sets, task, opened)
        print(f"JobSet {cluster.namespace}/{task.name} {'started' if made else 'is there already'}", flush=True)
        _wait(cluster, f"{sets}/{task.name}", task)
        for target, source in _places(opened, handed, "outputs"):
            put_folder(Path(source), target)
        said = json.loads(Path(handed["outputs"]["outputFile"]).read_text(encoding="utf-8"))
        backwards = {there: here for here, there in _places(opened, handed, "outputs")}
        change_uris(said.get("artifacts", {}), lambda uri: backwards.get(uri, uri))
        output_file = Path(opened["outputs"]["outputFile"])
        output_file.parent.mkdir(parents=True, exist_ok=True)
        output_file.write_text(json.dumps(said, sort_keys=True), encoding="utf-8")
    # What stays, such as a file that NFS keeps for a pod that is just ending, a later task removes.
    shutil.rmtree(task.folder, ignore_errors=True)


def _create(cluster: Cluster, sets: str, task: JobSetTask, opened: dict[str, Any]) -> bool:
    """Creates the set, in place of one that an earlier attempt left because it failed; `False` where one is there."""
    path, manifest = f"{sets}/{task.name}", task.manifest(opened)
    if cluster.create(sets, manifest):
        return True
    there = cluster.find(path)
    if there is not None and "Failed" not in _conditions(there):
        return False
    cluster.delete(path)
    while cluster.find(path) is not None:
        time.sleep(_FIRST_LOOK)
    return cluster.create(sets, manifest)


def _clear_up_after_others(cluster: Cluster, sets: str, task: JobSetTask) -> None:
    """Removes copies of tasks that were ended before they could, and whose sets have ended, too."""
    for folder in sorted(task.shared.glob("shardwright-*")):
        if not _NAME.fullmatch(folder.name) or folder == task.folder or not folder.is_dir():
            continue
        try:
            touched = max(place.stat().st_mtime for place in (folder, *folder.glob("*"), *folder.glob("*/*")))
        except FileNotFoundError:
            # Its own task is at work there, or another one is clearing up, too.
            continue
        if time.time() - touched < _SECONDS_LEFT_ALONE:
            continue
        there = cluster.find(f"{sets}/{folder.name}")
        if there is None or {"Completed", "Failed"} & _conditions(there).keys():
            # Whoever comes just now finds all of it, or nothing.
            with suppress(FileNotFoundError):
                folder.rename(folder.with_name(f"{_GONE}{folder.name}-{uuid.uuid4().hex}"))
    for gone in task.shared.glob(f"{_GONE}*"):
        shutil.rmtree(gone, ignore_errors=True)


def _mark_used(task: JobSetTask) -> None:
    task.folder.mkdir(parents=True, exist_ok=True)
    os.utime(task.folder)


def _conditions(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What is true of a set, by its kind."""
    listed = found.get("status", {}).get("conditions", [])
    return {one["type"]: one for one in listed if one.get("status") == "True"}


def _places(opened: dict[str, Any], handed: dict[str, Any], side: str) -> list[tuple[str, str]]:
    here, there = (value.get(side, {}).get("artifacts", {}) for value in (opened, handed))
    return [
        (one["uri"], other["uri"])
        for key in sorted(here)
        for one, other in zip(here[key]["artifacts"], there[key]["artifacts"], strict=True)
    ]


def _copy_once(source: Path, target: Path) -> None:
    """Copies a folder that appears whole; an earlier attempt may have done so."""
    if target.exists():
        return
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(source, part)
    durable.rename_folder(part, target)


def _wait(cluster: Cluster, path: str, task: JobSetTask) -> None:
    pause, told = _FIRST_LOOK, ""
    while True:
        _mark_used(task)
        found = cluster.get(path)
        status, conditions = found.get("status", {}), _conditions(found)
        if "Completed" in conditions:
            return
        if "Failed" in conditions:
            # No pod of it runs any more. The set itself stays a while, for its logs.
            shutil.rmtree(task.folder, ignore_errors=True)
            reason = conditions["Failed"].get("message", "no reason told")
            raise CheckFailed(
                f"JobSet {cluster.namespace}/{task.name} failed: {reason}. `kubectl logs -n {cluster.namespace} -l "
                f"jobset.sigs.k8s.io/jobset-name={task.name}` tells why. Checkpoints are kept: run the step again, and "
                "it goes on from the last one."
            )
        jobs = ", ".join(f"{job.get('ready', 0)} ready" for job in status.get("replicatedJobsStatus", []))
        now = f"{jobs or 'waiting for nodes'}; restarts {status.get('restarts', 0)}"
        if now != told:
            print(f"JobSet {cluster.namespace}/{task.name}: {now}", flush=True)
            told = now
        time.sleep(pause)
        pause = min(pause * 1.5, _LAST_LOOK)


@contextmanager
def _taken_away_at_the_end(cluster: Cluster, path: str) -> Iterator[None]:
    """Deletes the set when all is done, and when this pod is told to end; not when it fails, for its logs' sake."""

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
