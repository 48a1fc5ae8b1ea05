"""Models without their last activation: losses are computed from logits, and all else from probabilities.

From probabilities, a loss has no gradient where a model is confidently wrong: in float32 a sigmoid of 17 is 1, and the
logarithm of what lacks to 1 is cut off, on TensorFlow and on JAX at different places. So every model of a training ends
in an operation that is only an activation, and `LogitModel` leaves that operation out.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, ops

from shardwright.components.image_trainer.keras_compat import LastCall, last_call

ACTIVATIONS = ("sigmoid", "softmax")
_LINEAR = "linear"
_SMALLEST = 1e-7


def last_activation(model: Any) -> str:
    """Returns the activation in which a model ends: `sigmoid`, `softmax`, `linear`, or empty for anything else."""
    return _activation(last_call(model))


def _activation(call: LastCall) -> str:
    operation = call.operation
    function = getattr(operation, "activation", None)
    # `layers.Softmax` and `ops.sigmoid` are operations of their own.
    name = keras.activations.serialize(function) if callable(function) else type(operation).__name__.lower()
    over_classes = getattr(operation, "axis", -1) in (-1, len(call.inputs.shape) - 1)
    return str(name) if name in (*ACTIVATIONS, _LINEAR) and over_classes else ""


def ending_in(model: Any, activation: str) -> Any:
    """Returns a model that ends in a layer with nothing but an activation.

    Args:
        model: a model that ends in logits or in `activation`, perhaps within a layer with weights.
        activation: `sigmoid` or `softmax`.

    Returns:
        A model with the same weights in the same order; the given one, if it ends that way, or in an activation that
        cannot be taken out of its layer.
    """
    last = last_call(model)
    if _activation(last) == activation:
        if not last.nested and not last.weighted:
            return model
        if last.shared or not hasattr(last.operation, "activation"):
            return model
        last.operation.activation = keras.activations.linear
    probabilities = layers.Activation(activation, dtype="float32", name="probabilities")(model.outputs[0])
    return keras.Model(_inputs(model), probabilities, name=model.name)


class LogitModel:
    """A model of logits with the variables of one of probabilities.

    Args:
        model: a model of probabilities that ends as `ending_in` says; without a known activation its logits are those
            of its probabilities, cut off at 1e-7 and 1 - 1e-7.
        activation: `sigmoid` for classes that may occur together, or `softmax`; empty: `model` is one of logits.

    Attributes:
        model: what a step calls; see `logits` and `probabilities` for what it returns.
    """

    def __init__(self, model: Any, activation: str) -> None:
        self.model, self._activation, self._known = model, activation or _LINEAR, not activation
        last = last_call(model) if activation else None
        if last and _activation(last) == activation and not (last.nested or last.weighted):
            self.model, self._known = keras.Model(_inputs(model), last.inputs, name=model.name), True

    def logits(self, outputs: Any) -> Any:
        """Returns logits, float32 [..., C], of what the model returned."""
        if self._known:
            return outputs
        p = ops.clip(outputs, _SMALLEST, 1.0 - _SMALLEST)
        return ops.log(p) if self._activation == "softmax" else ops.log(p) - ops.log1p(-p)

    def probabilities(self, outputs: Any) -> Any:
        """Returns probabilities, float32 [..., C], of what the model returned."""
        return keras.activations.get(self._activation)(outputs) if self._known else outputs


def _inputs(model: Any) -> Any:
    # A `Sequential` has no `input` before it is called.
    return model.inputs[0] if len(model.inputs) == 1 else model.input
