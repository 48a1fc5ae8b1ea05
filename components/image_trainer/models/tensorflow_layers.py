"""Layers of Keras in fewer operations of TensorFlow.

On a CPU each operation reads and writes a whole feature map:

- Keras normalizes groups in arrays of five dimensions. Their broadcasts take TensorFlow up to three times as long as
  those of three dimensions. TensorFlow derives a gradient for each operation. The gradient below needs half as many.
- Keras crops by a strided slice, whose gradient is slower than that of a plain slice.

The values are those of Keras, up to the rounding of a sum. Models contain the layers of Keras, and open without this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf
from keras import layers

_normalize, _crop = layers.GroupNormalization.call, layers.Cropping2D.call


@contextmanager
def quick_layers(*, trained: bool) -> Iterator[None]:
    """Lets models that are traced within the context use the operations of this module.

    Args:
        trained: whether a gradient is taken.
    """

    def normalize(layer: Any, inputs: Any) -> Any:
        return _group_normalization(layer, inputs, trained)

    layers.GroupNormalization.call, layers.Cropping2D.call = normalize, _cropping
    try:
        yield
    finally:
        layers.GroupNormalization.call, layers.Cropping2D.call = _normalize, _crop


def _group_normalization(layer: Any, inputs: Any, trained: bool) -> Any:
    channels = inputs.shape[-1]
    if layer.axis not in (-1, len(inputs.shape) - 1) or not (layer.scale and layer.center):
        return _normalize(layer, inputs)
    shape = tf.shape(inputs)
    values = tf.reshape(tf.cast(inputs, tf.float32), [shape[0], -1, channels])
    weights = tf.cast(layer.gamma, tf.float32), tf.cast(layer.beta, tf.float32)
    normalized = group_normalized(values, *weights, groups=layer.groups, epsilon=layer.epsilon, trained=trained)
    return tf.ensure_shape(tf.reshape(tf.cast(normalized, inputs.dtype), shape), inputs.shape)


def group_normalized(values: Any, gamma: Any, beta: Any, *, groups: int, epsilon: float, trained: bool) -> Any:
    """Normalizes each group of channels of each image to mean 0 and variance 1, then scales and moves each channel.

    Args:
        values: float32 [B, N, C].
        gamma: scale of each channel, float32 [C].
        beta: mean of each channel, float32 [C].
        groups: number of groups; it divides C.
        epsilon: added to the variance.
        trained: whether a gradient is taken.

    Returns:
        float32 [B, N, C].
    """
    channels = values.shape[-1]
    # Column g is the mean over group g. Products with a small matrix take fewer operations than sums of parts.
    means = tf.constant(np.kron(np.eye(groups), np.full((channels // groups, 1), groups / channels)), tf.float32)
    members = tf.constant(np.kron(np.eye(groups), np.ones((1, channels // groups))), tf.float32)

    def over_group(of_channels: Any) -> Any:
        """Returns the mean over the group of each channel: [B, 1, C] to [B, 1, C]."""
        return (of_channels @ means) @ members

    def normalized(values: Any, gamma: Any, beta: Any) -> tuple[Any, Any, Any]:
        centered = values - over_group(tf.reduce_mean(values, 1, keepdims=True))
        variance = over_group(tf.reduce_mean(tf.square(centered), 1, keepdims=True))
        scale = tf.math.rsqrt(variance + epsilon)
        return centered * (scale * gamma) + beta, centered, scale

    @tf.custom_gradient
    def with_gradient(values: Any, gamma: Any, beta: Any) -> Any:
        made, centered, scale = normalized(values, gamma, beta)

        def gradient(change: Any) -> Any:
            of_beta = tf.reduce_mean(change, 1, keepdims=True)
            of_gamma = tf.reduce_mean(change * centered, 1, keepdims=True) * scale
            factor = scale * gamma
            of_values = change * factor - centered * (scale * scale * over_group(of_gamma * gamma))
            of_values -= scale * over_group(of_beta * gamma)
            count = tf.cast(tf.shape(values)[1], tf.float32)
            return of_values, count * tf.reduce_sum(of_gamma, [0, 1]), count * tf.reduce_sum(of_beta, [0, 1])

        return made, gradient

    return with_gradient(values, gamma, beta) if trained else normalized(values, gamma, beta)[0]


def _cropping(layer: Any, inputs: Any) -> Any:
    if layer.data_format != "channels_last":
        return _crop(layer, inputs)
    (top, bottom), (left, right) = layer.cropping
    height, width = inputs.shape[1], inputs.shape[2]
    if height is None or width is None:
        return _crop(layer, inputs)
    return tf.slice(inputs, [0, top, left, 0], [-1, height - top - bottom, width - left - right, -1])
