"""Test-time flips: the mean of what a model says of an image and of the image flipped, flipped back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright.components.image_trainer.texts import pixels_of, with_pixels

_AXES = {"left_right": 2, "up_down": 1}


class FlippedMean:
    """A model that also looks at flipped images.

    Args:
        model: Keras model on the TensorFlow backend, images [B, H, W, 3], and perhaps words, to probabilities.
        flips: any of `left_right` and `up_down`; each is one more look.
        masks: whether the probabilities are [B, H, W, C], which are flipped back, or [B, C], which are not.
    """

    def __init__(self, model: Any, flips: Sequence[str], *, masks: bool) -> None:
        self._model, self._axes, self._masks = model, [_AXES[flip] for flip in flips], masks

    def __call__(self, images: Any, training: bool = False) -> Any:
        """Probabilities, float32, as ops of a graph."""
        looks = [self._model(images, training=training)]
        for axis in self._axes:
            seen = self._model(_reversed(images, axis), training=training)
            looks.append(tf.reverse(seen, [axis]) if self._masks else seen)
        return tf.add_n(looks) / float(len(looks))

    def predict_on_batch(self, images: Any) -> Any:
        """Probabilities, float32, as an array."""
        looks = [self._model.predict_on_batch(images)]
        for axis in self._axes:
            seen = self._model.predict_on_batch(_reversed(images, axis))
            looks.append(np.flip(seen, axis) if self._masks else seen)
        return np.mean(looks, axis=0, dtype=np.float32)


def _reversed(images: Any, axis: int) -> Any:
    return with_pixels(images, tf.reverse(pixels_of(images), [axis]))
