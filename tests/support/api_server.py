"""A Kubernetes API server with etcd on the loopback, as `tools/engines.sh` or `tools/cluster.sh` builds them.

It decides on requests as in a cluster: schemas, admission, quotas, rights. Nothing runs a pod, and the controllers are
missing: `control_plane` starts them where they are built, too. Elsewhere the tests do what they need of them:
`Controllers` deletes sets, and reports how a set ended.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from kubernetes import client
from urllib3.exceptions import HTTPError

_SECONDS_TO_START = 120
TOKEN = "administrator"


@dataclass(frozen=True)
class ApiServer:
    """A server that answers, and what a client needs of it.

    Attributes:
        url: address.
        certificate: file of the authority that signed its certificate.
    """

    url: str
    certificate: Path

    def api(self, token=TOKEN):
        """Returns a client; without a token, that of an administrator."""
        configuration = client.Configuration(host=self.url, api_key={"authorization": f"Bearer {token}"})
        configuration.ssl_ca_cert = str(self.certificate)
        configuration.retries = False
        return client.ApiClient(configuration)

    def send(self, path, body, *, dry_run=False):
        """Creates an object of any kind; returns it as the server stores it, with its defaults."""
        query = [("dryRun", "All")] if dry_run else []
        return self.call("POST", path, body, query)

    def call(self, method, path, body=None, query=(), kind="application/json"):
        """Sends a request; returns the answer as plain values."""
        answer = self.api().call_api(
            path,
            method,
            query_params=list(query),
            header_params={"Accept": "application/json", "Content-Type": kind},
            body=body,
            auth_settings=["BearerToken"],
            response_type="object",
        )
        return answer[0]


@contextlib.contextmanager
def running(programs, folder):
    """Starts etcd and the API server; gives an `ApiServer` while the block runs.

    Args:
        programs: folder of `etcd` and `kube-apiserver`.
        folder: of their data and logs.
    """
    store, peer, secure = free_ports(3)
    key = folder / "accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    (folder / "tokens.csv").write_text(f"{TOKEN},administrator,1,system:masters\n")
    etcd = [
        programs / "etcd",
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls=http://127.0.0.1:{store}",
        f"--advertise-client-urls=http://127.0.0.1:{store}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
    ]
    server = [
        programs / "kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{store}",
        "--bind-address=127.0.0.1",
        f"--secure-port={secure}",
        f"--cert-dir={folder}/certificates",
        "--authorization-mode=RBAC",
        f"--token-auth-file={folder}/tokens.csv",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--endpoint-reconciler-type=none",
        "--allow-privileged=true",
        # It would taint new nodes until a controller that is not run here has seen them.
        "--disable-admission-plugins=TaintNodesByCondition",
    ]
    if " v1.20." in subprocess.run([server[0], "--version"], check=True, capture_output=True, text=True).stdout:
        # Later versions have both by default.
        server.append("--feature-gates=GenericEphemeralVolume=true,BoundServiceAccountTokenVolume=true")
    with contextlib.ExitStack() as started:
        for command in (etcd, server):
            start(started, folder, command)
        made = ApiServer(f"https://127.0.0.1:{secure}", folder / "certificates" / "apiserver.crt")
        until(lambda: made.call("GET", "/api/v1/namespaces/default"))
        yield made


def start(started, folder, command, **environment):
    """Starts a program, which is stopped with the stack; its log is in the folder."""
    log = started.enter_context((folder / f"{Path(command[0]).name}.log").open("wb"))
    own = {"stdout": log, "stderr": subprocess.STDOUT, "cwd": folder, "env": {**os.environ, **environment}}
    process = subprocess.Popen(list(map(str, command)), **own)
    started.callback(_stopped, process)
    return process


class Controllers:
    """The controllers of a cluster, as far as a JobSet needs them: they report its end, and delete it.

    Attributes:
        ends: condition that each new set gets.
        seen: the sets that have ended.
    """

    def __init__(self, server, namespace, ends):
        self._server, self._namespace, self.ends = server, namespace, ends
        self.seen, self._over = [], threading.Event()

    @contextlib.contextmanager
    def working(self):
        """Works while the block runs."""
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _work(self):
        sets = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{self._namespace}/jobsets"
        merge = "application/merge-patch+json"
        while not self._over.wait(0.05):
            for one in self._server.call("GET", sets)["items"]:
                name, metadata = one["metadata"]["name"], one["metadata"]
                uid = metadata["uid"]
                if metadata.get("deletionTimestamp"):
                    # The garbage collector, when the objects of the set are gone.
                    self._server.call("PATCH", f"{sets}/{name}", {"metadata": {"finalizers": None}}, kind=merge)
                elif uid not in self.seen:
                    self.seen.append(uid)
                    status = {"conditions": [{**self.ends, "status": "True", "lastTransitionTime": _now()}]}
                    self._server.call("PATCH", f"{sets}/{name}/status", {"status": status}, kind=merge)


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def free_ports(count):
    """Returns free ports of the loopback."""
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def until(look, seconds=_SECONDS_TO_START, failures=(AssertionError, client.ApiException, HTTPError, OSError)):
    """Returns what a call returns, as soon as it does not fail."""
    end = time.monotonic() + seconds
    while True:
        try:
            return look()
        except failures:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def _stopped(process):
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def programs_in(folder):
    """Returns the folder of the two programs; `None` if one is missing."""
    found = Path(folder)
    return found if all(shutil.which(name, path=str(found)) for name in ("etcd", "kube-apiserver")) else None
