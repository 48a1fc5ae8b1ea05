"""Gathers the facts for the rules of `shardwright preflight`: the slice, the dataset, and a short run of the loader."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from shardwright.config import Config
from shardwright.config.loader import AUTO_AUGMENT
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, DatasetError, ShardwrightError
from shardwright.pipelines.preflight.run_facts import TRAIN, DatasetFacts, Facts, LoaderTensor, dataset_facts
from shardwright.pipelines.runs.logs import quiet_libraries
from shardwright.pipelines.tpu import TpuSlice
from shardwright.running.processes import usable_cores

_NAMES = ("image", "target", "weight")
_WARM_UP = 2


def gather(
    config: Config,
    *,
    tpu: str,
    hosts: int | None = None,
    needed: float | None = None,
    host_memory: float | None = None,
    host_processors: int | None = None,
) -> Facts:
    """Returns the facts of a configuration and a slice.

    Args:
        config: the configuration.
        tpu: the slice, `v5e-2x4`; `kubeflow.trainer.slices` of them train together.
        hosts: number of hosts of all slices; by default that of the configuration for several slices, else the fewest.
        needed: images per second that the slice needs.
        host_memory: bytes of a host's memory; by default from the table of machines.
        host_processors: its virtual processors; by default from the table of machines.

    Raises:
        ConfigError: there is no such slice, or it has fewer chips than hosts.
    """
    chosen, slices = TpuSlice.parse(tpu), config.kubeflow.trainer.slices
    if hosts is not None and hosts > slices * chosen.chips:
        raise ConfigError(
            "--hosts", f"{hosts} hosts for the {slices * chosen.chips} chips of {tpu}", "Each host has one or more."
        )
    each, rest = divmod(hosts or config.trainer.hosts, slices)
    if (hosts or slices > 1) and rest == 0 and each in chosen.host_counts:
        # A rule reports any other number.
        chosen = TpuSlice.parse(tpu, hosts=each)
    return Facts(
        config=config,
        slice=chosen,
        hosts=slices * chosen.hosts if hosts is None else hosts,
        host_processors=host_processors or chosen.processors_per_host,
        host_memory=int(host_memory) if host_memory else chosen.memory_per_host,
        needed=needed,
        processors=usable_cores(),
        slices=slices,
    )


def with_dataset(facts: Facts, directory: str, *, seconds: float = 3.0) -> Facts:
    """Returns the facts with those of a dataset, on which the loader is tried without TensorFlow's messages.

    Args:
        facts: the facts of the configuration and the slice.
        directory: folder of the dataset.
        seconds: how long the loader is tried.

    Raises:
        DatasetError: there is no complete dataset.
    """
    dataset = dataset_facts(directory)
    with quiet_libraries():
        dataset, measured = _try_loader(facts, dataset, seconds)
    return dataclasses.replace(facts, dataset=dataset, measured=measured)


def _try_loader(facts: Facts, dataset: DatasetFacts, seconds: float) -> tuple[DatasetFacts, float | None]:
    """Returns the dataset with the loader's tensors or error, and how many images per second it gave."""
    import tensorflow as tf

    from shardwright.loader import dataset_statistics
    from shardwright.loader.error_context import error_message
    from shardwright.loader.profile import LoadingError

    try:
        dataset_statistics(dataset.root)
    except DatasetError:
        statistics = False
    else:
        statistics = True
    dataset = dataclasses.replace(dataset, statistics=statistics)
    try:
        batches = _load(facts, dataset.root)
        spec = batches.element_spec
        fed = tuple(
            LoaderTensor(name, tuple(tensor.shape), tensor.dtype.name)
            for name, tensor in zip(_NAMES, tf.nest.flatten(spec), strict=False)
        )
        share = -(-facts.global_batch // facts.hosts)
        return dataclasses.replace(dataset, fed=fed), _images_per_second(batches, share, seconds)
    except LoadingError as error:
        return dataclasses.replace(dataset, refusal=error_message(error)), None
    except ShardwrightError as error:
        return dataclasses.replace(dataset, refusal=str(error)), None


def _load(facts: Facts, root: str) -> Any:
    """Returns the training batches of the first host."""
    from shardwright.components.image_trainer.defaults import augmentations_for
    from shardwright.loader import load

    loader, manifest = facts.config.loader, ImageDataset.open(root).manifest
    chosen = augmentations_for(manifest.task, manifest.classes)[0]
    return load(
        root,
        TRAIN,
        -(-facts.global_batch // facts.hosts),
        normalize=loader.normalize,
        augment=chosen if loader.augment == AUTO_AUGMENT else loader.augment,
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
