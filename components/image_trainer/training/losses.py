"""Losses of masks and labels, with ignored pixels and class weights.

Only `keras.ops`, so the same code runs on TensorFlow and on JAX. Each part of a mask's loss is a value per class over
the whole batch. So an image without a class counts neither as a full success nor as a full failure. The loss is the
weighted mean over the classes.

| kind | task | source |
|---|---|---|
| `bce` | masks, several classes an image | binary cross-entropy |
| `dice` | masks | 1 - soft Dice, Milletari et al., 2016 |
| `bce_dice` | masks (default) | both, with equal weight |
| `focal` | all | Lin et al., 2017, gamma 2, without alpha: use class weights instead |
| `tversky` | masks | 1 - Tversky index, Salehi et al., 2017: a missed pixel costs 0.7, a false one 0.3 |
| `cross_entropy` | one class an image (default) | |

Class weights come from the frequencies of the classes in the train split.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.config.trainer import LOSSES_OF_CLASSES, LOSSES_OF_LABELS, LOSSES_OF_MASKS
from shardwright.errors import UsageError
from shardwright.masks.regions import IGNORE_VALUE

_SMOOTH = 1.0
_GAMMA = 2.0
_FALSE, _MISSED = 0.3, 0.7
_EPSILON = 1e-7


class MaskLoss(keras.losses.Loss):
    """A loss of masks, or of several classes an image.

    Args:
        kind: one of those above that are for masks.
        weights: weight of every class, C numbers; only their ratios count. `None`: all alike.
        ignore: whether masks may contain `IGNORE_VALUE`; such pixels do not count.
        name: the loss's name.
    """

    def __init__(
        self,
        kind: str = "bce_dice",
        *,
        weights: Sequence[float] | None = None,
        ignore: bool = False,
        name: str = "mask_loss",
    ) -> None:
        super().__init__(name=name, reduction="sum_over_batch_size")
        self._parts = [_PARTS[part] for part in kind.split("_")]
        self._weights = None if weights is None else [w * len(weights) / sum(weights) for w in weights]
        self._ignore = ignore

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of a batch.

        Args:
            y_true: 0 or 1 (or `IGNORE_VALUE`) [B, ..., C], any number type.
            y_pred: probabilities, float32 [B, ..., C].

        Returns:
            float32 scalar; 0 if no pixel counts.
        """
        truth = ops.cast(y_true, y_pred.dtype)
        counted = None
        if self._ignore:
            counted = ops.cast(ops.not_equal(truth, IGNORE_VALUE), y_pred.dtype)
            truth, y_pred = truth * counted, y_pred * counted
        per_class = sum(part(truth, y_pred, counted) for part in self._parts)
        if self._weights is not None:
            per_class = per_class * ops.convert_to_tensor(self._weights, y_pred.dtype)
        return ops.mean(per_class)


def _over_pixels(values: Any, counted: Any) -> Any:
    """Returns the mean of [B, ..., C] per class, over the pixels that count."""
    axes = tuple(range(len(values.shape) - 1))
    if counted is None:
        return ops.mean(values, axis=axes)
    return ops.sum(values * counted, axis=axes) / ops.maximum(ops.sum(counted, axis=axes), 1.0)


def _cross_entropy(truth: Any, probabilities: Any, counted: Any) -> Any:
    return _over_pixels(ops.binary_crossentropy(truth, probabilities), counted)


def _focal(truth: Any, probabilities: Any, counted: Any) -> Any:
    missing = truth * (1.0 - probabilities) + (1.0 - truth) * probabilities
    return _over_pixels(missing**_GAMMA * ops.binary_crossentropy(truth, probabilities), counted)


def _dice(truth: Any, probabilities: Any, counted: Any) -> Any:
    return 1.0 - soft_dice(truth, probabilities)


def _tversky(truth: Any, probabilities: Any, counted: Any) -> Any:
    axes = tuple(range(len(truth.shape) - 1))
    shared, true, predicted = (ops.sum(v, axis=axes) for v in (truth * probabilities, truth, probabilities))
    below = shared + _FALSE * (predicted - shared) + _MISSED * (true - shared)
    return 1.0 - (shared + _SMOOTH) / (below + _SMOOTH)


_PARTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "bce": _cross_entropy,
    "dice": _dice,
    "focal": _focal,
    "tversky": _tversky,
}


def soft_dice(truth: Any, probabilities: Any) -> Any:
    """Returns Dice of probabilities against masks, float [B, ..., C] each, over batch and pixels: float [C].

    One pixel is added to both sides of the fraction, so that a class that is absent and not predicted scores 1.
    """
    axes = tuple(range(len(truth.shape) - 1))
    shared = ops.sum(truth * probabilities, axis=axes)
    total = ops.sum(truth, axis=axes) + ops.sum(probabilities, axis=axes)
    return (2.0 * shared + _SMOOTH) / (total + _SMOOTH)


class LabelLoss(keras.losses.Loss):
    """A loss of one class an image.

    Args:
        kind: `cross_entropy` or `focal`.
        weights: weight of every class, K numbers; an image counts by that of its true class. `None`: all alike.
        name: the loss's name.
    """

    def __init__(
        self, kind: str = "cross_entropy", *, weights: Sequence[float] | None = None, name: str = "label_loss"
    ) -> None:
        super().__init__(name=name, reduction="sum_over_batch_size")
        self._focal = kind == "focal"
        self._weights = None if weights is None else list(weights)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of every image, float32 [B].

        Args:
            y_true: labels, whole numbers [B], or shares of the classes, float32 [B, K], as mixup makes them.
            y_pred: probabilities, float32 [B, K].
        """
        classes = y_pred.shape[-1]
        if len(y_true.shape) == 2 and y_true.shape[-1] == classes:
            truth = ops.cast(y_true, y_pred.dtype)
        else:
            truth = ops.one_hot(ops.cast(ops.reshape(y_true, (-1,)), "int32"), classes, dtype=y_pred.dtype)
        of_class = -ops.log(ops.maximum(y_pred, _EPSILON))
        if self._focal:
            of_class = of_class * (1.0 - y_pred) ** _GAMMA
        losses = ops.sum(truth * of_class, axis=-1)
        if self._weights is not None:
            losses = losses * ops.sum(truth * ops.convert_to_tensor(self._weights, y_pred.dtype), axis=-1)
        return losses


def build_loss(
    task: str,
    *,
    ignore: bool = False,
    multi: bool = False,
    kind: str = "auto",
    weights: Sequence[float] | None = None,
) -> keras.losses.Loss:
    """Returns the loss of a task.

    Args:
        task: `segmentation` or `classification`.
        ignore: whether masks mark pixels to be ignored.
        multi: whether an image may have several classes: its target is then 0 or 1 for each, not the class's index.
        kind: a kind of the table above that is for the task, or `auto`, its default.
        weights: weight of every class; `None`: all alike.

    Raises:
        UsageError: the kind is not one of the task's.
    """
    kinds = LOSSES_OF_MASKS if task == "segmentation" else LOSSES_OF_CLASSES if multi else LOSSES_OF_LABELS
    chosen = kinds[0] if kind == "auto" else kind
    if chosen not in kinds:
        several = " of several classes an image" if multi else ""
        raise UsageError(f"trainer.loss: {kind!r} is not one of {task}{several}. Use one of: auto, {', '.join(kinds)}.")
    if kinds is LOSSES_OF_LABELS:
        return LabelLoss(chosen, weights=weights)
    return MaskLoss(chosen, weights=weights, ignore=ignore)


def loss_of(spec: TrainSpec) -> keras.losses.Loss:
    """Returns the loss of a training."""
    return build_loss(
        spec.task, ignore=spec.ignore, multi=spec.multi, kind=spec.recipe.trainer.loss, weights=spec.class_weights
    )


# A very rare class must not outweigh all others.
_MOST = 10.0


def balanced_weights(task: str, statistics: Mapping[str, Any], classes: Sequence[str]) -> tuple[float, ...]:
    """Returns weights that fall with the frequency of a class; their mean is 1.

    The weight of a label is the inverse of its share of the images. The weight of a mask class is the inverse square
    root of its share of the pixels. A class of a hundredth of the pixels gets ten times the weight, not a hundred
    times.

    Args:
        task: `segmentation` or `classification`.
        statistics: `loader.dataset_statistics`: `class_frequency` and `pixel_frequency` by class name, 0 to 1.
        classes: names in the order of the model's outputs.

    Returns:
        A weight per class, at most ten times the smallest. A class without examples has the weight of the rarest one.
    """
    masks = task == "segmentation"
    shares = [float(statistics["pixel_frequency" if masks else "class_frequency"].get(name, 0.0)) for name in classes]
    raw = [1 / (math.sqrt(share) if masks else share) if share > 0 else math.inf for share in shares]
    finite = [w for w in raw if math.isfinite(w)] or [1.0]
    weights = [min(w, max(finite), _MOST * min(finite)) for w in raw]
    mean = sum(weights) / len(weights)
    return tuple(w / mean for w in weights)
