"""Writing one shard: a pure function of its number, for Beam and for the command line's processes alike."""

from __future__ import annotations

from collections.abc import Iterator

import google_crc32c

from shardwright.config import ImagesConfig
from shardwright.dataset.ledger import REJECTED
from shardwright.dataset.manifest import DISPLAYED, LOCATED
from shardwright.dataset.shard_names import ShardNames
from shardwright.errors import CheckFailed
from shardwright.formats.base import ImageSample
from shardwright.images.header import ImageError
from shardwright.ingest.copying import CopySource, Image, Stored, StoredRecord, images_of
from shardwright.ingest.example import BadMask, ExampleSpec, encode_sample, is_on_displayed
from shardwright.ingest.plan import IngestPlan
from shardwright.ingest.stored_image import prepare
from shardwright.ingest.tasks import ShardTasks, Task
from shardwright.staging.staging import RecordResult, ShardResult, Staging
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
    tasks = ShardTasks(staging, planned, plan.root, plan.tasks)
    images = _images(tasks, plan.examples, plan.source, plan.recipe.images)
    results = _results(images, plan.examples, plan.recipe.images, plan.tools)
    return staging.write_shard(planned, results, ShardNames(plan.recipe.shards.pattern))


def _images(
    tasks: ShardTasks, spec: ExampleSpec, source: CopySource | None, options: ImagesConfig
) -> Iterator[tuple[Task, Image]]:
    """Reads the images of a shard, or copies them from the previous dataset."""
    todo = tasks.read(spec.task, ordered=spec.ordered)
    if source is not None:
        yield from images_of(source, tasks, todo, options)
        return
    for task, data in read_each(tasks.root, todo, lambda task: task.sample.path, lambda task: task.sample.size):
        yield task, Image(data)


def _results(
    images: Iterator[tuple[Task, Image]], spec: ExampleSpec, options: ImagesConfig, tools: str
) -> Iterator[RecordResult]:
    """Makes the record of each image, or its ledger row where the image or a mask is broken."""
    for task, image in images:
        sample = task.sample
        try:
            stored, header, frame = image.stored or _prepared(task, image, options)
            payload = encode_sample(spec, sample, stored, task.sha256, header, frame)
            marks = ((LOCATED, header.located), (DISPLAYED, is_on_displayed(spec, sample, frame)))
            same = stored == image.data
            yield RecordResult(
                sample.key,
                payload,
                marks=tuple(name for name, counts in marks if counts),
                origin="" if same else StoredRecord.of(task.sha256, tools, header, frame, stored).to_json(),
                copied=image.copied,
                damaged=image.damaged,
            )
        except (ImageError, BadMask) as error:
            result = RecordResult(sample.key, None, REJECTED, error.code, error.reason)
            yield result._replace(copied=image.copied, damaged=image.damaged)


def _prepared(task: Task, image: Image, options: ImagesConfig) -> Stored:
    # Compared where it is used: the bytes that are written are those that were hashed.
    if image.data is None or google_crc32c.value(image.data) != task.crc32c:
        raise _changed(task.sample)
    return Stored(*prepare(image.data, options))


def _changed(sample: ImageSample) -> CheckFailed:
    return CheckFailed(
        f"{display_path(sample.path)}: the file has changed while the run was reading the input. Run it again."
    )
