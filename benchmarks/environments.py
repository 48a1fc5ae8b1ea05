"""Separate environments for packages that a benchmark compares with, and that Shardwright does not need."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_LONGEST = 300


def environment(folder: Path, packages: Sequence[str]) -> tuple[str, str]:
    """Makes an environment with other packages.

    Args:
        folder: its folder.
        packages: arguments of `pip install`.

    Returns:
        Its Python and an empty text; or an empty text and the reason why it could not be made.
    """
    found = [*sorted(_HERE.parent.glob(".tools/uv-*/uv")), shutil.which("uv")]
    uv = next((str(path) for path in found if path), None)
    if uv is None:
        return "", "there is no uv; `make setup` brings it"
    python = str(folder / "bin" / "python")
    for call in (
        [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder)],
        [uv, "pip", "install", "--quiet", "--python", python, *packages],
    ):
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode:
            return "", (done.stderr.strip().splitlines() or ["it could not be installed"])[-1][:_LONGEST]
    return python, ""
