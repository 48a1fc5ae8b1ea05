"""Machine types of Google Cloud that train: which there are, and what accelerators they come with."""

from __future__ import annotations

import dataclasses
import difflib
import re

from shardwright.config import Config
from shardwright.errors import ConfigError
from shardwright.pipelines import tpu

# Sources: cloud.google.com/vertex-ai/docs/training/configure-compute (machine types and GPUs),
# cloud.google.com/compute/docs/gpus (which machines have which).
_FAMILIES = {
    "e2": ("standard", "highmem", "highcpu"),
    "n1": ("standard", "highmem", "highcpu"),
    "n2": ("standard", "highmem", "highcpu"),
    "n2d": ("standard", "highmem", "highcpu"),
    "c2": ("standard",),
    "c2d": ("standard", "highmem", "highcpu"),
    "c3": ("standard", "highmem", "highcpu"),
}
_CORES = (2, 4, 8, 16, 22, 30, 32, 44, 48, 56, 60, 64, 80, 88, 96, 112, 128, 176, 224)
_WITH_GPUS = {
    "g2-standard-4": ("NVIDIA_L4", 1),
    "g2-standard-8": ("NVIDIA_L4", 1),
    "g2-standard-12": ("NVIDIA_L4", 1),
    "g2-standard-16": ("NVIDIA_L4", 1),
    "g2-standard-24": ("NVIDIA_L4", 2),
    "g2-standard-32": ("NVIDIA_L4", 1),
    "g2-standard-48": ("NVIDIA_L4", 4),
    "g2-standard-96": ("NVIDIA_L4", 8),
    "a2-highgpu-1g": ("NVIDIA_TESLA_A100", 1),
    "a2-highgpu-2g": ("NVIDIA_TESLA_A100", 2),
    "a2-highgpu-4g": ("NVIDIA_TESLA_A100", 4),
    "a2-highgpu-8g": ("NVIDIA_TESLA_A100", 8),
    "a2-megagpu-16g": ("NVIDIA_TESLA_A100", 16),
    "a2-ultragpu-1g": ("NVIDIA_A100_80GB", 1),
    "a2-ultragpu-2g": ("NVIDIA_A100_80GB", 2),
    "a2-ultragpu-4g": ("NVIDIA_A100_80GB", 4),
    "a2-ultragpu-8g": ("NVIDIA_A100_80GB", 8),
    "a3-highgpu-8g": ("NVIDIA_H100_80GB", 8),
    "a3-megagpu-8g": ("NVIDIA_H100_MEGA_80GB", 8),
    "a3-ultragpu-8g": ("NVIDIA_H200_141GB", 8),
}
# The one family that GPUs are added to.
_ADDED_TO = "n1"
_ADDABLE = ("NVIDIA_TESLA_P4", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100")


def check_machine(path: str, machine: str, gpu: str | None, gpus: int) -> None:
    """Checks that a machine type exists and comes with the GPUs.

    Args:
        path: YAML path of the section with `machine`, `gpu` and `gpus`.
        machine: a machine type without a TPU.
        gpu: kind of its accelerators.
        gpus: how many.

    Raises:
        ConfigError: it does not.
    """
    if machine in _WITH_GPUS:
        kind, count = _WITH_GPUS[machine]
        if (gpu, gpus) != (kind, count):
            what = f"{machine} comes with {count} {kind}, not {gpus} {gpu}" if gpu else f"{machine} has {count} {kind}"
            raise ConfigError(f"{path}.gpu", what, f"Write gpu: {kind}, gpus: {count}.")
        return
    match = re.fullmatch(r"([a-z0-9]+)-([a-z]+)-([0-9]+)", machine)
    if match is None or match[2] not in _FAMILIES.get(match[1], ()) or int(match[3]) not in _CORES:
        known = [*_WITH_GPUS, *tpu.MACHINES, *(f"{f}-{k}-8" for f, kinds in _FAMILIES.items() for k in kinds)]
        close = difflib.get_close_matches(machine, known, n=1)
        fix = f"Did you mean {close[0]!r}?" if close else "Use e.g. n2-standard-8, g2-standard-8 or ct5lp-hightpu-4t."
        raise ConfigError(f"{path}.machine", f"{machine!r} is not a machine type", fix)
    if gpu is None:
        return
    if match[1] != _ADDED_TO:
        raise ConfigError(f"{path}.gpu", f"{machine} takes no {gpu}", "Use an n1, g2, a2 or a3 machine.")
    if gpu not in _ADDABLE:
        raise ConfigError(f"{path}.gpu", f"{machine} takes no {gpu}", f"Use one of: {', '.join(_ADDABLE)}.")
    if gpus not in (1, 2, 4, 8):
        raise ConfigError(f"{path}.gpus", f"{gpus} is not a possible number of GPUs", "Use 1, 2, 4 or 8.")


def trainer_slice(path: str, machine: str, topology: str | None, accelerator: str) -> tpu.TpuSlice:
    """Returns the TPU slice of a trainer.

    Args:
        path: YAML path of the section with `machine` and `topology`.
        machine: a TPU machine type.
        topology: of its slice.
        accelerator: `trainer.accelerator`.

    Raises:
        ConfigError: there is no such slice, or the trainer does not use it.
    """
    if topology is None:
        known = tpu.MACHINES[machine].topologies if machine in tpu.MACHINES else ("2x2",)
        raise ConfigError(f"{path}.topology", f"missing for {machine}", f"Use one of: {', '.join(known)}.")
    found = tpu.TpuSlice(machine, topology, path)
    if accelerator not in ("auto", "tpu"):
        raise ConfigError(
            "trainer.accelerator",
            f"{accelerator!r}, and {path}.machine is {machine}",
            "Set trainer.accelerator to tpu.",
        )
    return found


def with_accelerator(config: Config, path: str, tpu_machine: bool, gpu: str | None) -> Config:
    """Returns a configuration whose trainer asks for the accelerator of its machine, not for `auto`.

    Otherwise a node without drivers or packages would train on its CPU for days, and nobody would notice.

    Args:
        config: the configuration.
        path: YAML path of the section that names the machine.
        tpu_machine: it names a TPU.
        gpu: the GPU that it names.

    Raises:
        ConfigError: the trainer asks for another accelerator than the machine has.
    """
    asked = config.trainer.accelerator
    named = "tpu" if tpu_machine else "gpu" if gpu is not None else None
    if named is None and asked in ("gpu", "tpu"):
        fix = f"Name its machine in {path}, or set trainer.accelerator to auto."
        raise ConfigError("trainer.accelerator", f"{asked!r}, and {path} does not name a {asked.upper()}", fix)
    if named is None:
        return config
    if asked not in ("auto", named):
        raise ConfigError(
            "trainer.accelerator",
            f"{asked!r}, and {path} names a {named.upper()}",
            f"Set trainer.accelerator to {named}.",
        )
    return dataclasses.replace(config, trainer=dataclasses.replace(config.trainer, accelerator=named))


def check_hosts(path: str, found: tpu.TpuSlice, hosts: int, slices: int = 1) -> None:
    """Checks that `trainer.hosts` is the number of hosts of all slices.

    Args:
        path: YAML path of the section with `machine` and `topology`.
        found: the slice.
        hosts: `trainer.hosts`.
        slices: how many slices train together.

    Raises:
        ConfigError: it is another number, or several slices have one host each.
    """
    if slices > 1 and found.hosts == 1:
        # cloud.google.com/kubernetes-engine/docs/how-to/tpu-multislice
        what = f"{slices}, and a slice {found.topology} of {found.machine} has one host: GKE joins slices of several"
        raise ConfigError(f"{path}.slices", what, f"Use a larger topology, or remove {path}.slices.")
    if hosts != slices * found.hosts:
        which = f"is a slice {found.topology} of {found.machine}, which has"
        if slices > 1:
            which = f"has {slices} slices {found.topology} of {found.machine}, together"
        what = f"{hosts}, and {path} {which} {slices * found.hosts}"
        raise ConfigError("trainer.hosts", what, f"Set trainer.hosts to {slices * found.hosts}.")
