"""The Trainer's task on a slice of several hosts: it creates a JobSet, waits for it, and copies its results.

The pods of the set run the same task, on copies of its artifacts in a folder of a volume that all of them mount. Host 0
writes the outputs there; they are then copied to the folders of Kubeflow's launcher. A task that is started again waits
for the set that still runs. A task that receives SIGTERM deletes its set; one that is killed no longer renews its
`heartbeat`, and the hosts end by themselves. Run again, the training continues from its last checkpoint.

The copies are deleted when the set has ended or failed. A later task of the same namespace deletes those of a killed
task, once they have not been used for a day; starting and waiting tasks mark their copies as used. Sets of other
namespaces are not visible, so each namespace has a separate folder on the volume.

`Cluster` creates, reads and deletes sets by the Kubernetes client, with the pod's service account.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shardwright.components.image_trainer.devices.hosts import COORDINATOR, FIRST_HOST, HOSTS, SLICE, SLICES
from shardwright.components.runtime.heartbeat import FILE, HEARTBEAT, renew
from shardwright.components.runtime.mounts import AS_THEY_ARE, MODULE, change_uris, elsewhere, uri_pairs
from shardwright.errors import CheckFailed, ShardwrightError, Stopped, UsageError
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage import durable
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.mirror import put_folder
from shardwright.storage.own_names import is_own, make_own_folder, remove_tree

# The address of `kubectl proxy`, outside a pod.
PROXY_VARIABLE = "SHARDWRIGHT_KUBERNETES"
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_JOBSETS = {"group": "jobset.x-k8s.io", "version": "v1alpha2", "plural": "jobsets"}
# How Kubeflow tells a pod its own name (backend/src/v2/compiler/argocompiler/container.go, `commonEnvs`).
_POD = {"name": "KFP_POD_NAME", "uid": "KFP_POD_UID"}
_SECONDS = 60.0
# With a pause of a second about four minutes in all, the time to upgrade a control plane without a replica.
_RETRIES = 8
_BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_FIXES: dict[int, str] = {
    HTTPStatus.FORBIDDEN: "Let the run's service account {verb} it: `shardwright docs deploy/kubeflow` has the Role.",
    HTTPStatus.UNAUTHORIZED: "Give the run a service account: `shardwright docs deploy/kubeflow`.",
    HTTPStatus.NOT_FOUND: "It does not exist: it was deleted, or JobSet is not installed in the cluster.",
}
_PORT = 8476
# JobSet's number of a Job among its replicas.
_NUMBER_OF_SLICE = "metadata.annotations['jobset.sigs.k8s.io/job-index']"
_FIRST_LOOK, _LAST_LOOK = 0.25, 30.0
_NAME = re.compile(r"shardwright-[0-9a-f]{12}")
# Longer than any task needs from its first copy to its set.
_SECONDS_LEFT_ALONE = 24 * 3600
_GONE = ".gone-"


@dataclass(frozen=True)
class Cluster:
    """The JobSets of a namespace, through the Kubernetes API.

    Attributes:
        namespace: namespace of this pod.
        proxy: URL of `kubectl proxy`; empty connects with the pod's service account.
        pause: seconds before the second retry of a request; each further one waits twice as long, up to two minutes.
    """

    namespace: str
    proxy: str = ""
    pause: float = 1.0

    @staticmethod
    def of_this_pod(environment: Mapping[str, str]) -> Cluster:
        """Returns the cluster of this pod.

        Raises:
            ShardwrightError: this is not a pod, or it has no service account.
        """
        proxy = environment.get(PROXY_VARIABLE)
        if proxy:
            parts = urlsplit(proxy)
            return Cluster(parts.path.strip("/") or "default", f"{parts.scheme}://{parts.netloc}")
        try:
            return Cluster((_ACCOUNT / "namespace").read_text(encoding="utf-8").strip())
        except OSError as error:
            raise _no_account(error) from None

    def create(self, manifest: Mapping[str, Any]) -> bool:
        """Creates a set; returns `False` if one of that name exists.

        Raises:
            UsageError: the cluster's JobSet is of a version that drops fields.
        """
        name = manifest["metadata"]["name"]
        stored = self._ask("create", name, HTTPStatus.CONFLICT, body=manifest)
        dropped = [] if stored is None else _dropped(manifest["spec"], stored["spec"], "spec")
        if dropped:
            self.delete(name)
            raise UsageError(
                f"JobSet {self.namespace}/{name}: the cluster's JobSet does not know {', '.join(dropped)}. Install "
                "JobSet 0.10 or later."
            )
        return stored is not None

    def get(self, name: str) -> dict[str, Any]:
        """Returns a set."""
        return self._ask("get", name) or {}

    def find(self, name: str) -> dict[str, Any] | None:
        """Returns a set; `None` if it does not exist."""
        return self._ask("get", name, HTTPStatus.NOT_FOUND)

    def delete(self, name: str) -> None:
        """Deletes a set, if it exists, and all objects that it owns."""
        self._ask("delete", name, HTTPStatus.NOT_FOUND, propagation_policy="Foreground")

    def _ask(self, verb: str, name: str, expected: int = 0, **arguments: Any) -> dict[str, Any] | None:
        """Sends a request; returns `None` for an error with the expected status."""
        # The import takes seconds.
        from kubernetes import client
        from urllib3.exceptions import HTTPError

        configuration = self._configuration()
        api = client.CustomObjectsApi(client.ApiClient(configuration))
        request = getattr(api, f"{verb}_namespaced_custom_object")
        named = {} if verb == "create" else {"name": name}
        try:
            found = request(namespace=self.namespace, _request_timeout=_SECONDS, **_JOBSETS, **named, **arguments)
        except client.ApiException as error:
            if error.status == expected:
                return None
            try:
                reason = json.loads(error.body)["message"]
            except (ValueError, TypeError, KeyError):
                reason = error.status
            fix = _FIXES.get(error.status, "Look at the manifest in the pipeline's document.").format(verb=verb)
            raise ShardwrightError(
                f"Kubernetes refused to {verb} JobSet {self.namespace}/{name}: {reason}. {fix}"
            ) from None
        except HTTPError as error:
            raise ShardwrightError(f"Kubernetes at {configuration.host} does not answer: {error}.") from None
        return dict(found)

    def _configuration(self) -> Any:
        """Returns the settings of a request, with the current token: tokens are renewed while a pod runs."""
        from kubernetes import client
        from kubernetes.config import ConfigException
        from kubernetes.config.incluster_config import InClusterConfigLoader
        from urllib3 import Retry

        configuration = client.Configuration()
        if self.proxy:
            configuration.host = self.proxy
        else:
            try:
                InClusterConfigLoader(str(_ACCOUNT / "token"), str(_ACCOUNT / "ca.crt")).load_and_set(configuration)
            except ConfigException as error:
                raise _no_account(error) from None
        # The API's servers are replaced now and then.
        configuration.retries = Retry(
            _RETRIES,
            status_forcelist=_BUSY,
            allowed_methods=None,
            backoff_factor=self.pause,
            raise_on_status=False,
        )
        return configuration


def _dropped(sent: Any, stored: Any, path: str) -> list[str]:
    """Returns the fields that a definition without them has removed; empty ones may go."""
    if isinstance(sent, list) and isinstance(stored, list):
        return [
            x
            for i, (one, other) in enumerate(zip(sent, stored, strict=False))
            for x in _dropped(one, other, f"{path}[{i}]")
        ]
    if not isinstance(sent, dict) or not isinstance(stored, dict):
        return []
    gone = [f"{path}.{key}" for key in sent if key not in stored and sent[key] not in ({}, [], False)]
    return gone + [x for key in sent if key in stored for x in _dropped(sent[key], stored[key], f"{path}.{key}")]


def _no_account(error: Exception) -> ShardwrightError:
    return ShardwrightError(
        f"This is not a pod with a service account ({error}). Give the run one that may create JobSets "
        f"(`shardwright docs deploy/kubeflow`), or set {PROXY_VARIABLE} to http://HOST:PORT/NAMESPACE of "
        "`kubectl proxy`."
    )


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
        for owner in manifest["metadata"].get("ownerReferences", ()):
            missing = [variable for variable in _POD.values() if variable not in os.environ]
            if missing:
                fix = "Kubeflow sets it; elsewhere leave kubeflow.jobset.owned out."
                raise UsageError(f"{missing[0]}: not set, and the JobSet is to be deleted with this pod. {fix}")
            owner.update({key: os.environ[variable] for key, variable in _POD.items()})
        (job,) = manifest["spec"]["replicatedJobs"]
        spec = job["template"]["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        arguments = list(self.arguments)
        arguments[self.place] = json.dumps(self.pod_input(invocation), sort_keys=True)
        container["command"] = ["python", "-m", MODULE, "--artifacts", AS_THEY_ARE]
        container["args"] = arguments
        # Kubernetes sets the number of a pod in its Job, JOB_COMPLETION_INDEX.
        first, slices = f"{self.name}-{job['name']}-0-0.{self.name}", job.get("replicas", 1)
        variables = {
            COORDINATOR: f"{first}:{_PORT}",
            HOSTS: str(slices * spec["completions"]),
            # Not in the folder of the set: another run of the same training continues from its checkpoints.
            STAGING_VARIABLE: os.environ.get(STAGING_VARIABLE) or str(self.shared / "staging"),
            HEARTBEAT: str(self.folder / FILE),
        }
        own: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in variables.items()]
        if slices > 1:
            # The TPU's library joins the slices by them. Who makes a JobSet sets them: kubernetes-sigs/jobset#787.
            own += [{"name": SLICES, "value": str(slices)}, {"name": FIRST_HOST, "value": first}]
            own.append({"name": SLICE, "valueFrom": {"fieldRef": {"fieldPath": _NUMBER_OF_SLICE}}})
        container["env"] = [*container.get("env", ()), *own]
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
    make_own_folder(task.folder)
    renew(task.folder)
    _delete_unused_copies(cluster, task)
    for source, target in uri_pairs(opened, pod_input, "inputs"):
        # Each copy appears whole, unless that of an earlier attempt is there.
        if not is_own(Path(target)):
            part = Path(target).with_name(f".{Path(target).name}.part")
            remove_tree(part)
            shutil.copytree(source, part)
            durable.rename_folder(part, Path(target))
    try:
        created = _create(cluster, task, opened)
        print(f"JobSet {cluster.namespace}/{task.name} {'started' if created else 'exists already'}", flush=True)
        _wait(cluster, task)
        uris = {}
        for target, source in uri_pairs(opened, pod_input, "outputs"):
            put_folder(Path(source), target)
            uris[source] = target
        # TFX's report of the outputs, with the URIs of this task.
        report = json.loads(Path(pod_input["outputs"]["outputFile"]).read_text(encoding="utf-8"))
        change_uris(report.get("artifacts", {}), lambda uri: uris.get(uri, uri))
        output_file = Path(opened["outputs"]["outputFile"])
        output_file.parent.mkdir(parents=True, exist_ok=True)
        output_file.write_text(json.dumps(report, sort_keys=True), encoding="utf-8")
    except Stopped:
        cluster.delete(task.name)
        raise
    # A failed set is kept for its logs.
    cluster.delete(task.name)
    # Some files may stay, for example those that NFS keeps for an ending pod; a later task deletes them.
    remove_tree(task.folder)


def _create(cluster: Cluster, task: JobSetTask, opened: dict[str, Any]) -> bool:
    """Creates the set; returns `False` if one runs already.

    It takes the place of a failed one of an earlier attempt, which is deleted, and of one that is being deleted: its
    pods save their state before they end.
    """
    manifest, shown = task.manifest(opened), False
    for _ in _looks(task):
        if cluster.create(manifest):
            break
        found = cluster.find(task.name) or {"metadata": {"deletionTimestamp": "just now"}}
        if "deletionTimestamp" not in found.get("metadata", {}):
            if "Failed" not in _conditions(found):
                return False
            cluster.delete(task.name)
        elif not shown:
            print(f"JobSet {cluster.namespace}/{task.name}: waiting until the last one is deleted", flush=True)
            shown = True
    return True


def _looks(task: JobSetTask) -> Iterator[None]:
    """Yields without end, at ever longer intervals, and renews the heartbeat before each."""
    pause = _FIRST_LOOK
    while True:
        renew(task.folder)
        yield
        time.sleep(pause)
        pause = min(pause * 1.5, _LAST_LOOK)


def _delete_unused_copies(cluster: Cluster, task: JobSetTask) -> None:
    """Deletes the copies of killed tasks whose sets have ended, too."""
    for folder in sorted(task.shared.glob("shardwright-*")):
        if not _NAME.fullmatch(folder.name) or folder == task.folder or folder.is_symlink() or not folder.is_dir():
            continue
        try:
            touched = max(place.stat().st_mtime for place in (folder, *folder.glob("*"), *folder.glob("*/*")))
        except FileNotFoundError:
            # The task of these copies is running, or another one deletes them, too.
            continue
        if time.time() - touched < _SECONDS_LEFT_ALONE:
            continue
        found = cluster.find(folder.name)
        if found is None or {"Completed", "Failed"} & _conditions(found).keys():
            # A task that starts right now finds all of the folder, or nothing.
            with suppress(FileNotFoundError):
                folder.rename(folder.with_name(f"{_GONE}{folder.name}-{uuid.uuid4().hex}"))
    for gone in task.shared.glob(f"{_GONE}*"):
        remove_tree(gone)


def _conditions(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the true conditions of a set by their type."""
    listed = found.get("status", {}).get("conditions", [])
    return {one["type"]: one for one in listed if one.get("status") == "True"}


def _wait(cluster: Cluster, task: JobSetTask) -> None:
    shown = ""
    for _ in _looks(task):
        found = cluster.get(task.name)
        status, conditions = found.get("status", {}), _conditions(found)
        if "Completed" in conditions:
            return
        if "Failed" in conditions:
            # No pod of it runs any more. The set itself is kept for its logs.
            remove_tree(task.folder)
            reason = conditions["Failed"].get("message", "no reason given")
            raise CheckFailed(
                f"JobSet {cluster.namespace}/{task.name} failed: {reason}. See `kubectl logs -n {cluster.namespace} -l "
                f"jobset.sigs.k8s.io/jobset-name={task.name}`. Checkpoints are kept: retry the run, and it "
                "continues from the last one."
            )
        jobs = ", ".join(f"{job.get('ready', 0)} ready" for job in status.get("replicatedJobsStatus", []))
        now = f"{jobs or 'waiting for nodes'}; restarts {status.get('restarts', 0)}"
        if now != shown:
            print(f"JobSet {cluster.namespace}/{task.name}: {now}", flush=True)
            shown = now
