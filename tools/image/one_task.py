"""Run inside the image by `tools/image.sh try`: a compiled pipeline's first task, by its pod's own command."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, "/checkout/tests/support")

from emulator import Emulator


class Here:
    """Runs a container's command as it is."""

    def run(self, command: list[str], *, log: Path, environment: dict[str, str], folder: Path) -> int:
        """Returns the command's exit code."""
        folder.mkdir(parents=True)
        with log.open("w", encoding="utf-8") as said:
            return subprocess.run(
                command, stdout=said, stderr=subprocess.STDOUT, cwd=folder, env={**os.environ, **environment}
            ).returncode


def main(document: str, data_root: str) -> None:
    """Runs InputResolver and prints the fingerprint that it hands on."""
    home = Path("one-task").absolute()
    pipeline = Emulator.kubeflow(document, home, Here(), folders={"minio://": f"{home}/"})
    print(json.dumps(pipeline.first("InputResolver", data_root=data_root)["parameters"], sort_keys=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
