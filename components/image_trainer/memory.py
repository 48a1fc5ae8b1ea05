"""How much memory a training step takes, by arithmetic on a model's layers."""

from __future__ import annotations

from math import prod
from typing import Any

# Forward values are kept for the way back, where each has a gradient of its size for a while.
_FORWARD_AND_BACK = 2
# A weight, its gradient and two moments of Adam.
_COPIES_OF_WEIGHTS = 4
_FLOAT = 4


def step_bytes(model: Any, batch_size: int, *, itemsize: int = _FLOAT, kept: int = 0) -> int:
    """Bytes that a step needs at most, without what the libraries take themselves.

    Args:
        model: a built Keras model of the functional kind.
        batch_size: images of one device.
        itemsize: bytes of a value between layers, 2 for bfloat16.
        kept: copies of the weights that the optimizer keeps beside its moments: a running mean, gradients it adds up.
    """
    values = sum(_values(layer) for layer in model._flatten_layers(include_self=False))
    copies = model.count_params() * _FLOAT * (_COPIES_OF_WEIGHTS + kept)
    return values * batch_size * itemsize * _FORWARD_AND_BACK + copies


def out_of_memory(error: BaseException) -> bool:
    """Whether an error of TensorFlow, JAX or Python says that there was no memory left."""
    known = isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError"
    return known or "RESOURCE_EXHAUSTED" in str(error) or "Out of memory" in str(error)


def readable(size: int) -> str:
    """A size for people, e.g. `1.4 GB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _values(layer: Any) -> int:
    """Numbers that a layer puts out for one image."""
    try:
        outputs = layer.output
    except AttributeError:
        return 0  # A layer inside another one that was never called by itself.
    shapes = [tensor.shape for tensor in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
    return sum(prod(side or 1 for side in shape[1:]) for shape in shapes)
