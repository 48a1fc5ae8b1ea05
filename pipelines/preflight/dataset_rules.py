"""Rules on the dataset: its splits, shards and labels."""

# A rule's docstring states what must hold.

from __future__ import annotations

from collections.abc import Iterator

from shardwright.config.trainer import is_import_path
from shardwright.dataset.host_sharding import host_ranges
from shardwright.dataset.manifest import NONE, SINGLE
from shardwright.pipelines.preflight.device_rules import host_records
from shardwright.pipelines.preflight.rule_report import Problem, problem_if
from shardwright.pipelines.preflight.run_facts import EVAL, TRAIN, Facts
from shardwright.running.progress import counted

# tensorflow.org/tutorials/load_data/tfrecord: ten files a host, each of at least 10 MB and ideally 100 MB.
SHARDS_A_HOST = 10
SMALLEST, LARGEST = 10 << 20, 250 << 20
# With fewer records per shard, the sizes of shards differ much: neither hosts nor shuffling share them equally.
_RECORDS_A_SHARD = 16
_LOST = 0.01
_PADDED = 0.25


def splits_present(facts: Facts) -> Iterator[Problem]:
    """Checks that every split that the configuration names has examples."""
    for name in facts.config.split.names:
        split = facts.split(name)
        yield from problem_if(
            split is None or not split.total,
            f"split.{name}",
            f"{facts.data.root} has {'no split ' + name if split is None else 'no example in ' + name}",
            "Give more images or a larger share, or remove the split from the configuration.",
        )


def whole_shards(facts: Facts) -> Iterator[Problem]:
    """Checks that every host reads whole shards from their beginning to their end."""
    if facts.config.loader.order == "exact":
        return  # Hosts share all shards.
    fix = f"Write a multiple of {facts.hosts} shards (shards.count), better {SHARDS_A_HOST * facts.hosts}."
    split = facts.split(TRAIN)
    if split is None:
        count = facts.config.shards.count
        yield from problem_if(
            count is not None and count % facts.hosts != 0,
            "shards.count",
            f"{count} shards cannot be divided evenly among {facts.hosts} hosts, which then read parts of shards",
            fix,
        )
        return
    shares = [host_ranges(split.records, host, facts.hosts) for host in range(facts.hosts)]
    parts = sum(part.records < split.records[part.shard] for share in shares for part in share)
    yield from problem_if(
        parts > 0,
        "shards",
        f"the {len(split.records)} shards of {TRAIN} cannot be divided evenly among {facts.hosts} hosts, which read "
        f"{parts} parts of shards by the index, with a request each",
        fix,
    )


def shards_enough(facts: Facts) -> Iterator[Problem]:
    """Checks that there are ten shards per host, if the data is large enough."""
    split = facts.split(TRAIN)
    if facts.config.loader.order == "exact":
        return
    if split is None:
        shards = facts.config.shards
        yield from problem_if(
            facts.hosts > 1 and shards.hosts != facts.hosts and shards.count is None,
            "shards.hosts",
            f"{shards.hosts}, and {facts.hosts} hosts are to read",
            f"Set shards: {{hosts: {facts.hosts}}}, which makes {SHARDS_A_HOST} per host.",
        )
        return
    size, count = sum(split.bytes), len(split.bytes)
    wanted = min(SHARDS_A_HOST * facts.hosts, size // SMALLEST)
    yield from problem_if(
        count < wanted,
        "shards",
        f"{TRAIN} has {counted(count, 'shard')} of {size / max(1, count) / 1e6:.0f} MB for {facts.hosts} hosts",
        f"Rewrite it with shards: {{count: {wanted}}}: hosts then read equal parts, and shuffling mixes more.",
    )


def shard_sizes(facts: Facts) -> Iterator[Problem]:
    """Shards are neither tiny nor huge."""
    split = facts.split(TRAIN)
    if split is None or not split.bytes:
        return
    size = sum(split.bytes) / len(split.bytes)
    small = size < SMALLEST and len(split.bytes) > max(SHARDS_A_HOST * facts.hosts, 1)
    yield from problem_if(
        small or size > LARGEST,
        "shards.target_size",
        f"{TRAIN} has {len(split.bytes)} shards of {size / 1e6:.1f} MB on average",
        f"Aim at 100 to 200 MB: below {SMALLEST >> 20} MB opening them costs time, above {LARGEST >> 20} MB a host "
        "has only few.",
    )


def record_size(facts: Facts) -> Iterator[Problem]:
    """Checks that a shard of the usual size holds many records."""
    target = facts.config.shards.target_size or 0
    mean = facts.data.mean_record
    yield from problem_if(
        0 < target < mean * _RECORDS_A_SHARD,
        "shards.target_size",
        f"{target:,} bytes per shard, and a record has {mean / 1e6:.1f} MB on average",
        f"Transform to a smaller size first, or use at least {int(mean * _RECORDS_A_SHARD):,} bytes.",
    )


def equal_steps(facts: Facts) -> Iterator[Problem]:
    """Checks that all hosts have equally many steps without leaving examples out."""
    split = facts.split(TRAIN)
    if split is None or not split.total:
        return
    records = host_records(facts, TRAIN)
    lost = sum(records) - min(records) * facts.hosts
    yield from problem_if(
        lost > _LOST * split.total,
        "shards",
        f"hosts have {min(records)} to {max(records)} records of {TRAIN}; all stop with the first, so {lost} of "
        f"{split.total} ({lost / split.total:.0%}) are left out of an epoch",
        f"Write a multiple of {facts.hosts} shards, or set loader.order: exact.",
    )


def evaluation_padding(facts: Facts) -> Iterator[Problem]:
    """Checks that little of the evaluation is padding."""
    split = facts.split(EVAL)
    if split is None or not split.total:
        return
    batch = facts.global_batch
    filled = -(-split.total // batch) * batch
    padding = (filled - split.total) / filled
    yield from problem_if(
        padding > _PADDED,
        "trainer.batch_size",
        f"{EVAL} has {split.total} examples: padded to {filled}, {padding:.0%} of the computation is for padding",
        "Use a smaller batch, or a larger share for eval.",
    )


def task_as_configured(facts: Facts) -> Iterator[Problem]:
    """Checks that the dataset was made for the task."""
    yield from problem_if(
        facts.data.task != facts.config.task,
        "task",
        f"{facts.config.task}, and {facts.data.root} was made for {facts.data.task}",
        "Give the dataset of this configuration.",
    )


def classes_as_configured(facts: Facts) -> Iterator[Problem]:
    """Checks that the model's head has the classes of the data, in their order."""
    wanted = tuple(facts.config.input.classes or ())
    yield from problem_if(
        bool(wanted) and set(wanted) != set(facts.data.classes),
        "input.classes",
        f"{_few(wanted)}, and {facts.data.root} has {_few(facts.data.classes)}: the model's outputs would mean "
        "something else",
        "Give the dataset of this configuration, or correct input.classes.",
    )
    yield from problem_if(
        facts.data.labels != NONE and not facts.data.classes,
        "input.classes",
        f"{facts.data.root} has no classes, so the model would have no outputs",
        "Name them.",
    )


def labels_present(facts: Facts) -> Iterator[Problem]:
    """Checks that every example has a label, if the task needs one."""
    unlisted, single = facts.config.input.unlisted_images, facts.config.task == "classification"
    if facts.dataset is None:
        yield from problem_if(
            unlisted == "unlabeled" and single,
            "input.unlisted_images",
            f"{unlisted!r}: the loader stops at the first example without a label",
            "Use reject, or fail.",
        )
        return
    yield from problem_if(
        facts.dataset.labels == NONE,
        "input.labels",
        f"{facts.dataset.root} has images without labels: there is nothing to learn",
        "Give labels.",
    )
    yield from problem_if(
        facts.dataset.labels == SINGLE and facts.dataset.unlabeled > 0,
        "input.unlisted_images",
        f"{facts.dataset.unlabeled} of {facts.dataset.sampled} examples of {facts.dataset.root} have no label, at the "
        "first of which the loader stops",
        "Ingest with input.unlisted_images: reject.",
    )


def ignored_pixels(facts: Facts) -> Iterator[Problem]:
    """Checks that a dataset with ignored pixels is for a model that leaves them out of its loss."""
    yield from problem_if(
        facts.data.ignores and is_import_path(facts.model),
        "trainer.model",
        f"{facts.model!r} is a custom model, and {facts.data.root} marks pixels to be ignored by the value 255",
        "Leave them out of its loss (shardwright.masks.regions.IGNORE_VALUE), or ingest without them.",
    )


def statistics_present(facts: Facts) -> Iterator[Problem]:
    """Checks that the statistics for the normalization exist."""
    yield from problem_if(
        facts.config.loader.normalize == "dataset" and not facts.data.statistics,
        "loader.normalize",
        f"'dataset', and there is no statistics.json in {facts.data.root}",
        "Give the dataset that ImageTransform wrote, or use another normalization.",
    )


def features_readable(facts: Facts) -> Iterator[Problem]:
    """Checks that the features have the names and forms that the pipeline reads."""
    yield from problem_if(
        not facts.config.features.ours,
        "features",
        f"preset {facts.config.features.preset!r}, or custom names: ImageTransform reads neither",
        "Remove the section features to train on the dataset. Presets are for other programs.",
    )


def _few(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(ascii, names[:5]))
    return f"{counted(len(names), 'class', 'classes')} ({shown}{', ...' if len(names) > 5 else ''})"
