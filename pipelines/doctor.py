"""Whether this installation can work: what is installed, in which version, and whether it can be imported.

Everything is imported in a process of its own, since a package made for another system may end the process that loads
it instead of raising an error; whatever comes after it is then tried in another one.
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

# Package -> the module that its users import.
PACKAGES = {
    "numpy": "numpy",
    "pillow": "PIL.Image",
    "google-crc32c": "google_crc32c",
    "google-cloud-storage": "google.cloud.storage",
    "boto3": "boto3",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "jax": "jax",
    "apache-beam": "apache_beam",
    "ml-metadata": "ml_metadata",
    "tensorflow-data-validation": "tensorflow_data_validation",
    "tensorflow-transform": "tensorflow_transform",
    "tensorflow-model-analysis": "tensorflow_model_analysis",
    "tfx": "tfx.v1",
    "kfp": "kfp",
}

# Tells our lines from what packages print when they are imported.
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
    """One package as it is here.

    Attributes:
        package: its name.
        version: what is installed; empty where nothing is.
        problem: why it cannot be imported; empty where it can.
    """

    package: str
    version: str
    problem: str


@dataclass(frozen=True)
class Diagnosis:
    """What a machine and its packages are like.

    Attributes:
        python: version of Python.
        system: kernel, processor and C library.
        processors: processors this process may use.
        packages: every package that Shardwright needs.
    """

    python: str
    system: str
    processors: int
    packages: tuple[PackageState, ...]

    @property
    def healthy(self) -> bool:
        """Whether everything is installed and can be imported."""
        return not any(package.problem for package in self.packages)


def diagnose() -> Diagnosis:
    """Imports everything and looks around."""
    problems = import_problems(list(PACKAGES.values()))
    states = tuple(
        PackageState(package, version := _version(package), problems[module] if version else "is not installed")
        for package, module in PACKAGES.items()
    )
    system = (
        f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver()).strip() or 'an unknown C library'}"
    )
    return Diagnosis(platform.python_version(), system, len(os.sched_getaffinity(0)), states)


def import_problems(modules: Sequence[str]) -> dict[str, str]:
    """Why modules cannot be imported: module -> an empty text where it can."""
    problems: dict[str, str] = {}
    while len(problems) < len(modules):
        rest = [module for module in modules if module not in problems]
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT_ALL, _MARK, *rest],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            text=True,
            check=False,
        )
        lines = [line[len(_MARK) :] for line in done.stdout.splitlines() if line.startswith(_MARK)]
        problems.update(json.loads(line) for line in lines)
        if done.returncode:
            died = next((module for module in rest if module not in problems), None)
            if died is not None:
                problems[died] = f"ends the process that imports it (exit code {done.returncode})"
    return problems


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
