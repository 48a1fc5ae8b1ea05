"""Writing one shard: a pure function of its number, for Beam and for the command line's processes alike."""

from __future__ import annotations

from collections.abc import Iterator

import google_crc32c

from shardwright.dataset.ledger import REJECTED
from shardwright.dataset.manifest import DISPLAYED, LOCATED
from shardwright.dataset.shard_names import ShardNames
from shardwright.errors import CheckFailed
from shardwright.formats.base import ImageSample
from shardwright.images.header import ImageError
from shardwright.ingest.copying import Image, StoredRecord, images_of
from shardwright.ingest.example import BadMask, encode_sample, is_on_displayed
from shardwright.ingest.plan import IngestPlan
from shardwright.ingest.stored_image import prepare
from shardwright.ingest.tasks import Task, read_not_reused, read_places, read_tasks
from shardwright.staging.staging import PlannedShard, RecordResult, ShardResult, Staging
from shardwright.storage import display_path, read_each


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


def _outcomes(plan: IngestPlan, staging: Staging, planned: PlannedShard) -> Iterator[RecordResult]:
    for (sample, digest, checksum, _), image in _images(plan, staging, planned):
        try:
            if image.stored is not None:
                stored, header, frames = image.stored
            else:
                # Compared where it is used: what was read is what was hashed.
                if image.data is None or google_crc32c.value(image.data) != checksum:
                    raise _changed(sample)
                stored, header, frames = prepare(image.data, plan.recipe.images)
            payload = encode_sample(plan, sample, stored, digest, header, frames)
            marks = ((LOCATED, header.located), (DISPLAYED, is_on_displayed(plan, sample, frames)))
            same = stored == image.data
            yield RecordResult(
                sample.key,
                payload,
                marks=tuple(name for name, counts in marks if counts),
                origin="" if same else StoredRecord.of(digest, plan.tools, header, frames, stored).to_json(),
                copied=image.copied,
                damaged=image.damaged,
            )
        except (ImageError, BadMask) as error:
            told = RecordResult(sample.key, None, REJECTED, error.code, error.reason)
            yield told._replace(copied=image.copied, damaged=image.damaged)


def _images(plan: IngestPlan, staging: Staging, planned: PlannedShard) -> Iterator[tuple[Task, Image]]:
    """The images of a shard with what is said about them."""
    tasks = read_tasks(staging, planned, plan.root, plan.dataset.task, plan.tasks, ordered=plan.ordered)
    if plan.source is None:
        read = read_each(plan.root, tasks, lambda task: task.sample.path, lambda task: task.sample.size)
        return ((task, Image(data)) for task, data in read)
    places = read_places(staging, planned, plan.tasks)
    unheld = read_not_reused(staging, planned, plan.root, plan.tasks)
    return images_of(plan.source, plan.root, tasks, places, unheld, plan.recipe.images)


def _changed(sample: ImageSample) -> CheckFailed:
    return CheckFailed(
        f"{display_path(sample.path)}: the file has changed while the run was reading the input. Run it again."
    )
