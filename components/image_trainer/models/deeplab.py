"""DeepLabV3+ (Chen et al., 2018): features at several distances at once, then one step up to the finer ones.

It follows our compact residual stages, or a pretrained encoder. A U-Net enlarges level by level; this goes from a
sixteenth (or a thirty-second) of the resolution to a quarter in one step. So it has fewer layers at high resolution,
and a large receptive field. The dilations fit maps of 8 to 40 pixels a side; the paper's are for larger ones.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from shardwright.components.image_trainer.models.compact import (
    ModelShape,
    convolutions,
    padded,
    pixel_model,
    residual,
)
from shardwright.components.image_trainer.models.text_inputs import added_to_map, model_inputs

_STRIDE = 16
_FINE = 4
_DILATIONS = (2, 4, 6)
_WIDEST = 8


def compact_deeplab(shape: ModelShape) -> keras.Model:
    """Builds DeepLabV3+ on four residual stages; float32 [B, height, width, 3] to [B, height, width, classes]."""
    filters = shape.filters
    image, text, inputs = model_inputs(shape.height, shape.width, shape.words)
    padding = -shape.height % _STRIDE, -shape.width % _STRIDE
    x = layers.Conv2D(filters, 4, strides=2, padding="same", use_bias=False, name="stem")(padded(image, padding))
    x = layers.MaxPooling2D(2)(residual(x, filters))
    fine = residual(x, 2 * filters)
    x = layers.MaxPooling2D(2)(fine)
    x = layers.MaxPooling2D(2)(residual(x, 4 * filters))
    x = residual(x, _WIDEST * filters)
    return deeplab_on(fine, added_to_map(x, text, shape.words, filters), inputs, padding, shape)


def deeplab_on(fine: Any, x: Any, inputs: Any, padding: tuple[int, int], shape: ModelShape) -> keras.Model:
    """Builds DeepLabV3+'s decoder on two feature maps.

    Args:
        fine: the map at stride 4 of the padded image.
        x: the deepest map.
        inputs: the inputs of the model.
        padding: see `compact.padded`.
        shape: the sizes; the decoder has four times `filters`.
    """
    channels = 4 * shape.filters
    x = _pyramid(x, channels)
    step = fine.shape[1] // x.shape[1]
    x = layers.UpSampling2D(step, interpolation="bilinear")(x)
    x = layers.Concatenate()([x, layers.Conv2D(2 * shape.filters, 1, use_bias=False)(fine)])
    return pixel_model("deeplab", inputs, convolutions(x, channels), _FINE, padding, shape)


def _pyramid(x: Any, channels: int) -> Any:
    """Adds each pixel's surroundings at several distances, and the mean of the whole image."""
    _, height, width, _ = x.shape
    parts = [layers.Conv2D(channels, 1, use_bias=False)(x)]
    parts += [layers.Conv2D(channels, 3, padding="same", dilation_rate=d, use_bias=False)(x) for d in _DILATIONS]
    whole = layers.Conv2D(channels, 1, activation="relu")(layers.GlobalAveragePooling2D(keepdims=True)(x))
    parts.append(layers.UpSampling2D((height, width), interpolation="nearest")(whole))
    return convolutions(layers.Concatenate()(parts), channels)
