"""Writes a review: images that a person should look at, as a page, a table, and files for annotation tools.

OUT/review.html   pictures, annotations, predictions, and buttons that mark what is right
OUT/ranking.csv   all images in their order, with the reasons
OUT/annotations   the images of the page with the predictions, as `shardwright export` writes them
OUT/folds         models of the folds, and the data that they learned from
"""

from __future__ import annotations

import csv
import io
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shardwright.components.predictor.exported_model import ExportedModel, open_model
from shardwright.components.predictor.other_model import Stated, open_any_model
from shardwright.components.predictor.sources import DatasetSource, Failure, FolderSource, find_source
from shardwright.dataset.example_view import ExampleReader, ExampleView
from shardwright.dataset.manifest import MASKS, MULTI, NONE, SINGLE
from shardwright.dataset.reader import ImageDataset
from shardwright.edit.derive import Derived, derive
from shardwright.edit.export_dataset import ExportOptions, export
from shardwright.edit.relabel_dataset import AnnotatedRecords, check_annotatable
from shardwright.errors import CheckFailed, DatasetError, NotFound, UsageError
from shardwright.ingest.run_ingest import make_dataset
from shardwright.lineage.ancestry import family_of
from shardwright.pipelines.reviewing import RANKING_HEADER
from shardwright.pipelines.reviewing.answers import (
    Annotated,
    Answer,
    annotations_of,
    answers_of,
    check_fits,
    has_embeddings,
    views_of,
)
from shardwright.pipelines.reviewing.folds import fold_models, options_of
from shardwright.pipelines.reviewing.strength import Strength
from shardwright.review.confident_learning import doubt_label_sets, doubt_labels
from shardwright.review.coverage import k_center, nearest_distances
from shardwright.review.mask_doubts import MaskDifference, doubt_masks
from shardwright.review.review_page import ReviewItem, ReviewPage
from shardwright.running.progress import counted, print_note, progress
from shardwright.storage import read_bytes
from shardwright.storage.durable import make_folder, write_file
from shardwright.storage.fingerprint import fingerprint
from shardwright.text.escaping import spreadsheet_cell
from shardwright.tfrecords.lazy_example import LazyExample

PAGE, RANKING, ANNOTATIONS, FOLDS = "review.html", "ranking.csv", "annotations", "folds"
_TRAIN = "train"
_NOT_MEASURED = "the model learned from this split; --folds 5 reviews it by models that did not"


@dataclass(frozen=True)
class ReviewOptions:
    """How images are reviewed.

    Attributes:
        stated: what is known of a model that Shardwright did not export. Its dataset has the annotated images, also of
            other models; by default it is the one that the model was trained on.
        splits: only these; by default all but `train`, which needs `folds`.
        folds: how many models are trained to review `train`; 0: it is not reviewed.
        config: a configuration for these trainings; by default they have the options of the model.
        images: a folder of new images, from which the next ones to label are chosen instead.
        count: images of the page.
        export: format of the annotations, as `ExportOptions.to`; empty: none are written.
        trust_model: see `open_any_model`.

    Raises:
        UsageError: two options contradict each other, or a value is not allowed.
    """

    stated: Stated = field(default_factory=Stated)
    splits: Sequence[str] = ()
    folds: int = 0
    config: str | None = None
    images: str | None = None
    count: int = 100
    export: str = ""
    trust_model: bool = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UsageError(f"--count: {self.count} is too small. Use 1 or more.")
        if self.images is not None and (self.folds or self.splits):
            raise UsageError("--images: chooses among new images. Omit --folds and --split, which are for others.")
        if self.config is not None and not self.folds:
            raise UsageError("--config: is for the trainings of --folds. Add --folds 5, or omit it.")


@dataclass(frozen=True)
class Ranked:
    """An image in its place.

    Attributes:
        answer: what the model says of it.
        split: its split; empty for a new image.
        score: by which it was ranked, the highest first.
        reason: why it is there.
        labels: numbers of the annotated classes.
    """

    answer: Answer
    split: str
    score: float
    reason: str
    labels: tuple[int, ...] = ()


def write_review(model: str, out: str, options: ReviewOptions, *, quiet: bool = False) -> dict[str, Any]:
    """Writes a review.

    Args:
        model: see `open_any_model`.
        out: folder to make; an interrupted call continues.
        options: what is reviewed.
        quiet: show no progress.

    Returns:
        `page`, `ranking` and `annotations` (paths), `images` (how many were ranked), `shown`, `suspected` (how many are
        off the diagonal of the confident joint; none of masks), `strength` (of the model, see `Strength`; none of new
        images) and the same in words (`told`), `failures`, `next` (a command).

    Raises:
        UsageError: there is no such model or dataset, or they do not belong together.
        CheckFailed: there is nothing to review.
    """
    target = Path(os.path.abspath(out))
    if Path(target, PAGE).exists():
        raise UsageError(f"--out {out}: contains a review already. Name another folder.")
    opened = open_any_model(os.path.abspath(model), options.stated, trusted=options.trust_model)
    dataset = ImageDataset.open(_dataset_of(opened, model, options))
    if options.export and options.images is None:
        check_annotatable(dataset)
    failures: list[Failure] = []
    if options.images is None:
        ranked, suspected, strength = _doubtful(opened, dataset, target, options, failures, quiet=quiet)
    else:
        ranked, suspected, strength = _to_label(opened, dataset, options, failures, quiet=quiet), None, None
    if not ranked:
        raise CheckFailed(f"{options.images or dataset.root}: none of the images can be reviewed. {_first(failures)}")
    make_folder(target)
    shown = ranked[: options.count]
    following = _following(dataset, options, opened)
    with tempfile.TemporaryDirectory(prefix="shardwright-review-") as scratch:
        images = dataset if options.images is None else _ingested(options.images, shown, Path(scratch))
        if options.export:
            predicted = _with_predictions(images, opened, shown, Path(scratch, "predicted"))
            export(predicted, target / ANNOTATIONS, ExportOptions(to=options.export))
        wanted = {row.answer.key for row in shown}
        seen = (view for split in images.splits for view in views_of(images, split))
        views = {view.key: view for view in seen if view.key in wanted}
        told = strength.words(suspected) if strength else ""
        page = _page(opened, dataset, options, len(ranked), following, told)
        items = [_item(opened, row, views[row.answer.key]) for row in shown if row.answer.key in views]
        _write_ranking(target / RANKING, ranked, opened.classes, annotated=options.images is None)
        write_file(target / PAGE, page.render(items))
    return {
        "page": str(target / PAGE),
        "ranking": str(target / RANKING),
        "annotations": str(target / ANNOTATIONS) if options.export else "",
        "images": len(ranked),
        "shown": len(items),
        "suspected": suspected,
        "strength": strength.to_dict() if strength else None,
        "told": told,
        "failures": [failure._asdict() for failure in failures],
        "next": following,
    }


def _dataset_of(model: ExportedModel, place: str, options: ReviewOptions) -> str:
    """Returns the dataset of the call, or the ingested one that the model descends from."""
    if options.stated.dataset:
        return options.stated.dataset
    with suppress(DatasetError):  # A model without a lineage.
        start, family = family_of(model.folder, [os.path.abspath(place)])
        for one in family.ancestors(start):
            if one.kind == "ingest":
                return one.place
    raise NotFound(f"{place}: the dataset that this model was trained on is not there. Give --dataset DIR.")


def _doubtful(
    model: ExportedModel,
    dataset: ImageDataset,
    target: Path,
    options: ReviewOptions,
    failures: list[Failure],
    *,
    quiet: bool,
) -> tuple[list[Ranked], int | None, Strength | None]:
    """Ranks annotated images by how much models doubt their annotations."""
    if dataset.manifest.labels == NONE:
        raise UsageError(f"{dataset.root}: has no annotations. Use --images {dataset.root} to choose what to label.")
    for name in options.splits:
        dataset.shards(name)
    others = tuple(name for name in dataset.splits if name != _TRAIN and dataset.num_records(name))
    splits = tuple(options.splits) or (others if others or options.folds else ())
    if _TRAIN in splits or not (splits or options.folds):
        raise UsageError(f"{dataset.root}: {_TRAIN} cannot be reviewed by this model: {_NOT_MEASURED}.")
    sources = [(model, DatasetSource(dataset, splits))] if splits else []
    if not options.folds and _TRAIN in dataset.splits:
        print_note(f"{', '.join(splits)} alone: {_NOT_MEASURED.replace('this split', _TRAIN)}")
    for _, source in sources:
        check_fits(model, source)
    if options.folds:
        given = options_of(model) if options.config is None else {}
        folded = fold_models(dataset, target / FOLDS, options.folds, options.config, given)
        sources += [(open_model(place), source) for place, source in folded]
    answers: list[Answer] = []
    annotated: dict[str, Annotated] = {}
    for judge, source in sources:
        annotated |= annotations_of(source)
        with progress(source.images, "predicting", quiet=quiet) as shown:
            for found in answers_of(judge, source, shown, annotated=annotated):
                if isinstance(found, Failure):
                    failures.append(found)
                else:
                    answers.append(found)
    kind = dataset.manifest.labels
    if kind == SINGLE:
        answers = [answer for answer in answers if annotated[answer.key].labels]
    if not answers:
        return [], None, None
    return *_rank(kind, answers, annotated, model.classes), Strength.of(kind, answers, annotated, model.classes)


def _rank(
    kind: str, answers: Sequence[Answer], annotated: Mapping[str, Annotated], classes: Sequence[str]
) -> tuple[list[Ranked], int | None]:
    rows = [annotated[answer.key] for answer in answers]
    if kind == MASKS:
        order, doubts = doubt_masks([answer.differences for answer in answers])
        reasons = [_mask_reason(answer.differences, classes) for answer in answers]
        found = [Ranked(answers[k], rows[k].split, float(doubts[k]), reasons[k], rows[k].labels) for k in order]
        return found, None
    probabilities = np.stack([answer.probabilities for answer in answers])
    if kind == MULTI:
        told = np.array([[label in row.labels for label in range(len(classes))] for row in rows], np.int64)
        doubted = doubt_label_sets(probabilities, told)
    else:
        doubted = doubt_labels(probabilities, [row.labels[0] for row in rows])
    found = []
    for k in doubted.order:
        word = "suspected: " if doubted.suspected[k] else ""
        reason = f"{word}{doubted.confidence[k]:.0%} that the annotation is right"
        score = 1 / (1 + float(doubted.shares[k]))
        found.append(Ranked(answers[k], rows[k].split, score, reason, rows[k].labels))
    return found, int(doubted.suspected.sum())


def _mask_reason(differences: Sequence[MaskDifference], classes: Sequence[str]) -> str:
    """Returns what differs most."""
    label = max(range(len(differences)), key=lambda c: differences[c].wrong)
    one, name = differences[label], classes[label]
    if not one.annotated and not one.predicted:
        return "annotation and prediction agree"
    parts = [f"{name}: Dice {one.dice:.2f}"]
    if one.missed:
        parts.append(f"regions of {one.missed / one.annotated:.0%} of the annotation are not predicted")
    if one.extra:
        parts.append(f"regions of {one.extra / one.predicted:.0%} of the prediction are not annotated")
    return "; ".join(parts)


def _to_label(
    model: ExportedModel, dataset: ImageDataset, options: ReviewOptions, failures: list[Failure], *, quiet: bool
) -> list[Ranked]:
    """Ranks new images: first those that are chosen, then the others by their distance from the dataset."""
    source = find_source(str(options.images))
    if not isinstance(source, FolderSource):
        raise UsageError(f"--images {options.images}: is a dataset. Give a folder of new images.")
    failures += source.refused
    known_source = DatasetSource(dataset, dataset.splits)
    if not has_embeddings(model):
        print_note(f"{model.folder}: has no embeddings, so images are compared by the model's answers")
    new: list[Answer] = []
    with progress(source.images + known_source.images, "predicting", quiet=quiet) as shown:
        known = [one.embedding for one in answers_of(model, known_source, shown, embed=True) if isinstance(one, Answer)]
        for found in answers_of(model, source, shown, embed=True):
            if isinstance(found, Failure):
                failures.append(found)
            else:
                new.append(found)
    if not new:
        return []
    points, labeled = np.array([answer.embedding for answer in new], np.float64), np.array(known, np.float64)
    scale = np.concatenate([points, labeled]) if len(labeled) else points
    deviation = np.maximum(scale.std(0), 1e-6)
    points, labeled = points / deviation, labeled / deviation if len(labeled) else labeled
    unsure = np.array([answer.unsure for answer in new])
    # The share of images of which the model is surer: the entropies of masks are all close to 0.
    weights = 1 + np.searchsorted(np.sort(unsure), unsure) / len(unsure)
    apart = nearest_distances(points, labeled) if len(labeled) else np.ones(len(points))
    chosen = k_center(points, labeled, options.count, weights).tolist()
    rest = sorted(set(range(len(new))) - set(chosen), key=lambda k: -apart[k] * weights[k])
    return [
        Ranked(new[k], "", float(apart[k]), f"distance {apart[k]:.2f}, unsure {unsure[k]:.2f}")
        for k in [*chosen, *rest]
    ]


def _ingested(images: str, shown: Sequence[Ranked], scratch: Path) -> ImageDataset:
    """Returns a dataset of new images, which are copied: a folder may have millions of others."""
    source = find_source(images)
    assert isinstance(source, FolderSource)
    wanted = {row.answer.key for row in shown}
    for position, key in enumerate(source.listing.keys):
        if key in wanted:
            file = scratch / "images" / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(read_bytes(source.listing.path(position), source.listing.pin(position)))
    config = {
        "task": "classification",
        "input": {"images": str(scratch / "images"), "labels": {"format": "none"}},
        "split": {"ratios": {_TRAIN: 1.0}},
        "rejects": {"max_fraction": 1.0},
    }
    return make_dataset(config, scratch / "ingested")


def _with_predictions(images: ImageDataset, model: ExportedModel, shown: Sequence[Ranked], out: Path) -> ImageDataset:
    """Returns a dataset of the images of the page, annotated by the model."""
    kind = MASKS if model.task == "segmentation" else MULTI if model.multi else SINGLE
    form = AnnotatedRecords(model.classes, kind, kind == MASKS and images.manifest.ignores)
    reader, answers = ExampleReader(images.manifest), {row.answer.key: row.answer for row in shown}

    def outcome(key: str, payload: bytes) -> Any:
        answer = answers[key]
        ignored = [reader.read(key, payload).ignored] if form.ignore else []
        return form.put(key, LazyExample(payload), answer.labels, [*answer.masks, *ignored])

    changes = {**form.changes(images.manifest), "task": model.task}
    how = Derived("review", {"model": model.fingerprint}, answers.__contains__, lambda row: None, outcome, changes)
    derive([images], out, how, quiet=True)
    return ImageDataset.open(out)


def _page(
    model: ExportedModel, dataset: ImageDataset, options: ReviewOptions, images: int, following: str, told: str
) -> ReviewPage:
    annotated = options.images is None
    title = "Doubtful annotations" if annotated else "What to label next"
    lead = f"The first {min(options.count, images)} of {counted(images, 'image')}" + (f". {told}." if told else "")
    identity = fingerprint([dataset.manifest.digest, model.fingerprint, options.images or "", options.folds])
    return ReviewPage(title, lead, identity[:16], model.classes, model.multi, annotated, following)


def _item(model: ExportedModel, row: Ranked, view: ExampleView) -> ReviewItem:
    answer = row.answer
    masks = answer.masks if model.task == "segmentation" else None
    return ReviewItem(answer.key, row.split, row.reason, view, answer.labels, answer.probabilities.tolist(), masks)


def _following(dataset: ImageDataset, options: ReviewOptions, model: ExportedModel) -> str:
    if options.images is not None:
        return ""
    read_as = ["--encoding", "absolute", "--order", "column", "--start", "1"] if model.task == "segmentation" else []
    call = ["shardwright", "relabel", dataset.root, "corrections.csv", "--unlisted-images", "keep", *read_as]
    return shlex.join([*call, "--out", f"{dataset.root.rstrip('/')}-corrected"])


def _write_ranking(file: Path, ranked: Sequence[Ranked], classes: Sequence[str], *, annotated: bool) -> None:
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(name for name in RANKING_HEADER if annotated or name not in ("split", "annotation"))
    for number, row in enumerate(ranked, 1):
        told = (row.split, "|".join(classes[k] for k in row.labels)) if annotated else ()
        predicted = "|".join(classes[k] for k in row.answer.labels)
        cells = (row.answer.key, *told, predicted)
        table.writerow((number, *map(spreadsheet_cell, cells), f"{row.score:.6f}", spreadsheet_cell(row.reason)))
    write_file(file, text.getvalue())


def _first(failures: Sequence[Failure]) -> str:
    return f"{failures[0].key}: {failures[0].reason}" if failures else "Give images with annotations."
