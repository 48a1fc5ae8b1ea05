"""The choice of thresholds and smallest regions of a trained model, on the split that also chose its best epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from shardwright import loader
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.evaluation.metrics import ClassSums
from shardwright.evaluation.thresholds import RegionCounts, ThresholdCounts, Thresholds

# In the folder of the training: metrics before and after the tuning.
TUNING_FILE = "tuning.json"


def choose_thresholds(model: Any, spec: TrainSpec) -> Thresholds:
    """Chooses the thresholds named in `recipe.evaluator.tuned`, and writes `tuning.json`.

    Args:
        model: images to probabilities.
        spec: the training.

    Returns:
        The thresholds; the recipe's own values if nothing is to be tuned, or there is no split for it.
    """
    recipe, classes = spec.recipe, len(spec.classes)
    fixed = Thresholds.fixed(classes, recipe.threshold, recipe.min_area)
    masks = spec.task == "segmentation"
    if not (masks or spec.multi) or not recipe.evaluator.tuned or not spec.held_out:
        return fixed
    # Predicted for each pass instead of kept: probabilities of a whole split may be larger than the memory.
    batches = loader.load(
        spec.dataset,
        recipe.eval_split,
        recipe.trainer.batch_size,
        normalize=recipe.loader.normalize,
        statistics=spec.statistics,
        texts=recipe.trainer.text,
    )
    thresholds, areas = fixed.thresholds, fixed.min_areas
    before: Any
    after: Any
    if "threshold" in recipe.evaluator.tuned:
        levels = ThresholdCounts(classes)
        for probabilities, true in _predictions(model, batches):
            levels.add(probabilities, true)
        thresholds = levels.best()
    if masks:
        untuned, tuned = RegionCounts(fixed.thresholds), RegionCounts(thresholds)
        for probabilities, true in _predictions(model, batches):
            untuned.add(probabilities, true)
            tuned.add(probabilities, true)
        if "min_area" in recipe.evaluator.tuned:
            areas = tuned.best()
        before, after = untuned.sums(fixed.min_areas), tuned.sums(areas)
    else:
        before = after = ClassSums.zero(classes)
        for probabilities, true in _predictions(model, batches):
            before += ClassSums.of_labels(probabilities >= np.array(fixed.thresholds, np.float32), true)
            after += ClassSums.of_labels(probabilities >= np.array(thresholds, np.float32), true)
    # What they are of: `before` with the recipe's own thresholds, `after` with those of the exported model.
    value = {
        "split": recipe.eval_split,
        "images": spec.held_out,
        "size": [spec.height, spec.width],
        "before": before.report(spec.classes),
        "after": after.report(spec.classes),
    }
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    Path(spec.output, TUNING_FILE).write_text(text, encoding="utf-8")
    return Thresholds(thresholds, areas)


def _predictions(model: Any, batches: Any) -> Iterator[tuple[Any, Any]]:
    for images, targets in batches:
        yield np.asarray(model(images)), np.asarray(targets)
