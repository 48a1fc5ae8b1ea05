"""The models: a compact U-Net or DeepLabV3+ for segmentation, and a small convolutional network for classification.

Only layers of Keras and `keras.ops`: the same code trains on TensorFlow and on JAX, and the saved model opens without
our code. Group normalization replaces batch normalization: it does not depend on the batch, so small batches, replicas
and the export agree. Output layers always compute in float32, also with mixed precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
from keras import layers

from shardwright.components.image_trainer.models.text_inputs import Words, added_to_map, added_to_vector, model_inputs

_UNET_LEVELS = 4
_CNN_STAGES = 4
# Strides of the deepest map and of the one that it is joined with. The dilations fit maps of 8 to 40 pixels a side; the
# paper's are for larger ones.
_DEEPLAB_STRIDE, _DEEPLAB_FINE, _DILATIONS = 16, 4, (2, 4, 6)
_WIDEST = 8
_DROPOUT = 0.2


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a model.

    Attributes:
        height: rows of the image.
        width: columns of the image.
        classes: number of classes, C.
        filters: channels of the first level; deeper levels have up to 8 times as many.
        activation: of the scores, `sigmoid` or `softmax`.
        words: the words that the model reads, see `build.build_model`.
    """

    height: int
    width: int
    classes: int
    filters: int
    activation: str
    words: Words | None = None


def compact_unet(shape: ModelShape) -> keras.Model:
    """Builds a U-Net (Ronneberger et al., 2015) that works from half the resolution downwards.

    On a CPU the full-resolution level takes most of a U-Net's time and adds least. A strided convolution halves the
    image first, and the class scores are enlarged bilinearly at the end.
    """
    stride = 2**_UNET_LEVELS
    image, text, inputs = model_inputs(shape.height, shape.width, shape.words)
    padding = -shape.height % stride, -shape.width % stride
    x = layers.Conv2D(shape.filters, 4, strides=2, padding="same", use_bias=False, name="stem")(padded(image, padding))
    x = _normalized(x)
    skips = []
    for level in range(_UNET_LEVELS - 1):
        x = convolutions(x, _channels(shape, level))
        skips.append(x)
        x = layers.MaxPooling2D(2)(x)
    x = convolutions(x, _channels(shape, _UNET_LEVELS - 1))
    x = added_to_map(x, text, shape.words, shape.filters)
    return unet_on([*skips, x], inputs, padding, shape)


def unet_on(features: Sequence[Any], inputs: Any, padding: tuple[int, int], shape: ModelShape) -> keras.Model:
    """Builds a U-Net's decoder on feature maps.

    Args:
        features: maps at strides 2, 4, 8, ... of the padded image.
        inputs: the inputs of the model.
        padding: see `padded`.
        shape: the sizes.
    """
    *skips, x = features
    for level, skip in reversed(list(enumerate(skips))):
        x = layers.Conv2D(_channels(shape, level), 1, use_bias=False)(x)
        x = layers.UpSampling2D(2, interpolation="nearest")(x)
        x = convolutions(layers.Concatenate()([x, skip]), _channels(shape, level))
    return pixel_model("unet", inputs, x, 2, padding, shape)


def compact_deeplab(shape: ModelShape) -> keras.Model:
    """Builds DeepLabV3+ (Chen et al., 2018) on four residual stages.

    A U-Net enlarges level by level; this goes from a sixteenth of the resolution to a quarter in one step. So it has
    fewer layers at high resolution, and a large receptive field.
    """
    filters = shape.filters
    image, text, inputs = model_inputs(shape.height, shape.width, shape.words)
    padding = -shape.height % _DEEPLAB_STRIDE, -shape.width % _DEEPLAB_STRIDE
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
        padding: see `padded`.
        shape: the sizes; the decoder has four times `filters`.
    """
    channels = 4 * shape.filters
    _, height, width, _ = x.shape
    # The surroundings of each pixel at several distances, and the mean of the whole image.
    pyramid = [layers.Conv2D(channels, 1, use_bias=False)(x)]
    pyramid += [layers.Conv2D(channels, 3, padding="same", dilation_rate=d, use_bias=False)(x) for d in _DILATIONS]
    whole = layers.Conv2D(channels, 1, activation="relu")(layers.GlobalAveragePooling2D(keepdims=True)(x))
    pyramid.append(layers.UpSampling2D((height, width), interpolation="nearest")(whole))
    x = convolutions(layers.Concatenate()(pyramid), channels)
    x = layers.UpSampling2D(fine.shape[1] // height, interpolation="bilinear")(x)
    x = layers.Concatenate()([x, layers.Conv2D(2 * shape.filters, 1, use_bias=False)(fine)])
    return pixel_model("deeplab", inputs, convolutions(x, channels), _DEEPLAB_FINE, padding, shape)


def compact_cnn(shape: ModelShape) -> keras.Model:
    """Builds four residual stages (He et al., 2016), each at half the resolution of the one before.

    The scores depend on the average of every channel over the image.
    """
    image, text, inputs = model_inputs(shape.height, shape.width, shape.words)
    x = layers.Conv2D(shape.filters, 3, strides=2, padding="same", use_bias=False, name="stem")(image)
    x = _normalized(x)
    x = layers.MaxPooling2D(2, padding="same")(residual(x, shape.filters))
    for stage in range(1, _CNN_STAGES):
        x = residual(x, _channels(shape, stage), strides=2)
    return image_model(inputs, layers.GlobalAveragePooling2D()(x), text, shape)


def padded(image: Any, padding: tuple[int, int]) -> Any:
    """Adds rows below and columns at the right, so that every level halves the image evenly."""
    bottom, right = padding
    return layers.ZeroPadding2D(((0, bottom), (0, right)), name="pad_to_stride")(image)


def pixel_model(
    name: str, inputs: Any, x: Any, stride: int, padding: tuple[int, int], shape: ModelShape
) -> keras.Model:
    """Ends a model with the probabilities of each class in each pixel: float32 [B, height, width, C].

    Args:
        name: of the model.
        inputs: its inputs.
        x: a feature map at `stride`.
        stride: by how much the scores are enlarged.
        padding: see `padded`; it is cut off.
        shape: the sizes.
    """
    bottom, right = padding
    x = layers.Conv2D(shape.classes, 1, name="scores", dtype="float32")(x)
    x = layers.UpSampling2D(stride, interpolation="bilinear", dtype="float32")(x)
    x = layers.Cropping2D(((0, bottom), (0, right)), name="crop_to_image", dtype="float32")(x)
    outputs = layers.Activation(shape.activation, dtype="float32", name="probabilities")(x)
    return keras.Model(inputs, outputs, name=name)


def image_model(inputs: Any, x: Any, text: Any, shape: ModelShape) -> keras.Model:
    """Ends a model with the probabilities of each class in the image: features [B, F] to float32 [B, C].

    The scores begin at 0, as in big_vision: the first loss is that of a guess, and no epoch is spent on getting there.
    """
    x = added_to_vector(x, text, shape.words, shape.filters)
    x = layers.Dropout(_DROPOUT)(x)
    x = layers.Dense(shape.classes, kernel_initializer="zeros", name="scores", dtype="float32")(x)
    outputs = layers.Activation(shape.activation, dtype="float32", name="probabilities")(x)
    return keras.Model(inputs, outputs, name="cnn")


def _channels(shape: ModelShape, level: int) -> int:
    return shape.filters * min(2**level, _WIDEST)


def residual(x: Any, channels: int, strides: int = 1) -> Any:
    """Applies two convolutions, adds their input, and a ReLU.

    The last scale of the two is 0 at first, so that a deep model begins as a shallow one and sums do not grow with the
    number of stages (Goyal et al., 2017).
    """
    y = layers.Conv2D(channels, 3, strides=strides, padding="same", use_bias=False)(x)
    y = layers.Conv2D(channels, 3, padding="same", use_bias=False)(_normalized(y))
    y = _normalization(channels, gamma_initializer="zeros")(y)
    if strides > 1:
        x = layers.AveragePooling2D(strides, padding="same")(x)
    if x.shape[-1] != channels:
        x = _normalization(channels)(layers.Conv2D(channels, 1, use_bias=False)(x))
    return layers.Activation("relu")(layers.Add()([x, y]))


def convolutions(x: Any, channels: int) -> Any:
    """Applies two convolutions of 3 x 3, each with its normalization."""
    for _ in range(2):
        x = layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)
        x = _normalized(x)
    return x


def _normalized(x: Any) -> Any:
    return layers.Activation("relu")(_normalization(x.shape[-1])(x))


def _normalization(channels: int, **options: Any) -> Any:
    groups = next(g for g in (8, 4, 2, 1) if channels % g == 0)
    return layers.GroupNormalization(groups, **options)
