"""Writing one shard, a pure function of its number for Beam and for the command line's processes, and the commit.

Each image is read once. While its bytes are in memory, they are compared with the content ID of the plan. They are
hashed if the plan has only a store's checksum. With `images.verify: full` they are decoded and measured. Threads decode
and encode the images of one shard where there are more cores than shards.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import google_crc32c

from shardwright.checksum import checksum_of
from shardwright.config import ImagesConfig
from shardwright.config.images import FULL
from shardwright.dataset.ledger import REJECTED, RowSorter
from shardwright.dataset.manifest import DISPLAYED, IMAGE_FOLDER, LOCATED, Manifest
from shardwright.dataset.shard_names import ShardNames
from shardwright.dataset.stored_image import may_decode, prepare
from shardwright.formats.mask_values import FetchedFiles, ReadsFiles
from shardwright.images.decode import header_of
from shardwright.images.header import ImageError
from shardwright.ingest.copying import INPUTS_FILE, CopySource, Image, Stored, StoredRecord, images_of, probe_json
from shardwright.ingest.example import BadMask, ExampleSpec, encode_sample, is_on_displayed
from shardwright.ingest.inputs import InputRow, inputs_of, record_inputs
from shardwright.ingest.known_files import Decoded, ProbeRow, decode_file, measured
from shardwright.ingest.plan import IngestPlan
from shardwright.ingest.read import UNREADABLE, probe_of_values, row_values
from shardwright.ingest.tasks import ShardTasks, Task
from shardwright.processes import usable_cores
from shardwright.staging.commit import commit, completed_shards, open_if_committed
from shardwright.staging.staging import RecordResult, ShardResult, Staging
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
from shardwright.storage.listing import key_of


def write_shard(
    number: int, plan: IngestPlan, staging: Staging, cores: int | None = None, processes: int = 1
) -> ShardResult:
    """Writes a shard of a plan into staging, unless it is finished already.

    Args:
        number: position in `plan.dataset.shards`.
        plan: the plan.
        staging: its staging folder, where its task files are.
        cores: those that images may be decoded on; by default all that this process may use.
        processes: those of this machine that write shards at the same time.

    Raises:
        CheckFailed: an image has changed since it was hashed or listed.
    """
    planned = plan.dataset.shards[number]
    tasks = ShardTasks(staging, planned, plan.root, plan.tasks)
    options = plan.recipe.images
    kept = INPUTS_FILE in plan.dataset.kept
    checked = _checked(_images(tasks, plan.examples, plan.source, options), options.checksum, with_crc32c=kept)
    # The last process to end is the one with the largest shard.
    share = max(1 / processes, plan.shard_bytes[number] / max(1, plan.total_bytes))
    threads = math.ceil((cores or usable_cores()) * share) if may_decode(options) else 1
    prepared = map_threads(partial(_prepared, options=options), checked, threads, _weight)
    images = _measured(prepared) if options.verify == FULL else in_groups((image for image, _ in prepared), _weight)
    inputs = staging.sorter() if plan.recorded else None
    results = _results(images, plan.examples, plan.tools, inputs)
    name = inputs_of(planned)
    further = () if inputs is None else (name,)
    if inputs is not None:
        results = _recorded(results, inputs, staging, name)
    names = ShardNames(plan.recipe.shards.filename_template)
    return staging.write_shard(planned, results, names, further, facts=plan.dataset.facts(planned))


def commit_ingest(
    plan: IngestPlan, staging: Staging, out: str | os.PathLike[str], build: Mapping[str, Any]
) -> Manifest:
    """Publishes a dataset whose shards are all finished; see `commit`.

    Args:
        plan: what was planned.
        staging: where the shards are; locked by the caller.
        out: folder to make.
        build: for `build.json`.
    """
    dataset = plan.dataset
    if plan.recorded and open_if_committed(out, dataset.fingerprint) is None:
        completed_shards(staging, dataset.shards)
        dataset = replace(dataset, content=record_inputs(staging, dataset.shards, keep=INPUTS_FILE in dataset.kept))
    # A configuration states the folder relative to its own; elsewhere its last name is published.
    return commit(staging, dataset, out, {IMAGE_FOLDER: plan.root, **build})


class _Checked(NamedTuple):
    """An image whose bytes are those that were planned.

    Attributes:
        task: what to write; its content ID is known, but for a file that cannot be read.
        image: the image.
        row: the results of decoding it, where it was decoded here.
        stored: what is stored of it.
        error: why it is rejected, if it is.
    """

    task: Task
    image: Image
    row: ProbeRow | None = None
    stored: Stored | None = None
    error: ImageError | None = None


def _images(
    tasks: ShardTasks, spec: ExampleSpec, source: CopySource | None, options: ImagesConfig
) -> Iterator[tuple[Task, Image]]:
    """Reads the images of a shard, or copies them from the previous dataset."""
    todo = tasks.read(spec.task, ordered=spec.ordered)
    if isinstance(spec.dialect, ReadsFiles) and is_remote(spec.dialect.files.root):
        todo = _with_masks(todo, spec.dialect)
    if source is not None:
        yield from images_of(source, tasks, todo, options)
        return
    files = read_each(
        tasks.root, todo, lambda task: task.sample.path, lambda task: task.sample.size, lambda task: task.file.pin
    )
    for task, data in files:
        yield task, Image(data)


def _with_masks(todo: Iterator[Task], dialect: ReadsFiles) -> Iterator[Task]:
    """Fetches the files of the masks of the next images from a bucket."""
    files = dialect.files

    def fetched(task: Task) -> Task:
        found: dict[str, bytes] = {}
        for mask in task.sample.masks:
            text = dialect.file_of(mask.text) if mask.text else None
            if text is not None and files.name(text) not in found:
                with suppress(OSError):  # Decoding it raises the error of the mask.
                    found[files.name(text)] = files.read_data(text)
        return task._replace(masks=found)

    # A mask rarely takes more than its image.
    return map_threads(fetched, todo, readers(files.root), lambda task: task.sample.size)


def _checked(images: Iterator[tuple[Task, Image]], algorithm: str, *, with_crc32c: bool) -> Iterator[_Checked]:
    """Compares the bytes of each image with the plan: those that are written are those that were hashed or listed.

    Args:
        images: tasks and what was read.
        algorithm: of the content IDs of images that are read for the first time.
        with_crc32c: whether these get a CRC-32C as well, for the next dataset.
    """
    for task, image in images:
        data = image.data
        if image.stored is not None:
            yield _Checked(task, image)
        elif data is None and not task.file.content_id:
            yield _Checked(task, image, error=ImageError(*UNREADABLE))
        elif data is None:
            raise file_changed(task.sample.path)
        elif task.file.content_id:
            if google_crc32c.value(data) != task.file.crc32c:
                raise file_changed(task.sample.path)
            yield _Checked(task, image)
        else:
            # A local file has nothing listed; its state was compared when it was read.
            listed = task.file.listed
            if len(data) != task.sample.size or (listed and not matches_listed(data, listed)):
                check_not_encrypted(task.sample.path, task.file.pin)
                raise file_changed(task.sample.path)
            crc32c = google_crc32c.value(data) if with_crc32c else 0
            hashed = task.file._replace(content_id=checksum_of(data, algorithm), crc32c=crc32c)
            yield _Checked(task._replace(file=hashed), image)


def _weight(checked: _Checked) -> int:
    return checked.task.sample.size


def _prepared(checked: _Checked, options: ImagesConfig) -> tuple[_Checked, Decoded | ProbeRow | None]:
    """Returns an image with what is stored of it, or with the error; and its picture, where it is to be measured."""
    if checked.error is not None:
        return checked, None
    data, header, decoded = checked.image.data or b"", None, None
    try:
        if options.verify == FULL and checked.image.data is not None and not checked.task.file.probed:
            header = header_of(data, max_pixels=options.max_pixels, convert=options.unsupported_formats != "reject")
            decoded = decode_file(data, header, max_pixels=options.max_pixels, pixels=False)
            if isinstance(decoded, ProbeRow):
                return checked, decoded
        stored = checked.image.stored or Stored(*prepare(data, options, header))
    except ImageError as error:
        return checked._replace(error=error), None
    return checked._replace(stored=stored), decoded


def _measured(images: Iterator[tuple[_Checked, Decoded | ProbeRow | None]]) -> Iterator[_Checked]:
    """Measures the images that were decoded, several together."""
    for checked, row in measured(images):
        if row is None:
            yield checked
        elif row.hashes is None:
            yield checked._replace(error=ImageError(row.code, row.reason))
        else:
            sample = checked.task.sample
            values = {**sample.values, **row_values(row)}
            yield checked._replace(task=checked.task._replace(sample=replace(sample, values=values)), row=row)


def _results(
    images: Iterator[_Checked], spec: ExampleSpec, tools: str, inputs: RowSorter | None
) -> Iterator[RecordResult]:
    """Makes the record of each image, or its ledger row where the image or a mask is broken."""
    for checked in images:
        task, image, sample = checked.task, checked.image, checked.task.sample
        if inputs is not None:
            inputs.add(_input_row(checked))
        try:
            if checked.error is not None:
                raise checked.error
            assert checked.stored is not None
            stored, header, frame = checked.stored
            how = _with_fetched(spec, task)
            encoded = encode_sample(how, sample, stored, task.file.content_id, header, frame)
            marks = ((LOCATED, header.located), (DISPLAYED, is_on_displayed(how, sample, frame)))
            same = stored is image.data or stored == image.data
            yield RecordResult(
                sample.key,
                encoded.pieces,
                marks=tuple(name for name, counts in marks if counts),
                origin="" if same else StoredRecord.of(task.file.content_id, tools, header, frame, stored).to_json(),
                copied=image.copied,
                damaged=image.damaged,
                values=encoded.values,
            )
        except (ImageError, BadMask) as error:
            result = RecordResult(sample.key, None, REJECTED, error.code, error.reason)
            yield result._replace(copied=image.copied, damaged=image.damaged)


def _with_fetched(spec: ExampleSpec, task: Task) -> ExampleSpec:
    if task.masks is None or not isinstance(spec.dialect, ReadsFiles):
        return spec
    return replace(spec, dialect=spec.dialect.with_fetched(FetchedFiles(task.masks)))


def _input_row(checked: _Checked) -> InputRow:
    task, file = checked.task, checked.task.file
    probe = probe_of_values(file.probed) if checked.row is None else probe_json(checked.row)
    masks = [(key_of(name)[0], checksum_of(data)) for name, data in (task.masks or {}).items()]
    return InputRow(
        task.sample.key, task.sample.size, file.content_id, file.crc32c, file.listed, probe, masks=sorted(masks)
    )


def _recorded(
    results: Iterator[RecordResult], inputs: RowSorter, staging: Staging, name: str
) -> Iterator[RecordResult]:
    """Yields results, and then writes the file of the input rows."""
    yield from results
    staging.write_lines(name, inputs.lines(), flushed=False)
