"""Starts the commands of compiled tasks; `prefork.py` makes each start cheap."""

import os
import subprocess
import sys
from pathlib import Path


class Zygote:
    """Starts commands; use it in a `with` block."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, command, *, log, environment, folder):
        """Runs `python -m MODULE …`; returns its exit code. Its output goes to the file `log`."""
        assert command[:2] == ["python", "-m"]
        Path(folder).mkdir(parents=True, exist_ok=True)
        with open(log, "w", encoding="utf-8") as output:
            done = subprocess.run(
                [sys.executable, *command[1:]],
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        return done.returncode
