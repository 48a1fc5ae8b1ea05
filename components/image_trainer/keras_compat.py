"""The parts of Keras that are not public and that we use. Checked with Keras 3.12 to 3.15.

`tests/components/image_trainer/test_keras_compat.py` fails when a release of Keras changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any


def all_layers(model: Any) -> list[Any]:
    """Returns the layers of a model at every depth, each once.

    The public `layers` lists the first level, and a layer that contains others does not list them at all.

    Args:
        model: a built Keras model.
    """
    layers: list[Any] = model._flatten_layers(include_self=False)
    return layers


def moments(optimizer: Any, weight: Any) -> tuple[Any, Any]:
    """Returns Adam's running means of a weight's gradient and of its square, as variables of Keras."""
    index = optimizer._get_variable_index(weight)
    return optimizer._momentums[index], optimizer._velocities[index]


@contextmanager
def replaced_updates(
    optimizer: Any,
    *,
    clip: Callable[[Any, Any], list[Any]],
    decay: Callable[[Any, Any], None],
    update: Callable[[Any, Any, Any, Any], None],
) -> Iterator[None]:
    """Replaces three parts of an optimizer's `apply`; accumulated gradients and the running mean remain Keras's.

    Args:
        optimizer: an optimizer of Keras on TensorFlow.
        clip: returns clipped gradients, from the optimizer and the gradients.
        decay: shrinks weights, from the optimizer and the weights.
        update: changes weights, from the optimizer, the gradients, the weights and the learning rate.
    """
    parts: dict[str, Callable[..., Any]] = {
        "_clip_gradients": clip,
        "_apply_weight_decay": decay,
        "_backend_update_step": update,
    }
    for name, part in parts.items():
        object.__setattr__(optimizer, name, partial(part, optimizer))
    try:
        yield
    finally:
        for name in parts:
            object.__delattr__(optimizer, name)
