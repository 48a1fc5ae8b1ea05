"""What the containers of a compiled pipeline start: TFX's own entry point, with places that every component can open.

    python -m shardwright_components.container --artifacts mounted|local|as-they-are --executor_class_path … (TFX's)

Some components read and write folders with Python's own functions, which know no `gs://`. Both services offer buckets
as folders. Vertex AI mounts them below /gcs: `mounted` turns every `gs://` of a task into that. Kubeflow's launcher
copies a task's artifacts to /gcs, /s3 or /minio before it starts, and back when it has ended: `local` turns the
artifacts' places into those and leaves parameters alone, whose places no one copies. What is said of the outputs is
turned back. `SHARDWRIGHT_MOUNTS` names another folder than / for tests.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tfx.dsl.io import fileio
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor as tfx_entry

from shardwright.errors import ShardwrightError
from shardwright_components.beam_runner import in_process_beam

MODULE = __name__ if __name__ != "__main__" else "shardwright_components.container"
MOUNTED, LOCAL, AS_THEY_ARE = "mounted", "local", "as-they-are"
MOUNTS_VARIABLE = "SHARDWRIGHT_MOUNTS"

_SCHEMES = ("gs", "s3", "minio")
_FOLDERS = {"gs": "gcs", "s3": "s3", "minio": "minio"}
_INVOCATION = "--json_serialized_invocation_args"


def main(arguments: Sequence[str]) -> int:
    """Runs a task.

    Args:
        arguments: `--artifacts HOW`, then those of TFX's `kubeflow_v2_run_executor`.

    Returns:
        0, or the exit code of an error that a user is meant to see.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", allow_abbrev=False)
    parser.add_argument("--artifacts", choices=(MOUNTED, LOCAL, AS_THEY_ARE), default=AS_THEY_ARE)
    options, rest = parser.parse_known_args(list(arguments))
    place = rest.index(_INVOCATION) + 1
    invocation = json.loads(rest[place])
    output_file = invocation["outputs"]["outputFile"]
    rest[place] = json.dumps(_opened(invocation, options.artifacts))
    for uri in _output_uris(json.loads(rest[place])):
        fileio.makedirs(os.path.dirname(uri))
    try:
        with in_process_beam():
            tfx_entry.main(tfx_entry._parse_flags([tfx_entry.__name__, *rest]))
    except ShardwrightError as error:
        print(f"shardwright: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    if options.artifacts != AS_THEY_ARE:
        _turn_back(output_file)
    return 0


def folder_of(url: str) -> str:
    """The folder that stands for a URL of a bucket; any other text as it is."""
    for scheme in _SCHEMES:
        if url.startswith(f"{scheme}://"):
            return str(Path(os.environ.get(MOUNTS_VARIABLE, "/"), _FOLDERS[scheme], url[len(scheme) + 3 :]))
    return url


def url_of(folder: str) -> str:
    """The URL that a folder stands for; any other text as it is."""
    for scheme in _SCHEMES:
        start = str(Path(os.environ.get(MOUNTS_VARIABLE, "/"), _FOLDERS[scheme])) + "/"
        if folder.startswith(start):
            return f"{scheme}://{folder[len(start) :]}"
    return folder


def _opened(invocation: dict[str, Any], how: str) -> dict[str, Any]:
    if how == AS_THEY_ARE:
        return invocation
    opened: dict[str, Any] = json.loads(json.dumps(invocation))
    for side in ("inputs", "outputs"):
        _change_uris(opened.get(side, {}).get("artifacts", {}), folder_of)
    values = opened.get("inputs", {}).get("parameterValues", {})
    if how == MOUNTED:
        for name, value in values.items():
            if isinstance(value, str):
                values[name] = _in_text(value)
    return opened


def _in_text(value: str) -> str:
    """A parameter with its `gs://` as a folder, also inside JSON, where TFX keeps a Pusher's destination."""
    try:
        parsed = json.loads(value)
    except ValueError:
        return folder_of(value)
    changed = _in_json(parsed)
    return value if changed == parsed else json.dumps(changed, sort_keys=True)


def _in_json(value: Any) -> Any:
    if isinstance(value, str):
        return folder_of(value)
    if isinstance(value, list):
        return [_in_json(inner) for inner in value]
    return {name: _in_json(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def _change_uris(artifacts: dict[str, Any], change: Callable[[str], str]) -> None:
    for listed in artifacts.values():
        for artifact in listed.get("artifacts", []):
            if "uri" in artifact:
                artifact["uri"] = change(artifact["uri"])


def _output_uris(invocation: dict[str, Any]) -> list[str]:
    listed = invocation["outputs"].get("artifacts", {}).values()
    return [artifact["uri"] for entry in listed for artifact in entry.get("artifacts", [])]


def _turn_back(output_file: str) -> None:
    """Turns the places in what TFX says of the outputs back into the service's own."""
    with fileio.open(output_file, "r") as file:
        said = json.loads(file.read())
    _change_uris(said.get("artifacts", {}), url_of)
    with fileio.open(output_file, "w") as file:
        file.write(json.dumps(said, sort_keys=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
