"""The placement of a training: accelerator, backend of Keras and devices of a batch, from one table.

| accelerator | hosts | backend | devices |
|---|---|---|---|
| cpu | 1 | TensorFlow | one |
| cpu | 1, `SHARDWRIGHT_CPU_DEVICES` set | JAX | so many virtual ones, to try the code path of a TPU |
| cpu | more | JAX, collectives by gloo | one a host, or as above |
| gpu | any | JAX if it can use GPUs | all |
| gpu | 1 | TensorFlow if JAX cannot | one |
| tpu | any | JAX | all |

On JAX a batch is split over all devices of all hosts and every device has all weights (data parallelism). TensorFlow
has no TPU wheel any more. On two cores of a CPU it is the faster one: `python -m benchmarks train` compares them.

The memory of a training step is estimated from the layers of the model.
"""

from __future__ import annotations

import importlib.util
import re
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.devices.hosts import this_host
from shardwright.components.image_trainer.keras_compat import all_layers
from shardwright.errors import ConfigError
from shardwright.running.processes import keep_tensors

ACCELERATORS = ("auto", "cpu", "gpu", "tpu")
CPU_DEVICES = "SHARDWRIGHT_CPU_DEVICES"
BACKEND = "KERAS_BACKEND"

_JAX, _TENSORFLOW = "jax", "tensorflow"
_VIRTUAL_FLAG = "--xla_force_host_platform_device_count"
# GPUs add in any order otherwise, and choose the quickest of several kernels by a measurement at the start.
_SAME_SUMS = "--xla_gpu_deterministic_ops"
_GPU_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin", "jax_rocm7_plugin", "jax_rocm60_plugin")
_GPU_FILE = re.compile(r"nvidia\d+|kfd")
_TPU_FILE = re.compile(r"accel\d+")
# The kernel names the groups of devices that a virtual machine passes on by numbers; a TPU from v5p on is one of them.
_VFIO_GROUP = re.compile(r"\d+")
_GOOGLE = "0x1ae0"
# The network card that Google's virtual machines have, of the same vendor.
_GOOGLE_NETWORK_CARD = "0x0042"
# Values of the forward pass are kept for the backward pass, where each has a gradient of its size for a while.
_FORWARD_AND_BACK = 2
# A weight, its gradient and two moments of Adam.
_COPIES_OF_WEIGHTS = 4
_FLOAT = 4


@dataclass(frozen=True)
class Machine:
    """The accelerators of this machine.

    Attributes:
        gpu: there is a GPU.
        tpu: there is a TPU, and JAX can use it.
        idle_tpu: there is a TPU, and the package that JAX needs for it is missing.
        jax_on_gpu: JAX can use GPUs.
        cpu_devices: requested virtual devices; 0: none.
    """

    gpu: bool = False
    tpu: bool = False
    jax_on_gpu: bool = False
    cpu_devices: int = 0
    idle_tpu: bool = False

    @staticmethod
    def look(
        environment: Mapping[str, str], devices: Path = Path("/dev"), pci: Path = Path("/sys/bus/pci/devices")
    ) -> Machine:
        """Looks for device files and plug-ins without starting JAX: a TPU belongs to the first process that starts it.

        Raises:
            ConfigError: `SHARDWRIGHT_CPU_DEVICES` is not a number.
        """
        names = [entry.name for entry in devices.iterdir()] if devices.is_dir() else []
        virtual = environment.get(CPU_DEVICES, "0")
        if not (virtual.isdecimal() and virtual.isascii()):
            raise ConfigError(CPU_DEVICES, f"{virtual!r} is not a number", "Set it to e.g. 8, or not at all.")
        on_tpu = any(_TPU_FILE.fullmatch(name) for name in names) or _tpu_by_vfio(devices / "vfio", pci)
        usable = importlib.util.find_spec("libtpu") is not None
        return Machine(
            gpu=any(_GPU_FILE.fullmatch(name) for name in names),
            tpu=on_tpu and usable,
            idle_tpu=on_tpu and not usable,
            jax_on_gpu=any(importlib.util.find_spec(name) is not None for name in _GPU_PLUGINS),
            cpu_devices=int(virtual),
        )


def _tpu_by_vfio(vfio: Path, pci: Path) -> bool:
    """Returns whether a device passed to this virtual machine is a TPU, by its PCI numbers."""
    if not vfio.is_dir() or not any(_VFIO_GROUP.fullmatch(entry.name) for entry in vfio.iterdir()):
        return False
    if not pci.is_dir():
        return True
    return any(
        _number(device / "vendor") == _GOOGLE and _number(device / "device") != _GOOGLE_NETWORK_CARD
        for device in pci.iterdir()
    )


def _number(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class Placement:
    """A row of the table.

    Attributes:
        accelerator: `cpu`, `gpu` or `tpu`.
        backend: `jax` or `tensorflow`.
        hosts: number of hosts.
        cpu_devices: virtual devices of this host; 0: none.
    """

    accelerator: str
    backend: str
    hosts: int = 1
    cpu_devices: int = 0

    def unused_backend(self, environment: Mapping[str, str]) -> str:
        """Returns a note if the environment asks for another backend of Keras than the one that trains; else empty."""
        asked = environment.get(BACKEND, self.backend)
        if asked in ("", self.backend):
            return ""
        way = f". Set {CPU_DEVICES}=1 to train on JAX" if asked == _JAX and self.accelerator == "cpu" else ""
        hosts = f"{self.hosts} host{'s' * (self.hosts > 1)}"
        return f"{BACKEND}={asked} is ignored: on {self.accelerator} with {hosts} Keras runs on {self.backend}{way}"

    def to_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Returns variables to add to a worker's environment, before it imports TensorFlow, Keras and JAX."""
        variables = {BACKEND: self.backend, **keep_tensors(environment)}
        if self.backend == _JAX:
            # All named platforms must exist, and cuda and rocm never both do: JAX detects the kind of GPU.
            variables["JAX_PLATFORMS"] = {"gpu": "", "tpu": "tpu,cpu"}.get(self.accelerator, "cpu")
            flags = environment.get("XLA_FLAGS", "").split()
            if self.cpu_devices:
                flags = [f for f in flags if not f.startswith(_VIRTUAL_FLAG)] + [f"{_VIRTUAL_FLAG}={self.cpu_devices}"]
            if self.accelerator == "gpu" and not any(f.startswith(_SAME_SUMS) for f in flags):
                flags.append(f"{_SAME_SUMS}=true")
            if flags:
                variables["XLA_FLAGS"] = " ".join(flags)
        elif self.accelerator == "cpu":
            # An unrequested GPU would give other weights than the next machine.
            variables["CUDA_VISIBLE_DEVICES"] = "-1"
        return variables


def choose_placement(accelerator: str, hosts: int, machine: Machine) -> Placement:
    """Chooses accelerator and backend.

    Args:
        accelerator: `trainer.accelerator`.
        hosts: `trainer.hosts`.
        machine: the accelerators of this machine.

    Raises:
        ConfigError: this machine has no such accelerator, one that stays idle, or one that so many hosts cannot use.
    """
    chosen = accelerator
    if machine.idle_tpu and accelerator in ("auto", "tpu"):
        raise ConfigError(
            "trainer.accelerator",
            f"{accelerator!r}, and this machine has a TPU that JAX cannot use: the package libtpu is not installed",
            "Use an image built with --build-arg ACCELERATOR=tpu, install 'shardwright[tpu]', or set it to cpu.",
        )
    if accelerator == "auto":
        chosen = "tpu" if machine.tpu else "gpu" if machine.gpu else "cpu"
    if chosen == "cpu":
        plain = hosts == 1 and not machine.cpu_devices
        return Placement(chosen, _TENSORFLOW if plain else _JAX, hosts, machine.cpu_devices)
    if not {"gpu": machine.gpu, "tpu": machine.tpu}[chosen]:
        what = {"gpu": "/dev/nvidia0", "tpu": "/dev/accel0, no TPU in /dev/vfio"}[chosen]
        raise ConfigError(
            "trainer.accelerator", f"{chosen!r}, but this machine has none (no {what})", "Use auto, or another machine."
        )
    if chosen == "gpu" and not machine.jax_on_gpu:
        if hosts > 1:
            raise ConfigError(
                "trainer.hosts", f"{hosts} hosts with GPUs need JAX that can use them", "Install jax[cuda12], or use 1."
            )
        return Placement(chosen, _TENSORFLOW, hosts)
    return Placement(chosen, _JAX, hosts)


def check_machine(accelerator: str, hosts: int, batch_size: int, environment: Mapping[str, str]) -> None:
    """Checks before the run what the Trainer would reject after all earlier steps.

    Args:
        accelerator: `trainer.accelerator`.
        hosts: `trainer.hosts`.
        batch_size: `trainer.batch_size`.
        environment: `os.environ`.

    Raises:
        ConfigError: this machine has no such accelerator, is not one of so many hosts, or cannot share such a batch.
        UsageError: the variables that name the hosts contradict each other.
    """
    host = this_host(environment, hosts)
    placement = choose_placement(accelerator, host.count, Machine.look(environment))
    if placement.cpu_devices:
        devices = placement.cpu_devices * host.count
        device_batch(batch_size, max(batch_size, devices), devices)


def device_batch(batch_size: int, records: int, devices: int) -> int:
    """Returns the images of a batch over all devices: the requested number, or all images there are.

    Args:
        batch_size: `trainer.batch_size`.
        records: images of the train split.
        devices: devices of all hosts.

    Raises:
        ConfigError: it cannot be split into equal parts, one per device.
    """
    if batch_size % devices:
        near = sorted({max(batch_size // devices, 1) * devices, -(-batch_size // devices) * devices})
        raise ConfigError(
            "trainer.batch_size",
            f"{batch_size} images cannot be split over {devices} devices equally",
            f"Use {' or '.join(map(str, near))}.",
        )
    if records < devices:
        raise ConfigError(
            "trainer.accelerator",
            f"{devices} devices, and the train split has {records} images",
            "Use fewer devices, or more images.",
        )
    return min(batch_size, records - records % devices)


def step_bytes(model: Any, batch_size: int, *, itemsize: int = _FLOAT, kept: int = 0) -> int:
    """Estimates the bytes of a step, without the libraries' own memory.

    Args:
        model: a built Keras model of the functional kind.
        batch_size: images of one device.
        itemsize: bytes of a value between layers, 2 for bfloat16.
        kept: copies of the weights that the optimizer keeps besides its moments: a running mean, accumulated gradients.
    """
    values = sum(_values(layer) for layer in all_layers(model))
    copies = model.count_params() * _FLOAT * (_COPIES_OF_WEIGHTS + kept)
    return values * batch_size * itemsize * _FORWARD_AND_BACK + copies


def process_memory() -> int:
    """Returns the most bytes that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def out_of_memory(error: BaseException) -> bool:
    """Returns whether an error of TensorFlow, JAX or Python means that memory is exhausted."""
    known = isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError"
    return known or "RESOURCE_EXHAUSTED" in str(error) or "Out of memory" in str(error)


def readable(size: int) -> str:
    """Formats a size for people, e.g. `1.4 GB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _values(layer: Any) -> int:
    """Returns how many numbers a layer computes for one image."""
    try:
        outputs = layer.output
    except AttributeError:
        return 0  # A layer inside another one, never called directly.
    shapes = [tensor.shape for tensor in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
    return sum(prod(side or 1 for side in shape[1:]) for shape in shapes)
