"""What happens at the end of an epoch: evaluation over the whole split, the best weights kept, a message sent."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from shardwright.errors import ShardwrightError
from shardwright.metrics import ClassSums, LabelCounts, MaskSums, better
from shardwright_components.image_trainer.events import ScalarLog
from shardwright_components.image_trainer.losses import loss_of
from shardwright_components.image_trainer.spec import LOG_FOLDER, TrainSpec


class StopAtNaN(keras.callbacks.Callback):
    """Ends a training whose loss is no number any more: nothing can be learned from there."""

    def __init__(self) -> None:
        super().__init__()
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Notes the epoch for the message."""
        self._epoch = epoch + 1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Looks at the running mean of the loss."""
        loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            raise ShardwrightError(
                f"the loss became {loss} in epoch {self._epoch}, step {batch + 1}. Lower trainer.learning_rate."
            )


class EpochReport(keras.callbacks.Callback):
    """Measures every epoch over the whole evaluation split and keeps the best epoch's weights.

    Args:
        spec: task, classes and threshold.
        evaluation: batches of images and targets, finite; None: the last epoch counts as best.
        send: is given every epoch's values: `epoch` from 1, `epochs`, `loss` and, under `eval`, the split's metrics.

    Attributes:
        losses: training loss of every epoch so far.
        evaluations: metrics of every epoch so far; empty without an evaluation split.
        best_epoch: the best one, from 1.
        best_weights: its weights.
    """

    def __init__(self, spec: TrainSpec, evaluation: Any, send: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._spec = spec
        self._evaluation = evaluation
        self._send = send
        self._loss = loss_of(spec)
        # Two runs in TensorBoard, so that both losses share a chart.
        self._training, self._held_out = (ScalarLog(Path(spec.output, LOG_FOLDER, run)) for run in ("train", "eval"))
        self._best: dict[str, float] | None = None
        self.losses: list[float] = []
        self.evaluations: list[dict[str, float]] = []
        self.best_epoch = 0
        self.best_weights: list[Any] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Evaluates, compares, keeps, reports."""
        self.losses.append(float((logs or {})["loss"]))
        self._training.write(epoch + 1, {"loss": self.losses[-1]})
        metrics: dict[str, float] | None = None
        if self._evaluation is not None:
            metrics = evaluate(self.model, self._evaluation, self._spec, self._loss)
            self.evaluations.append(metrics)
            self._held_out.write(epoch + 1, metrics)
        if metrics is None or better(self._spec.task, metrics, self._best, multi=self._spec.multi):
            self._best, self.best_epoch, self.best_weights = metrics, epoch + 1, self.model.get_weights()
        message = {"epoch": epoch + 1, "epochs": self._spec.recipe.epochs, "loss": self.losses[-1]}
        self._send(message if metrics is None else {**message, "eval": metrics})

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the logs."""
        self._training.close()
        self._held_out.close()


def evaluate(model: Any, batches: Any, spec: TrainSpec, loss: Any) -> dict[str, float]:
    """Metrics of a model over all batches, and `loss`, the mean over the images of their batch's loss.

    Args:
        model: images to probabilities.
        batches: of images float32 [B, H, W, 3] and targets (masks [B, H, W, C], labels [B], or 0 and 1 [B, C]).
        spec: task, classes and threshold.
        loss: Keras loss of targets and probabilities.
    """
    classes = len(spec.classes)
    kind: Any = MaskSums if spec.task == "segmentation" else ClassSums if spec.multi else LabelCounts
    sums, total, images = kind.zero(classes), 0.0, 0
    for batch, targets in batches:
        probabilities = model.predict_on_batch(batch)
        true = np.asarray(targets)
        total += float(loss(targets, probabilities)) * len(true)
        images += len(true)
        if spec.task == "segmentation":
            sums += MaskSums.of_masks(probabilities >= spec.recipe.threshold, true, ignore=spec.ignore)
        elif spec.multi:
            sums += ClassSums.of_labels(probabilities >= spec.recipe.threshold, true)
        else:
            sums += LabelCounts.of_labels(probabilities.argmax(-1), true, classes)
    return {**sums.report(spec.classes), "loss": total / max(images, 1)}
