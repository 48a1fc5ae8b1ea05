"""The models: a compact U-Net for segmentation and a small convolutional network for classification.

Only layers of Keras and `keras.ops`: the same code trains on TensorFlow and on JAX, and the saved model opens without
our code. Group normalization replaces batch normalization: it does not depend on the batch, so small batches, replicas
and the export agree. Output layers always compute in float32, also with mixed precision.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from shardwright.components.image_trainer.models.text_inputs import Words, added_to_map, added_to_vector, model_inputs

_UNET_LEVELS = 4
_CNN_STAGES = 4
_WIDEST = 8
_DROPOUT = 0.2


def compact_unet(
    height: int, width: int, classes: int, filters: int, activation: str, words: Words | None = None
) -> keras.Model:
    """U-Net (Ronneberger et al., 2015) that works from half the resolution downwards.

    On a CPU the full-resolution level takes most of a U-Net's time and adds least. A strided convolution halves the
    image first, and the class scores are enlarged bilinearly at the end.
    """
    stride = 2**_UNET_LEVELS
    image, text, inputs = model_inputs(height, width, words)
    bottom, right = -height % stride, -width % stride
    x = layers.ZeroPadding2D(((0, bottom), (0, right)), name="pad_to_stride")(image)
    x = layers.Conv2D(filters, 4, strides=2, padding="same", use_bias=False, name="stem")(x)
    x = _normalized(x)
    skips = []
    for level in range(_UNET_LEVELS - 1):
        x = convolutions(x, filters * min(2**level, _WIDEST))
        skips.append(x)
        x = layers.MaxPooling2D(2)(x)
    x = convolutions(x, filters * min(2 ** (_UNET_LEVELS - 1), _WIDEST))
    x = added_to_map(x, text, words, filters)
    for skip in reversed(skips):
        x = layers.Conv2D(skip.shape[-1], 1, use_bias=False)(x)
        x = layers.UpSampling2D(2, interpolation="nearest")(x)
        x = convolutions(layers.Concatenate()([x, skip]), skip.shape[-1])
    x = layers.Conv2D(classes, 1, name="scores", dtype="float32")(x)
    x = layers.UpSampling2D(2, interpolation="bilinear", dtype="float32")(x)
    x = layers.Cropping2D(((0, bottom), (0, right)), name="crop_to_image", dtype="float32")(x)
    outputs = layers.Activation(activation, dtype="float32", name="probabilities")(x)
    return keras.Model(inputs, outputs, name="unet")


def compact_cnn(
    height: int, width: int, classes: int, filters: int, activation: str, words: Words | None = None
) -> keras.Model:
    """Four residual stages (He et al., 2016), each at half the resolution of the one before.

    The scores depend on the average and the maximum of every channel over the image.
    """
    image, text, inputs = model_inputs(height, width, words)
    x = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False, name="stem")(image)
    x = _normalized(x)
    for stage in range(_CNN_STAGES):
        x = residual(x, filters * min(2**stage, _WIDEST))
        x = layers.MaxPooling2D(2, padding="same")(x)
    x = layers.Concatenate()([layers.GlobalAveragePooling2D()(x), layers.GlobalMaxPooling2D()(x)])
    x = added_to_vector(x, text, words, filters)
    x = layers.Dropout(_DROPOUT)(x)
    x = layers.Dense(classes, name="scores", dtype="float32")(x)
    outputs = layers.Activation(activation, dtype="float32", name="probabilities")(x)
    return keras.Model(inputs, outputs, name="cnn")


def residual(x: Any, channels: int) -> Any:
    """Two convolutions, with their input added."""
    y = convolutions(x, channels)
    if x.shape[-1] != channels:
        x = layers.Conv2D(channels, 1, use_bias=False)(x)
    return layers.Add()([x, y])


def convolutions(x: Any, channels: int) -> Any:
    """Two convolutions of 3 x 3, each with its normalization."""
    for _ in range(2):
        x = layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)
        x = _normalized(x)
    return x


def _normalized(x: Any) -> Any:
    channels = x.shape[-1]
    groups = next(g for g in (8, 4, 2, 1) if channels % g == 0)
    return layers.Activation("relu")(layers.GroupNormalization(groups)(x))
