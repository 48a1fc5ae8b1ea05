"""The manifest of a KServe `InferenceService` for the pushed models: `shardwright deliver --kserve`.

KServe's TensorFlow runtime is TF Serving, which serves the highest version below `/mnt/models`. A revision gets one
version of the pushed models there, so that an older revision goes on serving its own: the part of a claim is mounted
under the version's number, and a bucket's folder is copied there. KServe (0.17) itself mounts a claim at `/mnt/models`,
whatever `mountPath` says (pkg/webhook/admission/pod/storage_initializer_injector.go:360): the mount is the pod's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shardwright.config import Config
from shardwright.config.kubernetes_names import mount_point
from shardwright.config.yaml_text import dump_yaml
from shardwright.errors import UsageError
from shardwright.lineage.blessing import read_blessing
from shardwright.pipelines.cloud.pod_documents import SECCOMP
from shardwright.storage import is_folder, is_remote
from shardwright.storage.paths import SCHEMES, scheme_of

_API = "serving.kserve.io/v1beta1"
_GROUP = "shardwright"
# Only the controller of this mode reads `canaryTrafficPercent`.
_SPLITS = {"serving.kserve.io/deploymentMode": "Knative"}
_MODELS = "/mnt/models"
_CLAIM = "pvc://"
_ALL = 100


def _warn(text: str) -> None:
    # Standard output is the manifest.
    print(f"shardwright: {text}", file=sys.stderr)


def kserve_manifest(
    config: Config, traffic: int = _ALL, version: str | None = None, note: Callable[[str], None] = _warn
) -> str:
    """Returns the manifest as YAML; its annotations name the model, if the pushed models can be read from here.

    Args:
        config: the configuration; its name is that of the service.
        traffic: percentage of the requests that the new model gets.
        version: of the pushed models; by default the blessed one, if they can be read from here.
        note: gets a sentence if the version is not known, or the cluster must allow something.

    Raises:
        UsageError: there is no folder of pushed models, KServe cannot read it, or the version is not a number.
    """
    place = pushed_folder(config)
    if version is not None and not version.isdecimal():
        raise UsageError(f"--model-version: {version!r} is not a number. Name a folder of {place}, such as 1764240000.")
    blessing = read_blessing(place) if is_remote(place) or is_folder(place) else None
    version = version or (None if blessing is None else blessing.model)
    model: dict[str, Any] = {"modelFormat": {"name": "tensorflow"}, "protocolVersion": "v1"}
    # KServe's runtimes have what else the Pod Security Standard "restricted" asks for. Knative refuses it on the pod.
    model["securityContext"] = dict(SECCOMP)
    predictor: dict[str, Any] = {"model": model}
    source, target = storage_uri(config, f"{place}/{version or ''}".rstrip("/")), f"{_MODELS}/{version}"
    if version is None:
        note(
            f"{place} cannot be read from here, so every revision of the service would serve the model that was pushed "
            "last, and no traffic would be split. Name the version: --model-version N"
        )
        model["storageUri"] = source
    elif scheme_of(place) is None:
        claim, _, folder = source.removeprefix(_CLAIM).partition("/")
        named = {"name": "pushed", "readOnly": True}
        model["volumeMounts"] = [{**named, "mountPath": target, "subPath": folder}]
        predictor["volumes"] = [{"name": "pushed", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}]
        if traffic != _ALL:
            note(
                f"{place} is on a volume, and Knative as it is installed refuses volumes. Enable its feature "
                "kubernetes.podspec-persistent-volume-claim: `shardwright docs deploy/kubeflow kserve`"
            )
    else:
        predictor["storageUris"] = [{"uri": source, "mountPath": target}]
    annotations = {}
    if blessing is not None and blessing.model == version:
        facts = {"model": blessing.model, "digest": blessing.digest, **blessing.fingerprints}
        annotations = {f"{_GROUP}/{name}": value for name, value in sorted(facts.items())}
    if traffic != _ALL:
        predictor["canaryTrafficPercent"] = traffic
        annotations |= _SPLITS
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


def storage_uri(config: Config, place: str) -> str:
    """Returns the URI that KServe reads a folder by.

    Raises:
        UsageError: KServe cannot read it.
    """
    if scheme_of(place) is not None:
        return place
    volume = config.kubeflow.volume_of(place)
    if volume is not None:
        return f"{_CLAIM}{volume.claim}{mount_point(place).removeprefix(mount_point(volume.path))}"
    known = ", ".join(scheme.prefix for scheme in SCHEMES)
    raise UsageError(f"{place}: KServe cannot read it. Use {known} or a folder of kubeflow.volumes.")
