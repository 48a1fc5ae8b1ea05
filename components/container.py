"""What the containers of a compiled pipeline start: TFX's own entry point, with places that every component can open.

    python -m shardwright_components.container --artifacts mounted|local|as-they-are --executor_class_path … (TFX's)

See `mounts` for what that option says. What TFX tells of the outputs is turned back into the service's own places.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from tfx.dsl.io import fileio
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor as tfx_entry

from shardwright.errors import ShardwrightError
from shardwright_components.beam_runner import in_process_beam
from shardwright_components.mounts import AS_THEY_ARE, HOW, MODULE, change_uris, opened, output_folders, url_of

_INVOCATION = "--json_serialized_invocation_args"


def main(arguments: Sequence[str]) -> int:
    """Runs a task.

    Args:
        arguments: `--artifacts HOW`, then those of TFX's `kubeflow_v2_run_executor`.

    Returns:
        0, or the exit code of an error that a user is meant to see.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", allow_abbrev=False)
    parser.add_argument("--artifacts", choices=HOW, default=AS_THEY_ARE)
    options, rest = parser.parse_known_args(list(arguments))
    place = rest.index(_INVOCATION) + 1
    invocation = json.loads(rest[place])
    output_file = invocation["outputs"]["outputFile"]
    changed = opened(invocation, options.artifacts)
    rest[place] = json.dumps(changed)
    for folder in output_folders(changed):
        # As TFX's local runners do. On a bucket there are no folders to make.
        if "://" not in folder:
            os.makedirs(folder, exist_ok=True)
    try:
        with in_process_beam():
            tfx_entry.main(tfx_entry._parse_flags(rest))
    except ShardwrightError as error:
        print(f"shardwright: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    if options.artifacts != AS_THEY_ARE:
        _turn_back(output_file)
    return 0


def _turn_back(output_file: str) -> None:
    """Turns the places in what TFX says of the outputs back into the service's own."""
    with fileio.open(output_file, "r") as file:
        said = json.loads(file.read())
    change_uris(said.get("artifacts", {}), url_of)
    with fileio.open(output_file, "w") as file:
        file.write(json.dumps(said, sort_keys=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
