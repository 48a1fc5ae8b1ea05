"""The prediction of a folder of images or of a dataset: one table, or TFRecord files.

The images are cut into parts that do not depend on who predicts them. In this process, or on each of Beam's workers,
the images of a part are read concurrently, checked by their headers before decoding, and predicted in batches. Images
that cannot be read or decoded are reported and left out. The result is made of the parts in their order and appears
whole, so that no number of workers changes a byte of it.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardwright.components.predictor.exported_model import ExportedModel
from shardwright.components.predictor.other_model import Stated, open_any_model
from shardwright.components.predictor.prediction_rows import CSV, TFRECORD, Predicted, rows_of
from shardwright.components.predictor.sources import (
    DatasetSource,
    Failure,
    ReadImage,
    Source,
    Texts,
    find_source,
    read_texts,
)
from shardwright.dataset.shard_names import shard_name
from shardwright.errors import NO_ROOM, CheckFailed, StorageError, UsageError
from shardwright.running.progress import Progress, counted, progress
from shardwright.staging.staging import Staging
from shardwright.storage import buckets, durable, is_remote, read_bytes
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.paths import check_utf8
from shardwright.storage.whole_files import WholeFile, appear, assembling

if TYPE_CHECKING:
    import apache_beam as beam

SUMMARY = "predictions.json"
# Suffix of the summary of a part.
_SUMMARY = "json"
# Runs parts somewhere: gets the work and the number of parts.
RunParts = Callable[["PredictionWork", int], None]
Answers = list[tuple[ReadImage, dict[str, Any]]]


@dataclass(frozen=True)
class PredictOptions:
    """The options of a prediction.

    Attributes:
        form: `csv` or `tfrecord`.
        split: a split of a dataset; by default all of them, by their names.
        dialect: a layout of `shardwright.evaluation.submission`, for masks; by default that of the training's table.
        texts: a CSV for a model that reads texts, see `read_texts`. Images without a row have those of the dataset, or
            empty ones.
        batch_size: images per batch.
        trust_model: whether the model may do more than compute, since it is the caller's own.
        stated: what is known of a model that Shardwright did not export. Its dataset is by default that of the images.

    Raises:
        UsageError: an option has an unknown value, or two options contradict each other.
    """

    form: str = CSV
    split: str | None = None
    dialect: str | None = None
    texts: str | None = None
    batch_size: int = 16
    trust_model: bool = False
    stated: Stated = field(default_factory=Stated)

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise UsageError(f"--batch-size: {self.batch_size} is too small. Use at least 1.")
        if self.form not in (CSV, TFRECORD):
            raise UsageError(f"--format {self.form}: is not known. Use one of: {CSV}, {TFRECORD}.")
        if self.form == TFRECORD and self.dialect is not None:
            raise UsageError(f"--dialect {self.dialect}: TFRecord files have masks as runs. Leave it out.")


_DEFAULTS = PredictOptions()


@dataclass(frozen=True)
class Prediction:
    """The result of a prediction.

    Attributes:
        out: the table, or the folder of TFRecord files.
        dialect: layout of its masks; empty for labels and for TFRecord files.
        images: number of predicted images.
        rows: number of rows of the table; of TFRecord files, of records.
        failures: images that were left out.
        notes: files that are not images, for the user.
    """

    out: str
    dialect: str
    images: int
    rows: int
    failures: tuple[Failure, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PredictionWork:
    """The prediction of all parts; picklable.

    Attributes:
        model: folder of the model.
        source: the images.
        options: the options of the call.
        texts: texts by key.
        staging: destination of the parts.
    """

    model: str
    source: Source
    options: PredictOptions
    texts: Texts
    staging: Staging


def predict(
    model: str,
    images: str,
    out: str,
    options: PredictOptions = _DEFAULTS,
    *,
    quiet: bool = False,
    run_parts: RunParts | None = None,
    staging_root: str | None = None,
) -> Prediction:
    """Predicts a folder of images or a dataset.

    Args:
        model: the folder of a run, the folder that models are pushed to, a SavedModel, or a `.keras` file.
        images: folder or glob of images, or a dataset; also on a bucket.
        out: the table to write, a CSV; an existing one is replaced. With `tfrecord` a folder, which may not exist. Also
            on a bucket.
        options: the form of the result, and how it is made.
        quiet: show no progress.
        run_parts: predicts the parts, by default one after the other in this process; see `on_beam`.
        staging_root: folder for the parts, if others than this process predict them.

    Raises:
        UsageError: there is no such model, folder or layout.
        CheckFailed: no image at all could be predicted; nothing is written.
    """
    check_utf8(model, "model")
    target = _checked_target(out, options.form)
    source = find_source(images, options.split)
    if isinstance(source, DatasetSource) and not options.stated.classes and not options.stated.dataset:
        options = replace(options, stated=replace(options.stated, dataset=source.root))
    opened = _opened(os.path.abspath(model), options.stated, trusted=options.trust_model)
    form = rows_of(opened, options.form, options.dialect)
    texts = _texts(opened, options.texts, source)
    with (
        tempfile.TemporaryDirectory(prefix="shardwright-predict-") as folder,
        # A name like those of datasets: `clean` deletes what a killed prediction leaves.
        _staging(staging_root or folder, fingerprint(os.path.basename(folder))) as staging,
    ):
        work = PredictionWork(os.path.abspath(model), source, options, texts, staging)
        if run_parts is None:
            _write_parts(work, source, quiet=quiet)
        else:
            run_parts(work, source.parts)
        result = _result(work, target, form.name)
        if not result.images:
            first = f": {result.failures[0].key}: {result.failures[0].reason}" if result.failures else ""
            raise CheckFailed(f"{images}: none of {counted(len(result.failures), 'image')} could be predicted{first}")
        try:
            if options.form == CSV:
                _write_table(staging, source.parts, target, form.packed([form.header]), Path(folder, "table.csv"))
            else:
                _write_records(staging, source.parts, result, Path(folder, "records"))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise StorageError(
                f"--out {out}: cannot be written ({error.strerror}). Make room, or give another path."
            ) from None
    return result


def _write_parts(work: PredictionWork, source: Source, *, quiet: bool) -> None:
    """Predicts all parts in this process."""
    try:
        with progress(source.images, "predicting", quiet=quiet) as shown:
            for number in range(source.parts):
                write_part(number, work, shown)
    finally:
        # TensorFlow's functions complain if they are deleted after its modules, at the exit of the process.
        _opened.cache_clear()


@contextmanager
def _staging(root: str, name: str) -> Iterator[Staging]:
    """Yields a staging folder that is locked, and deletes it at the end."""
    staging = Staging.open(root, name)
    with staging.locked("Make room, or set TMPDIR (with --beam, --staging) to a folder with more."):
        try:
            yield staging
        finally:
            staging.remove()


def write_part(number: int, work: PredictionWork, shown: Progress | None = None) -> None:
    """Predicts the images of a part, and writes its rows or records, and a summary, to staging."""
    options = work.options
    model = _opened(work.model, options.stated, trusted=options.trust_model)
    form = rows_of(model, options.form, options.dialect)
    rows: list[Any] = []
    failures: list[Failure] = []
    images = 0
    stored = work.source.is_stored(model)
    reads = work.source.read(number, model)
    for answers, failed in answer_images(model, reads, work.texts, stored, options.batch_size):
        failures += failed
        images += len(answers)
        for read, answer in answers:
            rows += form.rows(Predicted(read.key, read.frames), answer)
        if shown is not None:
            shown.advance(len(answers) + len(failed))
    work.staging.share(_part_name(number, options.form), form.packed(rows))
    summary = {"images": images, "rows": len(rows), "failures": failures}
    # The summary comes last: a part without one is not finished.
    work.staging.share(_part_name(number, _SUMMARY), json.dumps(summary).encode("utf-8"))


def on_beam(make_pipeline: Callable[[], beam.Pipeline], options: Sequence[str]) -> RunParts:
    """Returns a function that predicts parts on Beam's workers: no image and no mask passes through Beam.

    Args:
        make_pipeline: returns a pipeline with the runner.
        options: its options, by which places are checked that workers must reach.
    """
    import apache_beam as beam

    from shardwright.components.runtime.beam import reachable, spread

    def run(work: PredictionWork, parts: int) -> None:
        reachable(options, "the model", work.model)
        reachable(options, "the images", work.source.root)
        with make_pipeline() as pipeline:
            _ = spread(pipeline, range(parts)) | "PredictPart" >> beam.Map(write_part, work=work)

    return run


@functools.lru_cache(maxsize=1)
def _opened(model: str, stated: Stated, *, trusted: bool = False) -> ExportedModel:
    """Opens a model once for each worker."""
    return open_any_model(model, stated, trusted=trusted)


def _part_name(number: int, suffix: str) -> str:
    return f"parts/{number:05d}.{suffix}"


def _result(work: PredictionWork, out: str, dialect: str) -> Prediction:
    """Returns the sums over all parts, and all images that were left out."""
    failures, images, rows = list(work.source.refused), 0, 0
    for number in range(work.source.parts):
        place = work.staging.location(_part_name(number, _SUMMARY))
        try:
            part = json.loads(read_bytes(place))
        except OSError:
            raise CheckFailed(
                f"{place}: Beam's workers have not written it. If they are on other machines, run.staging must be a "
                "folder that all of them share. Run it again."
            ) from None
        images, rows = images + part["images"], rows + part["rows"]
        failures += (Failure(*row) for row in part["failures"])
    return Prediction(out, dialect, images, rows, tuple(sorted(failures)), work.source.notes)


def _write_table(staging: Staging, parts: int, target: str, header: bytes, made: Path) -> None:
    local = made if is_remote(target) else Path(target)
    with WholeFile(local) as file:
        file.write(header)
        for number in range(parts):
            file.write(read_bytes(staging.location(_part_name(number, CSV))))
    if is_remote(target):
        buckets.upload(target, str(local))


def _write_records(staging: Staging, parts: int, result: Prediction, made: Path) -> None:
    """Writes the folder of TFRecord files; on a bucket the summary comes last."""
    target = result.out
    summary = {**vars(result), "failures": [failure._asdict() for failure in result.failures]}
    del summary["out"], summary["notes"]
    text = json.dumps(summary, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    names = [f"{shard_name(number, parts).replace('data', 'predictions')}.tfrecord" for number in range(parts)]
    with ExitStack() as stack:
        # The folder of a killed call is used again: it has the same name.
        folder = (
            made if is_remote(target) else stack.enter_context(assembling(Path(target), fingerprint(Path(target).name)))
        )
        durable.make_folder(folder)
        for number, name in enumerate(names):
            durable.write_file(folder / name, read_bytes(staging.location(_part_name(number, TFRECORD))))
        durable.write_file(folder / SUMMARY, text)
        if is_remote(target):
            for name in (*names, SUMMARY):
                buckets.upload(f"{target.rstrip('/')}/{name}", str(folder / name))
        else:
            appear(folder, Path(target))


def _texts(model: ExportedModel, table: str | None, source: Source) -> Texts:
    if table is None:
        return {}
    if not model.texts:
        raise UsageError(f"--texts {table}: this model reads no texts. Leave it out.")
    return read_texts(table, [column for column, _ in model.texts], source.keys())


def _checked_target(out: str, form: str) -> str:
    check_utf8(out, "--out")
    if is_remote(out):
        if form == TFRECORD and next(iter(buckets.list_names(f"{out.rstrip('/')}/")), None) is not None:
            raise UsageError(f"--out {out}: contains files already. Name another folder.")
        return out
    target = Path(out).expanduser().absolute()
    if form == TFRECORD:
        if target.exists():
            raise UsageError(f"--out {out}: exists already. Name a folder that does not exist yet.")
    elif target.is_dir():
        raise UsageError(f"--out {out}: is a folder. Give the name of a file, e.g. {out.rstrip('/')}/submission.csv.")
    if not target.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {target.parent}. Create it first.")
    return str(target)


def answer_images(
    model: ExportedModel, reads: Iterator[ReadImage], texts: Texts, stored: bool, batch_size: int
) -> Iterator[tuple[Answers, list[Failure]]]:
    """Yields the answers of a model for a batch after the other, and the images that are left out.

    Args:
        model: the model.
        reads: the images.
        texts: texts by key, in the place of those that were read.
        stored: see `ExportedModel.answer`.
        batch_size: images per batch.
    """
    reads = iter(reads)
    while batch := list(itertools.islice(reads, batch_size)):
        answers, undecodable = _answers(model, [read for read in batch if not read.failure], texts, stored)
        yield answers, [*(read.failure for read in batch if read.failure), *undecodable]


def _answers(
    model: ExportedModel, reads: Sequence[ReadImage], texts: Texts, stored: bool
) -> tuple[Answers, list[Failure]]:
    """Predicts for every image; if one breaks the batch, each is predicted alone."""
    import tensorflow as tf

    if not reads:
        return [], []
    try:
        given = [texts.get(read.key, read.texts) for read in reads]
        outputs = model.answer([read.data for read in reads], given, stored=stored)
    except tf.errors.InvalidArgumentError:
        if len(reads) == 1:
            reason = f"the header is sound, but these {len(reads[0].data)} bytes cannot be decoded"
            return [], [Failure(reads[0].key, "undecodable", reason)]
        alone = [_answers(model, [read], texts, stored) for read in reads]
        return [pair for pairs, _ in alone for pair in pairs], [f for _, failed in alone for f in failed]
    answers = [{name: values[i] for name, values in outputs.items()} for i in range(len(reads))]
    return list(zip(reads, answers, strict=True)), []
