"""The parts of Keras that are not public and that we use. Checked with Keras 3.12 to 3.15.

`tests/components/image_trainer/test_keras_compat.py` fails when a release of Keras changes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def all_layers(model: Any) -> list[Any]:
    """Returns the layers of a model at every depth, each once.

    The public `layers` lists the first level, and a layer that contains others does not list them at all.

    Args:
        model: a built Keras model.
    """
    layers: list[Any] = model._flatten_layers(include_self=False)
    return layers


def followed_variables(optimizer: Any) -> list[Any]:
    """Returns the variables that a built optimizer updates, in the order in which it was built with them."""
    variables: list[Any] = optimizer._trainable_variables
    return variables


@dataclass(frozen=True)
class LastCall:
    """The operation that a model ends in.

    Attributes:
        operation: a layer, or an operation of `keras.ops`.
        inputs: its input in the graph of its model.
        weighted: whether it has weights.
        nested: whether it is in a model within the model.
        shared: whether it is called in other places, too.
    """

    operation: Any
    inputs: Any
    weighted: bool
    nested: bool
    shared: bool


def last_call(model: Any, *, nested: bool = False) -> LastCall:
    """Returns the call of an operation that gives the first output of a model.

    Args:
        model: a built Keras model with a graph: functional or sequential.
        nested: whether it is part of another one.
    """
    # Whoever asks for a memory estimate has not chosen Keras' backend yet.
    import keras

    operation, index, _ = model.outputs[0]._keras_history
    if isinstance(operation, keras.Model):
        return last_call(operation, nested=True)
    calls = operation._inbound_nodes
    weighted = bool(getattr(operation, "weights", ()))
    # A model that is called in another one adds no call to its own layers.
    return LastCall(operation, calls[index].input_tensors[0], weighted, nested, shared=len(calls) > 1)
