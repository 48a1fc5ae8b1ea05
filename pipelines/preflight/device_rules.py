"""Rules on the slice, its hosts, and how a batch is divided among its chips."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm

from shardwright.dataset.host_sharding import share_sizes
from shardwright.errors import ConfigError
from shardwright.pipelines.cloud.machines import check_hosts, trainer_slice
from shardwright.pipelines.preflight.rule_report import Problem, problem_if
from shardwright.pipelines.preflight.run_facts import TRAIN, Facts

# A TPU computes in tiles of 8 x 128, and a chip's part of the batch fills the side of 8: cloud.google.com/tpu/docs,
# performance guide.
LANES = 8
# With fewer steps per epoch, the batch is a large part of the data.
_FEW_STEPS = 10


def hosts_fit_slice(facts: Facts) -> Iterator[Problem]:
    """Checks that the slice exists with this number of hosts."""
    possible = facts.host_counts
    return problem_if(
        facts.hosts not in possible,
        "--hosts",
        f"{facts.name} has {' or '.join(map(str, possible))} hosts, not {facts.hosts}",
        f"Use --hosts {possible[0]}, or another topology.",
    )


def node_pools(facts: Facts) -> Iterator[Problem]:
    """Checks that Kubernetes can join the slices, and that each of its node pools is such a slice."""
    if facts.slices == 1:
        return
    path, trainer = "kubeflow.trainer", facts.config.kubeflow.trainer
    try:
        asked = trainer_slice(path, str(trainer.machine), trainer.topology, "auto")
        check_hosts(path, asked, facts.slices * asked.hosts, facts.slices)
    except ConfigError as error:
        yield Problem(error.path, error.problem, error.fix)
        return
    yield from problem_if(
        asked.name != facts.slice.name,
        path,
        f"its {facts.slices} node pools are slices {asked.name}, and {facts.slice.name} is to be checked",
        f"Use --tpu {asked.name}, or change {path}.",
    )


def trainer_hosts(facts: Facts) -> Iterator[Problem]:
    """Checks that the configuration trains on the requested number of hosts."""
    hosts = facts.config.trainer.hosts
    return problem_if(
        hosts != facts.hosts,
        "trainer.hosts",
        f"{hosts}, and {facts.hosts} hosts are requested",
        f"Set trainer.hosts: {facts.hosts}, or --hosts {hosts}.",
    )


def accelerator(facts: Facts) -> Iterator[Problem]:
    """Checks that the configuration trains on the TPU."""
    chosen = facts.config.trainer.accelerator
    return problem_if(
        chosen not in ("auto", "tpu"),
        "trainer.accelerator",
        f"{chosen!r}, so the chips of {facts.name} would idle",
        "Set trainer.accelerator: tpu.",
    )


def batch_shared_by_chips(facts: Facts) -> Iterator[Problem]:
    """Checks that every device gets the same number of images."""
    return _shared_equally(facts, facts.devices, f"the {_devices(facts)} of {facts.name}")


def _devices(facts: Facts) -> str:
    """Returns `8 chips`, or `8 devices (4 chips)` where a chip is two devices of JAX."""
    chips, devices = facts.chips, facts.devices
    return f"{chips} chips" if devices == chips else f"{devices} devices ({chips} chips)"


def batch_shared_by_hosts(facts: Facts) -> Iterator[Problem]:
    """Checks that every host loads the same number of images."""
    return _shared_equally(facts, facts.hosts, f"{facts.hosts} hosts")


def _shared_equally(facts: Facts, count: int, by: str) -> Iterator[Problem]:
    batch = facts.global_batch
    return problem_if(
        batch % count != 0,
        "trainer.batch_size",
        f"{batch} images cannot be shared equally by {by}",
        f"Use a multiple of {count}: {_multiples(batch, count)}.",
    )


def lanes_filled(facts: Facts) -> Iterator[Problem]:
    """Checks that a device's part of the batch fills its lanes."""
    batch, step = facts.global_batch, LANES * facts.devices
    one = "chip" if facts.devices == facts.chips else "device"
    return problem_if(
        batch % step != 0,
        "trainer.batch_size",
        f"{batch} images are {batch / facts.devices:g} per {one}, and a {one} computes {LANES} at once",
        f"Use a multiple of {LANES} x {facts.devices} = {step}: {_multiples(batch, step)}.",
    )


def steps_in_an_epoch(facts: Facts) -> Iterator[Problem]:
    """Checks that there is at least one whole step in an epoch, on every host."""
    split = facts.split(TRAIN)
    if split is None or not split.total:
        return  # `splits-present` reports it.
    share = -(-facts.global_batch // facts.hosts)
    least = min(host_records(facts, TRAIN))
    yield from problem_if(
        least < share,
        "trainer.batch_size",
        f"a host takes {share} images per step, and one of them has only {least} of the {split.total} in {TRAIN}",
        "Use a smaller batch, fewer hosts, or more images.",
    )


def batch_is_a_small_part(facts: Facts) -> Iterator[Problem]:
    """Checks that the batch of all hosts together is a small part of an epoch."""
    split = facts.split(TRAIN)
    if split is None or facts.global_batch > split.total:
        return  # `splits-present` and `steps-per-epoch` report it.
    steps = split.total // facts.global_batch
    yield from problem_if(
        steps < _FEW_STEPS,
        "trainer.batch_size",
        f"{facts.global_batch} images per step on all hosts make {steps} steps per epoch of {split.total} images",
        f"{_smaller_batch(facts, split.total // _FEW_STEPS)}: few large steps learn less per epoch.",
    )


def _smaller_batch(facts: Facts, most: int) -> str:
    """Returns the advice for a batch of at most a number of images, which the slice can still share equally."""
    shared = lcm(facts.devices, facts.hosts)
    if most < shared:
        return f"The {_devices(facts)} need a multiple of {shared}. Use a smaller slice or more images"
    full = LANES * facts.devices
    step = full if most >= full else shared
    return f"Use at most {most // step * step}, a multiple of {step}, or a smaller slice"


def host_records(facts: Facts, name: str) -> list[int]:
    """Returns how many records of a split each host reads, for the configured order."""
    split = facts.split(name)
    assert split is not None
    if facts.config.loader.order == "exact":
        # Hosts take slices of every batch, independent of shards.
        return [split.total // facts.hosts] * facts.hosts
    return share_sizes(split.records, facts.hosts)


def precision(facts: Facts) -> Iterator[Problem]:
    """Checks that the model computes in the type that a TPU is made for."""
    chosen = facts.config.trainer.precision
    return problem_if(
        chosen != "bfloat16",
        "trainer.precision",
        f"{chosen!r}: a TPU multiplies bfloat16 numbers several times as fast, in half the memory",
        "Set trainer.precision: bfloat16; weights and the loss stay float32.",
    )


def _multiples(value: int, of: int) -> str:
    below, above = value // of * of, -(-value // of) * of
    return f"{below} or {above}" if below else f"{above}"
