"""Metrics of a model on a whole split, over all hosts; and the keys of a batch's images, for messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.dataset.reader import ImageDataset
from shardwright.escaping import escape
from shardwright.evaluation.metrics import KAGGLE_UNITS, ClassSums, LabelCounts, MaskSums

_SHOWN = 8


def keys_at(dataset: str, split: str, positions: Sequence[int]) -> list[str]:
    """Returns the keys of the images at some positions of a split, in the order of the positions."""
    wanted = set(positions)
    numbered = enumerate(islice(ImageDataset.open(dataset).keys(split), max(wanted, default=-1) + 1))
    keys = {position: key for position, key in numbered if position in wanted}
    return [keys[position] for position in positions]


def shown(keys: Sequence[str]) -> str:
    """Lists the first keys, and the number of the others."""
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return ", ".join(escape(key) for key in keys[:_SHOWN]) + more


Predict = Callable[[Any], npt.NDArray[np.float32]]
Together = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]


def evaluate(
    predict: Predict,
    batches: Iterable[tuple[Any, ...]],
    spec: TrainSpec,
    loss: Any,
    together: Together = lambda values: values,
) -> dict[str, float]:
    """Returns metrics over all batches, and `loss`, the mean over the images of their batch's loss.

    Args:
        predict: images to probabilities.
        batches: images uint8 or float32 [B, H, W, 3] and targets (masks [B, H, W, C], labels [B], or 0 and 1 [B, C]).
            Weights [B] are optional, 0 for images that do not count.
        spec: task, classes and threshold.
        loss: Keras loss of targets and probabilities.
        together: adds up numbers over the hosts; a batch's loss is that of a host's part of it.
    """
    sums, total, images_seen = _kind(spec).zero(len(spec.classes)), 0.0, 0.0
    for images, targets, *weights in batches:
        probabilities, true = predict(images), np.asarray(targets)
        if weights:
            counted = np.asarray(weights[0]) > 0
            probabilities, true = probabilities[counted], true[counted]
        if len(true):
            total += float(loss(true, probabilities)) * len(true)
            images_seen += len(true)
            sums += _of_batch(probabilities, true, spec)
    sums, (total, images_seen) = _over_hosts(sums, (total, images_seen), together)
    return {**sums.report(spec.classes), "loss": total / max(images_seen, 1)}


def _kind(spec: TrainSpec) -> Any:
    return MaskSums if spec.task == "segmentation" else ClassSums if spec.multi else LabelCounts


def _of_batch(probabilities: npt.NDArray[np.float32], true: npt.NDArray[Any], spec: TrainSpec) -> Any:
    if spec.task == "segmentation":
        return MaskSums.of_masks(probabilities >= spec.recipe.threshold, true, ignore=spec.ignore)
    if spec.multi:
        return ClassSums.of_labels(probabilities >= spec.recipe.threshold, true)
    return LabelCounts.of_labels(probabilities.argmax(-1), true, len(spec.classes))


def _over_hosts(sums: Any, others: tuple[float, ...], together: Together) -> tuple[Any, list[float]]:
    """Adds up sums, and other numbers, over all hosts in one exchange of float64."""
    fields = {field.name: _as_floats(getattr(sums, field.name)) for field in dataclasses.fields(sums)}
    flat = together(np.concatenate([*(value.ravel() for value in fields.values()), np.array(others)]))
    added: dict[str, Any] = {}
    place = 0
    for name, value in fields.items():
        part = flat[place : place + value.size].reshape(value.shape)
        if isinstance(getattr(sums, name), tuple):
            added[name] = tuple(int(Fraction(one) * KAGGLE_UNITS) for one in part.tolist())
        else:
            added[name] = part if value.shape else int(part)
        place += value.size
    return type(sums)(**added), flat[place:].tolist()


def _as_floats(value: Any) -> npt.NDArray[np.float64]:
    """Returns a field of sums as float64; whole numbers of `1 / KAGGLE_UNITS` are too large for it."""
    return (
        np.array([one / KAGGLE_UNITS for one in value]) if isinstance(value, tuple) else np.asarray(value, np.float64)
    )
