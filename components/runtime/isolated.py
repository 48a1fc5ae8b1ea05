"""Programs that run without our code: a model that answers one of them answers anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from shardwright.errors import CheckFailed

_SECONDS = 900


def run_isolated(script: Path, *arguments: str, what: str, ending: str) -> None:
    """Runs a program that asks a model for answers, in a process of its own.

    Args:
        script: the program.
        *arguments: of the program.
        what: the model, for messages, which go on with `did not answer`.
        ending: what does not happen then, for messages.

    Raises:
        CheckFailed: the program failed, or took too long.
    """
    # Isolated (-I): neither the working folder nor variables of this process make our code importable.
    command = [sys.executable, "-I", str(script), *arguments]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CheckFailed(f"{what} did not answer in {_SECONDS} s. {ending}") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"the process ended with exit code {done.returncode}"]
        raise CheckFailed(f"{what} does not answer in a clean process: {lines[-1]}. {ending}")
