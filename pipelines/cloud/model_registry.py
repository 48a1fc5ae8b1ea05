"""`shardwright deliver --model-registry`: the blessed model in Kubeflow's Model Registry.

1. The registered model that is named like the configuration, created if it is missing.
2. A version of it, named like the pushed folder. Its properties are the digest, the metrics and the lineage.
3. The artifact of the version: the address that KServe reads the model from.

Each step looks for what an earlier call has made, so that a call can be repeated. The requests are those of
kubeflow/model-registry at bd07139, api/openapi/model-registry.yaml (v1alpha3).
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shardwright.config import Config
from shardwright.errors import CheckFailed, UsageError
from shardwright.lineage.blessing import Blessing, read_blessing
from shardwright.pipelines.cloud.kserve import pushed_folder, storage_uri

_API = "/api/model_registry/v1alpha3"
_DIGEST = "shardwright_digest"
_SECONDS = 60
_NOT_FOUND = 404
# In a dry run: what only the registry knows.
_MODEL_ID, _VERSION_ID = "MODEL", "VERSION"


@dataclass(frozen=True)
class RegistryServer:
    """The REST interface of a registry.

    Attributes:
        url: address of the server, without the path of the interface.
        token: bearer token, if the server asks for one.
    """

    url: str
    token: str | None = None

    def __post_init__(self) -> None:
        if not self.url.startswith(("https://", "http://")):
            raise UsageError(f"--model-registry: {self.url!r} is not an address. Write https://registry.example.")

    def find(self, path: str, **query: str) -> dict[str, Any] | None:
        """Returns what a query finds, `None` if that is nothing."""
        return self._call("GET", f"{path}?{urllib.parse.urlencode(query)}" if query else path)

    def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Creates something and returns it, with its ID."""
        made = self._call("POST", path, body)
        if made is None:
            raise CheckFailed(f"{self.url}{_API}{path}: not found. Check the address of the registry.")
        return made

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.url.rstrip('/')}{_API}{path}"
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 -- checked above
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 -- likewise
                document = json.load(answer)
        except urllib.error.HTTPError as error:
            if method == "GET" and error.code == _NOT_FOUND:
                return None
            body_text = error.read(300).decode("utf-8", "replace").strip()
            raise CheckFailed(f"{url}: answers {error.code} {error.reason}: {body_text}") from None
        except (OSError, ValueError) as error:
            raise CheckFailed(f"{url}: cannot be reached: {error}. Check the address of the registry.") from None
        if not isinstance(document, dict):
            raise CheckFailed(f"{url}: is not a Model Registry. Check the address of the registry.")
        return document


def registry_requests(config: Config) -> str:
    """Returns the requests as JSON, by step; sends nothing. IDs that only the registry knows are in capital letters."""
    place, blessing = _blessed(config)
    steps = {
        "1 model": ("/registered_models", _model(config)),
        "2 version": ("/model_versions", _version(config, blessing, _MODEL_ID)),
        "3 artifact": (f"/model_versions/{_VERSION_ID}/artifacts", _artifact(config, place, blessing)),
    }
    shown = {name: {"request": f"POST {_API}{path}", "body": body} for name, (path, body) in steps.items()}
    return json.dumps(shown, indent=1, sort_keys=True)


def register(config: Config, server: RegistryServer, report: Callable[[str], None]) -> str:
    """Registers the blessed model; returns the ID of its version.

    Args:
        config: the configuration.
        server: the registry.
        report: called with a line for each step.

    Raises:
        UsageError: no model was blessed, or it cannot be read from here.
        CheckFailed: the registry has another model of that version, or does not answer.
    """
    place, blessing = _blessed(config)
    model = server.find("/registered_model", name=config.name) or server.create("/registered_models", _model(config))
    wanted = _version(config, blessing, model["id"])
    version = server.find("/model_version", name=wanted["name"], parentResourceId=model["id"])
    if version is None:
        version = server.create("/model_versions", wanted)
        report(f"registered version {wanted['name']} of {config.name}")
    elif version.get("customProperties", {}).get(_DIGEST) != wanted["customProperties"][_DIGEST]:
        problem = f"the registry has another model as version {wanted['name']} of {config.name}"
        raise CheckFailed(f"{server.url}: {problem}. Delete that version, or rename the configuration.")
    artifact = _artifact(config, place, blessing)
    path = f"/model_versions/{version['id']}/artifacts"
    known = (server.find(path, name=artifact["name"]) or {}).get("items") or []
    if not any(one.get("uri") == artifact["uri"] for one in known):
        server.create(path, artifact)
        report(f"its artifact is {artifact['uri']}")
    return str(version["id"])


def _blessed(config: Config) -> tuple[str, Blessing]:
    place = pushed_folder(config)
    blessing = read_blessing(place)
    if blessing is None:
        raise UsageError(f"{place}: no model was blessed there, or it is not mounted here. Run the pipeline first.")
    return place, blessing


def _model(config: Config) -> dict[str, Any]:
    return {"name": config.name, "description": "Trained and blessed by Shardwright", "state": "LIVE"}


def _version(config: Config, blessing: Blessing, model: str) -> dict[str, Any]:
    texts = {_DIGEST: blessing.digest, "task": config.task}
    texts |= {f"shardwright_{role}": value for role, value in sorted(blessing.fingerprints.items())}
    properties: dict[str, Any] = {
        name: {"metadataType": "MetadataStringValue", "string_value": value} for name, value in texts.items()
    }
    for name, value in sorted(blessing.metrics.items()):
        properties[name] = {"metadataType": "MetadataDoubleValue", "double_value": value}
    return {"name": blessing.model, "registeredModelId": model, "state": "LIVE", "customProperties": properties}


def _artifact(config: Config, place: str, blessing: Blessing) -> dict[str, Any]:
    return {
        "artifactType": "model-artifact",
        # Unique in a registry.
        "name": f"{config.name}-{blessing.model}",
        "uri": f"{storage_uri(config, place)}/{blessing.model}",
        "modelFormatName": "tensorflow",
        "modelFormatVersion": "2",
        "state": "LIVE",
    }
