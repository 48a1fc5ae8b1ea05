"""DeepLabV3+ (Chen et al., 2018): features at several distances at once, then one step up to the finer ones.

It follows our compact residual stages, or a pretrained encoder. Where a U-Net enlarges level by level, this goes from a
sixteenth (or a thirty-second) of the resolution to a quarter in one step: fewer layers at high resolution, and a large
receptive field. The dilations fit maps of 8 to 40 pixels a side; the paper's are for larger ones.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from shardwright.components.image_trainer.models.compact import convolutions, residual
from shardwright.components.image_trainer.models.text_inputs import Words, added_to_map, model_inputs

_STRIDE = 16
_FINE = 4
_DILATIONS = (2, 4, 6)
_WIDEST = 8


def compact_deeplab(
    height: int, width: int, classes: int, filters: int, activation: str, words: Words | None = None
) -> keras.Model:
    """DeepLabV3+ on four residual stages; float32 [B, height, width, 3] to [B, height, width, classes]."""
    image, text, inputs = model_inputs(height, width, words)
    bottom, right = -height % _STRIDE, -width % _STRIDE
    x = layers.ZeroPadding2D(((0, bottom), (0, right)), name="pad_to_stride")(image)
    x = layers.Conv2D(filters, 4, strides=2, padding="same", use_bias=False, name="stem")(x)
    x = layers.MaxPooling2D(2)(residual(x, filters))
    fine = residual(x, 2 * filters)
    x = layers.MaxPooling2D(2)(fine)
    x = layers.MaxPooling2D(2)(residual(x, 4 * filters))
    x = residual(x, _WIDEST * filters)
    return _decoded(inputs, fine, added_to_map(x, text, words, filters), (bottom, right), classes, filters, activation)


def deeplab_on(
    features: list[Any],
    inputs: Any,
    padding: tuple[int, int],
    classes: int,
    filters: int,
) -> keras.Model:
    """DeepLabV3+ on an encoder's maps.

    Args:
        features: maps at strides 2, 4, 8, 16 and 32 of the padded image.
        inputs: the inputs of the model.
        padding: rows and columns that were added below and right.
        classes: number of classes.
        filters: channels of the decoder are four times as many.
    """
    return _decoded(inputs, features[1], features[-1], padding, classes, filters, "sigmoid")


def _decoded(
    inputs: Any, fine: Any, x: Any, padding: tuple[int, int], classes: int, filters: int, activation: str
) -> keras.Model:
    channels = 4 * filters
    x = _pyramid(x, channels)
    step = fine.shape[1] // x.shape[1]
    x = layers.UpSampling2D(step, interpolation="bilinear")(x)
    x = layers.Concatenate()([x, layers.Conv2D(2 * filters, 1, use_bias=False)(fine)])
    x = convolutions(x, channels)
    x = layers.Conv2D(classes, 1, name="scores", dtype="float32")(x)
    x = layers.UpSampling2D(_FINE, interpolation="bilinear", dtype="float32")(x)
    bottom, right = padding
    x = layers.Cropping2D(((0, bottom), (0, right)), name="crop_to_image", dtype="float32")(x)
    outputs = layers.Activation(activation, dtype="float32", name="probabilities")(x)
    return keras.Model(inputs, outputs, name="deeplab")


def _pyramid(x: Any, channels: int) -> Any:
    """Adds each pixel's surroundings at several distances, and the mean of the whole image."""
    _, height, width, _ = x.shape
    parts = [layers.Conv2D(channels, 1, use_bias=False)(x)]
    parts += [layers.Conv2D(channels, 3, padding="same", dilation_rate=d, use_bias=False)(x) for d in _DILATIONS]
    whole = layers.Conv2D(channels, 1, activation="relu")(layers.GlobalAveragePooling2D(keepdims=True)(x))
    parts.append(layers.UpSampling2D((height, width), interpolation="nearest")(whole))
    return convolutions(layers.Concatenate()(parts), channels)
