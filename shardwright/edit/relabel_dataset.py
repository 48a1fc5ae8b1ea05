"""Makes a dataset of the same images with new annotations, from a file of a format that the ingest reads.

The annotations are matched with the keys of the dataset. Pixels are neither fetched again nor decoded, and every image
stays in its split. Masks are in the frame of the stored pixels.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from shardwright.config.canonical import recipe_options
from shardwright.config.images import KEEP
from shardwright.config.input import NO_OBJECTS, OTHER_CLASSES, STORED, LabelsConfig
from shardwright.config.shards import TF_VISION, ShardsConfig
from shardwright.dataset.example_view import ExampleReader
from shardwright.dataset.feature_presets import StoredFeatures
from shardwright.dataset.ledger import MISSING_IMAGE, REJECTED, UNLISTED, WRITTEN, LedgerRow
from shardwright.dataset.manifest import (
    AREA,
    IGNORED,
    MASK_PREFIX,
    MASKS,
    MULTI,
    NONE,
    RLE,
    SINGLE,
    Manifest,
    mask_feature,
)
from shardwright.dataset.random_access import RecordLocation, read_record
from shardwright.dataset.reader import ImageDataset
from shardwright.duplicates.find import CONFLICTING
from shardwright.edit.derive import Derived, derive, every, folder_of_images
from shardwright.errors import AnnotationError, CheckFailed, UsageError
from shardwright.formats.base import (
    Annotation,
    AnnotationFormat,
    Images,
    Request,
    Survey,
    check_absent,
    check_some,
    shorten,
)
from shardwright.formats.classes import check_spellings
from shardwright.formats.detect import open_source
from shardwright.formats.export_record import FoundExport, find_export
from shardwright.formats.image_names import base_stem, below_root, key_stem
from shardwright.formats.rle_csv import RleCsv
from shardwright.images.header import MOST_PIXELS
from shardwright.images.orientation import UPRIGHT
from shardwright.ingest.example import ExampleSpec, read_masks
from shardwright.ingest.recipe import CODE_FORMAT
from shardwright.ingest.survey import SourceGuard
from shardwright.ingest.tasks import ImageRow, Job
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.masks.rle import Runs, area
from shardwright.running.progress import counted
from shardwright.staging.staging import RecordResult
from shardwright.storage import is_remote
from shardwright.tfrecords.encode import FeatureValue, PackedInts, byte_strings, ints
from shardwright.tfrecords.lazy_example import LazyExample, ReplacedFeatures
from shardwright.tfrecords.wire import pack_int64_lists

AUTO, EMPTY, REJECT, FAIL, UNCHANGED = "auto", "empty", "reject", "fail", "keep"
_WAYS = (AUTO, EMPTY, REJECT, FAIL, UNCHANGED)
_SHOWN, _NAMED = 3, 20
_OF_CLASSES = ("image/class/label", "image/class/text")
_BEFORE = " (by the annotations before this relabel)"
# All options are detected.
_DETECTED = LabelsConfig()


def relabel(
    dataset: ImageDataset,
    labels: str,
    out: str,
    *,
    read_as: LabelsConfig = _DETECTED,
    unlisted: str = AUTO,
    shards: ShardsConfig | None = None,
    quiet: bool = False,
) -> tuple[Manifest, tuple[str, ...]]:
    """Makes a dataset of the same images with other annotations, which are kept in memory.

    Args:
        dataset: the images.
        labels: a file of annotations, or its URL.
        out: folder to make.
        read_as: options of their format that are not to be detected.
        unlisted: the treatment of images without annotations, as in `input.unlisted_images`; or `keep`, by which they
            keep those that they have.
        shards: number and names of shards.
        quiet: show no progress.

    Returns:
        The manifest, and notes on the detected options.

    Raises:
        UsageError: the file cannot be read, or the dataset is transformed or stores its features under other names.
        CheckFailed: nothing matched, an image is not listed and `unlisted` is `fail`, or the file has changed.
    """
    manifest = dataset.manifest
    if unlisted not in _WAYS:
        raise UsageError(f"--unlisted-images: {unlisted!r} is not known. Use one of: {', '.join(_WAYS)}.")
    check_annotatable(dataset)
    file = labels if is_remote(labels) else os.path.abspath(labels)
    export = find_export(file, "", manifest.task)
    read = SourceGuard.before([file, *(export.files if export else ())])
    source, survey, keys, named = _open(dataset, file, read_as, export)
    way = source.unlisted if unlisted == AUTO else unlisted
    missing, unlisted_notes = _missing(labels, survey, keys, way)
    check_some(survey, labels, read_as)
    _check_classes(labels, () if way == UNCHANGED else named, manifest, read_as)
    rows: dict[str, list[Annotation]] = {}
    for annotation in source.annotations():
        row = annotation._replace(values={}) if annotation.values else annotation
        rows.setdefault(keys[annotation.image], []).append(row)
    left_out = missing if way == REJECT else ()
    rejected = dict.fromkeys(left_out, (UNLISTED, f"{os.path.basename(labels)} has no row for it"))
    rejected |= {keys[i]: (refusal.code, refusal.reason) for i, refusal in survey.rejected.items()}
    form = AnnotatedRecords(tuple(survey.classes), MASKS if manifest.labels == MASKS else survey.labels, survey.ignore)
    kept = missing if way == UNCHANGED else []
    form = _with_kept(labels, manifest, form) if kept else form
    writer = _Writer(source, survey, rows, rejected, form, manifest, kept)
    read.check_unchanged()  # It was read twice, and its hash is in the recipe.
    options = {"labels": read.checksum(file), "unlisted": way, **_reading_options(read_as)}
    if export is not None:
        options["export"] = [read.checksum(path) for path in export.files]
    further, notes = _unmatched(dataset, survey, labels, read_as)
    changes = {**form.changes(manifest), "annotations": "" if NO_OBJECTS in read_as.confirmed else labels}
    how = Derived("relabel", options, every, _kept_row, writer.outcome, changes, further_rows=further)
    return derive([dataset], out, how, shards=shards, quiet=quiet), (*survey.notes, *unlisted_notes, *notes)


def _reading_options(read_as: LabelsConfig) -> dict[str, Any]:
    """Returns how annotations are read, for the recipe; the version of the dataset's own recipe may be older."""
    given = {name: value for name, value in recipe_options(read_as).items() if name != "path"}
    return {"code_format": CODE_FORMAT, **({"read_as": given} if given else {})}


def _kept_row(row: LedgerRow) -> LedgerRow | None:
    """Keeps the ledger rows of images, but not those of annotations that are replaced."""
    if row.code == CONFLICTING and not row.reason.endswith(_BEFORE):
        return dataclasses.replace(row, reason=row.reason + _BEFORE)
    return None if row.code == MISSING_IMAGE else row


def _check_classes(labels: str, named: Sequence[str], manifest: Manifest, read_as: LabelsConfig) -> None:
    """Checks that annotations name the classes of the dataset, each in one spelling.

    Raises:
        UsageError: they do not, and `input.labels.confirmed` does not have it.
    """
    if OTHER_CLASSES in read_as.confirmed or not named:
        return
    check_spellings(dict.fromkeys((*manifest.classes, *named)), labels)
    if lost := [name for name in manifest.classes if name not in named]:
        raise UsageError(
            f"{labels}: names {shorten(named) or 'no class'}, and no {shorten(lost)}, which the dataset has. Is "
            "it of the same images and classes? If no image has these any more, set --confirmed other_classes."
        )


def _unmatched(
    dataset: ImageDataset, survey: Survey, labels: str, read_as: LabelsConfig
) -> tuple[list[LedgerRow], list[str]]:
    """Returns the ledger rows of annotations without an image, as an ingest writes them, and notes about them.

    An image that the dataset has as rejected or duplicate already has a row, which stays.

    Raises:
        UsageError: see `check_absent`.
    """
    if not survey.refused:
        return [], []
    others = (row.key for row in dataset.ledger() if row.status != WRITTEN and _kept_row(row) is not None)
    names = {name for key in others for name in (key, key_stem(key), os.path.basename(key), base_stem(key))}
    rows = {one.key: LedgerRow(one.key, REJECTED, one.code, one.reason) for one in survey.refused}
    missing = [key for key, row in rows.items() if row.code == MISSING_IMAGE]
    folder = folder_of_images(dataset)
    there = [not names.isdisjoint((key, below_root(key, folder))) for key in missing]
    unwritten, absent = (
        [key for key, one in zip(missing, there, strict=True) if one is kept] for kept in (True, False)
    )
    check_absent(absent, sum(survey.listed) + len(missing), labels, read_as)
    notes = []
    if absent:
        one, several = "image that the annotations name is", "images that the annotations name are"
        notes.append(f"{counted(len(absent), one, several)} not in the dataset: {shorten(absent)}")
    if unwritten:
        one, several = "annotated image is", "annotated images are"
        found = f"{counted(len(unwritten), one, several)} still rejected or a duplicate: {shorten(unwritten)}"
        notes.append(f"{found}. `shardwright retry-rejects` reads rejected images again")
        for key in unwritten:
            del rows[key]
    return list(rows.values()), notes


def check_annotatable(dataset: ImageDataset) -> None:
    """Checks whether records of a dataset can get other annotations.

    Raises:
        UsageError: it is transformed, or stores its features under other names.
    """
    if dataset.manifest.kind == "transform":
        raise UsageError(
            f"{dataset.root}: is a transformed dataset, whose other features and statistics follow from its "
            "annotations. Relabel the ingested dataset, then transform the result."
        )
    preset = dataset.manifest.recipe.get("features", {}).get("preset", TF_VISION)
    if preset != TF_VISION or dataset.manifest.names:
        raise UsageError(
            f"{dataset.root}: was made with features.preset or features.map. Only datasets without them are relabeled."
        )


def _missing(labels: str, survey: Survey, keys: list[str], way: str) -> tuple[list[str], list[str]]:
    """Returns the keys of images without annotations, and notes about those that are written.

    Raises:
        CheckFailed: no image has any, or some have none and `way` is `fail`.
    """
    if not any(survey.listed):
        names, known = ", ".join(survey.names[:_SHOWN]), frozenset(keys)
        # Folders before a key in one of the names.
        cuts = ((name, cut + 1) for name in survey.names for cut, character in enumerate(name) if character == "/")
        found = next((name[:cut] for name, cut in cuts if name[cut:] in known), None)
        fix = "" if found is None else f" Remove {found!r} from the beginning of the names in the file."
        raise CheckFailed(
            f"{labels}: no row matches an image. Its rows name {names}; the images are {', '.join(keys[:_SHOWN])}.{fix}"
        )
    missing = [key for key, listed in zip(keys, survey.listed, strict=True) if not listed]
    if missing and way == FAIL:
        names = ", ".join(missing[:_SHOWN])
        raise CheckFailed(
            f"{len(missing)} of {len(keys)} images have no row in {labels}: {names}. See --unlisted-images."
        )
    if not missing or way == REJECT:
        return missing, []
    where = f"{len(missing)} of {counted(len(keys), 'image')} have no row in {os.path.basename(labels)}"
    what = "keep their annotations" if way == UNCHANGED else "are written without annotations"
    return missing, [f"{where}, and {what} (--unlisted-images {way}): {shorten(missing)}"]


def _open(
    dataset: ImageDataset, file: str, read_as: LabelsConfig, export: FoundExport | None
) -> tuple[AnnotationFormat, Survey, list[str], Sequence[str]]:
    """Reads the annotations; returns the keys of the dataset, and the classes that the file names, too."""
    shards = [shard for split in dataset.splits for shard in dataset.shards(split)]
    locations = {
        key: RecordLocation(number, offset)
        for number, shard in enumerate(shards)
        for key, offset in dataset.entries(shard)
    }
    keys = sorted(locations)
    reader = ExampleReader(dataset.manifest)

    def size_of(position: int) -> tuple[int, int] | None:
        height, width = reader.read(keys[position], read_record(shards, locations[keys[position]])).size
        return (height, width) if height and width else None

    images = Images(
        keys=keys, skip=frozenset(), size_of=size_of, max_pixels=MOST_PIXELS, root=folder_of_images(dataset)
    )
    task = dataset.manifest.task

    def opened(classes: Mapping[str, int | None] | None) -> tuple[AnnotationFormat, Survey]:
        source = open_source(
            Request(
                task=task,
                options=dataclasses.replace(read_as, path=file),
                classes=classes,
                path=file,
                images=images,
            ),
            export=export,
        )
        if source.attachments() is not None:
            raise UsageError(f"{file}: refers to masks in other files. Give annotations that are in one file.")
        resize = dataset.manifest.recipe.get("images", {}).get("resize", KEEP)
        if isinstance(source, RleCsv) and export is None and resize != KEEP:
            # The records do not state the size that the images had.
            raise UsageError(
                f"{file}: its run lengths are positions in the files of the images, which the ingest has resized "
                f"(images.resize: {resize}). Ingest again with this table, and with reuse_from: {dataset.root}, which "
                "copies the images. Or change a table that `shardwright export` has written, and leave it in its "
                "folder."
            )
        return source, source.survey()

    source, survey = opened(None)
    known = dataset.manifest.classes
    if isinstance(source, RleCsv) and source.one_class and len(known) == 1:
        source, survey = opened(dict.fromkeys(known))
    named = survey.classes
    new = [name for name in survey.classes if name not in known]
    # Classes keep their numbers, on which models depend. A file of numbers has other names, and keeps its own.
    if survey.classes != known and len(new) < len(survey.classes):
        source, survey = opened(dict.fromkeys((*known, *new)))
        if new:
            survey.notes = (*survey.notes, f"new classes, after those of the dataset: {', '.join(new)}")
    return source, survey, keys, named


def _with_kept(labels: str, manifest: Manifest, form: AnnotatedRecords) -> AnnotatedRecords:
    """Returns the form of a dataset in which some images keep their annotations.

    Raises:
        CheckFailed: their classes would have other numbers or another meaning.
    """
    known = manifest.classes
    if form.classes[: len(known)] != known or (manifest.labels, form.labels) == (SINGLE, MULTI):
        unknown = [repr(name) for name in form.classes if name not in known]
        what = "an image has one class in the dataset, and several in the file. Give one"
        if unknown:
            there = ", ".join(known[:_NAMED]) + (", …" if len(known) > _NAMED else "")
            what = f"the dataset has no class {', '.join(unknown[:_SHOWN])}; it has {there}. Correct the names"
        raise CheckFailed(f"{labels}: --unlisted-images keep: {what}, or give a file of all images.")
    kind = form.labels if manifest.labels == NONE else manifest.labels
    return dataclasses.replace(form, labels=kind, ignore=form.ignore or manifest.ignores)


@dataclasses.dataclass(frozen=True)
class AnnotatedRecords:
    """The form of annotations in the records of a dataset.

    Attributes:
        classes: their names.
        labels: `MASKS`, `SINGLE`, `MULTI` or `NONE`.
        ignore: whether there are masks of ignored pixels.
    """

    classes: tuple[str, ...]
    labels: str
    ignore: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the masks: the classes, and then the ignored pixels; empty without masks."""
        return (*self.classes, *([IGNORED] if self.ignore else [])) if self.labels == MASKS else ()

    @cached_property
    def _mask_features(self) -> list[tuple[str, str]]:
        return [(mask_feature(name), mask_feature(name, AREA)) for name in self.names]

    @cached_property
    def _texts(self) -> list[bytes]:
        return [name.encode("utf-8") for name in self.classes]

    def changes(self, manifest: Manifest) -> dict[str, Any]:
        """Returns `Derived.changes` of a dataset whose records get such annotations."""
        kept = {name: kind for name, kind in manifest.features.items() if not name.startswith(MASK_PREFIX)}
        masks = {mask_feature(name, what): "int64" for name in self.names for what in (RLE, AREA)}
        return {"classes": self.classes, "labels": self.labels, "features": kept | masks}

    def put(self, key: str, example: LazyExample, labels: Sequence[int], masks: Sequence[Runs] = ()) -> RecordResult:
        """Returns a record with other annotations.

        Args:
            key: its key.
            example: the record.
            labels: numbers of the classes; those of masks follow from them.
            masks: in the stored frame, by `names`.
        """
        features: dict[str, FeatureValue] = {}
        if masks:
            labels = [label for label, runs in enumerate(masks[: len(self.classes)]) if len(runs)]
        packed = pack_int64_lists([runs.reshape(-1) for runs in masks])
        for (rle_name, area_name), runs, numbers in zip(self._mask_features, masks, packed, strict=True):
            features[rle_name], features[area_name] = PackedInts(numbers), area(runs)
        features["image/class/label"] = ints(labels)
        features["image/class/text"] = byte_strings([self._texts[label] for label in labels])
        return RecordResult(
            key, example.replaced(_of_annotations, features), values=ReplacedFeatures(example, features)
        )


def _of_annotations(name: str) -> bool:
    """Returns whether a feature of a name is replaced."""
    return name.startswith(MASK_PREFIX) or name in _OF_CLASSES


class _Writer:
    """Puts annotations into records."""

    def __init__(
        self,
        source: AnnotationFormat,
        survey: Survey,
        rows: Mapping[str, list[Annotation]],
        rejected: Mapping[str, tuple[str, str]],
        form: AnnotatedRecords,
        manifest: Manifest,
        kept: Collection[str],
    ) -> None:
        self._survey, self._rows, self._rejected = survey, rows, rejected
        self._form, self._kept, self._reader = form, frozenset(kept), ExampleReader(manifest)
        self._spec = ExampleSpec(
            task=manifest.task,
            classes=form.classes,
            table=source.name,
            mask_column=source.mask_column,
            dialect=source.dialect,
            stored=StoredFeatures({}, 0),
            preset=TF_VISION,
            ignore=form.ignore,
            extra={},
            frame=STORED,
            ordered=survey.ordered,
        )

    def outcome(self, key: str, payload: bytes) -> RecordResult:
        """Returns the result of a record."""
        if key in self._rejected:
            return RecordResult(key, None, REJECTED, *self._rejected[key])
        if key in self._kept:
            return self._keep(key, payload)
        rows = self._rows.get(key, [])
        listed = [row.label for row in rows if row.label >= 0]
        labels = listed if self._survey.ordered else sorted(set(listed))
        masks: list[Runs] = []
        example = LazyExample(payload)
        if self._form.names:
            height, width = (int(example.number(f"image/{side}") or 0) for side in ("height", "width"))
            job = Job(ImageRow(key, "", 0))
            for row in rows:
                job.add(row)
            try:
                masks = [*read_masks(self._spec, job, CoordinateFrame(height, width, UPRIGHT)).values()]
            except AnnotationError as error:
                return RecordResult(key, None, REJECTED, error.code, str(error))
        return self._form.put(key, example, labels, masks)

    def _keep(self, key: str, payload: bytes) -> RecordResult:
        """Returns a record with its annotations, and no mask of the classes that are new."""
        view, nothing = self._reader.read(key, payload), np.empty((0, 2), np.int64)
        known = range(len(self._reader.classes))
        masks = [view.runs(label) if label in known else nothing for label in range(len(self._form.classes))]
        kept = [*masks, *([view.ignored] if self._form.ignore else [])] if self._form.names else []
        return self._form.put(key, LazyExample(payload), view.labels, kept)
