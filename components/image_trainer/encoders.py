"""Encoders that others have trained: EfficientNetV2 (Tan and Le, 2021) with a U-Net's decoder, or as a classifier.

The architecture is Keras's own, built without weights; a file of them, local or on a bucket, may be given, and nothing
is ever downloaded. Those that Keras publishes for B0 to B3 expect pixels as `loader.normalize: imagenet_torch` gives
them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
from keras import layers

from shardwright.components.image_trainer.deeplab import deeplab_on
from shardwright.components.image_trainer.models import convolutions
from shardwright.components.image_trainer.texts import Words, added_to_map, added_to_vector, model_inputs

_FAMILY = {
    "efficientnetv2-b0": "EfficientNetV2B0",
    "efficientnetv2-b1": "EfficientNetV2B1",
    "efficientnetv2-b2": "EfficientNetV2B2",
    "efficientnetv2-b3": "EfficientNetV2B3",
}
_STRIDES = (2, 4, 8, 16, 32)
_SMALLEST = _STRIDES[-1]
_WIDEST = 8
_DROPOUT = 0.2


def build_encoder(name: str, height: int, width: int) -> keras.Model:
    """An encoder with random weights.

    Args:
        name: one of `config.learning.ENCODERS` but `compact`.
        height: rows of its images, a multiple of 32.
        width: columns of its images, a multiple of 32.

    Returns:
        A model of float32 [B, height, width, 3] to what Keras's architecture ends in, [B, height / 32, width / 32, C].

    Raises:
        ValueError: there is no encoder of that name.
    """
    if name not in _FAMILY:
        raise ValueError(f"encoder {name!r} is not known. Use one of: {', '.join(_FAMILY)}.")
    architecture = getattr(keras.applications, _FAMILY[name])
    # Weights are those of a file or none: Keras would download its own otherwise.
    return architecture(include_top=False, weights=None, input_shape=(height, width, 3), include_preprocessing=False)


def other_encoders(name: str) -> dict[str, Callable[[], keras.Model]]:
    """The other members of an encoder's family, to be built when they are asked for."""
    return {other: partial(build_encoder, other, _SMALLEST, _SMALLEST) for other in _FAMILY if other != name}


def padded(side: int) -> int:
    """The side of an image as an encoder takes it."""
    return side + -side % _STRIDES[-1]


def segmenter(
    encoder: keras.Model,
    height: int,
    width: int,
    classes: int,
    filters: int,
    words: Words | None = None,
    *,
    deeplab: bool = False,
) -> keras.Model:
    """A U-Net on an encoder's feature maps: float32 [B, height, width, 3] to one sigmoid per class.

    Args:
        encoder: of `build_encoder`, for the padded size.
        height: rows of the image.
        width: columns of the image.
        classes: number of classes, C.
        filters: channels of the decoder's last level, at half the resolution; deeper ones have up to 8 times as many.
        words: what the model is told of texts, see `models.build_model`.
        deeplab: DeepLabV3+'s decoder instead of a U-Net's.
    """
    bottom, right = encoder.input_shape[1] - height, encoder.input_shape[2] - width
    features = keras.Model(encoder.input, _feature_maps(encoder), name="encoder")
    image, text, inputs = model_inputs(height, width, words)
    x = layers.ZeroPadding2D(((0, bottom), (0, right)), name="pad_to_stride")(image)
    *skips, x = features(x)
    x = added_to_map(x, text, words, filters)
    if deeplab:
        return deeplab_on([*skips, x], inputs, (bottom, right), classes, filters)
    for level, skip in reversed(list(enumerate(skips))):
        channels = filters * min(2**level, _WIDEST)
        x = layers.Conv2D(channels, 1, use_bias=False)(x)
        x = layers.UpSampling2D(2, interpolation="nearest")(x)
        x = convolutions(layers.Concatenate()([x, skip]), channels)
    x = layers.Conv2D(classes, 1, name="scores", dtype="float32")(x)
    x = layers.UpSampling2D(2, interpolation="bilinear", dtype="float32")(x)
    x = layers.Cropping2D(((0, bottom), (0, right)), name="crop_to_image", dtype="float32")(x)
    outputs = layers.Activation("sigmoid", dtype="float32", name="probabilities")(x)
    return keras.Model(inputs, outputs, name="unet")


def classifier(
    encoder: keras.Model,
    height: int,
    width: int,
    classes: int,
    activation: str,
    filters: int = 16,
    words: Words | None = None,
) -> keras.Model:
    """A classifier: float32 [B, height, width, 3] to [B, classes], through `softmax` or `sigmoid`."""
    bottom, right = encoder.input_shape[1] - height, encoder.input_shape[2] - width
    image, text, inputs = model_inputs(height, width, words)
    x = layers.ZeroPadding2D(((0, bottom), (0, right)), name="pad_to_stride")(image)
    x = keras.Model(encoder.input, encoder.output, name="encoder")(x)
    x = added_to_vector(layers.GlobalAveragePooling2D()(x), text, words, filters)
    x = layers.Dropout(_DROPOUT)(x)
    x = layers.Dense(classes, name="scores", dtype="float32")(x)
    outputs = layers.Activation(activation, dtype="float32", name="probabilities")(x)
    return keras.Model(inputs, outputs, name="cnn")


def _feature_maps(encoder: keras.Model) -> list[Any]:
    """The last map of every resolution; of the lowest the encoder's own output."""
    _, height, width, _ = encoder.input_shape
    wanted = {(height // stride, width // stride): stride for stride in _STRIDES[:-1]}
    found = {}
    for layer in encoder.layers:
        shape: tuple[Any, ...] = tuple(getattr(layer.output, "shape", ()))
        if len(shape) == 4 and shape[1:3] in wanted:
            found[wanted[shape[1], shape[2]]] = layer.output
    return [*(found[stride] for stride in _STRIDES[:-1]), encoder.output]
