"""The interface of a backend: one training step, and one prediction.

A backend's module (`steps_jax`, `steps_tensorflow`) implements `Backend`; both run the same Keras model, loss and
optimizer, so there is one model code and one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

import keras
import numpy as np
import numpy.typing as npt

from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.devices.placement import Placement
from shardwright.components.image_trainer.training.checkpoints import Arrays
from shardwright.components.image_trainer.training.learner import Learner
from shardwright.errors import ShardwrightError


class Backend(Protocol):
    """A model in training on the devices of its backend.

    Attributes:
        devices: devices of all hosts, over which a batch is split.
        device: their kind.
        traces: number of compilations of a training step.
    """

    devices: int
    device: str
    traces: int

    def batches(self, data: Any) -> Iterator[tuple[Any, ...]]:
        """Returns this host's batches of a `tf.data.Dataset`, for `train` and `evaluate`.

        Raises:
            DatasetError: while iterating: a record is damaged.
        """
        ...

    def train(self, images: Any, targets: Any) -> Any:
        """Does a step, possibly in the background.

        Args:
            images: uint8 or float32 [b, H, W, 3], this host's part; with texts a dict of `image` and `text`, float32
                [b, V]. See `DeviceInput.images`.
            targets: this host's part. See `DeviceInput.targets`.

        Returns:
            The loss over the batch of all hosts and the norm of its gradient, float32 [2]; `np.asarray` waits for it.
        """
        ...

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
        ...

    def memory(self) -> int:
        """Returns the most bytes that a device of this host has held so far; of a CPU, that this process has."""
        ...

    def trace(self, folder: str | None) -> None:
        """Begins to write a trace of what runs into a folder of TensorBoard; `None` ends it."""
        ...

    def evaluated(self) -> AbstractContextManager[None]:
        """Uses the weights to be kept in `evaluate` and `state`: with `ema` the running mean."""
        ...

    def write_variables(self) -> None:
        """Writes the weights in use to the variables of the model, where other code reads them."""
        ...

    def state(self) -> Arrays:
        """Returns all that a step changes: weights, other variables of the model such as seeds, the optimizer's."""
        ...

    def restore(self, arrays: Arrays) -> None:
        """Sets a state of `state`."""
        ...

    def together(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns the sums of small arrays over all hosts; all hosts must call it."""
        ...

    def finish(self) -> None:
        """Leaves the group of hosts, when all of them have ended."""
        ...

    def from_first(self, data: bytes) -> bytes:
        """Returns the bytes of host 0 on every host; all hosts must call it."""
        ...


def build_steps(placement: Placement, place: HostPlace, learner: Learner) -> Backend:
    """Returns the backend of a placement; call `connect` before building the model.

    Raises:
        ShardwrightError: the backend does not find the accelerator.
    """
    if placement.backend == "jax":
        from shardwright.components.image_trainer.training.steps_jax import JaxSteps

        return JaxSteps(place, learner)
    from shardwright.components.image_trainer.training.steps_tensorflow import TensorFlowSteps

    return TensorFlowSteps(learner)


def connect(placement: Placement, place: HostPlace) -> int:
    """Joins the hosts of a training and checks the accelerator, before anything is computed.

    Returns:
        Devices of all hosts, over which a batch is split.

    Raises:
        ShardwrightError: the other hosts do not answer, or the backend does not find the accelerator.
    """
    if keras.backend.backend() != placement.backend:
        raise ShardwrightError(
            f"Keras runs on {keras.backend.backend()}, and {placement.backend} was chosen. Start the worker with "
            f"KERAS_BACKEND={placement.backend}."
        )
    if placement.backend == "jax":
        from shardwright.components.image_trainer.training import steps_jax

        return steps_jax.connect(placement, place)
    from shardwright.components.image_trainer.training import steps_tensorflow

    return steps_tensorflow.connect(placement)
