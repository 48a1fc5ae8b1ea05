"""The manifest of a KServe `InferenceService` for the pushed models: `shardwright deliver --kserve`.

KServe's TensorFlow runtime is TF Serving. It copies the folder that `storageUri` names and serves the version with the
highest number in it. Pusher numbers versions by time, so that is the model pushed last, which is the blessed one.
"""

from __future__ import annotations

from typing import Any

from shardwright.config import Config
from shardwright.config.kubernetes_names import mount_point
from shardwright.config.yaml_text import dump_yaml
from shardwright.errors import UsageError
from shardwright.lineage.blessing import read_blessing
from shardwright.storage import is_folder, is_remote
from shardwright.storage.paths import SCHEMES, scheme_of

_API = "serving.kserve.io/v1beta1"
_GROUP = "shardwright"
_ALL = 100


def kserve_manifest(config: Config, traffic: int = _ALL) -> str:
    """Returns the manifest as YAML; its annotations name the model, if the pushed models can be read from here.

    Args:
        config: the configuration; its name is that of the service.
        traffic: percentage of the requests that the new model gets.

    Raises:
        UsageError: there is no folder of pushed models, or KServe cannot read it.
    """
    place = pushed_folder(config)
    predictor: dict[str, Any] = {
        "model": {
            "modelFormat": {"name": "tensorflow"},
            "protocolVersion": "v1",
            "storageUri": storage_uri(config, place),
        }
    }
    if traffic != _ALL:
        predictor["canaryTrafficPercent"] = traffic
    annotations = {f"{_GROUP}/{name}": value for name, value in sorted(_described(place).items())}
    manifest = {
        "apiVersion": _API,
        "kind": "InferenceService",
        "metadata": {"name": config.name, "annotations": annotations},
        "spec": {"predictor": predictor},
    }
    return dump_yaml(manifest, width=4096)


def pushed_folder(config: Config) -> str:
    """Returns the folder of the pushed models.

    Raises:
        UsageError: the configuration names none.
    """
    place = (config.kubeflow.push_directory or config.vertex.push_directory or "").rstrip("/")
    if not place:
        raise UsageError("kubeflow.push_directory: missing. Write the folder of the pushed models.")
    return place


def _described(place: str) -> dict[str, str]:
    """Returns name, digest and lineage of the blessed model; nothing for a volume that is not mounted here."""
    blessing = read_blessing(place) if is_remote(place) or is_folder(place) else None
    if blessing is None:
        return {}
    return {"model": blessing.model, "digest": blessing.digest, **blessing.fingerprints}


def storage_uri(config: Config, place: str) -> str:
    """Returns the URI that KServe reads a folder by.

    Raises:
        UsageError: KServe cannot read it.
    """
    if scheme_of(place) is not None:
        return place
    volume = config.kubeflow.volume_of(place)
    if volume is not None:
        return f"pvc://{volume.claim}{mount_point(place).removeprefix(mount_point(volume.path))}"
    known = ", ".join(scheme.prefix for scheme in SCHEMES)
    raise UsageError(f"{place}: KServe cannot read it. Use {known} or a folder of kubeflow.volumes.")
