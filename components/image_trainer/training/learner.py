"""What a backend trains: a model with its loss, its optimizer, and what is counted in an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shardwright.components.image_trainer.models.logits import LogitModel
from shardwright.components.image_trainer.training.device_input import DeviceInput


@dataclass(frozen=True)
class Learner:
    """A model in training, the same on every backend.

    Attributes:
        model: of probabilities.
        loss: of targets, logits and, in an evaluation, which images count; see `losses`.
        optimizer: built for the model.
        prepare: turns batches into inputs and targets of the model.
        count: turns probabilities and targets into counts of each image, [B, ...]; see `evaluate.Counting`.
    """

    model: Any
    loss: Any
    optimizer: Any
    prepare: DeviceInput
    count: Callable[[Any, Any], Any]

    @cached_property
    def logit_model(self) -> LogitModel:
        """What a step calls in place of the model."""
        return LogitModel(self.model, getattr(self.loss, "activation", ""))

    def prepared(self, images: Any, targets: Any) -> tuple[Any, Any]:
        """Returns inputs and targets of the model."""
        return self.prepare.images(images), self.prepare.targets(targets)

    def loss_of(self, outputs: Any, targets: Any) -> Any:
        """Returns the loss, float32 scalar, of what `logit_model` returned."""
        return self.loss(targets, self.logit_model.logits(outputs))

    def evaluation_of(self, outputs: Any, targets: Any, counted: Any) -> tuple[Any, Any]:
        """Returns the counts of each image, and the loss of those that count."""
        loss = self.loss(targets, self.logit_model.logits(outputs), counted)
        return self.count(self.logit_model.probabilities(outputs), targets), loss
