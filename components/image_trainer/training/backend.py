"""The choice of a backend: `steps_jax` or `steps_tensorflow`, which is imported when Keras runs on it."""

from __future__ import annotations

import keras

from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.devices.placement import Placement
from shardwright.components.image_trainer.training.learner import Backend, Learner
from shardwright.errors import ConfigError, ShardwrightError


def build_steps(placement: Placement, place: HostPlace, learner: Learner, shards: int = 1) -> Backend:
    """Returns the backend of a placement; call `connect` before building the model.

    Args:
        placement: accelerator and backend.
        place: this host among all.
        learner: what is trained.
        shards: `trainer.shard_weights`.

    Raises:
        ConfigError: the devices cannot share the weights.
    """
    if placement.backend == "jax":
        from shardwright.components.image_trainer.training.steps_jax import JaxSteps

        return JaxSteps(place, learner, shards)
    from shardwright.components.image_trainer.training.steps_tensorflow import TensorFlowSteps

    if shards > 1:
        raise ConfigError("trainer.shard_weights", f"{shards}, and TensorFlow trains on one device", "Remove it.")
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
