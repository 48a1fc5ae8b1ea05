"""The manifest of a KServe `InferenceService` for the pushed models: `shardwright deliver --kserve`.

KServe's TensorFlow runtime is TF Serving. It copies the folder that `storageUri` names and serves the version with the
highest number in it. Pusher numbers versions by time, so that is the model pushed last, which is the blessed one.
"""

from __future__ import annotations

from typing import Any

import yaml

from shardwright.config import Config
from shardwright.errors import UsageError
from shardwright.storage.paths import SCHEMES, scheme_of

_API = "serving.kserve.io/v1beta1"
_GROUP = "shardwright"


def kserve_manifest(config: Config, place: str, *, annotations: dict[str, str], canary: int | None = None) -> str:
    """Returns the manifest as YAML.

    Args:
        config: the configuration; its name is that of the service.
        place: folder of the pushed models: `gs://…`, `s3://…`, or a folder on a volume of `kubeflow.volumes`.
        annotations: what is known of the model.
        canary: percentage of the requests that the new model gets; all without one.

    Raises:
        UsageError: KServe cannot read that place.
    """
    predictor: dict[str, Any] = {
        "model": {"modelFormat": {"name": "tensorflow"}, "protocolVersion": "v1", "storageUri": _storage(config, place)}
    }
    if canary is not None:
        predictor["canaryTrafficPercent"] = canary
    manifest = {
        "apiVersion": _API,
        "kind": "InferenceService",
        "metadata": {
            "name": config.name,
            "annotations": {f"{_GROUP}/{name}": value for name, value in sorted(annotations.items())},
        },
        "spec": {"predictor": predictor},
    }
    text: str = yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=4096)
    return text


def _storage(config: Config, place: str) -> str:
    """Returns the URI that KServe reads a folder by."""
    if scheme_of(place) is not None:
        return place
    for volume in config.kubeflow.volumes:
        mounted = volume.path.rstrip("/") + "/"
        if f"{place}/".startswith(mounted):
            return f"pvc://{volume.claim}/{place[len(mounted) :]}".rstrip("/")
    known = ", ".join(scheme.prefix for scheme in SCHEMES)
    raise UsageError(f"{place}: KServe cannot read it. Use {known} or a folder of kubeflow.volumes.")
