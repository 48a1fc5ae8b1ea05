"""Gathers what `shardwright preflight` asks its rules: the slice, the dataset, and a short run of the loader."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any

from shardwright.config import Config
from shardwright.errors import ConfigError, DatasetError, ShardwrightError
from shardwright.pipelines.preflight.facts import TRAIN, DatasetFacts, Facts, FeedRate, Host, Slice, dataset_facts
from shardwright.pipelines.runs.logs import log_to_file
from shardwright.pipelines.tpu import TpuSlice

# Virtual processors and memory of a machine, where a public table says so: Cyclenerd's
# google-cloud-pricing-cost-calculator, issue 89.
_HOSTS = {
    "ct5lp-hightpu-1t": Host(24, 48 << 30),
    "ct5lp-hightpu-4t": Host(112, 192 << 30),
    "ct5lp-hightpu-8t": Host(224, 384 << 30),
}
_NAMES = ("image", "target", "weight")
_WARM_UP = 2


def tpu_slice(text: str, hosts: int | None) -> tuple[Slice, str]:
    """A slice, and the machine type of its hosts; that of the fewest hosts where it has not so many as are asked for.

    Args:
        text: `v5e-2x4`.
        hosts: how many machines are asked for.

    Raises:
        ConfigError: there is no such slice.
    """
    fewest = TpuSlice.parse(text)
    possible = [found for count in range(1, fewest.chips + 1) if (found := _with_hosts(text, count)) is not None]
    chosen = next((found for found in possible if found.hosts == hosts), fewest)
    return Slice(text, fewest.chips, tuple(found.hosts for found in possible)), chosen.machine


def _with_hosts(text: str, hosts: int) -> TpuSlice | None:
    try:
        return TpuSlice.parse(text, hosts=hosts)
    except ConfigError:
        return None


def gather(
    config: Config,
    *,
    tpu: str,
    hosts: int | None = None,
    dataset: str | None = None,
    needed: float | None = None,
    host_memory: float | None = None,
    host_processors: int | None = None,
    seconds: float = 3.0,
    log_file: str | os.PathLike[str] = os.devnull,
) -> Facts:
    """Everything the rules look at.

    Args:
        config: the configuration.
        tpu: the slice, `v5e-2x4`.
        hosts: machines; the fewest that make such a slice where it is not given.
        dataset: folder of a dataset.
        needed: images a second that the slice is to learn from.
        host_memory: bytes of a host's memory, where the table does not know it or is wrong.
        host_processors: its virtual processors, likewise.
        seconds: how long the loader is tried.
        log_file: takes what TensorFlow says.

    Raises:
        ConfigError: there is no such slice, or it has fewer chips than hosts.
        DatasetError: there is no whole dataset.
    """
    wanted, machine = tpu_slice(tpu, hosts)
    if hosts is not None and hosts > wanted.chips:
        raise ConfigError(
            "--hosts", f"{hosts} hosts for the {wanted.chips} chips of {tpu}", "Each host has one or more."
        )
    known = _HOSTS.get(machine, Host())
    facts = Facts(
        config=config,
        slice=wanted,
        hosts=wanted.hosts[0] if hosts is None else hosts,
        host=Host(host_processors or known.processors, int(host_memory) if host_memory else known.memory),
        needed=needed,
        processors=len(os.sched_getaffinity(0)),
    )
    if dataset is None:
        return facts
    found = dataset_facts(dataset)
    with log_to_file(log_file):
        found, measured = _tried(facts, found, seconds)
    return dataclasses.replace(facts, dataset=found, measured=measured)


def _tried(facts: Facts, found: DatasetFacts, seconds: float) -> tuple[DatasetFacts, float | None]:
    """What the loader makes of a dataset, and how many images a second."""
    import tensorflow as tf

    from shardwright.loader import dataset_statistics
    from shardwright.loader.error_context import error_message
    from shardwright.loader.profile import LoadingError

    try:
        dataset_statistics(found.root)
    except DatasetError:
        statistics = False
    else:
        statistics = True
    found = dataclasses.replace(found, statistics=statistics)
    try:
        batches = _load(facts, found.root)
        spec = batches.element_spec
        fed = tuple(
            FeedRate(name, tuple(one.shape), one.dtype.name)
            for name, one in zip(_NAMES, tf.nest.flatten(spec), strict=False)
        )
        share = -(-facts.global_batch // facts.hosts)
        return dataclasses.replace(found, fed=fed), _images_per_second(batches, share, seconds)
    except LoadingError as error:
        return dataclasses.replace(found, refusal=error_message(error)), None
    except ShardwrightError as error:
        return dataclasses.replace(found, refusal=str(error)), None


def _load(facts: Facts, root: str) -> Any:
    """The training batches of the first host."""
    from shardwright.loader import load

    loader = facts.config.loader
    return load(
        root,
        TRAIN,
        -(-facts.global_batch // facts.hosts),
        normalize=loader.normalize,
        augment=loader.augment,
        shuffle=True,
        seed=facts.config.trainer.seed,
        repeat=True,
        drop_remainder=True,
        shuffle_buffer=loader.shuffle_buffer,
        order=loader.order,
        hosts=facts.hosts,
    )


def _images_per_second(batches: Any, batch: int, seconds: float) -> float:
    taken = iter(batches)
    for _ in range(_WARM_UP):
        next(taken)
    started, images = time.perf_counter(), 0
    while True:
        next(taken)
        images += batch
        spent = time.perf_counter() - started
        if spent >= seconds:
            return images / spent
