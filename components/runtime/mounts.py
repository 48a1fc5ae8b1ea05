"""Buckets as folders inside a container: the folder for a URL such as `gs://`, and back.

Some components read and write folders with Python's own functions, which cannot open `gs://`. Both services offer
buckets as folders:

* `mounted`: Vertex AI mounts buckets below /gcs. Every `gs://` of a task becomes such a folder.
* `local`: Kubeflow's launcher copies a task's artifacts to /gcs, /s3 or /minio before it starts, and back afterwards.
  The paths of artifacts become those folders; parameters stay, since nobody copies their places.
* `streamed`: small artifacts are copied. Examples, which may be larger than any disk, stay on the bucket, for a
  component that reads them with `shardwright.storage`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from shardwright.storage.paths import MOUNTED_SCHEMES

MODULE = "shardwright.components.runtime.container"
MOUNTED, LOCAL, STREAMED, AS_THEY_ARE = "mounted", "local", "streamed", "as-they-are"
HOW = (MOUNTED, LOCAL, STREAMED, AS_THEY_ARE)

# Names another folder than /, for tests and for `streamed`.
MOUNTS_VARIABLE = "SHARDWRIGHT_MOUNTS"

# Artifacts that are a file, not a folder.
_VALUES = re.compile(r"\btfx\.(String|Integer|Float|Boolean|JsonValue)\b")
_EXAMPLES = re.compile(r"\btfx\.Examples\b")
# Settings of another machine, which this one starts. That machine reads buckets itself.
_FOR_ANOTHER_MACHINE = ("ai_platform_training_args",)


def folder_of(url: str, root: str = "/") -> str:
    """Returns the folder below `root` that stands for a URL of a bucket; any other text as it is."""
    for scheme in MOUNTED_SCHEMES:
        if url.startswith(scheme.prefix):
            return str(Path(root, scheme.mount_folder, url.removeprefix(scheme.prefix)))
    return url


def url_of(folder: str, root: str = "/") -> str:
    """Returns the URL that a folder below `root` stands for; any other text as it is."""
    for scheme in MOUNTED_SCHEMES:
        start = str(Path(root, scheme.mount_folder)) + "/"
        if folder.startswith(start):
            return f"{scheme.prefix}{folder[len(start) :]}"
    return folder


def place_of(folder: str) -> str:
    """Returns the URL of a folder of this container, valid outside of it."""
    return url_of(folder, os.environ.get(MOUNTS_VARIABLE, "/"))


def opened(invocation: dict[str, Any], how: str, root: str = "/") -> dict[str, Any]:
    """Returns an ExecutorInput whose paths can be opened as files.

    Args:
        invocation: the input as plain values.
        how: one of `HOW`.
        root: folder with the buckets' folders.
    """
    if how == AS_THEY_ARE:
        return invocation
    changed: dict[str, Any] = json.loads(json.dumps(invocation))
    for side in ("inputs", "outputs"):
        artifacts = changed.get(side, {}).get("artifacts", {})
        if how == STREAMED and side == "inputs":
            artifacts = {key: listed for key, listed in artifacts.items() if not _is_of(_EXAMPLES, listed)}
        change_uris(artifacts, partial(folder_of, root=root))
    values = changed.get("inputs", {}).get("parameterValues", {})
    for name, value in values.items() if how == MOUNTED else ():
        # Also inside JSON, where TFX stores a Pusher's destination.
        try:
            parsed = json.loads(value)
        except (TypeError, ValueError):
            values[name] = _with_folders(value, root)
        else:
            with_folders = _with_folders(parsed, root)
            values[name] = value if with_folders == parsed else json.dumps(with_folders, sort_keys=True)
    return changed


def elsewhere(invocation: dict[str, Any], folder: str, *sides: str) -> dict[str, Any]:
    """Returns an ExecutorInput with the artifacts of `sides`, and the report of the outputs, in another folder."""
    changed: dict[str, Any] = json.loads(json.dumps(invocation))
    for side in sides:
        for key, listed in changed.get(side, {}).get("artifacts", {}).items():
            for number, artifact in enumerate(listed["artifacts"]):
                artifact["uri"] = os.path.join(folder, side, f"{key}-{number}" if number else key)
    changed["outputs"]["outputFile"] = os.path.join(folder, "executor_output.json")
    return changed


def _with_folders(value: Any, root: str) -> Any:
    if isinstance(value, str):
        return folder_of(value, root)
    if isinstance(value, list):
        return [_with_folders(inner, root) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        name: inner if name in _FOR_ANOTHER_MACHINE else _with_folders(inner, root) for name, inner in value.items()
    }


def change_uris(artifacts: dict[str, Any], change: Callable[[str], str]) -> None:
    """Changes the URIs of artifacts in an ExecutorInput or ExecutorOutput."""
    for listed in artifacts.values():
        for artifact in listed.get("artifacts", []):
            if "uri" in artifact:
                artifact["uri"] = change(artifact["uri"])


def uri_pairs(before: dict[str, Any], after: dict[str, Any], side: str) -> list[tuple[str, str]]:
    """Returns the URIs of the artifacts of two ExecutorInputs of one task, where they differ.

    Args:
        before: an input as plain values.
        after: the same one with other URIs.
        side: `inputs` or `outputs`.
    """
    one, other = (value.get(side, {}).get("artifacts", {}) for value in (before, after))
    pairs = (
        (here["uri"], there["uri"])
        for key in sorted(one)
        for here, there in zip(one[key]["artifacts"], other[key]["artifacts"], strict=True)
    )
    return [(here, there) for here, there in pairs if here != there]


def output_folders(invocation: dict[str, Any]) -> list[str]:
    """Returns the folders that the outputs of an ExecutorInput need; for a value, the folder of its file."""
    found = []
    for listed in invocation["outputs"].get("artifacts", {}).values():
        for artifact in listed.get("artifacts", []):
            of_value = _is_of(_VALUES, {"artifacts": [artifact]})
            found.append(os.path.dirname(artifact["uri"]) if of_value else artifact["uri"])
    return found


def _is_of(types: re.Pattern[str], listed: dict[str, Any]) -> bool:
    """Returns whether artifacts are of a type, in either notation."""
    kinds = [artifact.get("type", {}) for artifact in listed.get("artifacts", [])]
    return any(types.search(kind.get("instanceSchema", "") + kind.get("schemaTitle", "")) for kind in kinds)
