"""Checks of this machine for `shardwright doctor`: memory, disk, accelerators, and whether there are credentials.

The value of a credential is never read: only whether its variable is set, or its file exists. Nothing is asked over a
network, and no accelerator is started, because a TPU belongs to the first process that starts it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shardwright.errors import ConfigError

OK, NONE, PROBLEM = "ok", "none", "problem"
_LEAST_DISK = 10**9
_CGROUP = Path("/sys/fs/cgroup")
_KUBERNETES_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

# Provider -> variables that are a credential themselves, variables with the path of a file, and the default file.
_CREDENTIALS = {
    "Google Cloud": ((), "GOOGLE_APPLICATION_CREDENTIALS", ".config/gcloud/application_default_credentials.json"),
    "AWS": (("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_ROLE_ARN"),
            "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
    "Kubernetes": ((), "KUBECONFIG", ".kube/config"),
}  # fmt: skip
# Variables that move the folder of the default file.
_FOLDERS = {"Google Cloud": ("CLOUDSDK_CONFIG", "application_default_credentials.json")}


@dataclass(frozen=True)
class Check:
    """One line about this machine.

    Attributes:
        subject: what was looked at: `memory`, `disk`, `accelerator`, or a provider of credentials.
        state: `ok`, `none` (there is none, which may be meant) or `problem`.
        detail: what was found, for people.
    """

    subject: str
    state: str
    detail: str


def check_machine(environment: Mapping[str, str], home: Path) -> tuple[Check, ...]:
    """Checks everything.

    Args:
        environment: variables of this process.
        home: folder of the user, where tools keep credentials.
    """
    folders = dict.fromkeys([os.getcwd(), tempfile.gettempdir()])
    return (
        check_memory(),
        *(check_disk(folder) for folder in folders),
        check_accelerator(environment),
        *(check_credentials(provider, environment, home) for provider in _CREDENTIALS),
    )


def check_memory(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = _CGROUP) -> Check:
    """Returns the memory of this machine, or of the container if that has less."""
    try:
        rows = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines() if ":" in line)
        total, available = (int(rows[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return Check("memory", NONE, "unknown: this system has no /proc/meminfo")
    limit, used = _number(cgroup / "memory.max"), _number(cgroup / "memory.current")
    where = ""
    if limit is not None and used is not None and limit < total:
        total, available, where = limit, min(available, max(0, limit - used)), " (limit of the container)"
    return Check("memory", OK, f"{_gigabytes(available)} of {_gigabytes(total)} available{where}")


def check_disk(folder: str) -> Check:
    """Returns the free space of a folder's disk."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError as error:
        return Check("disk", PROBLEM, f"{folder}: {error.strerror}")
    text = f"{folder}: {_gigabytes(usage.free)} of {_gigabytes(usage.total)} free"
    if usage.free < _LEAST_DISK:
        return Check("disk", PROBLEM, f"{text}. Free some space: `shardwright clean` removes old runs.")
    return Check("disk", OK, text)


def check_accelerator(environment: Mapping[str, str], devices: Path = Path("/dev")) -> Check:
    """Returns the accelerators whose device files are here, and whether the packages that use them are."""
    try:
        from shardwright.components.image_trainer.devices.placement import Machine

        machine = Machine.look(environment, devices)
    except ImportError as error:
        return Check("accelerator", NONE, f"not checked: {error.name} is not installed, so nothing can train here")
    except ConfigError as error:
        return Check("accelerator", PROBLEM, str(error))
    if machine.idle_tpu:
        fix = "Install 'shardwright[tpu]', or use the image for TPUs."
        return Check("accelerator", PROBLEM, f"a TPU that JAX cannot use: the package libtpu is not installed. {fix}")
    if machine.tpu:
        return Check("accelerator", OK, "a TPU, and libtpu is installed")
    if machine.gpu:
        users = "JAX and TensorFlow" if machine.jax_on_gpu else "TensorFlow; JAX has no plug-in for GPUs"
        return Check("accelerator", OK, f"a GPU, for {users}")
    virtual = f", with {machine.cpu_devices} virtual devices" if machine.cpu_devices else ""
    return Check("accelerator", NONE, f"no device file of a GPU or a TPU: the CPU trains{virtual}")


def check_credentials(
    provider: str, environment: Mapping[str, str], home: Path, token: Path = _KUBERNETES_TOKEN
) -> Check:
    """Returns whether credentials of a provider are here, and by which name; never what they are."""
    variables, file_variable, default = _CREDENTIALS[provider]
    for name in variables:
        if environment.get(name):
            return Check(provider, OK, f"credentials: {name} is set")
    named = environment.get(file_variable)
    if named:
        # KUBECONFIG may name several files.
        if any(Path(name).is_file() for name in named.split(os.pathsep) if name):
            return Check(provider, OK, f"credentials: the file of {file_variable} exists")
        return Check(provider, PROBLEM, f"{file_variable} names a file that does not exist. Correct it, or unset it.")
    folder_variable, file = _FOLDERS.get(provider, ("", ""))
    folder = environment.get(folder_variable) if folder_variable else None
    place = Path(folder, file) if folder else home / default
    if place.is_file():
        return Check(provider, OK, f"credentials: ~/{default} exists" if not folder else f"credentials: in {place}")
    if provider == "Kubernetes" and token.is_file():
        return Check(provider, OK, "credentials: the service account of this pod")
    return Check(provider, NONE, "no credentials in variables or files; a machine of the cloud has its own")


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
