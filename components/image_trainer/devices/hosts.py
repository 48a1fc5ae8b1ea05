"""The place of this process among the hosts of a training, detected from its environment.

A training over several hosts is the same program, started once on each host, with the same specification. These
variables are read, in this order:

| environment | who sets it |
|---|---|
| `SHARDWRIGHT_COORDINATOR` (`host:port` of host 0), `SHARDWRIGHT_HOSTS` (how many), `SHARDWRIGHT_HOST` (from 0; else
  `JOB_COMPLETION_INDEX`, which Kubernetes gives to every pod of an indexed Job or JobSet, after the hosts of the slices
  before `MEGASCALE_SLICE_ID`) | you, or a rendered JobSet |
| `CLUSTER_SPEC`, where it names several | Vertex AI, in every replica of a custom job; a TPU slice is one replica |
| `TPU_WORKER_HOSTNAMES`, `TPU_WORKER_ID` | GKE, in pods of a multi-host TPU slice |
| with them `MEGASCALE_NUM_SLICES`, `MEGASCALE_SLICE_ID`, `MEGASCALE_COORDINATOR_ADDRESS` | GKE, where several slices
  train together: host 0 of slice 0 is host 0 of all, the only one that publishes |

If none is set there is one host, unless a custom job expects more. Then the machine's metadata server is asked, which
knows the hosts of a slice outside a cluster. JAX does the same (`jax/_src/clusters/cloud_tpu_cluster.py`). Port 8476 is
JAX's own for its coordinator; the pods must reach each other on it. Every host reads the same dataset; only host 0
needs to write to the staging folder and to publish.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from shardwright.errors import ConfigError, UsageError

COORDINATOR, HOSTS, HOST = "SHARDWRIGHT_COORDINATOR", "SHARDWRIGHT_HOSTS", "SHARDWRIGHT_HOST"
_JOB_INDEX = "JOB_COMPLETION_INDEX"
_VERTEX = "CLUSTER_SPEC"
_TPU_NAMES, _TPU_INDEX = "TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"
SLICES, SLICE, FIRST_HOST = "MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID", "MEGASCALE_COORDINATOR_ADDRESS"
_PORT = 8476
# Google's libraries know the variable, too.
_METADATA, _METADATA_HOST = "GCE_METADATA_HOST", "metadata.google.internal"
# Elsewhere there is no such server, and the lookup of its name may take long.
_HAVE_METADATA = (_VERTEX, "CLOUD_ML_JOB_ID", _METADATA)
_METADATA_SECONDS = 5.0


@dataclass(frozen=True)
class HostPlace:
    """This host among all.

    Attributes:
        index: number of this host, from 0; host 0 publishes.
        count: number of hosts.
        coordinator: `host:port` where host 0 listens; empty with one host.
    """

    index: int = 0
    count: int = 1
    coordinator: str = ""

    @property
    def publishes(self) -> bool:
        """True on the host whose results are used."""
        return self.index == 0

    def to_environment(self) -> dict[str, str]:
        """Returns the variables that give a worker process the same place."""
        if self.count == 1:
            return {}
        return {COORDINATOR: self.coordinator, HOSTS: str(self.count), HOST: str(self.index)}


def this_host(environment: Mapping[str, str], expected: int | None = None) -> HostPlace:
    """Returns the place of this host.

    Args:
        environment: `os.environ`.
        expected: `trainer.hosts`; `None` accepts any number.

    Raises:
        UsageError: the variables contradict each other.
        ConfigError: the number of hosts differs from `trainer.hosts`.
    """
    found = _explicit(environment) or _vertex(environment) or _tpu(environment)
    if found is None and expected is not None and expected > 1:
        found = _from_metadata(environment)
    found = found or HostPlace()
    if not 0 <= found.index < found.count:
        raise UsageError(f"{HOST}: host {found.index} of {found.count}; count hosts from 0.")
    if expected is not None and found.count != expected:
        raise ConfigError(
            "trainer.hosts",
            f"{expected}, but this machine is one of {found.count}",
            f"Start {expected} processes with {COORDINATOR}, {HOSTS} and {HOST}, or change trainer.hosts.",
        )
    return found


def _explicit(environment: Mapping[str, str]) -> HostPlace | None:
    coordinator = environment.get(COORDINATOR, "")
    if not coordinator and HOSTS not in environment:
        return None
    count = _number(environment, HOSTS)
    if count == 1:
        return HostPlace()
    if not coordinator:
        raise UsageError(f"{COORDINATOR}: not set, and there are {count} hosts. Set it to host:port of host 0.")
    if HOST in environment:
        return HostPlace(_number(environment, HOST), count, _with_port(coordinator))
    # Each slice of a JobSet is a Job, which counts its pods from 0.
    slices = _number(environment, SLICES) if environment.get(SLICES) else 1
    before = _number(environment, SLICE) * count // slices if slices > 1 else 0
    return HostPlace(before + _number(environment, _JOB_INDEX), count, _with_port(coordinator))


def _vertex(environment: Mapping[str, str]) -> HostPlace | None:
    if _VERTEX not in environment:
        return None
    try:
        spec = json.loads(environment[_VERTEX])
        # Pool 0 has the chief, pool 1 the workers; reduction servers and evaluators would be pools 2 and 3.
        pools = sorted((name, list(hosts)) for name, hosts in spec["cluster"].items())
        names = [(pool, index, name) for pool, hosts in pools for index, name in enumerate(hosts)]
        task = (str(spec["task"]["type"]), int(spec["task"]["index"]))
        index = [(pool, number) for pool, number, _ in names].index(task)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{_VERTEX}: not readable ({error}). Set {COORDINATOR}, {HOSTS} and {HOST} instead.") from None
    if len(names) == 1:
        return None
    # The port of the list is that of TensorFlow's own servers.
    return HostPlace(index, len(names), _with_port(names[0][2].partition(":")[0]))


def _tpu(environment: Mapping[str, str]) -> HostPlace | None:
    names = [name.strip() for name in environment.get(_TPU_NAMES, "").split(",") if name.strip()]
    # GKE sets the number also for a single slice; slices of one host each have one name, or none.
    slices = _number(environment, SLICES) if environment.get(SLICES) else 1
    if slices * max(len(names), 1) < 2:
        return None
    if slices == 1:
        return HostPlace(_number(environment, _TPU_INDEX), len(names), _with_port(names[0]))
    first, number, hosts = environment.get(FIRST_HOST, ""), _number(environment, SLICE), max(len(names), 1)
    if not first or number >= slices:
        raise UsageError(
            f"{SLICE}: slice {number} of {slices}, and {FIRST_HOST} is {first!r}. Count slices from 0, and set the "
            f"address of host 0 of slice 0; or set {COORDINATOR}, {HOSTS} and {HOST}."
        )
    index = _number(environment, _TPU_INDEX) if hosts > 1 else 0
    if index >= hosts:
        raise UsageError(f"{_TPU_INDEX}: host {index} of the {hosts} in {_TPU_NAMES}; count hosts from 0.")
    # The port is that of the slices' own exchange.
    return HostPlace(number * hosts + index, slices * hosts, _with_port(first.partition(":")[0]))


def _from_metadata(environment: Mapping[str, str]) -> HostPlace | None:
    """Returns the place in a TPU slice of virtual machines; `None` without a metadata server or a slice."""
    if not any(name in environment for name in _HAVE_METADATA):
        return None
    server = environment.get(_METADATA, _METADATA_HOST)

    def attribute(name: str) -> str:
        connection = http.client.HTTPConnection(server, timeout=_METADATA_SECONDS)
        try:
            place = f"/computeMetadata/v1/instance/attributes/{name}"
            connection.request("GET", place, headers={"Metadata-Flavor": "Google"})
            answer = connection.getresponse()
            text = answer.read().decode("utf-8")
        finally:
            connection.close()
        return text if answer.status == HTTPStatus.OK else ""

    try:
        # Each is `…:…:ADDRESS`, in the order of the hosts' numbers.
        addresses = [row.split(":")[2] for row in attribute("worker-network-endpoints").split(",")]
        return HostPlace(int(attribute("agent-worker-number")), len(addresses), _with_port(addresses[0]))
    except (OSError, http.client.HTTPException, ValueError, IndexError):
        return None


def _with_port(name: str) -> str:
    return name if ":" in name else f"{name}:{_PORT}"


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    if not text.isdecimal() or not text.isascii():
        raise UsageError(f"{name}: {text!r} is not a number. Set {COORDINATOR}, {HOSTS} and {HOST} on every host.")
    return int(text)
