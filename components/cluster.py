"""The Kubernetes API as a pod sees it: create, look at and delete one object, with the pod's own service account."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shardwright.errors import ShardwrightError

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
