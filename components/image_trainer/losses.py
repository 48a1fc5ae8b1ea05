"""What training minimizes: cross-entropy plus soft Dice for masks, cross-entropy for labels."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from shardwright.metrics import UNCOUNTED

_SMOOTH = 1.0


class CrossEntropyDice(keras.losses.Loss):
    """Binary cross-entropy plus 1 - soft Dice, each averaged over the classes, with equal weight.

    Soft Dice (Milletari et al., 2016) is taken per class over the whole batch, as the metric is over the whole split:
    an image without a class then neither counts as a full success nor as a full failure.

    Args:
        ignore: whether masks may hold `UNCOUNTED`; such pixels are left out of both parts, whatever is predicted there.
        name: the loss's name.
    """

    def __init__(self, *, ignore: bool = False, name: str = "cross_entropy_dice") -> None:
        super().__init__(name=name, reduction="sum_over_batch_size")
        self._ignore = ignore

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Loss of a batch.

        Args:
            y_true: masks 0 or 1 (or `UNCOUNTED`) [B, H, W, C], any number type.
            y_pred: probabilities, float32 [B, H, W, C].

        Returns:
            float32 scalar.
        """
        truth = ops.cast(y_true, y_pred.dtype)
        if self._ignore:
            return _counted_loss(truth, y_pred)
        entropy = ops.mean(ops.binary_crossentropy(truth, y_pred))
        return entropy + 1.0 - ops.mean(soft_dice(truth, y_pred))


def _counted_loss(truth: Any, probabilities: Any) -> Any:
    """The loss over the pixels that count: where none does, it is 0."""
    counted = ops.cast(ops.not_equal(truth, UNCOUNTED), probabilities.dtype)
    truth, probabilities = truth * counted, probabilities * counted
    entropies = ops.binary_crossentropy(truth, probabilities) * counted
    entropy = ops.sum(entropies) / ops.maximum(ops.sum(counted), 1.0)
    return entropy + 1.0 - ops.mean(soft_dice(truth, probabilities))


def soft_dice(truth: Any, probabilities: Any) -> Any:
    """Dice of probabilities against masks, float [B, H, W, C] each, over batch and pixels: float [C].

    One pixel is added to both sides of the fraction, so that a class that is absent and not predicted scores 1.
    """
    axes = (0, 1, 2)
    shared = ops.sum(truth * probabilities, axis=axes)
    total = ops.sum(truth, axis=axes) + ops.sum(probabilities, axis=axes)
    return (2.0 * shared + _SMOOTH) / (total + _SMOOTH)


def build_loss(task: str, *, ignore: bool = False, multi: bool = False) -> keras.losses.Loss:
    """The loss of a task.

    Args:
        task: `segmentation` or `classification`.
        ignore: whether masks mark pixels to be ignored.
        multi: whether an image may have several classes: its target is then 0 or 1 for each, not the class's index.
    """
    if task == "segmentation":
        return CrossEntropyDice(ignore=ignore)
    if multi:
        return keras.losses.BinaryCrossentropy()
    return keras.losses.SparseCategoricalCrossentropy()
