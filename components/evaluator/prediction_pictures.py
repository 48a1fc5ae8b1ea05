"""Pictures of the best and the worst predictions of an evaluation.

These files are added to TFMA's results:

    evaluation.json     metrics of the whole split and of its slices, the confusion matrix, and in `measured` what they
                        are of; `scored`: how many images were scored for pictures; `pictures` has a row each:
                        `file`, `key` of the image, `kind` (`best` or `worst`), `score`, and for labels `truth` and
                        `prediction`; the best first, then the worst; `kind: confusion` is the confusion matrix
    pictures/best-00.png, worst-00.png ...   masks: the image, the truth, the prediction; labels: the image
    pictures/confusion.png                   if every image has one class

In a large split only the first images are scored; they are a random sample, since a dataset has the order of a hash.
The score of masks is the mean over the classes of the image's Dice (1 if truth and prediction are empty). The score of
one label is the probability of the true class, and that of several classes their F1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from shardwright.components.predictor.exported_model import ExportedModel, open_model
from shardwright.dataset.manifest import mask_feature
from shardwright.dataset.reader import ImageDataset
from shardwright.display.overlays import confusion_picture, overlay, side_by_side
from shardwright.evaluation.metrics import image_dice
from shardwright.images import tf_ops
from shardwright.images.geometry import plan_geometry
from shardwright.masks.rle import draw, from_flat, resample
from shardwright.tfrecords.records import decode_example

PICTURES = "pictures"
# How many images are scored.
LOOKED_AT = 512
_BATCH = 8
_BEST, _WORST = 4, 8


class Scored(NamedTuple):
    """An image and the score of its prediction."""

    score: float
    key: str
    record: bytes


def draw_pictures(
    model_place: str, examples: ImageDataset, splits: Sequence[str], left_out: Sequence[str], folder: Path
) -> list[dict[str, Any]]:
    """Writes the pictures of an evaluation.

    Args:
        model_place: folder of the exported model.
        examples: the evaluated dataset.
        splits: the evaluated splits.
        left_out: keys of images that cannot be decoded.
        folder: folder of the evaluation.

    Returns:
        The rows of `pictures` in `evaluation.json`.
    """
    model = open_model(model_place)
    scored = sorted(_scored(model, examples, splits, frozenset(left_out)), key=lambda s: (s.score, s.key))
    worst = scored[:_WORST]
    best = [s for s in reversed(scored[-_BEST:]) if s not in worst]
    Path(folder, PICTURES).mkdir(exist_ok=True)
    rows = []
    for kind, chosen in (("best", best), ("worst", worst)):
        for number, one in enumerate(chosen):
            file = f"{PICTURES}/{kind}-{number:02d}.png"
            picture, facts = _picture(model, examples, one)
            Image.fromarray(picture).save(folder / file)
            rows.append({"file": file, "kind": kind, "key": one.key, "score": round(one.score, 6), **facts})
    return rows


def draw_confusion(matrix: Sequence[Sequence[int]], classes: Sequence[str], folder: Path) -> str:
    """Writes the picture of a confusion matrix; returns its name."""
    Path(folder, PICTURES).mkdir(exist_ok=True)
    file = f"{PICTURES}/confusion.png"
    Image.fromarray(confusion_picture(matrix, classes)).save(folder / file)
    return file


def _scored(
    model: ExportedModel, examples: ImageDataset, splits: Sequence[str], left_out: frozenset[str]
) -> Iterator[Scored]:
    records = (pair for split in splits for pair in examples.records(split) if pair[0] not in left_out)
    looked_at = itertools.islice(records, LOOKED_AT)
    while batch := list(itertools.islice(looked_at, _BATCH)):
        outputs = model.examine([record for _, record in batch])
        if model.task == "segmentation":
            scores = image_dice(outputs["intersection"], outputs["prediction"], outputs["truth"]).mean(-1)
        elif model.multi:
            shared = outputs["prediction"] * outputs["truth"]
            scores = image_dice(shared.sum(-1), outputs["prediction"].sum(-1), outputs["truth"].sum(-1))
        else:
            scores = outputs["probabilities"][np.arange(len(outputs["label"])), outputs["label"]]
        for (key, record), score in zip(batch, scores, strict=True):
            yield Scored(float(score), key, record)


def _picture(model: ExportedModel, examples: ImageDataset, one: Scored) -> tuple[Any, dict[str, Any]]:
    example: Any = decode_example(one.record)
    encoded = example["image/encoded"][0]
    texts = [b" ".join(example.get(feature, [])) for _, feature in model.texts]
    answer = model.answer([encoded], [texts], stored=True)
    if model.task == "segmentation":
        predicted = answer["masks"][0]
        height, width = predicted.shape[:2]
        image = tf_ops.decode_resized(encoded, height, width, model.resize).numpy()
        plan = plan_geometry(
            model.resize, int(example["image/height"][0]), int(example["image/width"][0]), height, width
        )
        runs = [from_flat(example.get(mask_feature(name), [])) for name in model.classes]
        truth = np.stack([draw(resample(r, plan), height, width) for r in runs], axis=-1)
        return side_by_side([image, overlay(image, truth), overlay(image, predicted)]), {}
    labels = [model.classes[label] for label in example.get("image/class/label", [])]
    predicted = (
        [model.classes[i] for i in np.flatnonzero(answer["classes"][0])]
        if model.multi
        else [answer["labels"][0].decode()]
    )
    image = tf_ops.decode_resized(encoded, model.height, model.width, model.resize).numpy()
    return image, {"truth": labels, "prediction": predicted}
