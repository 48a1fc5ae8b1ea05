"""Rules on how the hosts load data for the chips: memory, speed, and resuming after a stop."""

from __future__ import annotations

from collections.abc import Iterator

from shardwright.loader.memory import LoaderMemory, cache_budget, decoded_bytes, loader_memory
from shardwright.pipelines.preflight.rule_report import Problem, problem_if
from shardwright.pipelines.preflight.run_facts import TRAIN, Facts
from shardwright.storage import is_remote

# The loader's part of a host's memory: the rest is for the model, checkpoints and the page cache.
_SHARE = 0.5
# Stored bytes per pixel at the usual quality, used without a dataset.
_BYTES_A_PIXEL = 0.5
# A loader that is only as fast as the chips makes them wait every second step.
_SPARE = 1.2


def memory_estimate(facts: Facts) -> LoaderMemory:
    """Estimates the loader's memory on one host."""
    height, width = facts.size
    split = facts.split(TRAIN)
    record = height * width * _BYTES_A_PIXEL if facts.dataset is None else facts.dataset.mean_record
    classes = facts.config.input.classes if facts.dataset is None else facts.dataset.classes
    return loader_memory(
        record=record,
        shuffle_buffer=facts.config.loader.shuffle_buffer,
        batch=-(-facts.global_batch // facts.hosts),
        size=(height, width),
        channels=len(classes or ()) if facts.config.task == "segmentation" else 0,
        shards=1 if split is None else -(-len(split.records) // facts.hosts),
        processors=facts.host_processors,
        kept=_kept(facts),
    )


def _kept(facts: Facts) -> int:
    """Returns the bytes of decoded images that a training keeps in memory; 0 without a dataset."""
    split = facts.split(TRAIN)
    if facts.dataset is None or split is None:
        return 0
    loader = facts.config.loader
    texts = facts.config.transform.text
    words = sum(texts[column].vocabulary for column in facts.config.trainer.text if column in texts)
    each = decoded_bytes(facts.size, len(facts.dataset.classes), words)
    remote = is_remote(facts.dataset.root)
    room = _SHARE * facts.host_memory
    return cache_budget(split.records, each, order=loader.order, hosts=facts.hosts, remote=remote, room=room)


def fits_memory(facts: Facts) -> Iterator[Problem]:
    """Checks that the loader fits into its part of a host's memory."""
    estimate = memory_estimate(facts)
    kept = f", {estimate.kept / 1e9:.1f} GB of decoded images that stay" if estimate.kept else ""
    larger = estimate.shuffle > estimate.batches
    yield from problem_if(
        estimate.total > _SHARE * facts.host_memory,
        "loader.shuffle_buffer" if larger else "trainer.batch_size",
        f"the loader takes about {estimate.total / 1e9:.1f} GB of a host's {facts.host_memory / 1e9:.0f} GB: "
        f"{estimate.shuffle / 1e9:.1f} GB to shuffle, {estimate.batches / 1e9:.1f} GB of batches{kept}",
        f"Use a smaller {'shuffle buffer' if larger else 'batch'}: the loader may take at most {_SHARE:.0%}.",
    )


def fast_enough(facts: Facts) -> Iterator[Problem]:
    """Checks that the hosts together decode as many images as the chips learn from."""
    assert facts.needed is not None
    assert facts.measured is not None
    gives = facts.measured * facts.host_processors / max(1, facts.processors) * facts.hosts
    yield from problem_if(
        gives < _SPARE * facts.needed,
        "trainer.batch_size",
        f"{facts.needed:,.0f} images/s are needed; {facts.measured:,.0f} images/s measured here on {facts.processors} "
        f"processors make about {gives:,.0f} on {facts.hosts} hosts of {facts.host_processors} processors, and "
        f"{_SPARE:g} times the need is wanted",
        "Use smaller images (transform.size), fewer augmentations, or hosts with more processors or fewer chips.",
    )


def resumable(facts: Facts) -> Iterator[Problem]:
    """Checks that a training that was stopped resumes at the same step."""
    yield from problem_if(
        facts.config.loader.order != "exact",
        "loader.order",
        f"{facts.config.loader.order!r}: after a preemption, the training reads all batches up to its step again",
        "Set loader.order: exact, which any number of hosts resumes at the checkpoint's step.",
    )


def buffer_mixes(facts: Facts) -> Iterator[Problem]:
    """Checks that the shuffle buffer holds more than one batch."""
    share = -(-facts.global_batch // facts.hosts)
    yield from problem_if(
        facts.config.loader.shuffle_buffer < 2 * share,
        "loader.shuffle_buffer",
        f"{facts.config.loader.shuffle_buffer} records are mixed, and a host's batch has {share}: every epoch repeats "
        "nearly the same batches",
        f"Use at least {2 * share}, better {16 * share}.",
    )
