"""The entry point of a compiled pipeline's containers: TFX's own, with paths that every component can open.

    python -m shardwright.components.runtime.container --artifacts HOW [--jobset …] --executor_class_path … (TFX's)

See `mounts` for the values of `--artifacts`, and `jobset` for `--jobset`. The paths of the outputs that TFX reports are
converted back to those of the service.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tfx.dsl.io import fileio

from shardwright.components.image_trainer.devices.hosts import this_host
from shardwright.components.runtime.artifacts import fetch_folder
from shardwright.components.runtime.beam import in_process_beam
from shardwright.components.runtime.heartbeat import watched
from shardwright.components.runtime.mounts import (
    AS_THEY_ARE,
    HOW,
    MODULE,
    MOUNTS_VARIABLE,
    STREAMED,
    change_uris,
    elsewhere,
    folder_of,
    opened,
    output_folders,
    uri_pairs,
    url_of,
)
from shardwright.components.runtime.packed import unpack_parameters
from shardwright.components.runtime.page_outputs import fill_page_outputs, take_page_outputs
from shardwright.components.runtime.run_jobset import Cluster, JobSetTask, run_as_jobset
from shardwright.components.runtime.tfx_compat import run_task
from shardwright.errors import ShardwrightError
from shardwright.running.processes import sigterm_raises
from shardwright.storage.mirror import put_folder
from shardwright.text.escaping import escape_message, escaped_streams

_INVOCATION = "--json_serialized_invocation_args"
_INPUTS_SPEC = "--json_serialized_inputs_spec_args"


def main(arguments: Sequence[str]) -> int:
    """Runs a task.

    Args:
        arguments: `--artifacts HOW`, then those of TFX's `kubeflow_v2_run_executor`.

    Returns:
        0, or the exit code of an error for the user.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", allow_abbrev=False)
    parser.add_argument("--artifacts", choices=HOW, default=AS_THEY_ARE)
    parser.add_argument("--jobset", help="manifest of the JobSet that does the work, as JSON")
    parser.add_argument("--shared", help="with --jobset: folder of a volume that its pods and this one mount")
    options, rest = parser.parse_known_args(list(arguments))
    try:
        with (
            watched(os.environ),
            sigterm_raises(),
            escaped_streams(),
            in_process_beam(),
            tempfile.TemporaryDirectory(prefix="shardwright-") as scratch,
        ):
            _run(rest, options.artifacts, scratch, _work(options, list(rest)))
    except ShardwrightError as error:
        print(f"shardwright: {escape_message(str(error))}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


def _work(options: argparse.Namespace, arguments: list[str]) -> Callable[[list[str]], None]:
    """Returns the task, called with TFX's arguments and paths that can be opened; `arguments` are the service's."""
    place = arguments.index(_INVOCATION) + 1
    if options.jobset is None:
        return lambda changed: run_task(
            [*changed[:place], json.dumps(unpack_parameters(json.loads(changed[place]))), *changed[place + 1 :]]
        )
    cluster = Cluster.of_this_pod(os.environ)
    task = JobSetTask(json.loads(options.jobset), arguments, place, Path(options.shared, cluster.namespace))
    return lambda changed: run_as_jobset(task, json.loads(changed[place]), cluster)


def _run(arguments: list[str], how: str, scratch: str, work: Callable[[list[str]], None]) -> None:
    if how == STREAMED:
        # For code that reports a path to people, or to the next run.
        os.environ[MOUNTS_VARIABLE] = scratch
    root = os.environ.get(MOUNTS_VARIABLE, "/")
    place = arguments.index(_INVOCATION) + 1
    invocation = _with_types(json.loads(arguments[place]), arguments)
    pages = take_page_outputs(invocation)
    changed = json.loads(json.dumps(opened(invocation, how, root)))
    publishes = this_host(os.environ).publishes
    if not publishes:
        # TFX requires the outputs of a task, and those of this host are not used.
        changed = elsewhere(changed, os.path.join(scratch, "host"), "outputs")
    elif how != AS_THEY_ARE:
        # TFX puts a component's temporary folder next to this file, so it must be on this machine.
        changed["outputs"]["outputFile"] = os.path.join(scratch, "task", "executor_output.json")
    arguments[place] = json.dumps(changed)
    if how == STREAMED:
        for url, folder in uri_pairs(invocation, changed, "inputs"):
            fetch_folder(url, Path(folder))
    for folder in output_folders(changed):
        # As TFX's local runners do. On a bucket there are no folders to make.
        if "://" not in folder:
            os.makedirs(folder, exist_ok=True)
    work(arguments)
    if not publishes:
        return
    if how == STREAMED:
        for url, folder in uri_pairs(invocation, changed, "outputs"):
            put_folder(Path(folder), url)
    if how != AS_THEY_ARE:
        report = json.loads(Path(changed["outputs"]["outputFile"]).read_text(encoding="utf-8"))
        change_uris(report.get("artifacts", {}), partial(url_of, root=root))
        if pages:
            urls = {key: listed["artifacts"][0]["uri"] for key, listed in pages.items()}
            places = {key: url if how == STREAMED else folder_of(url, root) for key, url in urls.items()}
            own = {key: listed["artifacts"][0]["uri"] for key, listed in changed["outputs"]["artifacts"].items()}
            report.setdefault("artifacts", {}).update(fill_page_outputs(pages, places, own))
        # For the service, with the service's URLs.
        output_file = invocation["outputs"]["outputFile"]
        fileio.makedirs(os.path.dirname(output_file))
        with fileio.open(output_file, "w") as file:
            file.write(json.dumps(report, sort_keys=True))


def _with_types(invocation: dict[str, Any], arguments: list[str]) -> dict[str, Any]:
    """Fills in the types of input artifacts that the service leaves empty, from the component's own specification.

    Kubeflow's driver writes `{"instanceSchema": ""}` for every input artifact (kubeflow/pipelines,
    backend/src/v2/metadata/client.go, `GetOutputArtifactsByExecutionId`), and TFX cannot read that.
    """
    if _INPUTS_SPEC not in arguments:
        return invocation
    specified = json.loads(arguments[arguments.index(_INPUTS_SPEC) + 1]).get("artifacts", {})
    for key, listed in invocation.get("inputs", {}).get("artifacts", {}).items():
        for artifact in listed.get("artifacts", ()):
            if key in specified and not any(artifact.get("type", {}).values()):
                artifact["type"] = dict(specified[key]["artifactType"])
    return invocation


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
