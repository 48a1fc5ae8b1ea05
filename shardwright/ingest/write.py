"""Writing one shard: a pure function of its number, for Beam and for the command line's processes alike."""

from __future__ import annotations

from collections.abc import Iterator

import google_crc32c

from shardwright.errors import CheckFailed
from shardwright.image_header import ImageError
from shardwright.ingest.encode import encode_sample, is_on_displayed
from shardwright.ingest.masks import BadMask
from shardwright.ingest.plan import IngestPlan
from shardwright.ingest.prepare import prepare
from shardwright.ingest.tasks import Task, read_tasks
from shardwright.manifest import DISPLAYED, LOCATED, REJECTED
from shardwright.shard_names import ShardNames
from shardwright.sources.base import Sample
from shardwright.staging import Outcome, PlannedShard, ShardResult, Staging
from shardwright.storage import read_each, shown_path


def write_shard(number: int, plan: IngestPlan, staging: Staging) -> ShardResult:
    """Writes a shard of a plan into staging, unless it is finished already.

    Args:
        number: position in `plan.dataset.shards`.
        plan: the plan.
        staging: its staging folder, where its task files are.

    Raises:
        CheckFailed: an image has changed since it was hashed.
    """
    planned = plan.dataset.shards[number]
    names = ShardNames(plan.recipe.shards.pattern)
    return staging.write_shard(planned, _outcomes(plan, staging, planned), names)


def _outcomes(plan: IngestPlan, staging: Staging, planned: PlannedShard) -> Iterator[Outcome]:
    tasks = read_tasks(staging, planned, plan.root, plan.dataset.task)
    for (sample, digest, checksum), data in read_each(plan.root, tasks, _path, _size):
        # Compared where it is used: what was read is what was hashed.
        if data is None or google_crc32c.value(data) != checksum:
            raise _changed(sample)
        try:
            stored, header, frames = prepare(data, plan.recipe.images)
            payload = encode_sample(plan, sample, stored, digest, header, frames)
            marks = ((LOCATED, header.located), (DISPLAYED, is_on_displayed(plan, sample, frames)))
            yield Outcome(sample.key, payload, marks=tuple(name for name, counts in marks if counts))
        except (ImageError, BadMask) as error:
            yield Outcome(sample.key, None, REJECTED, error.code, error.reason)


def _path(task: Task) -> str:
    return task.sample.path


def _size(task: Task) -> int:
    return task.sample.size


def _changed(sample: Sample) -> CheckFailed:
    return CheckFailed(
        f"{shown_path(sample.path)}: the file has changed while the run was reading the input. Run it again."
    )
