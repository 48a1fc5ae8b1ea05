"""Training steps on TensorFlow, on one device: the variables of the model are the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from shardwright.components.image_trainer.devices.placement import Placement, process_memory
from shardwright.components.image_trainer.training.checkpoints import Arrays, arrays_of, assign, variables
from shardwright.components.image_trainer.training.learner import Backend, Learner, in_groups
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


class TensorFlowSteps(Backend):
    """The steps; the state is in the variables."""

    def __init__(self, learner: Learner) -> None:
        gpus = tf.config.get_visible_devices(_ONE_GPU)
        if not gpus:
            # Compiled by XLA, counting is one pass over the pixels instead of dozens, of whole numbers: the same ones.
            learner = replace(learner, count=tf.function(learner.count, jit_compile=True))
        super().__init__(learner)
        if gpus:
            self.device = tf.config.experimental.get_device_details(gpus[0])["device_name"]
        # On a CPU, XLA costs more time compiling than it saves in a run of minutes.
        self._train = tf.function(self._step, jit_compile=False)
        self._train_several = tf.function(self._several, jit_compile=False)
        self._evaluate = tf.function(self._evaluation, jit_compile=False)

    def batches(self, data: Any, sizes: Iterable[int] | None = None) -> Iterator[tuple[Any, ...]]:
        # The iterator is made immediately, see `_deterministic`.
        stack = partial(tf.nest.map_structure, lambda *parts: tf.stack(parts))
        return in_groups(with_plain_errors(iter(data)), sizes, stack)

    def train(self, images: Any, targets: Any, several: bool = False) -> Any:
        return self._train_several(images, targets) if several else self._train(images, targets)

    def evaluate(self, images: Any, targets: Any, counted: Any) -> Callable[[], tuple[npt.NDArray[Any], float]]:
        counts, loss = self._evaluate(images, targets, counted)
        return lambda: (np.asarray(counts), float(loss))

    def memory(self) -> int:
        if self.device == "cpu":
            return process_memory()
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])

    def trace(self, folder: str | None) -> None:
        tf.profiler.experimental.start(folder) if folder else tf.profiler.experimental.stop()

    @contextmanager
    def evaluated(self) -> Iterator[None]:
        if not self._optimizer.means:
            yield
            return
        before = self.state()
        self._optimizer.finalize_variable_values(self._model.trainable_variables)
        try:
            yield
        finally:
            self.restore(before)

    def state(self) -> Arrays:
        return arrays_of(variables(self._model, self._optimizer))

    def restore(self, arrays: Arrays) -> None:
        assign(self._model, self._optimizer, arrays)

    def _step(self, images: Any, targets: Any) -> Any:
        self.traces += 1  # Runs when the function is traced, not when it is called.
        _deterministic()
        images, targets = self._learner.prepared(images, targets)
        trained = self._model.trainable_variables
        with tf.GradientTape() as tape:
            loss = self._learner.loss_of(self._called(images, training=True), targets)
        gradients = tape.gradient(loss, trained)
        self._optimizer.apply(gradients, trained)
        return tf.stack([loss, tf.linalg.global_norm(gradients)])

    def _several(self, images: Any, targets: Any) -> Any:
        one = tf.TensorSpec([2], tf.float32)
        return tf.map_fn(lambda batch: self._step(*batch), (images, targets), 1, fn_output_signature=one)

    def _evaluation(self, images: Any, targets: Any, counted: Any) -> tuple[Any, Any]:
        _deterministic()
        images, targets = self._learner.prepared(images, targets)
        outputs = self._called(images, training=False)
        return self._learner.evaluation_of(outputs, targets, counted)


def _deterministic() -> None:
    """Makes operations deterministic from the first trace of a step on.

    Not earlier: if any operation of a `tf.data` iterator counts as stateful, an iterator made afterwards decodes images
    one by one, without prefetching. Our iterators are deterministic anyway.
    """
    tf.config.experimental.enable_op_determinism()
