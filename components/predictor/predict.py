"""The prediction of a folder of images: a table of masks in a published layout, or of labels with probabilities.

Many images are read concurrently, checked by their headers before decoding, and predicted in batches. Images that
cannot be read or decoded are reported and left out. The table appears whole, in the order of the keys. A model that
reads texts takes them from a CSV with one or more rows per image.
"""

from __future__ import annotations

import csv
import itertools
import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shardwright.components.predictor.model import ExportedModel, open_model
from shardwright.config import ImagesConfig
from shardwright.config.images import images_config
from shardwright.dataset.image_encoding import encode_image
from shardwright.errors import CheckFailed, UsageError
from shardwright.evaluation.submission import DEFAULT, Layout, choose_layout, mask_rows
from shardwright.formats.tables import IMAGE, Table, choose_columns, shown_header
from shardwright.images.decode import convert, header_of
from shardwright.images.header import ImageError
from shardwright.ingest.stored_image import KEEP, frames_of, prepare
from shardwright.masks.coordinate_frame import CoordinateFrame, restore_to_file
from shardwright.progress import progress
from shardwright.storage import Listing, durable, is_remote, list_inputs, map_threads, read_bytes, readers

Texts = Mapping[str, list[bytes]]


def read_texts(path: str, columns: Iterable[str], keys: Iterable[str]) -> Texts:
    """Reads the texts of some images.

    Args:
        path: a CSV with a column that names images, by key or by file name, and a column for each of `columns`.
        columns: headers, in the order of the model.
        keys: keys of the images to predict; rows of others are ignored.

    Returns:
        Key -> a text for each column, texts of several rows joined by a space; images without a row are missing.

    Raises:
        UsageError: the table cannot be read, or lacks a column.
    """
    wanted = list(columns)
    table = Table.open(path)
    missing = [name for name in wanted if name not in table.header]
    if missing:
        raise UsageError(
            f"--texts {path}: no column {missing[0]!r}, which the model reads. It has: {shown_header(table.header)}."
        )
    places = [table.header.index(name) for name in wanted]
    image = choose_columns(table, {}).get(IMAGE)
    if image is None:
        raise UsageError(
            f"--texts {path}: no column names the images. It has: {shown_header(table.header)}. Call one image."
        )
    by_name: dict[str, list[str]] = {}
    for key in keys:
        for name in {key, posixpath.basename(key)}:
            by_name.setdefault(name, []).append(key)
    found: dict[str, list[list[str]]] = {}
    for row in table.rows():
        fields = [*row.fields, *[""] * (len(table.header) - len(row.fields))]
        for key in by_name.get(fields[image].strip(), ()):
            parts = found.setdefault(key, [[] for _ in places])
            for part, place in zip(parts, places, strict=True):
                part.append(fields[place])
    return {key: [" ".join(part).encode() for part in parts] for key, parts in found.items()}


_DIGITS = 6


class Failure(NamedTuple):
    """An image that was left out: its key, the reason as a code and as a sentence."""

    key: str
    code: str
    reason: str


@dataclass(frozen=True)
class Prediction:
    """The result of a prediction.

    Attributes:
        out: the table.
        dialect: layout of its masks; empty for labels.
        images: number of predicted images.
        rows: number of rows of the table.
        failures: images that were left out.
    """

    out: str
    dialect: str
    images: int
    rows: int
    failures: tuple[Failure, ...]


class _Read(NamedTuple):
    key: str
    data: bytes
    height: int
    width: int
    failure: Failure | None
    orientation: int = 1


def predict(
    model: str,
    images: str,
    out: str,
    *,
    dialect: str | None = None,
    texts: str | None = None,
    batch_size: int = 16,
    quiet: bool = False,
) -> Prediction:
    """Predicts a folder of images.

    Args:
        model: a SavedModel exported by a pipeline, or the folder that models are pushed to.
        images: folder or glob of images, also on a bucket.
        out: the table to write, a CSV; an existing one is replaced.
        dialect: a layout of `shardwright.evaluation.submission`, for masks; by default that of the training's table.
        texts: a CSV for a model that reads texts, see `read_texts`; images without a row have empty texts.
        batch_size: images per batch.
        quiet: show no progress.

    Raises:
        UsageError: there is no such model, folder or layout.
        CheckFailed: no image at all could be predicted; nothing is written.
    """
    if batch_size < 1:
        raise UsageError(f"--batch-size: {batch_size} is too small. Use at least 1.")
    target = _checked_target(out)
    listing = list_inputs(images if is_remote(images) else os.path.abspath(os.path.expanduser(images)))
    opened = open_model(model)
    text_rows = _texts(opened, texts, listing)
    writer = _writer(opened, dialect)
    failures = [Failure(refused.key, refused.code, refused.reason) for refused in listing.refused]
    done = rows = 0
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with (
            temporary.open("w", encoding="utf-8", newline="") as file,
            progress(len(listing.keys), "predicting", quiet=quiet) as bar,
        ):
            table = csv.writer(file, lineterminator="\n")
            table.writerow(writer.header)
            for batch in _batches(_read_all(listing, images_config(opened.ingested)), batch_size):
                failures += [read.failure for read in batch if read.failure]
                good = [read for read in batch if not read.failure]
                answers, undecodable = _answers(opened, good, text_rows)
                failures += undecodable
                for read, answer in answers:
                    written = list(writer.rows(read, answer))
                    table.writerows(written)
                    done, rows = done + 1, rows + len(written)
                bar.advance(len(batch))
        if not done:
            first = f": {failures[0].key}: {failures[0].reason}" if failures else ""
            raise CheckFailed(f"{images}: none of {len(failures)} images could be predicted{first}")
        durable.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return Prediction(str(target), writer.name, done, rows, tuple(sorted(failures)))


def _texts(model: ExportedModel, table: str | None, listing: Listing) -> Texts:
    if table is None:
        return {}
    if not model.texts:
        raise UsageError(f"--texts {table}: this model reads no texts. Leave it out.")
    return read_texts(table, [column for column, _ in model.texts], listing.keys)


def _checked_target(out: str) -> Path:
    if is_remote(out):
        raise UsageError(f"--out {out}: tables are written on this machine. Give a path here.")
    target = Path(out).expanduser().absolute()
    if target.is_dir():
        raise UsageError(f"--out {out}: is a folder. Give the name of a file, e.g. {out.rstrip('/')}/submission.csv.")
    if not target.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {target.parent}. Create it first.")
    return target


def _read_all(listing: Listing, options: ImagesConfig) -> Iterator[_Read]:
    """Reads all images, checked, and converted like the training images."""

    def read(position: int) -> _Read:
        key = listing.keys[position]
        try:
            data = read_bytes(listing.path(position), listing.pin(position))
            data, frames = servable(data, options)
        except ImageError as error:
            return _Read(key, b"", 0, 0, Failure(key, error.code, error.reason))
        except OSError as error:
            return _Read(key, b"", 0, 0, Failure(key, "unreadable", f"cannot be read ({error.strerror or error})"))
        return _Read(key, data, frames.height, frames.width, None, frames.orientation)

    sizes = listing.sizes
    return map_threads(read, range(len(listing.keys)), readers(listing.root), lambda position: sizes[position])


def servable(data: bytes, options: ImagesConfig) -> tuple[bytes, CoordinateFrame]:
    """Converts a file to a format that the model reads; the model repeats the ingest's other changes.

    Args:
        data: the file.
        options: the ingest's image options.

    Returns:
        The file itself if it is JPEG or PNG, else a converted one; and the coordinate frame of the stored pixels.

    Raises:
        ImageError: the file is refused.
    """
    header = header_of(data, max_pixels=options.max_pixels, convert=options.convert != "reject")
    if header is not None:
        return data, frames_of(header.height, header.width, header.orientation, options)
    if options.reencode == KEEP:
        # All changes are made here: the model finds the image already turned and resized.
        stored, _, frames = prepare(data, options)
        return stored, frames
    picture, header = convert(data, max_pixels=options.max_pixels)
    # Lossless, so that only the model encodes it with losses.
    stored, _ = encode_image(picture, "png", orientation=header.orientation)
    return stored, frames_of(header.height, header.width, header.orientation, options)


def _batches(reads: Iterable[_Read], size: int) -> Iterator[list[_Read]]:
    rest = iter(reads)
    while batch := list(itertools.islice(rest, size)):
        yield batch


def _answers(
    model: ExportedModel, reads: Sequence[_Read], texts: Texts
) -> tuple[list[tuple[_Read, dict[str, Any]]], list[Failure]]:
    """Predicts for every image; if one breaks the batch, each is predicted alone."""
    import tensorflow as tf

    if not reads:
        return [], []
    try:
        nothing = [b""] * len(model.texts)
        outputs = model.answer([read.data for read in reads], [texts.get(read.key, nothing) for read in reads])
    except tf.errors.InvalidArgumentError:
        if len(reads) == 1:
            reason = f"the header is sound, but these {len(reads[0].data)} bytes cannot be decoded"
            return [], [Failure(reads[0].key, "undecodable", reason)]
        alone = [_answers(model, [read], texts) for read in reads]
        return [pair for pairs, _ in alone for pair in pairs], [f for _, failed in alone for f in failed]
    answers = [{name: values[i] for name, values in outputs.items()} for i in range(len(reads))]
    return list(zip(reads, answers, strict=True)), []


class _MaskRows:
    """Rows of masks."""

    def __init__(self, model: ExportedModel, name: str) -> None:
        self.name = name
        self._model = model
        self._layout: Layout = choose_layout(name, model.classes)
        self.header: Sequence[str] = self._layout.header

    def rows(self, read: _Read, answer: dict[str, Any]) -> Iterator[list[str]]:
        masks = answer["masks"]
        size = read.height, read.width
        frames = frames_of(*size, read.orientation, images_config(self._model.ingested))
        runs = [restore_to_file(masks[..., c], self._model.resize, frames) for c in range(len(self._model.classes))]
        return mask_rows(self._layout, read.key, runs, self._model.classes, size)


class _LabelRows:
    """A row of labels and probabilities per image."""

    name = ""

    def __init__(self, model: ExportedModel) -> None:
        self._model = model
        self.header: Sequence[str] = ("image", "labels" if model.multi else "label", *model.classes)

    def rows(self, read: _Read, answer: dict[str, Any]) -> Iterator[list[str]]:
        if self._model.multi:
            label = " ".join(self._model.classes[i] for i in np.flatnonzero(answer["classes"]))
        else:
            label = answer["labels"].decode("utf-8")
        yield [read.key, label, *(f"{value:.{_DIGITS}f}" for value in answer["probabilities"].tolist())]


def _writer(model: ExportedModel, dialect: str | None) -> _MaskRows | _LabelRows:
    if model.task == "segmentation":
        return _MaskRows(model, dialect or model.submission or DEFAULT)
    if dialect is not None:
        raise UsageError(f"--dialect {dialect}: this model predicts labels, not masks. Leave it out.")
    return _LabelRows(model)
