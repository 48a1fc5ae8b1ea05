"""What a trained model makes of held-out images, for TensorBoard.

Masks beside the truth; of one class an image the confusion matrix; of several what was found, missed and false of every
class, and images with their classes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shardwright import loader, pixels
from shardwright.components.image_trainer.events import EventLog
from shardwright.components.image_trainer.history import read_history
from shardwright.components.image_trainer.spec import LOG_FOLDER, TrainSpec
from shardwright.components.image_trainer.texts import pixels_of, with_pixels
from shardwright.dataset import Dataset
from shardwright.predictions.label_pictures import captioned, class_bars
from shardwright.predictions.metrics import ClassSums, LabelCounts
from shardwright.predictions.overlays import confusion_picture, overlay, side_by_side
from shardwright.predictions.tuning import Decision, decided_masks

_RUN = "pictures"
_SHOWN = 8


def log_pictures(model: Any, spec: TrainSpec, decision: Decision) -> None:
    """Writes pictures of the split that chose the best epoch to the TensorBoard run `pictures`; none without a split.

    Args:
        model: Keras model, images to probabilities.
        spec: what it was trained with.
        decision: what of its probabilities counts as predicted.
    """
    split = spec.recipe.eval_split
    if not split or not Dataset.open(spec.dataset).num_records(split):
        return
    step = read_history(spec.output).best_epoch
    log = EventLog(Path(spec.output, LOG_FOLDER, _RUN))
    if spec.task == "segmentation":
        images, truth = next(iter(loader.load(spec.dataset, split, _SHOWN, normalize="none", texts=spec.recipe.text)))
        masks = decided_masks(_probabilities(model, spec, images), decision)
        for i, (image, true, predicted) in enumerate(
            zip(np.asarray(pixels_of(images)), np.asarray(truth), masks, strict=True)
        ):
            plain = image.astype(np.uint8)
            log.write_image(
                step, f"truth_and_prediction/{i}", side_by_side([overlay(plain, true == 1), overlay(plain, predicted)])
            )
    elif spec.multi:
        _log_classes(model, spec, decision, log, step)
    else:
        counts = LabelCounts.zero(len(spec.classes))
        batches = loader.load(spec.dataset, split, spec.recipe.batch_size, normalize="none", texts=spec.recipe.text)
        for images, labels in batches:
            predicted = _probabilities(model, spec, images).argmax(-1)
            counts += LabelCounts.of_labels(predicted, np.asarray(labels), len(spec.classes))
        log.write_image(step, "confusion", confusion_picture(counts.confusion, spec.classes))
    log.close()


def _log_classes(model: Any, spec: TrainSpec, decision: Decision, log: EventLog, step: int) -> None:
    """Of images that may have several classes."""
    sums, shown = ClassSums.zero(len(spec.classes)), 0
    batches = loader.load(
        spec.dataset, spec.recipe.eval_split, spec.recipe.batch_size, normalize="none", texts=spec.recipe.text
    )
    for images, targets in batches:
        true = np.asarray(targets) > 0
        predicted = _probabilities(model, spec, images) >= np.array(decision.thresholds, np.float32)
        sums += ClassSums.of_labels(predicted, true)
        for image, mine, theirs in zip(np.asarray(pixels_of(images)), true, predicted, strict=True):
            if shown == _SHOWN:
                break
            lines = [f"truth: {_names(mine, spec)}", f"predicted: {_names(theirs, spec)}"]
            log.write_image(step, f"truth_and_prediction/{shown}", captioned(image.astype(np.uint8), lines))
            shown += 1
    bars = class_bars(sums.hits, sums.truth - sums.hits, sums.prediction - sums.hits, spec.classes)
    log.write_image(step, "classes", bars)


def _names(chosen: Any, spec: TrainSpec) -> str:
    return ", ".join(spec.classes[c] for c in np.flatnonzero(chosen)) or "none"


def _probabilities(model: Any, spec: TrainSpec, images: Any) -> Any:
    prepared = pixels.normalize(pixels_of(images), spec.recipe.normalize, spec.mean, spec.std)
    return np.asarray(model.predict_on_batch(with_pixels(images, prepared)))
