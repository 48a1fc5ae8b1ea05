"""New annotations for images that are stored already: a table, COCO's JSON or whatever else the ingest reads.

The annotations are read by the ingest's own sources, against the keys of the dataset; pixels are neither fetched again
nor decoded, and every image stays in its split. Masks are taken in the frame of the stored pixels.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from shardwright.config.dataset import TF_VISION, ShardsConfig
from shardwright.config.input import LabelsConfig
from shardwright.dataset.example_view import ExampleReader
from shardwright.dataset.ledger import REJECTED, UNLISTED
from shardwright.dataset.manifest import IGNORED, MASKS, Manifest
from shardwright.dataset.random_access import RecordLocation, read_record
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.resampled_annotations import typed
from shardwright.edit.derive import Derived, derive
from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.base import IGNORE, AnnotationFormat, Images, Survey
from shardwright.formats.detect import open_source
from shardwright.formats.export_record import FoundExport, find_export
from shardwright.ingest.features import mask_feature
from shardwright.ingest.survey import SourceGuard
from shardwright.masks.rle import RleError, Runs, area, union
from shardwright.staging.staging import RecordResult
from shardwright.storage import is_remote
from shardwright.tfrecords.encode import FeatureValue, byte_strings, encode_example, ints
from shardwright.tfrecords.records import decode_example

AUTO, EMPTY, REJECT, FAIL = "auto", "empty", "reject", "fail"
_WAYS = (AUTO, EMPTY, REJECT, FAIL)
_MOST_PIXELS = 2**29
_MASK_PREFIX = "image/segmentation/"
_SHOWN = 3
# Of annotations that tell everything themselves.
_TOLD = LabelsConfig()


class _Said(NamedTuple):
    """What the annotations say of one image: class and text of each row, a text only where it is a mask."""

    label: int
    text: str | None
    row: int


def relabel(
    dataset: ImageDataset,
    labels: str,
    out: str,
    *,
    read_as: LabelsConfig = _TOLD,
    unlisted: str = AUTO,
    shards: ShardsConfig | None = None,
    quiet: bool = False,
) -> tuple[Manifest, tuple[str, ...]]:
    """Makes a dataset of the same images with other annotations. These are held in memory.

    Args:
        dataset: the images.
        labels: a file of annotations, or its URL.
        out: folder to make.
        read_as: how they are written, as far as it is not to be told from them.
        unlisted: what becomes of an image of which nothing is said, as `input.unlisted` has it.
        shards: how it is cut.
        quiet: show no progress.

    Returns:
        The manifest, and what was told from the annotations.

    Raises:
        UsageError: the file cannot be read, or the dataset stores its annotations in a form of others.
        CheckFailed: nothing matched, an image is not listed where that is not to be, or the file has changed.
    """
    manifest = dataset.manifest
    if unlisted not in _WAYS:
        raise UsageError(f"--unlisted: {unlisted!r} is not known. Use one of: {', '.join(_WAYS)}.")
    preset = manifest.recipe.get("features", {}).get("preset", TF_VISION)
    if preset != TF_VISION or manifest.names:
        raise UsageError(f"{dataset.root}: stores features by other names (features). Only our own are relabelled.")
    file = labels if is_remote(labels) else os.path.abspath(labels)
    export = find_export(file, "", manifest.task)
    read = SourceGuard.before([file, *(export.files if export else ())])
    source, survey, keys = _open(dataset, file, read_as, export)
    if not any(survey.listed):
        shown = ", ".join(survey.names[:_SHOWN])
        raise CheckFailed(f"{labels}: no row matched an image. It names {shown}; the images are {', '.join(keys[:3])}.")
    missing = [key for key, listed in zip(keys, survey.listed, strict=True) if not listed]
    way = source.unlisted if unlisted == AUTO else unlisted
    if missing and way == FAIL:
        shown = ", ".join(missing[:_SHOWN])
        raise CheckFailed(f"{len(missing)} of {len(keys)} images have no row in {labels}: {shown}. See --unlisted.")
    said: dict[str, list[_Said]] = {}
    for annotation in source.annotations():
        row = _Said(annotation.label, annotation.text, annotation.row)
        said.setdefault(keys[annotation.image], []).append(row)
    rejected = {key: (UNLISTED, f"{os.path.basename(labels)} has no row for it") for key in missing if way == REJECT}
    rejected |= {keys[i]: (refusal.code, refusal.reason) for i, refusal in survey.rejected.items()}
    writer = _Writer(source, survey, said, rejected, manifest.labels == MASKS)
    kept = {name: kind for name, kind in manifest.features.items() if not name.startswith(_MASK_PREFIX)}
    changes = {
        "classes": survey.classes,
        "labels": MASKS if manifest.labels == MASKS else survey.labels,
        "features": kept | (writer.kinds if manifest.labels == MASKS else {}),
    }
    # It was read twice, and the dataset says by its hash which annotations it holds.
    read.check_unchanged()
    said_so = {name: value for name, value in vars(read_as).items() if name != "path" and value != getattr(_TOLD, name)}
    options: dict[str, Any] = {"labels": read.sha256(file), "unlisted": way}
    if said_so:
        options["read_as"] = said_so
    if export is not None:
        options["export"] = [read.sha256(path) for path in export.files]
    made = derive(
        [dataset], out, Derived("relabel", options, outcome=writer.outcome, changes=changes), shards=shards, quiet=quiet
    )
    return made, survey.notes


def _open(
    dataset: ImageDataset, file: str, read_as: LabelsConfig, export: FoundExport | None
) -> tuple[AnnotationFormat, Survey, list[str]]:
    shards = [shard for split in dataset.splits for shard in dataset.shards(split)]
    places = {
        key: RecordLocation(number, offset)
        for number, shard in enumerate(shards)
        for key, offset in dataset.entries(shard)
    }
    keys = sorted(places)
    reader = ExampleReader(dataset.manifest)

    def size_of(position: int) -> tuple[int, int] | None:
        height, width = reader.read(keys[position], read_record(shards, places[keys[position]])).size
        return (height, width) if height and width else None

    images = Images(keys=keys, skip=frozenset(), size_of=size_of, max_pixels=_MOST_PIXELS)
    task = dataset.manifest.task
    source = open_source(
        task=task,
        options=dataclasses.replace(read_as, path=file),
        classes=None,
        labels=file,
        images=images,
        export=export,
    )
    if source.attachments() is not None:
        raise UsageError(f"{file}: holds masks as pictures. Only annotations of one file are taken.")
    return source, source.survey(), keys


class _Writer:
    """Puts annotations into records."""

    def __init__(
        self,
        source: AnnotationFormat,
        survey: Survey,
        said: Mapping[str, list[_Said]],
        rejected: Mapping[str, tuple[str, str]],
        masked: bool,
    ) -> None:
        self._source, self._survey, self._said, self._rejected, self._masked = source, survey, said, rejected, masked
        # Class by class, and then what is to be ignored.
        self._names = (*survey.classes, *([IGNORED] if survey.ignore else []))
        names = [mask_feature(name) for name in self._names]
        self.kinds = {f"{name}/{what}": "int64" for name in names for what in ("rle", "area")}

    def outcome(self, key: str, payload: bytes) -> RecordResult:
        """What becomes of a record."""
        if key in self._rejected:
            return RecordResult(key, None, REJECTED, *self._rejected[key])
        example = decode_example(payload)
        features: dict[str, FeatureValue] = {
            name: typed(values) for name, values in example.items() if not name.startswith(_MASK_PREFIX)
        }
        rows = self._said.get(key, [])
        listed = [row.label for row in rows if row.label >= 0]
        labels = listed if self._survey.ordered else sorted(set(listed))
        if self._masked:
            height, width = (int(np.asarray(example[f"image/{side}"])[0]) for side in ("height", "width"))
            try:
                masks = self._masks(rows, height, width)
            except RleError as error:
                return RecordResult(key, None, REJECTED, error.code, f"{self._source.name}: {error}")
            labels = [label for label, runs in enumerate(masks[: len(self._survey.classes)]) if len(runs)]
            for name, runs in zip(self._names, masks, strict=True):
                features[f"{mask_feature(name)}/rle"] = ints(runs.reshape(-1))
                features[f"{mask_feature(name)}/area"] = area(runs)
        features["image/class/label"] = ints(labels)
        features["image/class/text"] = byte_strings([self._survey.classes[label].encode("utf-8") for label in labels])
        return RecordResult(key, encode_example(features))

    def _masks(self, rows: list[_Said], height: int, width: int) -> list[Runs]:
        parts: list[list[Runs]] = [[] for _ in self._names]
        for label, text, _ in rows:
            if text is not None:
                for drawn, runs in self._source.dialect.masks(label, text, height=height, width=width):
                    # `IGNORE` is -1: the last one.
                    if drawn != IGNORE or self._survey.ignore:
                        parts[drawn].append(runs)
        return [union(runs) for runs in parts]
