"""TPU slices as Google Kubernetes Engine and Vertex AI name them: one table, checked before anyone rents one.

A slice is told by three words that must fit each other: the generation, the machine of its nodes and the topology.
`2x4` alone does not do: with 8-chip machines it is one host, with 4-chip machines two. Sources: the accelerator tables
of AI-Hypercomputer/xpk (src/xpk/core/system_characteristics.py) and cloud.google.com/tpu/docs (v5e, v6e, v5p, supported
versions).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from math import prod

from shardwright.errors import ConfigError

# What a pod asks for, and what a node of the pool is marked with.
RESOURCE = "google.com/tpu"
ACCELERATOR_SELECTOR = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY_SELECTOR = "cloud.google.com/gke-tpu-topology"

_FLAT = ("2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_CUBES = ("2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8")


@dataclass(frozen=True)
class _Machine:
    """A machine type: chips of one virtual machine, and the topologies a slice of such machines may have."""

    generation: str
    chips: int
    topologies: tuple[str, ...]


_MACHINES = {
    "ct5lp-hightpu-1t": _Machine("v5e", 1, ("1x1",)),
    "ct5lp-hightpu-4t": _Machine("v5e", 4, ("2x2", *_FLAT)),
    "ct5lp-hightpu-8t": _Machine("v5e", 8, ("2x4",)),
    "ct6e-standard-1t": _Machine("v6e", 1, ("1x1",)),
    "ct6e-standard-4t": _Machine("v6e", 4, ("2x2", *_FLAT)),
    "ct6e-standard-8t": _Machine("v6e", 8, ("2x4",)),
    "ct5p-hightpu-4t": _Machine("v5p", 4, ("2x2x1", *_CUBES)),
}
_LABELS = {"v5e": "tpu-v5-lite-podslice", "v6e": "tpu-v6e-slice", "v5p": "tpu-v5p-slice"}


MACHINES = tuple(_MACHINES)


def topologies(machine: str) -> tuple[str, ...]:
    """The topologies that slices of a machine type of `MACHINES` may have."""
    return _MACHINES[machine].topologies


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
        if self.machine not in _MACHINES:
            close = difflib.get_close_matches(self.machine, _MACHINES, n=1)
            known = f"Did you mean {close[0]!r}?" if close else f"Use one of: {', '.join(_MACHINES)}."
            raise ConfigError(f"{self.path}.machine", f"{self.machine!r} is no TPU machine type", known)
        allowed = _MACHINES[self.machine].topologies
        if self.topology not in allowed:
            raise ConfigError(
                f"{self.path}.topology",
                f"{self.topology!r} is no topology of {self.machine}, whose machines have {self.chips_per_host} chips",
                f"Use {', '.join(allowed)}{self._other_machine()}.",
            )

    @staticmethod
    def parse(text: str, *, hosts: int | None = None, path: str = "--tpu") -> TpuSlice:
        """The slice that people write as `v5e-2x4`.

        Args:
            text: generation and topology.
            hosts: number of hosts, where more than one machine type makes such a slice; by default the fewest.
            path: what errors call it.

        Raises:
            ConfigError: there is no such slice, or none with so many hosts.
        """
        generation, _, topology = text.partition("-")
        machines = [n for n, m in _MACHINES.items() if m.generation == generation and topology in m.topologies]
        slices = sorted((TpuSlice(name, topology, path) for name in machines), key=lambda found: found.hosts)
        if not slices:
            known = ", ".join(
                f"{generation}-{topology}"
                for generation in _LABELS
                for topology in dict.fromkeys(
                    t for machine in _MACHINES.values() if machine.generation == generation for t in machine.topologies
                )
            )
            raise ConfigError(path, f"{text!r} is no TPU slice", f"Use one of: {known}.")
        fitting = [found for found in slices if hosts in (None, found.hosts)]
        if not fitting:
            there = " or ".join(str(found.hosts) for found in slices)
            raise ConfigError(path, f"{text!r} has {there} hosts, not {hosts}", "Change --hosts or the topology.")
        return fitting[0]

    @property
    def generation(self) -> str:
        """`v5e`, `v6e` or `v5p`."""
        return _MACHINES[self.machine].generation

    @property
    def chips_per_host(self) -> int:
        """Chips of one machine; a pod asks for all of them."""
        return _MACHINES[self.machine].chips

    @property
    def chips(self) -> int:
        """Chips of the whole slice."""
        return prod(int(side) for side in self.topology.split("x"))

    @property
    def hosts(self) -> int:
        """Machines of the slice: so many pods, and so many hosts that share the data."""
        return self.chips // self.chips_per_host

    @property
    def node_selector(self) -> dict[str, str]:
        """The labels by which GKE finds the node pool."""
        return {ACCELERATOR_SELECTOR: _LABELS[self.generation], TOPOLOGY_SELECTOR: self.topology}

    def _other_machine(self) -> str:
        others = [
            name
            for name, machine in _MACHINES.items()
            if self.topology in machine.topologies and machine.generation == _MACHINES[self.machine].generation
        ]
        return f", or machine {others[0]} for {self.topology}" if others else ""
