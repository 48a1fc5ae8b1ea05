"""What a model answers for images: classes or masks, how unsure it is, and where it looks: its embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.components.predictor.exported_model import ExportedModel
from shardwright.components.predictor.predict_images import answer_images
from shardwright.components.predictor.prediction_rows import Predicted, file_masks
from shardwright.components.predictor.sources import DatasetSource, Failure, ReadImage, Source
from shardwright.dataset.example_view import ExampleReader, ExampleView
from shardwright.dataset.manifest import MASKS
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.images.geometry import plan_geometry
from shardwright.masks.rle import Runs, draw, resample
from shardwright.review.coverage import uncertainty
from shardwright.review.mask_doubts import MaskDifference, compare_masks
from shardwright.running.progress import SILENT, Progress

_BATCH = 16
_EMBEDDING = "embedding"


@dataclass(frozen=True)
class Answer:
    """What a model says of an image.

    Attributes:
        key: its key.
        probabilities: of the classes, float64 [K]; of masks the highest of any pixel.
        labels: numbers of the predicted classes.
        masks: the predicted mask of each class in the stored pixels; empty of a classification.
        unsure: 0 to 1, the entropy of the answer.
        embedding: float64 [D]; `None` where it was not asked for.
        differences: of an annotated image, annotation and prediction by class; empty of a classification.
    """

    key: str
    probabilities: npt.NDArray[np.float64]
    labels: tuple[int, ...]
    masks: tuple[Runs, ...]
    unsure: float
    embedding: npt.NDArray[np.float64] | None = None
    differences: tuple[MaskDifference, ...] = ()


@dataclass(frozen=True)
class Annotated:
    """What is known of an annotated image without its bytes: a review keeps it for every image.

    Attributes:
        split: its split.
        labels: numbers of its classes.
        size: height and width of the stored pixels.
        masks: the mask of each class in the stored pixels, and at the end the ignored ones; empty of a classification.
    """

    split: str
    labels: tuple[int, ...]
    size: tuple[int, int]
    masks: tuple[Runs, ...]


def annotations_of(source: DatasetSource) -> dict[str, Annotated]:
    """Returns the annotations of the splits of a source by key."""
    manifest = source.dataset.manifest
    classes = range(len(manifest.classes)) if manifest.labels == MASKS else ()
    return {
        view.key: Annotated(split, view.labels, view.size, (*map(view.runs, classes), view.ignored) if classes else ())
        for split in source.splits
        for view in views_of(source.dataset, split)
    }


def check_fits(model: ExportedModel, source: DatasetSource) -> None:
    """Checks that the annotations of a dataset can be compared with the answers of a model.

    Raises:
        UsageError: its classes or its images are others than those of the model's training.
    """
    manifest = source.dataset.manifest
    if manifest.task != model.task or manifest.classes != model.classes:
        raise UsageError(
            f"{source.root}: has {_shown(manifest.classes)} ({manifest.task}), and {model.folder} predicts "
            f"{_shown(model.classes)} ({model.task}). Give the dataset that the model was trained on."
        )
    if manifest.labels == MASKS and not source.is_stored(model):
        raise UsageError(
            f"{source.root}: was ingested with other image options than the data of {model.folder}, so that masks "
            "cannot be compared. Give the dataset that the model was trained on."
        )


def _shown(classes: Sequence[str]) -> str:
    return ", ".join(classes[:8]) + (" …" if len(classes) > 8 else "")


def answers_of(
    model: ExportedModel,
    source: Source,
    shown: Progress = SILENT,
    *,
    annotated: Mapping[str, Annotated] | None = None,
    embed: bool = False,
) -> Iterator[Answer | Failure]:
    """Yields the answers of a model for the images of a source, and the images that are left out.

    Args:
        model: the model.
        source: the images.
        shown: advances with every image.
        annotated: see `annotations_of`, to compare their masks; by default they are not compared.
        embed: whether embeddings are needed.
    """
    stored = source.is_stored(model)
    for number in range(source.parts):
        for answers, failures in answer_images(model, source.read(number, model), {}, stored, _BATCH):
            embeddings = _embeddings(model, [read for read, _ in answers], answers, stored) if embed else None
            for place, (read, answer) in enumerate(answers):
                found = _answer(model, read, answer, None if embeddings is None else embeddings[place])
                yield found if annotated is None else _compared(model, found, answer, annotated[read.key])
            yield from failures
            shown.advance(len(answers) + len(failures))


def _answer(model: ExportedModel, read: ReadImage, answer: Mapping[str, Any], embedding: Any) -> Answer:
    given = np.asarray(answer["probabilities"], np.float64)
    exclusive = model.task != "segmentation" and not model.multi
    unsure = float(uncertainty(given[None], exclusive=exclusive)[0])
    if model.task == "segmentation":
        masks = tuple(file_masks(model, Predicted(read.key, read.frames), answer["masks"]))
        labels = tuple(label for label, runs in enumerate(masks) if len(runs))
        return Answer(read.key, given.max((0, 1)), labels, masks, unsure, embedding)
    chosen = np.flatnonzero(answer["classes"]).tolist() if model.multi else [int(given.argmax())]
    return Answer(read.key, given, tuple(chosen), (), unsure, embedding)


def _compared(model: ExportedModel, found: Answer, answer: Mapping[str, Any], truth: Annotated) -> Answer:
    """Compares masks in the model's size, where the probabilities are."""
    if not found.masks:
        return found
    plan = plan_geometry(model.resize, *truth.size, model.height, model.width)
    *masks, ignored = (draw(resample(one, plan), model.height, model.width) > 0 for one in truth.masks)
    differences = compare_masks(
        np.stack(masks, -1),
        np.asarray(answer["masks"], bool),
        np.asarray(answer["probabilities"], np.float64),
        ~ignored,
    )
    return replace(found, differences=tuple(differences))


def _embeddings(
    model: ExportedModel, reads: Sequence[ReadImage], answers: Any, stored: bool
) -> npt.NDArray[np.float64]:
    """Returns an embedding for each image; of a model that has none, its probabilities."""
    import tensorflow as tf

    if not reads:
        return np.zeros((0, 1))
    if not has_embeddings(model):
        given = np.stack([np.asarray(answer["probabilities"], np.float64) for _, answer in answers])
        return given if given.ndim == 2 else given.mean((1, 2))
    pixels = model.pixels([read.data for read in reads], stored=stored)
    return np.asarray(model.loaded.signatures[_EMBEDDING](pixels=tf.constant(pixels))[_EMBEDDING], np.float64)


def has_embeddings(model: ExportedModel) -> bool:
    """Returns whether a model was exported with the signature of its encoder."""
    return _EMBEDDING in model.loaded.signatures


def views_of(dataset: ImageDataset, split: str) -> Iterator[ExampleView]:
    """Yields the records of a split."""
    reader = ExampleReader(dataset.manifest)
    return (reader.read(key, payload) for key, payload in dataset.records(split))
