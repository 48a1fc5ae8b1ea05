"""Training steps on JAX: data parallel over all devices of all hosts.

Every device has its part of the batch, and all weights; the compiler adds the sums over the devices. With
`trainer.shard_weights` some neighbouring devices share one copy of the large weights and of what the optimizer keeps
about them (fully sharded data parallel, FSDP): a step gathers the weights for as long as it uses them. The state is
kept outside Keras's variables, as arrays that a step takes and returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
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
from shardwright.components.image_trainer.training.checkpoints import Arrays, arrays_of, assign, variables
from shardwright.components.image_trainer.training.jax_compat import CoordinatorStore
from shardwright.components.image_trainer.training.learner import Backend, Learner, in_groups
from shardwright.errors import ConfigError, ShardwrightError
from shardwright.loader.error_context import with_plain_errors

# The axes of the mesh: copies of the weights, and the devices that share one. Devices are in the order of their slices
# and hosts, so that those that share are neighbours. A batch is split over both.
_COPY, _SHARD = "batch", "shard"
# Smaller weights are on every device: to gather them would cost more than they take.
_SHARDED_FROM = 1 << 12
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
    if found != "cpu":
        # Keras' variables, which steps do not use, live in the host's memory instead of beside the state.
        with suppress(RuntimeError):  # JAX_PLATFORMS names no CPU.
            jax.config.update("jax_default_device", jax.local_devices(backend="cpu")[0])
    return jax.device_count()


class JaxSteps(Backend):
    """The steps.

    Args:
        place: this host among all.
        learner: what is trained.
        shards: devices that share one copy of the weights.

    Raises:
        ConfigError: the devices cannot be divided into groups of so many.
    """

    def __init__(self, place: HostPlace, learner: Learner, shards: int = 1) -> None:
        super().__init__(learner)
        self._place, self._shards = place, shards
        devices = jax.devices()
        self.devices = len(devices)
        self.device = devices[0].device_kind
        if self.devices % shards:
            raise ConfigError(
                "trainer.shard_weights",
                f"{shards}, and there are {self.devices} devices",
                f"Use a divisor of {self.devices}.",
            )
        mesh = Mesh(np.array(devices).reshape(-1, shards), (_COPY, _SHARD))
        self._everywhere = NamedSharding(mesh, PartitionSpec())
        self._split = NamedSharding(mesh, PartitionSpec((_COPY, _SHARD)))
        self._state: dict[str, list[Any]] = {}
        # Launching a step keeps the main thread busy for most of its time on a GPU.
        self._ahead = devices[0].platform != "cpu"
        self._store = CoordinatorStore(place) if place.count > 1 and devices[0].platform == "cpu" else None
        self.restore({})
        # A CPU cannot use donated buffers, and old versions warn about it at every step.
        donated = () if devices[0].platform == "cpu" else (0,)
        kept = (self._everywhere, jax.tree.map(lambda value: value.sharding, self._state))
        self._train = jax.jit(self._step, donate_argnums=donated, out_shardings=kept)
        self._train_several = jax.jit(self._several, donate_argnums=donated, out_shardings=kept)
        self._gather = jax.jit(lambda value: value, out_shardings=self._everywhere)
        self._evaluate = jax.jit(self._evaluation, out_shardings=(self._split, self._everywhere))

    def batches(self, data: Any, sizes: Iterable[int] | None = None) -> Iterator[tuple[Any, ...]]:
        stack = partial(jax.tree.map, lambda *parts: np.stack(parts))
        stacked = in_groups(with_plain_errors(data.as_numpy_iterator()), sizes, stack)
        # Images and targets go to the devices; positions and weights stay on the host.
        placed = (
            (*jax.tree.map(partial(self.spread, axis=others[0].ndim - 1 if others else 0), (images, targets)), *others)
            for images, targets, *others in stacked
        )
        # For a GPU or a TPU, a thread reads batches ahead and copies them. No host waits for another one in that.
        return read_ahead(placed, _AHEAD) if self._ahead else placed

    def spread(self, part: npt.NDArray[Any], axis: int = 0) -> Any:
        """Returns a batch on all devices, from this host's part of it, split along an axis."""
        split = NamedSharding(self._split.mesh, PartitionSpec(*[None] * axis, *self._split.spec))
        if self._place.count == 1:
            return jax.device_put(part, split)
        return jax.make_array_from_process_local_data(split, part)

    def train(self, images: Any, targets: Any, several: bool = False) -> Any:
        launch = self._train_several if several else self._train
        values, self._state = launch(self._state, images, targets)
        return values

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
            self._state = {**before, "weights": [self._placed(variable) for variable in weights]}
        try:
            yield
        finally:
            self._state = before

    def write_variables(self) -> None:
        assign(self._model, self._optimizer, self.state())

    def state(self) -> Arrays:
        if self._shards == 1:
            return arrays_of(self._state)
        # One by one: all of them do not fit on a device.
        return arrays_of({name: [np.asarray(self._gather(v)) for v in held] for name, held in self._state.items()})

    def restore(self, arrays: Arrays) -> None:
        if arrays:
            assign(self._model, self._optimizer, arrays)
        groups = variables(self._model, self._optimizer)
        self._state = {name: [self._placed(v) for v in members] for name, members in groups.items()}

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

    def _placed(self, variable: Any) -> Any:
        """Returns the value of a variable on the devices: on each, or its parts along the longest axis that divides."""
        value, sharding = np.asarray(variable), self._everywhere
        axes = [axis for axis, length in enumerate(value.shape) if length % self._shards == 0]
        if self._shards > 1 and axes and value.size >= _SHARDED_FROM:
            axis = max(axes, key=lambda one: value.shape[one])
            sharding = NamedSharding(sharding.mesh, PartitionSpec(*[None] * axis, _SHARD))
        return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])

    def _gathered(self, weights: list[Any]) -> list[Any]:
        return jax.lax.with_sharding_constraint(weights, self._everywhere) if self._shards > 1 else weights

    def _step(self, state: dict[str, list[Any]], images: Any, targets: Any) -> tuple[Any, dict[str, list[Any]]]:
        self.traces += 1  # Runs when the function is traced, not when it is called.

        images, targets = self._learner.prepared(images, targets)

        def loss_of(weights: list[Any], others: list[Any]) -> tuple[Any, list[Any]]:
            outputs, others = self._called.stateless_call(self._gathered(weights), others, images, training=True)
            return self._learner.loss_of(outputs, targets), others

        weights, others = state["weights"], state["state"]
        (loss, others), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights, others)
        norm = jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(jnp.float32))) for g in gradients))
        weights, optimizer = self._optimizer.stateless_apply(state["optimizer"], gradients, weights)
        return jnp.stack([loss, norm]), {"weights": weights, "state": others, "optimizer": optimizer}

    def _several(self, state: dict[str, list[Any]], images: Any, targets: Any) -> tuple[Any, dict[str, list[Any]]]:
        def step(state: dict[str, list[Any]], batch: tuple[Any, Any]) -> tuple[dict[str, list[Any]], Any]:
            values, state = self._step(state, *batch)
            return state, values

        state, values = jax.lax.scan(step, state, (images, targets))
        return values, state

    def _evaluation(
        self, weights: list[Any], others: list[Any], images: Any, targets: Any, counted: Any
    ) -> tuple[Any, Any]:
        images, targets = self._learner.prepared(images, targets)
        outputs = self._called.stateless_call(self._gathered(weights), others, images, training=False)[0]
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
