"""Writes ranges of shards, for Beam and for the command line's processes, and commits the dataset.

Each image is read once and passes through the steps below as a `Job`: read, identify, decode, measure, encode. While
its bytes are in memory, they are compared with the content ID of the plan. They are hashed if the plan has only a
store's checksum. With `images.verify: full` they are decoded and measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import google_crc32c

from shardwright.config import ImagesConfig
from shardwright.config.images import FULL
from shardwright.dataset.ledger import REJECTED, WRITTEN
from shardwright.dataset.manifest import DISPLAYED, IMAGE_FOLDER, LOCATED, Manifest
from shardwright.dataset.shard_names import ShardNames
from shardwright.dataset.stored_image import may_decode, prepare
from shardwright.errors import AnnotationError
from shardwright.formats.mask_values import FetchedFiles, ReadsFiles
from shardwright.images.decode import header_of
from shardwright.images.header import ImageError
from shardwright.ingest.copying import INPUTS_FILE, StoredRecord, copy_images
from shardwright.ingest.example import example_values, is_on_displayed
from shardwright.ingest.input_records import InputRow, inputs_of, record_inputs
from shardwright.ingest.known_files import Decoded, ProbeRow, decode_file, measured
from shardwright.ingest.plan import IngestPlan
from shardwright.ingest.probe import UNREADABLE
from shardwright.ingest.tasks import Job, Stored, read_tasks
from shardwright.running.processes import usable_cores
from shardwright.staging import ranges
from shardwright.staging.commit import commit, completed_shards, open_if_committed
from shardwright.staging.ranges import Range
from shardwright.staging.staging import RecordResult, Staging
from shardwright.storage import (
    check_not_encrypted,
    file_changed,
    in_groups,
    is_remote,
    map_threads,
    matches_listed,
    read_each,
    readers,
)
from shardwright.storage.checksum import checksum_of
from shardwright.storage.listing import key_of
from shardwright.tfrecords.encode import encode_pieces


def write_range(
    part: Range,
    plan: IngestPlan,
    staging: Staging,
    threads: int | None = None,
    report: Callable[[Range], object] = lambda part: None,
) -> Range:
    """Writes a range of a shard into staging, and the shard if that was its last range; not what is there already.

    Args:
        part: the range, or all of a shard.
        plan: the plan.
        staging: its staging folder, where its task files are.
        threads: those that decode images; by default one for each processor of this process.
        report: is called with some of the range's images when they are written.

    Returns:
        The range.

    Raises:
        CheckFailed: an image has changed since it was hashed or listed.
    """
    inputs = inputs_of(plan.dataset.shards[part.shard]) if plan.recorded else ""
    records = partial(_records, plan=plan, staging=staging, threads=threads, report=report)
    names = ShardNames(plan.recipe.shards.filename_template)
    return ranges.write_range(part, plan.dataset, staging, names, records, inputs)


def commit_ingest(
    plan: IngestPlan, staging: Staging, out: str | os.PathLike[str], build: Mapping[str, Any]
) -> Manifest:
    """Publishes a dataset whose shards are all finished; see `commit`.

    Args:
        plan: what was planned.
        staging: where the shards are; locked by the caller.
        out: folder to make.
        build: for `build.json`.

    Raises:
        CheckFailed: a shard is not finished, too many inputs were rejected, or no image has a class.
    """
    dataset = plan.dataset
    if plan.recorded and open_if_committed(out, dataset.fingerprint) is None:
        completed_shards(staging, dataset.shards)
        content = record_inputs(staging, dataset.shards, keep=INPUTS_FILE in dataset.kept)
        dataset = replace(dataset, content=content)
    # A configuration states the folder relative to its own; elsewhere its last name is published.
    return commit(staging, dataset, out, {IMAGE_FOLDER: plan.root, **build})


def _records(
    part: Range, plan: IngestPlan, staging: Staging, threads: int | None, report: Callable[[Range], object]
) -> Iterator[RecordResult]:
    """Yields the record of each image of a range, or its ledger row where the image or a mask is broken."""
    planned, dialect, options = plan.dataset.shards[part.shard], plan.examples.dialect, plan.recipe.images
    numbers = range(len(part.bounds) - 1) if part.number < 0 else [part.number]
    for number in numbers:
        ends = part.bounds[number], part.bounds[number + 1]
        read = read_tasks(staging, planned, ends, root=plan.root, name=plan.tasks)
        if isinstance(dialect, ReadsFiles) and is_remote(dialect.files.root):
            fetch_masks(read, dialect)
        jobs = read_images(read, plan)
        jobs = (identify(job, options, with_crc32c=INPUTS_FILE in plan.dataset.kept) for job in jobs)
        count = (threads or usable_cores()) if may_decode(options) else 1
        decoded = map_threads(partial(decode, options=options), jobs, count, _weight)
        jobs = measure(decoded) if options.verify == FULL else in_groups((job for job, _ in decoded), _weight)
        for job in jobs:
            yield encode(job, plan)
            # The list of all jobs lives on.
            job.data = job.stored = None
        report(part._replace(number=number, size=sum(map(_weight, read))))


def _weight(job: Job) -> int:
    return job.file.size


def fetch_masks(jobs: list[Job], dialect: ReadsFiles) -> None:
    """Fetches the files of the masks of images from a bucket."""
    files = dialect.files

    def fetch(job: Job) -> None:
        job.masks = masks = dict[str, bytes]()
        for mask in job.annotations:
            text = dialect.file_of(mask.text) if mask.text else None
            if text is not None and files.name(text) not in masks:
                with suppress(OSError):  # Decoding it raises the error of the mask.
                    masks[files.name(text)] = files.read_data(text)

    # A mask rarely takes more than its image.
    for _ in map_threads(fetch, jobs, readers(files.root), _weight):
        continue


def read_images(jobs: list[Job], plan: IngestPlan) -> Iterator[Job]:
    """Reads images, or copies them from the previous dataset."""
    if plan.source is not None:
        yield from copy_images(plan.source, plan.root, jobs, plan.recipe.images)
        return
    files = read_each(plan.root, jobs, lambda job: job.file.path, _weight, lambda job: job.file.pin)
    for job, data in files:
        job.data = data
        yield job


def identify(job: Job, options: ImagesConfig, *, with_crc32c: bool) -> Job:
    """Compares the bytes of an image with the plan: those that are written are those that were hashed or listed.

    Args:
        job: the image.
        options: `images`.
        with_crc32c: whether one that is read for the first time gets a CRC-32C as well, for the next dataset.
    """
    data, file = job.data, job.file
    if job.stored is not None:
        return job
    if data is None and not file.content_id:
        job.error = ImageError(*UNREADABLE)
    elif data is None:
        raise file_changed(file.path)
    elif file.content_id:
        if google_crc32c.value(data) != file.crc32c:
            raise file_changed(file.path)
    else:
        # A local file has nothing listed; its state was compared when it was read.
        if len(data) != file.size or (file.listed and not matches_listed(data, file.listed)):
            check_not_encrypted(file.path, file.pin)
            raise file_changed(file.path)
        crc32c = google_crc32c.value(data) if with_crc32c else 0
        job.file = file._replace(content_id=checksum_of(data, options.checksum), crc32c=crc32c)
    return job


def decode(job: Job, options: ImagesConfig) -> tuple[Job, Decoded | ProbeRow | None]:
    """Finds out what is stored of an image, or its error; returns its picture, too, where it is to be measured."""
    if job.error is not None:
        return job, None
    data, header, picture = job.data or b"", None, None
    try:
        if options.verify == FULL and job.data is not None and job.row is None:
            header = header_of(data, max_pixels=options.max_pixels, convert=options.unsupported_formats != "reject")
            picture = decode_file(data, header, max_pixels=options.max_pixels, pixels=False)
            if isinstance(picture, ProbeRow):
                return job, picture
        job.stored = job.stored or Stored(*prepare(data, options, header))
    except ImageError as error:
        job.error = error
        return job, None
    return job, picture


def measure(images: Iterator[tuple[Job, Decoded | ProbeRow | None]]) -> Iterator[Job]:
    """Measures the images that were decoded, several together."""
    for job, row in measured(images):
        if row is not None and row.hashes is None:
            job.error = ImageError(row.code, row.reason)
        elif row is not None:
            job.values.update(row.values())
            job.row = row
        yield job


def encode(job: Job, plan: IngestPlan) -> RecordResult:
    """Returns the record of an image, or its ledger row where the image or a mask is broken."""
    spec, file, line = plan.examples, job.file, ""
    if plan.recorded:
        probe = None if job.row is None else job.row.to_json()
        masks = sorted((key_of(name)[0], checksum_of(data)) for name, data in (job.masks or {}).items())
        row = InputRow(file.key, file.size, file.content_id, file.crc32c, file.listed, probe, masks=masks)
        line = f"{row.to_json()}\n"
    if job.masks is not None and isinstance(spec.dialect, ReadsFiles):
        spec = replace(spec, dialect=spec.dialect.with_fetched(FetchedFiles(job.masks)))
    result = RecordResult(file.key, None, REJECTED, copied=job.copied, damaged=job.damaged, input_line=line)
    try:
        if job.error is not None:
            raise job.error
        values = example_values(spec, job)
    except ImageError as error:
        return result._replace(code=error.code, reason=error.reason)
    except AnnotationError as error:
        return result._replace(code=error.code, reason=str(error))
    assert job.stored is not None
    stored, header, frame = job.stored
    origin = ""
    if stored is not job.data and stored != job.data:
        origin = StoredRecord.of(file.content_id, plan.tools, header, frame, stored).to_json()
    marks = ((LOCATED, header.located), (DISPLAYED, is_on_displayed(spec, job, frame)))
    return result._replace(
        payload=encode_pieces(values),
        status=WRITTEN,
        marks=tuple(name for name, counts in marks if counts),
        origin=origin,
        values=values,
    )
