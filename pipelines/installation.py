"""Checks an installation: the machine, which packages are installed, in which versions, whether they can be imported.

The imports run in a separate process: a package built for another system may end the process that loads it instead of
raising an error. The packages after it are then tried in a new process.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from shardwright.pipelines.machine import PROBLEM, Check, check_machine
from shardwright.running.extras import CONTAINS, extras_of
from shardwright.running.processes import usable_cores

# Package -> the module that its users import.
PACKAGES = {
    "numpy": "numpy",
    "pillow": "PIL.Image",
    "google-crc32c": "google_crc32c",
    "blake3": "blake3",
    "google-cloud-storage": "google.cloud.storage",
    "boto3": "boto3",
    "pyarrow": "pyarrow.parquet",
    "huggingface-hub": "huggingface_hub",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "jax": "jax",
    "apache-beam": "apache_beam",
    "ml-metadata": "ml_metadata",
    "tensorflow-data-validation": "tensorflow_data_validation",
    "tensorflow-model-analysis": "tensorflow_model_analysis",
    "tfx": "tfx.v1",
    "kfp": "kfp",
}

# A package may wait for ever for a device or a network.
_SECONDS = 300
# Distinguishes our lines from the output of packages during their import.
_MARK = "shardwright doctor:"
_IMPORT_ALL = """
import importlib, json, sys
mark, *modules = sys.argv[1:]
for module in modules:
    problem = ""
    try:
        importlib.import_module(module)
    except BaseException as error:
        problem = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    print("\\n" + mark + json.dumps([module, problem]), flush=True)
"""


@dataclass(frozen=True)
class PackageState:
    """The state of a package on this machine.

    Attributes:
        package: its name.
        version: the installed version; empty if it is not installed.
        problem: why it cannot be imported; empty if it can, or if it belongs to an extra that is not installed.
        extra: that extra; empty if it is installed.
    """

    package: str
    version: str
    problem: str
    extra: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """The state of a machine and its packages.

    Attributes:
        python: version of Python.
        system: kernel, processor and C library.
        processors: processors this process may use.
        machine: memory, disk, accelerators and credentials.
        packages: the packages of the base installation and of the extras.
    """

    python: str
    system: str
    processors: int
    machine: tuple[Check, ...]
    packages: tuple[PackageState, ...]

    @property
    def healthy(self) -> bool:
        """True if what is installed is complete and can be imported, and no check of the machine found a problem."""
        return not any(package.problem for package in self.packages) and not any(
            check.state == PROBLEM for check in self.machine
        )


def diagnose() -> Diagnosis:
    """Tries all imports and describes the machine."""
    problems = import_problems(list(PACKAGES.values()))
    states = tuple(_state(package, module, problems[module]) for package, module in PACKAGES.items())
    system = (
        f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver()).strip() or 'an unknown C library'}"
    )
    machine = check_machine(os.environ, Path.home())
    return Diagnosis(platform.python_version(), system, usable_cores(), machine, states)


def _state(package: str, module: str, problem: str) -> PackageState:
    version = _version(package)
    if version:
        return PackageState(package, version, problem)
    extras = extras_of(module)
    # Parts of TFX, such as Keras, may be there without it.
    with_tfx = {"tfx", *CONTAINS["tfx"]} & set(extras)
    if extras and not (with_tfx and _version("tfx")):
        return PackageState(package, "", "", extras[0])
    return PackageState(package, "", "is not installed")


def import_problems(modules: Sequence[str]) -> dict[str, str]:
    """Returns why modules cannot be imported: module -> reason, empty if it can."""
    problems: dict[str, str] = {}
    while len(problems) < len(modules):
        rest = [module for module in modules if module not in problems]
        try:
            done = subprocess.run(
                [sys.executable, "-c", _IMPORT_ALL, _MARK, *rest],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
                check=False,
                timeout=_SECONDS,
            )
            output, end = done.stdout, f"ends the process that imports it (exit code {done.returncode})"
        except subprocess.TimeoutExpired as error:
            output, end = error.stdout or b"", f"cannot be imported within {_SECONDS} s"
        lines = output.decode(errors="replace").splitlines()
        problems.update(json.loads(line[len(_MARK) :]) for line in lines if line.startswith(_MARK))
        died = next((module for module in rest if module not in problems), None)
        if died is not None:
            problems[died] = end
    return problems


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
