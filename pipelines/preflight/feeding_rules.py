"""Rules on how the hosts feed the chips: memory, speed, and going on after a stop."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardwright.loader.memory import LoaderMemory, cache_budget, decoded_bytes, loader_memory
from shardwright.pipelines.preflight.facts import TRAIN, Facts
from shardwright.pipelines.preflight.findings import Problem, only
from shardwright.storage import is_remote

# Of a host's memory, what the loader may take: the rest is for the model, checkpoints and the page cache.
_SHARE = 0.5
# Bytes of a stored image's pixel at the usual quality, where no dataset tells.
_BYTES_A_PIXEL = 0.5
# A loader that is just as fast as the chips makes them wait every other step.
_SPARE = 1.2


def memory_estimate(facts: Facts) -> LoaderMemory:
    """What the loader takes on one host."""
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
        processors=facts.host.processors or facts.processors,
        kept=_kept(facts),
    )


def _kept(facts: Facts) -> int:
    """Bytes of decoded images that a training keeps; nothing is known of those of a dataset that is not there yet."""
    split = facts.split(TRAIN)
    if facts.dataset is None or split is None:
        return 0
    loader = facts.config.loader
    texts = facts.config.transform.text
    words = sum(texts[column].vocabulary for column in facts.config.trainer.text if column in texts)
    each = decoded_bytes(facts.size, len(facts.dataset.classes), words)
    remote = is_remote(facts.dataset.root)
    room = math.inf if facts.host.memory is None else _SHARE * facts.host.memory
    return cache_budget(split.records, each, order=loader.order, hosts=facts.hosts, remote=remote, room=room)


def fits_memory(facts: Facts) -> Iterator[Problem]:
    """The loader fits into a host's memory, and leaves room."""
    assert facts.host.memory is not None
    estimate = memory_estimate(facts)
    kept = f", {estimate.kept / 1e9:.1f} GB of decoded images that stay" if estimate.kept else ""
    larger = estimate.shuffle > estimate.batches
    yield from only(
        estimate.total > _SHARE * facts.host.memory,
        "loader.shuffle_buffer" if larger else "trainer.batch_size",
        f"the loader takes about {estimate.total / 1e9:.1f} GB of a host's {facts.host.memory / 1e9:.0f} GB: "
        f"{estimate.shuffle / 1e9:.1f} GB to shuffle, {estimate.batches / 1e9:.1f} GB of batches{kept}",
        f"Use a smaller {'shuffle buffer' if larger else 'batch'}: at most {_SHARE:.0%} should be taken.",
    )


def fast_enough(facts: Facts) -> Iterator[Problem]:
    """The hosts together decode as many images as the chips learn from."""
    assert facts.needed is not None
    assert facts.measured is not None
    scale = (facts.host.processors or facts.processors) / max(1, facts.processors)
    gives = facts.measured * scale * facts.hosts
    told = f"{facts.host.processors} processors" if facts.host.processors else "as many processors as this machine"
    yield from only(
        gives < _SPARE * facts.needed,
        "trainer.batch_size",
        f"{facts.needed:,.0f} images/s are needed; {facts.measured:,.0f} images/s measured here on {facts.processors} "
        f"processors make about {gives:,.0f} on {facts.hosts} hosts of {told}, and {_SPARE:g} times is wanted",
        "Use smaller images (transform.size), fewer augmentations, hosts with more processors, or fewer chips a host.",
    )


def resumable(facts: Facts) -> Iterator[Problem]:
    """A training that is stopped goes on where it was."""
    yield from only(
        facts.config.loader.order != "exact",
        "loader.order",
        f"{facts.config.loader.order!r}: after a preemption the epoch starts anew, and images of its first part are "
        "seen twice",
        "Set loader.order: exact, which any number of hosts takes up at the checkpoint's step.",
    )


def buffer_mixes(facts: Facts) -> Iterator[Problem]:
    """What is shuffled at a time is more than one batch."""
    share = -(-facts.global_batch // facts.hosts)
    yield from only(
        facts.config.loader.shuffle_buffer < 2 * share,
        "loader.shuffle_buffer",
        f"{facts.config.loader.shuffle_buffer} records are mixed at a time, and a host's batch has {share}: every "
        "epoch repeats nearly the same batches",
        f"Use at least {2 * share}, better {16 * share}.",
    )
