"""Run inside the image by `tools/image.sh try`: a compiled pipeline's first task, by its pod's own command."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, "/checkout/tests/support")

from emulator import Emulator


def run_as_it_is(command: list[str], *, log: Path, environment: dict[str, str], folder: Path, writable: object) -> int:
    """Runs a container's command, with the image's own `python`; returns its exit code; `writable` plays no part."""
    folder.mkdir(parents=True)
    with log.open("w", encoding="utf-8") as output:
        return subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env={**os.environ, **environment}
        ).returncode


def main(document: str, data_root: str) -> None:
    """Runs InputResolver and prints the fingerprint that it outputs."""
    home = Path("one-task").absolute()
    pipeline = Emulator.kubeflow(document, home, folders={"minio://": f"{home}/"})
    pipeline.start = run_as_it_is
    print(json.dumps(pipeline.first("InputResolver", data_root=data_root)["parameters"], sort_keys=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
