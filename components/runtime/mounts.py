"""Buckets as folders: what stands for `gs://` and the like inside a container, and back.

Some components read and write folders with Python's own functions, which know no `gs://`. Both services offer buckets
as folders. Vertex AI mounts them below /gcs: `mounted` turns every `gs://` of a task into that. Kubeflow's launcher
copies a task's artifacts to /gcs, /s3 or /minio before it starts, and back when it has ended: `local` turns the
artifacts' places into those and leaves parameters alone, whose places no one copies. `streamed` needs no mount either:
it copies what is small, and leaves examples, which may be larger than any disk, where they are, for a component that
reads them with `shardwright.storage`.
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

# Names another folder than / for tests.
MOUNTS_VARIABLE = "SHARDWRIGHT_MOUNTS"

# Artifacts that are a file, not a folder.
_VALUES = re.compile(r"\btfx\.(String|Integer|Float|Boolean|JsonValue)\b")
_EXAMPLES = re.compile(r"\btfx\.Examples\b")
# Settings of another machine, which this one starts. That machine reads buckets itself.
_FOR_ANOTHER_MACHINE = ("ai_platform_training_args",)


def folder_of(url: str, root: str = "/") -> str:
    """The folder below `root` that stands for a URL of a bucket; any other text as it is."""
    for scheme in MOUNTED_SCHEMES:
        if url.startswith(scheme.prefix):
            return str(Path(root, scheme.mount_folder, url.removeprefix(scheme.prefix)))
    return url


def url_of(folder: str, root: str = "/") -> str:
    """The URL that a folder below `root` stands for; any other text as it is."""
    for scheme in MOUNTED_SCHEMES:
        start = str(Path(root, scheme.mount_folder)) + "/"
        if folder.startswith(start):
            return f"{scheme.prefix}{folder[len(start) :]}"
    return folder


def place_of(folder: str) -> str:
    """A folder of this container as other ones know it."""
    return url_of(folder, os.environ.get(MOUNTS_VARIABLE, "/"))


def opened(invocation: dict[str, Any], how: str, root: str = "/") -> dict[str, Any]:
    """An ExecutorInput whose places can be opened as files.

    Args:
        invocation: the input as plain values.
        how: one of `HOW`.
        root: folder that holds the buckets' folders.
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
    if how == MOUNTED:
        for name, value in values.items():
            if isinstance(value, str):
                values[name] = _in_text(value, root)
    return changed


def elsewhere(invocation: dict[str, Any], folder: str, *sides: str) -> dict[str, Any]:
    """An ExecutorInput with the artifacts of `sides`, and what is told of the outputs, in another folder."""
    changed: dict[str, Any] = json.loads(json.dumps(invocation))
    for side in sides:
        for key, listed in changed.get(side, {}).get("artifacts", {}).items():
            for number, artifact in enumerate(listed["artifacts"]):
                artifact["uri"] = os.path.join(folder, side, f"{key}-{number}" if number else key)
    changed["outputs"]["outputFile"] = os.path.join(folder, "executor_output.json")
    return changed


def _in_text(value: str, root: str) -> str:
    """A parameter with its `gs://` as a folder, also inside JSON, where TFX keeps a Pusher's destination."""
    try:
        parsed = json.loads(value)
    except ValueError:
        return folder_of(value, root)
    changed = _in_json(parsed, root)
    return value if changed == parsed else json.dumps(changed, sort_keys=True)


def _in_json(value: Any, root: str) -> Any:
    if isinstance(value, str):
        return folder_of(value, root)
    if isinstance(value, list):
        return [_in_json(inner, root) for inner in value]
    if not isinstance(value, dict):
        return value
    return {name: inner if name in _FOR_ANOTHER_MACHINE else _in_json(inner, root) for name, inner in value.items()}


def change_uris(artifacts: dict[str, Any], change: Callable[[str], str]) -> None:
    """Changes the places in the artifacts of an ExecutorInput or ExecutorOutput."""
    for listed in artifacts.values():
        for artifact in listed.get("artifacts", []):
            if "uri" in artifact:
                artifact["uri"] = change(artifact["uri"])


def output_folders(invocation: dict[str, Any]) -> list[str]:
    """The folders that must be there for the outputs of an ExecutorInput: of a value's the one that holds its file."""
    found = []
    for listed in invocation["outputs"].get("artifacts", {}).values():
        for artifact in listed.get("artifacts", []):
            of_value = _is_of(_VALUES, {"artifacts": [artifact]})
            found.append(os.path.dirname(artifact["uri"]) if of_value else artifact["uri"])
    return found


def _is_of(types: re.Pattern[str], listed: dict[str, Any]) -> bool:
    """Whether artifacts are of a type, however that is written."""
    kinds = [artifact.get("type", {}) for artifact in listed.get("artifacts", [])]
    return any(types.search(kind.get("instanceSchema", "") + kind.get("schemaTitle", "")) for kind in kinds)
