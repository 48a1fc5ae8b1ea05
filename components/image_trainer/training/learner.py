"""What a backend trains (a model with its loss, its optimizer, and what is counted in an evaluation), and what it does.

`steps_jax` and `steps_tensorflow` derive from `Backend`; both run the same Keras model, loss and optimizer, so there is
one model code and one loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.components.image_trainer.models.logits import LogitModel
from shardwright.components.image_trainer.training.checkpoints import Arrays
from shardwright.components.image_trainer.training.device_input import DeviceInput


@dataclass(frozen=True)
class Learner:
    """A model in training, the same on every backend.

    Attributes:
        model: of probabilities.
        loss: of targets, logits and, in an evaluation, which images count; see `losses`.
        optimizer: built for the model.
        prepare: turns batches into inputs and targets of the model.
        count: turns probabilities and targets into counts of each image, [B, ...]; see `evaluate_split.Counting`.
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


class Backend(ABC):
    """A model in training on the devices of its backend; here is what holds for a single host.

    Args:
        learner: what is trained.

    Attributes:
        devices: devices of all hosts, over which a batch is split.
        device: their kind.
        traces: number of compilations of a training step.
    """

    devices = 1
    device = "cpu"
    traces = 0

    def __init__(self, learner: Learner) -> None:
        self._learner, self._model, self._optimizer = learner, learner.model, learner.optimizer
        self._called = learner.logit_model.model if learner.loss else learner.model

    @abstractmethod
    def batches(self, data: Any, sizes: Iterable[int] | None = None) -> Iterator[tuple[Any, ...]]:
        """Returns this host's batches of a `tf.data.Dataset`, for `train` and `evaluate`.

        Args:
            data: the batches.
            sizes: how many of them to stack along a first axis, for steps that are launched together; 1: none.

        Raises:
            DatasetError: while iterating: a record is damaged.
        """

    @abstractmethod
    def train(self, images: Any, targets: Any, several: bool = False) -> Any:
        """Does the step of a batch, or those of several that are stacked, possibly in the background.

        Args:
            images: uint8 or float32 [b, H, W, 3], this host's part; with texts a dict of `image` and `text`, float32
                [b, V]. See `DeviceInput.images`.
            targets: this host's part. See `DeviceInput.targets`.
            several: whether both have a first axis more, of batches.

        Returns:
            The loss over the batch of all hosts and the norm of its gradient, float32 [2], or [N, 2] of several;
            `np.asarray` waits for it.
        """

    @abstractmethod
    def evaluate(self, images: Any, targets: Any, counted: Any) -> Callable[[], tuple[npt.NDArray[Any], float]]:
        """Evaluates a batch, possibly in the background.

        Args:
            images: as in `train`.
            targets: as in `train`.
            counted: which of this host's images count, bool [b].

        Returns:
            A function that waits for what `count` returns of this host's images, and for the loss over those of all
            hosts.
        """

    @abstractmethod
    def memory(self) -> int:
        """Returns the most bytes that a device of this host has held so far; of a CPU, that this process has."""

    @abstractmethod
    def trace(self, folder: str | None) -> None:
        """Begins to write a trace of what runs into a folder of TensorBoard; `None` ends it."""

    @abstractmethod
    def evaluated(self) -> AbstractContextManager[None]:
        """Uses the weights to be kept in `evaluate` and `state`: with `ema` the running mean."""

    def write_variables(self) -> None:  # noqa: B027 -- a backend may train the variables themselves
        """Writes the weights in use to the variables of the model, where other code reads them."""

    @abstractmethod
    def state(self) -> Arrays:
        """Returns all that a step changes: weights, other variables of the model such as seeds, the optimizer's."""

    @abstractmethod
    def restore(self, arrays: Arrays) -> None:
        """Sets a state of `state`."""

    def together(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns the sums of small arrays over all hosts; all hosts must call it."""
        return values

    def finish(self) -> None:  # noqa: B027 -- a single host is in no group
        """Leaves the group of hosts, when all of them have ended."""

    def from_first(self, data: bytes) -> bytes:
        """Returns the bytes of host 0 on every host; all hosts must call it."""
        return data


def in_groups(
    batches: Iterator[tuple[Any, ...]], sizes: Iterable[int] | None, stack: Callable[..., Any]
) -> Iterator[tuple[Any, ...]]:
    """Yields batches as they are, or so many of them stacked.

    Args:
        batches: images, targets and others each.
        sizes: see `Backend.batches`.
        stack: of several structures of arrays makes one of stacked arrays.
    """
    if sizes is None:
        yield from batches
        return
    for size in sizes:
        group = list(islice(batches, size))
        if len(group) < size:
            return
        yield group[0] if size == 1 else stack(*group)
