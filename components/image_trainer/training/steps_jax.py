"""Training steps on JAX: data parallel over all devices of all hosts.

Every device has all weights and its part of the batch; the compiler adds the sums over the devices. The state is kept
outside Keras's variables, as arrays that a step takes and returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.devices.placement import Placement, process_memory
from shardwright.components.image_trainer.training.checkpoints import Arrays
from shardwright.components.image_trainer.training.jax_compat import CoordinatorStore
from shardwright.components.image_trainer.training.learner import Backend, Learner
from shardwright.components.image_trainer.training.named_weights import arrays_of, assign, variables
from shardwright.errors import ShardwrightError
from shardwright.loader.error_context import with_plain_errors

_BATCH = "batch"
_PART = 1 << 30
# Batches that are on their way to the devices, or wait there.
_AHEAD = 2

_Item = TypeVar("_Item")


def connect(placement: Placement, place: HostPlace) -> int:
    """Joins the hosts, and checks that JAX finds the accelerator that was asked for; returns the number of devices.

    Raises:
        ShardwrightError: a host does not answer, or there is no such accelerator.
    """
    # tf.data reads images on the CPU; a GPU's memory is JAX's.
    tf.config.set_visible_devices([], "GPU")
    if place.count > 1:
        if placement.accelerator == "cpu":
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
        try:
            jax.distributed.initialize(place.coordinator, place.count, place.index)
        except RuntimeError as error:
            raise ShardwrightError(
                f"host {place.index} of {place.count} cannot join the others through {place.coordinator}: {error}. "
                "Check that host 0 is up and that its port can be reached."
            ) from None
    try:
        found = jax.default_backend()
    except RuntimeError as error:
        found = f"nothing ({str(error).splitlines()[0]})"
    if found != placement.accelerator:
        raise ShardwrightError(
            f"trainer.accelerator: {placement.accelerator}, but JAX finds {found}. Check drivers and the installed "
            "jax, or use another accelerator."
        )
    return jax.device_count()


class JaxSteps(Backend):
    """The steps.

    Args:
        place: this host among all.
        learner: what is trained.
    """

    def __init__(self, place: HostPlace, learner: Learner) -> None:
        super().__init__(learner)
        self._place = place
        devices = jax.devices()
        self.devices = len(devices)
        self.device = devices[0].device_kind
        mesh = Mesh(np.array(devices), (_BATCH,))
        self._everywhere = NamedSharding(mesh, PartitionSpec())
        self._split = NamedSharding(mesh, PartitionSpec(_BATCH))
        self._state: dict[str, list[Any]] = {}
        # Launching a step keeps the main thread busy for most of its time on a GPU.
        self._ahead = devices[0].platform != "cpu"
        self._store = CoordinatorStore(place) if place.count > 1 and devices[0].platform == "cpu" else None
        self.restore({})
        # A CPU cannot use donated buffers, and old versions warn about it at every step.
        donated = () if devices[0].platform == "cpu" else (0,)
        self._train = jax.jit(self._step, donate_argnums=donated, out_shardings=(self._everywhere, self._everywhere))
        self._evaluate = jax.jit(self._evaluation, out_shardings=(self._split, self._everywhere))

    def batches(self, data: Any) -> Iterator[tuple[Any, ...]]:
        # Images and targets go to the devices; positions and weights stay on the host.
        placed = (
            (jax.tree.map(self.spread, images), self.spread(targets), *others)
            for images, targets, *others in with_plain_errors(data.as_numpy_iterator())
        )
        # For a GPU or a TPU, a thread reads batches ahead and copies them. No host waits for another one in that.
        return read_ahead(placed, _AHEAD) if self._ahead else placed

    def spread(self, part: npt.NDArray[Any]) -> Any:
        """Returns a batch on all devices, from this host's part of it, split along its first axis."""
        if self._place.count == 1:
            return jax.device_put(part, self._split)
        return jax.make_array_from_process_local_data(self._split, part)

    def train(self, images: Any, targets: Any) -> Any:
        loss, self._state = self._train(self._state, images, targets)
        return loss

    def evaluate(self, images: Any, targets: Any, counted: Any) -> Callable[[], tuple[npt.NDArray[Any], float]]:
        weights, others = self._state["weights"], self._state["state"]
        counts, loss = self._evaluate(weights, others, images, targets, self.spread(counted))
        shards = sorted(counts.addressable_shards, key=lambda shard: shard.index[0].start or 0)
        return lambda: (np.concatenate([np.asarray(shard.data) for shard in shards]), float(loss))

    def memory(self) -> int:
        known = [device.memory_stats() for device in jax.local_devices() if device.platform != "cpu"]
        return max((int(stats["peak_bytes_in_use"]) for stats in known if stats), default=0) or process_memory()

    def trace(self, folder: str | None) -> None:
        jax.profiler.start_trace(folder) if folder else jax.profiler.stop_trace()

    @contextmanager
    def evaluated(self) -> Iterator[None]:
        before = self._state
        if self._optimizer.means:
            assign(self._model, self._optimizer, self.state())
            weights = self._model.trainable_variables
            self._optimizer.finalize_variable_values(weights)
            self._state = {**before, "weights": [self._on_all(variable) for variable in weights]}
        try:
            yield
        finally:
            self._state = before

    def write_variables(self) -> None:
        assign(self._model, self._optimizer, self.state())

    def state(self) -> Arrays:
        return arrays_of(self._state)

    def restore(self, arrays: Arrays) -> None:
        if arrays:
            assign(self._model, self._optimizer, arrays)
        groups = variables(self._model, self._optimizer)
        self._state = {name: [self._on_all(v) for v in members] for name, members in groups.items()}

    def together(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        if self._place.count == 1:
            return values
        # JAX computes in 32 bits. As bytes, whole numbers and losses keep all their digits.
        if self._store:
            gathered = self._store.from_all(values.tobytes())
            return np.stack([np.frombuffer(part, np.float64) for part in gathered]).sum(0).reshape(values.shape)
        parts = multihost_utils.process_allgather(np.frombuffer(values.tobytes(), np.uint8))
        return np.stack([np.frombuffer(part.tobytes(), np.float64) for part in parts]).sum(0).reshape(values.shape)

    def from_first(self, data: bytes) -> bytes:
        if self._place.count == 1:
            return data
        if self._store:
            return self._store.from_first(data)
        # JAX makes int32 of int64, and a checkpoint may have more bytes than that.
        high, low = multihost_utils.broadcast_one_to_all(np.array(divmod(len(data), _PART), np.int32))
        size = int(high) * _PART + int(low)
        given = np.frombuffer(data, np.uint8) if self._place.publishes else np.zeros(size, np.uint8)
        return np.asarray(multihost_utils.broadcast_one_to_all(given), np.uint8).tobytes()

    def finish(self) -> None:
        if self._place.count > 1:
            jax.distributed.shutdown()

    def _on_all(self, variable: Any) -> Any:
        value = np.asarray(variable)
        return jax.make_array_from_callback(value.shape, self._everywhere, lambda index: value[index])

    def _step(self, state: dict[str, list[Any]], images: Any, targets: Any) -> tuple[Any, dict[str, list[Any]]]:
        self.traces += 1  # Runs when the function is traced, not when it is called.

        images, targets = self._learner.prepared(images, targets)

        def loss_of(weights: list[Any], others: list[Any]) -> tuple[Any, list[Any]]:
            outputs, others = self._called.stateless_call(weights, others, images, training=True)
            return self._learner.loss_of(outputs, targets), others

        weights, others = state["weights"], state["state"]
        (loss, others), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights, others)
        norm = jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(jnp.float32))) for g in gradients))
        weights, optimizer = self._optimizer.stateless_apply(state["optimizer"], gradients, weights)
        return jnp.stack([loss, norm]), {"weights": weights, "state": others, "optimizer": optimizer}

    def _evaluation(
        self, weights: list[Any], others: list[Any], images: Any, targets: Any, counted: Any
    ) -> tuple[Any, Any]:
        images, targets = self._learner.prepared(images, targets)
        outputs = self._called.stateless_call(weights, others, images, training=False)[0]
        # Otherwise the compiler computes the last layers and the masks again for each sum.
        outputs, targets = jax.lax.optimization_barrier((outputs, targets))
        return self._learner.evaluation_of(outputs, targets, counted)


def read_ahead(items: Iterable[_Item], count: int) -> Iterator[_Item]:
    """Yields items that a thread reads, up to `count` of them ahead; an error is raised in the place of its item."""
    iterator = iter(items)

    def read() -> list[_Item]:
        return list(islice(iterator, 1))

    thread = ThreadPoolExecutor(1)
    try:
        ready = deque(thread.submit(read) for _ in range(count))
        while found := ready.popleft().result():
            ready.append(thread.submit(read))
            yield found[0]
    finally:
        thread.shutdown(wait=False, cancel_futures=True)
