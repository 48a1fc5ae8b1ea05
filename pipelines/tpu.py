"""TPU slices as Google Kubernetes Engine and Vertex AI name them: one table, checked before you rent one.

A generation, a machine type and a topology name a slice, and they must fit each other. The topology `2x4` alone is
ambiguous: with 8-chip machines it has one host, with 4-chip machines two. Each row of the table names its sources.
"""

from __future__ import annotations

import difflib
import itertools
from dataclasses import dataclass
from math import prod

from shardwright.errors import ConfigError

# The resource that a pod requests, and the labels of the pool's nodes.
RESOURCE = "google.com/tpu"
ACCELERATOR_SELECTOR = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY_SELECTOR = "cloud.google.com/gke-tpu-topology"
# A message shows so many topologies of a long list.
_SHOWN = 12
# Cubes along one side.
_LONGEST = 64


def _cubes(most: int) -> tuple[str, ...]:
    """Returns the topologies of chips in three dimensions, from small to large.

    Below a cube of 4x4x4 chips there are four. Larger slices consist of whole cubes, and their sides do not decrease.
    Source: AI-Hypercomputer/xpk at 367c838, src/xpk/core/system_characteristics.py:207, `generate_tpu_topologies`.

    Args:
        most: number of cubes of the largest slice.
    """
    sides = itertools.combinations_with_replacement(range(1, min(most, _LONGEST) + 1), 3)
    larger = sorted((side for side in sides if prod(side) <= most), key=lambda side: (prod(side), side))
    return ("2x2x1", "2x2x2", "2x2x4", "2x4x4", *("x".join(str(4 * n) for n in side) for side in larger))


_FLAT = ("2x4", "4x4", "4x8", "8x8", "8x16", "16x16")


@dataclass(frozen=True)
class _Generation:
    """A generation of TPUs.

    Attributes:
        label: value of the node label `cloud.google.com/gke-tpu-accelerator`.
        devices: JAX devices of one chip. Both cores of a v5p chip are one device, those of a TPU7x are two.
        vertex: whether Vertex AI trains on it.
    """

    label: str
    devices: int
    vertex: bool


@dataclass(frozen=True)
class Machine:
    """A machine type.

    Attributes:
        generation: key of `_GENERATIONS`.
        chips: of one virtual machine.
        topologies: which slices of such machines may have.
        processors: virtual processors of one machine: the smallest number of a source.
        memory: GiB of one machine: the smallest number of a source.
        sources: keys of `SOURCES`, some with `:LINE`, of the whole row.
    """

    generation: str
    chips: int
    topologies: tuple[str, ...]
    processors: int
    memory: int
    sources: tuple[str, ...]

    @property
    def on_vertex(self) -> bool:
        """True if Vertex AI trains on it."""
        return _GENERATIONS[self.generation].vertex


# A source of a row of the table -> where it is.
SOURCES = {
    "GKE": "GoogleCloudPlatform/cluster-autoscaler at 7d25050, "
    "pkg/cloudprovider/gke/machinetypes/deprecated_machine_types_config.go",
    "XPK": "AI-Hypercomputer/xpk at 367c838, src/xpk/core/system_characteristics.py",
    "SkyPilot": "skypilot-org/skypilot, sky/provision/gcp/mig_utils.py, _COMPUTE_TPU_TOPOLOGY_TO_VM_COUNT",
    "machines": "docs.cloud.google.com/compute/docs/tpus/tpu-machines, of 2026-08-26",
    "TPU": "docs.cloud.google.com/tpu/docs, the page of the generation",
    "Vertex": "cloud.google.com/vertex-ai/docs/training/training-with-tpu-vm",
}
_GENERATIONS = {
    "v5e": _Generation("tpu-v5-lite-podslice", 1, vertex=True),
    "v6e": _Generation("tpu-v6e-slice", 1, vertex=True),
    "v5p": _Generation("tpu-v5p-slice", 1, vertex=False),
    "tpu7x": _Generation("tpu7x", 2, vertex=False),
}
MACHINES = {
    "ct5lp-hightpu-1t": Machine("v5e", 1, ("1x1",), 24, 48, ("GKE:1503", "TPU", "Vertex")),
    "ct5lp-hightpu-4t": Machine("v5e", 4, ("2x2", *_FLAT), 112, 192, ("GKE:1502", "XPK:826", "TPU", "Vertex")),
    "ct5lp-hightpu-8t": Machine("v5e", 8, ("2x4",), 224, 384, ("GKE:1501", "TPU", "Vertex")),
    "ct6e-standard-1t": Machine("v6e", 1, ("1x1",), 44, 176, ("GKE:1571", "XPK:697", "machines", "TPU", "Vertex")),
    "ct6e-standard-4t": Machine(
        "v6e", 4, ("2x2", *_FLAT), 180, 720, ("GKE:1573", "XPK:707", "SkyPilot", "machines", "TPU", "Vertex")
    ),
    "ct6e-standard-8t": Machine("v6e", 8, ("2x4",), 180, 1440, ("GKE:1575", "SkyPilot", "machines", "TPU", "Vertex")),
    "ct5p-hightpu-4t": Machine("v5p", 4, _cubes(140), 208, 448, ("GKE:1535", "XPK:718", "machines", "TPU")),
    "tpu7x-standard-1t": Machine("tpu7x", 1, ("1x1x1",), 56, 248, ("GKE:2766", "XPK:573")),
    "tpu7x-standard-4t": Machine(
        "tpu7x", 4, _cubes(144), 224, 960, ("GKE:2768", "XPK:584", "SkyPilot", "machines", "TPU")
    ),
}


@dataclass(frozen=True)
class TpuSlice:
    """A slice that can be rented.

    Attributes:
        machine: machine type of its nodes.
        topology: chips along each axis, `2x4`.
        path: YAML path that errors name.

    Raises:
        ConfigError: no such machine, or none of its slices has that topology.
    """

    machine: str
    topology: str
    path: str = "trainer.tpu"

    def __post_init__(self) -> None:
        if self.machine not in MACHINES:
            close = difflib.get_close_matches(self.machine, MACHINES, n=1)
            known = f"Did you mean {close[0]!r}?" if close else f"Use one of: {', '.join(MACHINES)}."
            raise ConfigError(f"{self.path}.machine", f"{self.machine!r} is not a TPU machine type", known)
        allowed = MACHINES[self.machine].topologies
        if self.topology not in allowed:
            others = sorted(_machines_of(self.generation, self.topology))
            other = f", or machine {others[0]} for {self.topology}" if others else ""
            raise ConfigError(
                f"{self.path}.topology",
                f"{self.topology!r} is not a topology of {self.machine}, whose machines have {self.chips_per_host} "
                "chips",
                f"Use {_listed(allowed)}{other}.",
            )

    @staticmethod
    def parse(text: str, *, hosts: int | None = None, path: str = "--tpu") -> TpuSlice:
        """Returns the slice that is written `v5e-2x4`.

        Args:
            text: generation and topology.
            hosts: number of hosts, if several machine types make such a slice; by default the fewest.
            path: the slice's name in errors.

        Raises:
            ConfigError: there is no such slice, or none with that number of hosts.
        """
        generation, _, topology = text.partition("-")
        slices = [TpuSlice(machine, topology, path) for machine in _machines_of(generation, topology)]
        if not slices:
            known = "; ".join(f"{name}- with {_listed(_topologies_of(name))}" for name in _GENERATIONS)
            raise ConfigError(path, f"{text!r} is not a TPU slice", f"Use {known}.")
        fitting = [found for found in slices if hosts in (None, found.hosts)]
        if not fitting:
            possible = " or ".join(map(str, slices[0].host_counts))
            raise ConfigError(path, f"{text!r} has {possible} hosts, not {hosts}", "Change --hosts or the topology.")
        return fitting[0]

    @property
    def name(self) -> str:
        """Generation and topology, `v5e-2x4`."""
        return f"{self.generation}-{self.topology}"

    @property
    def generation(self) -> str:
        """`v5e`, `v6e`, `v5p` or `tpu7x`."""
        return MACHINES[self.machine].generation

    @property
    def chips_per_host(self) -> int:
        """Chips of one machine; a pod requests all of them."""
        return MACHINES[self.machine].chips

    @property
    def processors_per_host(self) -> int:
        """Virtual processors of one machine."""
        return MACHINES[self.machine].processors

    @property
    def memory_per_host(self) -> int:
        """Bytes of memory of one machine."""
        return MACHINES[self.machine].memory << 30

    @property
    def chips(self) -> int:
        """Chips of the whole slice."""
        return prod(int(side) for side in self.topology.split("x"))

    @property
    def devices(self) -> int:
        """JAX devices of the whole slice, among which a batch is divided."""
        return self.chips * _GENERATIONS[self.generation].devices

    def check_on_vertex(self) -> None:
        """Checks that Vertex AI trains on this generation.

        Raises:
            ConfigError: it does not, by its documentation.
        """
        if not MACHINES[self.machine].on_vertex:
            others = " and ".join(name for name, one in _GENERATIONS.items() if one.vertex)
            raise ConfigError(
                f"{self.path}.machine",
                f"{self.machine!r} is a TPU {self.generation}, and Vertex AI trains on {others} only "
                f"({SOURCES['Vertex']})",
                "Use one of these, or Kubeflow Pipelines on GKE.",
            )

    @property
    def hosts(self) -> int:
        """Machines of the slice; each runs one pod and loads its part of the data."""
        return self.chips // self.chips_per_host

    @property
    def host_counts(self) -> tuple[int, ...]:
        """Possible numbers of machines for this generation and topology: one per machine type, from few to many."""
        return tuple(self.chips // MACHINES[name].chips for name in _machines_of(self.generation, self.topology))

    @property
    def node_selector(self) -> dict[str, str]:
        """The labels by which GKE finds the node pool."""
        return {ACCELERATOR_SELECTOR: _GENERATIONS[self.generation].label, TOPOLOGY_SELECTOR: self.topology}


def _listed(topologies: tuple[str, ...]) -> str:
    shown = ", ".join(topologies[:_SHOWN])
    return shown if len(topologies) <= _SHOWN else f"{shown} or larger, up to {topologies[-1]}"


def _topologies_of(generation: str) -> tuple[str, ...]:
    machines = (one for one in MACHINES.values() if one.generation == generation)
    return tuple(dict.fromkeys(topology for one in machines for topology in one.topologies))


def _machines_of(generation: str, topology: str) -> list[str]:
    """Returns the machine types of slices of a topology, those with the most chips first."""
    found = [name for name, one in MACHINES.items() if one.generation == generation and topology in one.topologies]
    return sorted(found, key=lambda name: -MACHINES[name].chips)
