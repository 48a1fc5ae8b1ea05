"""The parts of Keras that are not public and that we use. Checked with Keras 3.12 to 3.15.

`tests/components/image_trainer/test_keras_compat.py` fails when a release of Keras changes them.
"""

from __future__ import annotations

from typing import Any


def all_layers(model: Any) -> list[Any]:
    """Returns the layers of a model at every depth, each once.

    The public `layers` lists the first level, and a layer that contains others does not list them at all.

    Args:
        model: a built Keras model.
    """
    layers: list[Any] = model._flatten_layers(include_self=False)
    return layers
