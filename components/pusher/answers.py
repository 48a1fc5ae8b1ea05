"""Whether a model answers where none of our code is: asked in a clean process before it is put in force."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from shardwright.errors import CheckFailed

_SCRIPT = Path(__file__).with_name("clean_process.py")
_SECONDS = 900


def check_answers(model: str | os.PathLike[str]) -> None:
    """Refuses a model that does not load, or does not answer, in a process of its own.

    Args:
        model: folder of a SavedModel.

    Raises:
        CheckFailed: says what it does instead.
    """
    # Isolated: neither the working folder nor variables of this process lead to our code.
    command = [sys.executable, "-I", str(_SCRIPT), str(Path(model).absolute())]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CheckFailed(f"{model}: blessed, but it did not answer in {_SECONDS} s. Not pushed.") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"the process ended with exit code {done.returncode}"]
        raise CheckFailed(f"{model}: blessed, but it does not answer in a clean process: {lines[-1]}. Not pushed.")
