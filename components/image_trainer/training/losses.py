"""Losses of masks and labels, with ignored pixels and class weights, from logits.

Only `keras.ops`, so the same code runs on TensorFlow and on JAX. From logits, losses and gradients are right wherever a
float32 can be: also where a model is confidently wrong. Each part of a mask's loss is a value per class over
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

from keras import ops

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.config.trainer import LOSSES_OF_CLASSES, LOSSES_OF_LABELS, LOSSES_OF_MASKS
from shardwright.errors import UsageError
from shardwright.masks.regions import IGNORE_VALUE

# A very rare class must not outweigh all others.
_MOST = 10.0
_SMOOTH = 1.0
_GAMMA = 2.0
_FALSE, _MISSED = 0.3, 0.7


class MaskLoss:
    """A loss of masks, or of several classes an image.

    Attributes:
        activation: what makes probabilities of the logits.

    Args:
        kind: one of those above that are for masks.
        weights: weight of every class, C numbers; only their ratios count. `None`: all alike.
        ignore: whether masks may contain `IGNORE_VALUE`; such pixels do not count.
        smoothing: share by which the truth of `bce` and `focal` moves from 0 and 1 towards a half; overlaps keep it.
    """

    activation = "sigmoid"

    def __init__(
        self,
        kind: str = "bce_dice",
        *,
        weights: Sequence[float] | None = None,
        ignore: bool = False,
        smoothing: float = 0.0,
    ) -> None:
        self._parts = kind.split("_")
        self._weights = None if weights is None else [w * len(weights) / sum(weights) for w in weights]
        self._ignore, self._smoothing = ignore, smoothing

    def __call__(self, truth: Any, logits: Any, counted: Any = None) -> Any:
        """Returns the loss of a batch.

        Args:
            truth: 0 or 1 (or `IGNORE_VALUE`, or shares between 0 and 1) [B, ..., C], any number type.
            logits: [B, ..., C]; whatever their type, the loss is computed in float32.
            counted: 1 for the images that count, 0 for others, [B]; `None`: all count.

        Returns:
            float32 scalar; 0 if no pixel counts.
        """
        truth, logits = ops.cast(truth, "float32"), ops.cast(logits, "float32")
        if counted is not None:
            counted = ops.reshape(ops.cast(counted, "float32"), (-1, *[1] * (len(logits.shape) - 1)))
            counted = ops.broadcast_to(counted, ops.shape(logits))
        if self._ignore:
            known = ops.cast(ops.not_equal(truth, IGNORE_VALUE), "float32")
            truth, counted = truth * known, known if counted is None else known * counted
        per_class = sum(_PARTS[part](truth, logits, counted, self._smoothing) for part in self._parts)
        if self._weights is not None:
            per_class = per_class * ops.convert_to_tensor(self._weights, "float32")
        return ops.mean(per_class)


def _over_pixels(values: Any, counted: Any) -> Any:
    """Returns the mean of [B, ..., C] per class, over the pixels that count."""
    axes = tuple(range(len(values.shape) - 1))
    if counted is None:
        return ops.mean(values, axis=axes)
    return ops.sum(values * counted, axis=axes) / ops.maximum(ops.sum(counted, axis=axes), 1.0)


def _focal(truth: Any, logits: Any, counted: Any, smoothing: float) -> Any:
    truth, p = _smoothed(truth, smoothing), ops.sigmoid(logits)
    missing = truth * (1.0 - p) + (1.0 - truth) * p
    return _over_pixels(ops.square(missing) * _entropy(truth, logits), counted)


def _entropy(truth: Any, logits: Any) -> Any:
    """Returns binary cross-entropies: softplus(x) - truth * x.

    A softplus costs more than the rest of a loss. Here its value is made of the sigmoid that the gradient and Dice need
    as well, and its gradient is that sigmoid.
    """
    p = ops.stop_gradient(ops.sigmoid(logits))
    softplus = ops.relu(logits) - ops.log(ops.maximum(p, 1.0 - p))
    return ops.stop_gradient(softplus) + (logits - ops.stop_gradient(logits)) * p - truth * logits


def _smoothed(truth: Any, smoothing: float) -> Any:
    return truth * (1.0 - smoothing) + 0.5 * smoothing if smoothing else truth


def _tversky(truth: Any, logits: Any, counted: Any, smoothing: float) -> Any:
    truth, p = _overlapping(truth, logits, counted)
    axes = tuple(range(len(truth.shape) - 1))
    shared, true, predicted = (ops.sum(v, axis=axes) for v in (truth * p, truth, p))
    below = shared + _FALSE * (predicted - shared) + _MISSED * (true - shared)
    return 1.0 - (shared + _SMOOTH) / (below + _SMOOTH)


def _overlapping(truth: Any, logits: Any, counted: Any) -> tuple[Any, Any]:
    """Returns truth and probabilities, both 0 in pixels that do not count."""
    p = ops.sigmoid(logits)
    return (truth, p) if counted is None else (truth * counted, p * counted)


# Each of truth, logits, what counts, and the smoothing.
_PARTS: dict[str, Callable[[Any, Any, Any, float], Any]] = {
    "bce": lambda truth, logits, counted, smoothing: _over_pixels(
        _entropy(_smoothed(truth, smoothing), logits), counted
    ),
    "dice": lambda truth, logits, counted, _: 1.0 - soft_dice(*_overlapping(truth, logits, counted)),
    "focal": _focal,
    "tversky": _tversky,
}


def soft_dice(truth: Any, probabilities: Any) -> Any:
    """Returns Dice of probabilities against masks, float32 [B, ..., C] each, over batch and pixels: float32 [C].

    On several hosts the batch is that of all of them, since a step is compiled for it. One pixel is added to both sides
    of the fraction, so that a class that is absent and not predicted scores 1.
    """
    axes = tuple(range(len(truth.shape) - 1))
    shared = ops.sum(truth * probabilities, axis=axes)
    total = ops.sum(truth, axis=axes) + ops.sum(probabilities, axis=axes)
    return (2.0 * shared + _SMOOTH) / (total + _SMOOTH)


class LabelLoss:
    """A loss of one class an image.

    Attributes:
        activation: what makes probabilities of the logits.

    Args:
        kind: `cross_entropy` or `focal`.
        weights: weight of every class, K numbers; an image counts by that of its true class. `None`: all alike.
        smoothing: share of the truth that is spread over all classes.
    """

    activation = "softmax"

    def __init__(
        self, kind: str = "cross_entropy", *, weights: Sequence[float] | None = None, smoothing: float = 0.0
    ) -> None:
        self._focal = kind == "focal"
        self._weights = None if weights is None else list(weights)
        self._smoothing = smoothing

    def __call__(self, truth: Any, logits: Any, counted: Any = None) -> Any:
        """Returns the mean loss of the images, float32 scalar.

        Args:
            truth: labels, whole numbers [B], or shares of the classes, float32 [B, K], as mixup makes them.
            logits: [B, K]; whatever their type, the loss is computed in float32.
            counted: 1 for the images that count, 0 for others, [B]; `None`: all count.
        """
        classes, truth = logits.shape[-1], ops.convert_to_tensor(truth)
        if len(truth.shape) == 2 and truth.shape[-1] == classes:
            truth = ops.cast(truth, "float32")
        else:
            truth = ops.one_hot(ops.cast(ops.reshape(truth, (-1,)), "int32"), classes, dtype="float32")
        weights = 1.0
        if self._weights is not None:
            weights = ops.sum(truth * ops.convert_to_tensor(self._weights, "float32"), axis=-1)
        if self._smoothing:
            truth = truth * (1.0 - self._smoothing) + self._smoothing / classes
        of_class = -ops.log_softmax(ops.cast(logits, "float32"))
        if self._focal:
            of_class = of_class * ops.square(1.0 - ops.exp(-of_class))
        losses = ops.sum(truth * of_class, axis=-1) * weights
        if counted is None:
            return ops.mean(losses)
        counted = ops.cast(counted, "float32")
        return ops.sum(losses * counted) / ops.maximum(ops.sum(counted), 1.0)


Loss = MaskLoss | LabelLoss


def build_loss(
    task: str,
    *,
    ignore: bool = False,
    multi: bool = False,
    kind: str = "auto",
    weights: Sequence[float] | None = None,
    smoothing: float = 0.0,
) -> Loss:
    """Returns the loss of a task.

    Args:
        task: `segmentation` or `classification`.
        ignore: whether masks mark pixels to be ignored.
        multi: whether an image may have several classes: its target is then 0 or 1 for each, not the class's index.
        kind: a kind of the table above that is for the task, or `auto`, its default.
        weights: weight of every class; `None`: all alike.
        smoothing: `trainer.label_smoothing`.

    Raises:
        UsageError: the kind is not one of the task's.
    """
    kinds = LOSSES_OF_MASKS if task == "segmentation" else LOSSES_OF_CLASSES if multi else LOSSES_OF_LABELS
    chosen = kinds[0] if kind == "auto" else kind
    if chosen not in kinds:
        several = " of several classes an image" if multi else ""
        raise UsageError(f"trainer.loss: {kind!r} is not one of {task}{several}. Use one of: auto, {', '.join(kinds)}.")
    if kinds is LOSSES_OF_LABELS:
        return LabelLoss(chosen, weights=weights, smoothing=smoothing)
    return MaskLoss(chosen, weights=weights, ignore=ignore, smoothing=smoothing)


def loss_of(spec: TrainSpec) -> Loss:
    """Returns the loss of a training."""
    options = spec.recipe.trainer
    return build_loss(
        spec.task,
        ignore=spec.ignore,
        multi=spec.multi,
        kind=options.loss,
        weights=spec.class_weights,
        smoothing=options.label_smoothing,
    )


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
