"""A whole Kubernetes control plane on the loopback: API server, controllers, scheduler, JobSet and, if asked, Kueue.

`tools/engines.sh` builds the programs. There are no machines: nodes are objects, and `Kubelet` reports of their pods
what a kubelet would, as far as a controller can see.
"""

import base64
import contextlib
import itertools
import json
import subprocess
import threading
import time
import urllib.request

import api_server
import yaml
from api_server import free_ports, start, until
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

# Not that of nodes' lifecycles: nothing renews their leases here, and all of them would become unreachable.
_CONTROLLERS = (
    "job-controller,garbage-collector-controller,serviceaccount-controller,ttl-after-finished-controller,"
    "endpointslice-controller,namespace-controller,pod-garbage-collector-controller,taint-eviction-controller,"
    "deployment-controller,replicaset-controller,persistentvolume-binder-controller,disruption-controller,root-ca-certificate-publisher-controller"
)
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
# As Kueue's own kustomization has it: these kinds have a webhook that converts them.
_CONVERTED = ("localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters")
# Kueue has a webhook for each framework, and serves those of its configuration.
_SERVED = ("workload", "clusterqueue", "cohort", "resourceflavor", "localqueue", "job", "jobset")
# Kubernetes' documents name KServe's.
_NAMESPACES = {"kserve": "kserve"}
_OWNED = "jobset.sigs.k8s.io/jobset-name"
MERGE = "application/merge-patch+json"


def programs_in(folder):
    """Returns whether a folder has all programs but Kueue's."""
    return all((folder / name).exists() for name in ("kube-controller-manager", "kube-scheduler", "jobset-controller"))


@contextlib.contextmanager
def running(programs, folder, *, kueue=False, kserve=False):
    """Starts all programs; gives the `ApiServer` while the block runs.

    Args:
        programs: folder of the programs, with `manifests`.
        folder: of their data and logs.
        kueue: whether Kueue runs, too.
        kserve: whether KServe's controller runs, too; its kinds are there in any case.
    """
    with api_server.running(programs, folder) as server, contextlib.ExitStack() as started:
        config = _kubeconfig(server, folder)
        tls = _certificate(folder)
        ports = iter(free_ports(8))
        common = [f"--kubeconfig={config}", "--leader-elect=false", "--bind-address=127.0.0.1"]
        start(started, folder, [
            programs / "kube-controller-manager", *common, f"--secure-port={next(ports)}", f"--cert-dir={folder}/kcm",
            f"--controllers={_CONTROLLERS}", f"--service-account-private-key-file={folder}/accounts.key",
            f"--root-ca-file={server.certificate}", "--kube-api-qps=200", "--kube-api-burst=400",
        ])  # fmt: skip
        start(started, folder, [
            programs / "kube-scheduler", *common, f"--secure-port={next(ports)}", f"--cert-dir={folder}/scheduler",
        ])  # fmt: skip
        for name in ("jobset", *(("kueue",) if kueue else ())):
            _start_operator(started, server, programs, name, folder, tls, next(ports), next(ports))
        if kserve:
            _start_operator(started, server, programs, "kserve", folder, tls, next(ports), next(ports))
        else:
            _create_kinds(server, programs, "kserve", lambda path: None)
        yield server


def _start_operator(started, server, programs, name, folder, tls, port, health):
    """Creates the kinds of a controller and its webhooks, reached by URL; starts it, and waits until it is ready."""
    bundle = base64.b64encode((tls / "tls.crt").read_bytes()).decode()
    server.send("/api/v1/namespaces", {"metadata": {"name": _NAMESPACES.get(name, f"{name}-system")}})
    _create_kinds(server, programs, name, lambda path: {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle})
    until(lambda: _check_served(server), 120, (LookupError,))
    if name == "kserve":
        command, variables = _kserve(server, programs, folder, tls, port, health)
    else:
        command, variables = [f"--config={_configuration(name, folder, tls, port, health)}"], {}
    if name == "kueue":
        command.append("--feature-gates=VisibilityOnDemand=false")
    process = start(
        started, folder, [programs / f"{name}-controller", *command], KUBECONFIG=str(folder / "admin.conf"), **variables
    )

    def ready():
        log = (folder / f"{name}-controller.log").read_text(encoding="utf-8", errors="replace")
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended: {log[-2000:]}")
        with urllib.request.urlopen(f"http://127.0.0.1:{health}/readyz", timeout=5) as answer:
            answer.read()

    until(ready, 120, (OSError,))
    for file in sorted((programs / "manifests" / name / "objects").glob("*.yaml")):
        one = yaml.safe_load(file.read_text(encoding="utf-8"))
        if one["kind"] != "ConfigMap":
            # Its own webhook listens a little later than it says that it is ready.
            until(lambda one=one: server.send(f"/apis/{one['apiVersion']}/{one['kind'].lower()}s", one))


def _create_kinds(server, programs, name, client):
    """Creates the kinds of a controller, and its webhooks where `client` has a configuration for a path."""
    for file in sorted((programs / "manifests" / name).glob("*.yaml")):
        for one in filter(None, yaml.safe_load_all(file.read_text(encoding="utf-8"))):
            if one["kind"] == "CustomResourceDefinition":
                if one["spec"]["names"]["plural"] in _CONVERTED:
                    hook = {"clientConfig": client("/convert"), "conversionReviewVersions": ["v1"]}
                    one["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
                server.send(_DEFINITIONS, one)
                continue
            kind = one["kind"].removesuffix("WebhookConfiguration").lower()
            one["metadata"]["name"] = f"{name}-{one['metadata']['name']}"
            one["webhooks"] = [hook for hook in one["webhooks"] if _is_served(name, hook)]
            for hook in one["webhooks"]:
                hook["clientConfig"] = client(hook["clientConfig"]["service"]["path"])
            if all(hook["clientConfig"] for hook in one["webhooks"]):
                server.send(_WEBHOOKS.format(kind), one)


def _configuration(name, folder, tls, port, health):
    """Writes the configuration of JobSet or Kueue; returns its file."""
    settings = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1" if name == "jobset" else "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(tls)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
    if name == "kueue":
        # Without its integration, the webhook of Jobs fails at each of a JobSet's own.
        frameworks = ["batch/job", "jobset.x-k8s.io/jobset"]
        settings |= {"namespace": "kueue-system", "integrations": {"frameworks": frameworks}}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return file


def _kserve(server, programs, folder, tls, port, health):
    """Creates KServe's own settings, without gateways; returns its options and variables."""
    settings = programs / "manifests" / "kserve" / "objects" / "inferenceservice.yaml"
    one = yaml.safe_load(settings.read_text(encoding="utf-8"))
    one["data"] |= {
        "deploy": json.dumps({"defaultDeploymentMode": "Standard"}),
        "ingress": json.dumps({**json.loads(one["data"]["ingress"]), "disableIngressCreation": True}),
    }
    server.send("/api/v1/namespaces/kserve/configmaps", one)
    # It has no option for the folder of its certificate.
    certificates = folder / "kserve" / "k8s-webhook-server" / "serving-certs"
    certificates.parent.mkdir(parents=True)
    certificates.symlink_to(tls)
    options = ["--metrics-addr=0", f"--webhook-port={port}", f"--health-probe-addr=127.0.0.1:{health}"]
    return options, {"TMPDIR": str(folder / "kserve"), "POD_NAMESPACE": "kserve"}


def _check_served(server):
    """Raises LookupError while a kind is not served yet: Kueue ends if it starts before its own are."""
    for kind in server.call("GET", _DEFINITIONS)["items"]:
        conditions = {one["type"]: one["status"] for one in kind["status"].get("conditions") or ()}
        if conditions.get("Established") != "True":
            raise LookupError(kind["metadata"]["name"])


def _is_served(name, hook):
    if name == "jobset" and hook["name"].endswith("pod.kb.io"):
        # As in the release: it looks at pods of sets alone.
        hook["objectSelector"] = {"matchExpressions": [{"key": _OWNED, "operator": "Exists"}]}
    return name != "kueue" or hook["name"].removesuffix(".kb.io")[1:] in _SERVED


def _kubeconfig(server, folder):
    cluster = {"server": server.url, "certificate-authority": str(server.certificate)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": api_server.TOKEN}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (folder / "admin.conf").write_text(json.dumps(config), encoding="utf-8")
    return folder / "admin.conf"


def _certificate(folder):
    """Makes a certificate for 127.0.0.1, which all webhooks serve."""
    tls = folder / "tls"
    tls.mkdir()
    command = "req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    names = ["-keyout", "tls.key", "-out", "tls.crt"]
    subprocess.run(["openssl", *command.split(), *names], check=True, capture_output=True, cwd=tls)
    return tls


class Kubelet(threading.Thread):
    """Starts the pods of a namespace that are bound to a node, and ends those that are deleted.

    Attributes:
        ends: pod -> (seconds, exit code) of a pod that receives SIGTERM; `None` lets it go on.
    """

    def __init__(self, server, namespace):
        super().__init__(daemon=True)
        self._server, self._place = server, f"/api/v1/namespaces/{namespace}/pods"
        self.ends = lambda pod: (0.3, 143)
        self._over, self._addresses, self._asked = threading.Event(), itertools.count(1), {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()

    def run(self):
        while not self._over.wait(0.2):
            with contextlib.suppress(ApiException, HTTPError):
                for pod in self._server.call("GET", self._place)["items"]:
                    self._look(pod)

    def _look(self, pod):
        phase = pod["status"].get("phase")
        if not pod["spec"].get("nodeName"):
            return
        if not pod["metadata"].get("deletionTimestamp"):
            if phase == "Pending":
                address = f"10.244.{next(self._addresses)}.2"
                running = {"running": {"startedAt": _now()}}
                self._report(pod, "Running", running, podIP=address, podIPs=[{"ip": address}], startTime=_now())
            return
        ends = (0.0, None) if phase in ("Failed", "Succeeded") else self.ends(pod)
        asked = self._asked.setdefault(pod["metadata"]["uid"], time.monotonic())
        if ends is not None and time.monotonic() - asked >= ends[0]:
            if ends[1] is not None:
                self.end(pod, ends[1])
            with contextlib.suppress(ApiException):
                self._server.call("DELETE", f"{self._place}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})

    def end(self, pod, code):
        """All processes of the pod have ended."""
        state = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": _now()}
        self._report(pod, "Failed" if code else "Succeeded", {"terminated": state})

    def _report(self, pod, phase, state, **more):
        ready = phase == "Running"
        (one,) = pod["spec"]["containers"]
        container = {"name": one["name"], "image": one["image"], "imageID": "x", "ready": ready, "restartCount": 0}
        conditions = [
            {"type": kind, "status": str(ready), "lastTransitionTime": _now()} for kind in ("Ready", "ContainersReady")
        ]
        status = {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{**container, "state": state}],
            **more,
        }
        place = f"{self._place}/{pod['metadata']['name']}/status"
        self._server.call("PATCH", place, {"status": status}, kind="application/strategic-merge-patch+json")


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
