"""The choice of thresholds and smallest regions of a trained model, on the split that also chose its best epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from shardwright import loader
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.dataset.reader import ImageDataset
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
    held_out = recipe.eval_split and ImageDataset.open(spec.dataset).num_records(recipe.eval_split)
    if not (masks or spec.multi) or not recipe.evaluator.tuned or not held_out:
        return fixed
    thresholds, areas, batches = fixed.thresholds, fixed.min_areas, _batches(spec)
    if "threshold" in recipe.evaluator.tuned:
        levels = ThresholdCounts(classes)
        for probabilities, true in _predictions(model, batches):
            levels.add(probabilities, true)
        thresholds = levels.best()
    if not masks:
        chosen = Thresholds(thresholds, areas)
        _write(spec, *(_label_figures(model, spec, batches, one) for one in (fixed, chosen)))
        return chosen
    # Predicted again instead of kept: probabilities of a whole split may be larger than the memory.
    untuned, tuned = RegionCounts(fixed.thresholds), RegionCounts(thresholds)
    for probabilities, true in _predictions(model, batches):
        untuned.add(probabilities, true)
        tuned.add(probabilities, true)
    if "min_area" in recipe.evaluator.tuned:
        areas = tuned.best()
    _write(spec, untuned.sums(fixed.min_areas).report(spec.classes), tuned.sums(areas).report(spec.classes))
    return Thresholds(thresholds, areas)


def _batches(spec: TrainSpec) -> Any:
    """Returns the batches of the split, which may be read several times."""
    statistics = {"mean": spec.mean, "std": spec.std} if spec.recipe.loader.normalize == "dataset" else None
    return loader.load(
        spec.dataset,
        spec.recipe.eval_split,
        spec.recipe.trainer.batch_size,
        normalize=spec.recipe.loader.normalize,
        statistics=statistics,
        texts=spec.recipe.trainer.text,
    )


def _predictions(model: Any, batches: Any) -> Iterator[tuple[Any, Any]]:
    for images, targets in batches:
        yield np.asarray(model(images)), np.asarray(targets)


def _label_figures(model: Any, spec: TrainSpec, batches: Any, chosen: Thresholds) -> dict[str, float]:
    sums = ClassSums.zero(len(spec.classes))
    for probabilities, true in _predictions(model, batches):
        sums += ClassSums.of_labels(probabilities >= np.array(chosen.thresholds, np.float32), true)
    return sums.report(spec.classes)


def _write(spec: TrainSpec, before: dict[str, float], after: dict[str, float]) -> None:
    # What they are of: `before` with the recipe's own thresholds, `after` with those of the exported model.
    images = ImageDataset.open(spec.dataset).num_records(spec.recipe.eval_split)
    value = {
        "split": spec.recipe.eval_split,
        "images": images,
        "size": [spec.height, spec.width],
        "before": before,
        "after": after,
    }
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    Path(spec.output, TUNING_FILE).write_text(text, encoding="utf-8")
