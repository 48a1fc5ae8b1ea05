"""Training steps on TensorFlow, on one device: the variables of the model are the state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from shardwright.components.image_trainer.devices.placement import Placement
from shardwright.components.image_trainer.training.checkpoints import Arrays
from shardwright.components.image_trainer.training.device_input import DeviceInput
from shardwright.components.image_trainer.training.weights import arrays_of, assign, variables
from shardwright.errors import ShardwrightError
from shardwright.loader.error_context import with_plain_errors

_ONE_GPU = "GPU"


def connect(placement: Placement) -> int:
    """Checks that there is a GPU where one was asked for; returns 1, for one device.

    Raises:
        ShardwrightError: there is none.
    """
    found = tf.config.list_physical_devices(_ONE_GPU)
    if placement.accelerator == "gpu" and not found:
        raise ShardwrightError(
            "trainer.accelerator: gpu, but TensorFlow finds none. Install tensorflow[and-cuda], or use cpu."
        )
    if found:
        tf.config.set_visible_devices(found[:1], _ONE_GPU)
        tf.config.experimental.set_memory_growth(found[0], True)
    return 1


class TensorFlowSteps:
    """See `steps.Backend`.

    Args:
        model: the model.
        loss: its loss.
        optimizer: built for the model.
        prepare: turns batches into inputs and targets of the model.
    """

    def __init__(self, model: Any, loss: Any, optimizer: Any, prepare: DeviceInput) -> None:
        self._model, self._loss, self._optimizer, self._prepare = model, loss, optimizer, prepare
        self.devices = 1
        gpus = tf.config.get_visible_devices(_ONE_GPU)
        self.device = tf.config.experimental.get_device_details(gpus[0])["device_name"] if gpus else "cpu"
        self.traces = 0
        # On a CPU, XLA costs more time compiling than it saves in a run of minutes.
        self._train = tf.function(self._step, jit_compile=False)
        self._predict = tf.function(self._forward, jit_compile=False)

    def batches(self, data: Any) -> Iterator[tuple[Any, ...]]:
        """See `Backend.batches`. The iterator is made immediately, see `_deterministic`."""
        return with_plain_errors(iter(data))

    def train(self, images: Any, targets: Any) -> Any:
        """See `Backend.train`."""
        return self._train(images, targets)

    def predict(self, images: Any) -> npt.NDArray[np.float32]:
        """See `Backend.predict`."""
        return np.asarray(self._predict(images), np.float32)

    @contextmanager
    def evaluated(self) -> Iterator[None]:
        """See `Backend.evaluated`."""
        if not self._optimizer.use_ema:
            yield
            return
        before = self.state()
        self._optimizer.finalize_variable_values(self._model.trainable_variables)
        try:
            yield
        finally:
            self.restore(before)

    def write_variables(self) -> None:
        """See `Backend.write_variables`: the variables are the state."""

    def state(self) -> Arrays:
        """See `Backend.state`."""
        return arrays_of(variables(self._model, self._optimizer))

    def restore(self, arrays: Arrays) -> None:
        """See `Backend.restore`."""
        assign(self._model, self._optimizer, arrays)

    def together(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """See `Backend.together`: there is one host."""
        return values

    def from_first(self, data: bytes) -> bytes:
        """See `Backend.from_first`: there is one host."""
        return data

    def finish(self) -> None:
        """See `Backend.finish`: there is one host."""

    def _step(self, images: Any, targets: Any) -> Any:
        self.traces += 1  # Runs when the function is traced, not when it is called.
        _deterministic()
        images, targets = self._prepare.images(images), self._prepare.targets(targets)
        trained = self._model.trainable_variables
        with tf.GradientTape() as tape:
            loss = self._loss(targets, self._model(images, training=True))
        self._optimizer.apply(tape.gradient(loss, trained), trained)
        return loss

    def _forward(self, images: Any) -> Any:
        _deterministic()
        return self._model(self._prepare.images(images), training=False)


def _deterministic() -> None:
    """Makes operations deterministic from the first trace of a step on.

    Not earlier: if any operation of a `tf.data` iterator counts as stateful, an iterator made afterwards decodes images
    one by one, without prefetching. Our iterators are deterministic anyway.
    """
    tf.config.experimental.enable_op_determinism()
