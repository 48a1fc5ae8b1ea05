"""What a trained model makes of held-out images, for TensorBoard: masks beside the truth, or a confusion matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shardwright import loader, pixels
from shardwright.dataset import Dataset
from shardwright.metrics import LabelCounts
from shardwright.overlays import confusion_picture, overlay, side_by_side
from shardwright.tuning import Decision, decided_masks
from shardwright_components.image_trainer.events import EventLog
from shardwright_components.image_trainer.history import read_history
from shardwright_components.image_trainer.spec import LOG_FOLDER, TrainSpec

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
    if not split or not Dataset.open(spec.dataset).num_records(split) or spec.multi:
        return
    step = read_history(spec.output).best_epoch
    log = EventLog(Path(spec.output, LOG_FOLDER, _RUN))
    if spec.task == "segmentation":
        images, truth = next(iter(loader.load(spec.dataset, split, _SHOWN, normalize="none")))
        masks = decided_masks(_probabilities(model, spec, images), decision)
        for i, (image, true, predicted) in enumerate(zip(np.asarray(images), np.asarray(truth), masks, strict=True)):
            plain = image.astype(np.uint8)
            log.write_image(
                step, f"truth_and_prediction/{i}", side_by_side([overlay(plain, true == 1), overlay(plain, predicted)])
            )
    else:
        counts = LabelCounts.zero(len(spec.classes))
        for images, labels in loader.load(spec.dataset, split, spec.recipe.batch_size, normalize="none"):
            predicted = _probabilities(model, spec, images).argmax(-1)
            counts += LabelCounts.of_labels(predicted, np.asarray(labels), len(spec.classes))
        log.write_image(step, "confusion", confusion_picture(counts.confusion, spec.classes))
    log.close()


def _probabilities(model: Any, spec: TrainSpec, images: Any) -> Any:
    return np.asarray(model.predict_on_batch(pixels.normalize(images, spec.recipe.normalize, spec.mean, spec.std)))
