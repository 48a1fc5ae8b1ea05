"""A Kubernetes that knows JobSets and nothing else: each pod is a process of this machine."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sandbox import start_container

from shardwright.components.image_trainer.devices.hosts import COORDINATOR

_REFUSED = {"kind": "Status", "message": "refused"}


class FakeCluster:
    """Its requests, and the sets that it runs.

    Attributes:
        logs: folder of the pods' logs.
        environment: variables of all pods, as nodes give them.
        statuses: what a set tells of itself, look by look, instead of running any process.
        refuses: method -> status and message of an answer.
        asked: method and path of every request.
        made: manifests of all sets.
    """

    def __init__(self, logs=None, environment=None, statuses=(), refuses=None):
        self.logs, self.environment = logs, environment or {}
        self.statuses, self.refuses = list(statuses), refuses or {}
        self.asked, self.made, self.pods = [], {}, {}

    def start(self, manifest):
        self.made[manifest["metadata"]["name"]] = manifest
        if self.logs is None:
            return
        (job,) = manifest["spec"]["replicatedJobs"]
        spec = job["template"]["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            here = f"127.0.0.1:{free.getsockname()[1]}"
        self.pods[manifest["metadata"]["name"]] = [
            self._pod(container, index, here) for index in range(spec["completions"])
        ]

    def _pod(self, container, index, here):
        variables = {one["name"]: one["value"] for one in container["env"]}
        # The name of pod 0 is one of the cluster's, which this machine does not know.
        assert variables[COORDINATOR].endswith(":8476")
        variables |= {COORDINATOR: here, "JOB_COMPLETION_INDEX": str(index)}
        mounts = [Path(one["mountPath"]) for one in container["volumeMounts"]]
        Path(self.logs).mkdir(parents=True, exist_ok=True)
        with Path(self.logs, f"pod-{index}.log").open("wb") as log:
            return start_container(
                [*container["command"], *container["args"]],
                environment={**self.environment, **variables},
                folder=Path(self.logs, f"pod-{index}"),
                writable=[place for place in mounts if place.is_dir()],
                stdout=log,
            )

    def status(self, name):
        if self.logs is None:
            return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        codes = [pod.poll() for pod in self.pods[name]]
        if any(codes):
            return {"conditions": [{"type": "Failed", "status": "True", "message": f"pods ended with {codes}"}]}
        if None in codes:
            return {"replicatedJobsStatus": [{"name": "trainer", "ready": 0}], "restarts": 0}
        return {"conditions": [{"type": "Completed", "status": "True"}]}

    def answer(self, method, path, body):
        name = path.partition("?")[0].rpartition("/")[2]
        self.asked.append((method, path))
        if method in self.refuses:
            return self.refuses[method]
        if method == "POST":
            manifest = json.loads(body)
            if manifest["metadata"]["name"] in self.made:
                return 409, _REFUSED
            self.start(manifest)
            return 201, manifest
        if name not in self.made:
            return 404, {**_REFUSED, "message": f"{name} not found"}
        if method == "DELETE":
            del self.made[name]
            return 200, {}
        return 200, {**self.made[name], "status": self.status(name)}

    @contextmanager
    def serving(self):
        """Answers requests while the block runs; gives the value of `SHARDWRIGHT_KUBERNETES`."""
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, value = cluster.answer(self.command, self.path, body)
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = _answer

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/pipelines"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
            for pod in [pod for pods in self.pods.values() for pod in pods]:
                pod.kill()
                pod.wait()
