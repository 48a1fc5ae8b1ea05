"""Changes of one image with given random numbers: rotation, scale, shift; colors; blur, JPEG's losses; RandAugment.

Rotation, scale and shift are one change of coordinates, so the image is interpolated once. Masks take the nearest pixel
of the same coordinates. Pixels from outside of the image have its mean color and no class.

Source of RandAugment: Cubuk et al., 2019: some changes, drawn for each image, all with one magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

Tensor = Any

AFFINE = ("rotate", "scale", "shift")
COLORS = ("brightness", "contrast", "saturation", "hue")
_FULL = 255.0
# Luma of ITU-R BT.601, as JPEG has it.
_GRAY = (0.299, 0.587, 0.114)
# A Gaussian has little weight beyond so many standard deviations.
_REACH = 3.0
# Changes that RandAugment draws two of, with their strengths at the magnitude 1. The first leaves the image as it is.
_DRAWN = {
    "identity": 0.0,
    "brightness": 0.6,
    "contrast": 0.6,
    "saturation": 0.9,
    "hue": 0.1,
    "blur": 2.0,
    "jpeg": 0.8,
    "rotate": 30.0,
    "scale": 0.4,
    "shift": 0.2,
}
_ROUNDS = 2


def warped(moving: Sequence[Tensor], strengths: Mapping[str, float], chance: Mapping[str, Tensor]) -> list[Tensor]:
    """Rotates, scales and shifts.

    Args:
        moving: the image, uint8 [H, W, 3], and what moves with it, uint8 [H, W, P].
        strengths: of some of `AFFINE`: degrees, a part of the size, a part of each side.
        chance: numbers from 0 to 1 for each of them; two for `shift`.

    Returns:
        The same shapes.
    """
    height, width = moving[0].shape[:2]
    angle = _signed(chance, "rotate", strengths) * (math.pi / 180)
    scale = 1 + _signed(chance, "scale", strengths)
    down, across = (_signed(chance, "shift", strengths, n) * side for n, side in ((0, height), (1, width)))
    # From a pixel of the result back to one of the source, around the middle of both.
    cos, sin = tf.cos(angle) / scale, tf.sin(angle) / scale
    middle_x, middle_y = (width - 1) / 2, (height - 1) / 2
    left = middle_x - cos * (middle_x + across) - sin * (middle_y + down)
    top = middle_y + sin * (middle_x + across) - cos * (middle_y + down)
    zero = tf.zeros(())
    transform = tf.stack([cos, sin, left, -sin, cos, top, zero, zero])[tf.newaxis]
    mean = tf.reduce_mean(tf.cast(moving[0], tf.float32), axis=(0, 1))
    image = _transformed(tf.cast(moving[0], tf.float32) - mean, transform, "BILINEAR") + mean
    others = [_transformed(part, transform, "NEAREST") for part in moving[1:]]
    return [
        tf.ensure_shape(part, before.shape) for part, before in zip([to_bytes(image), *others], moving, strict=True)
    ]


def _signed(chance: Mapping[str, Tensor], name: str, strengths: Mapping[str, float], number: int = 0) -> Tensor:
    """Returns a number between minus and plus the strength; 0 without it."""
    return (2 * chance[name][number] - 1) * strengths[name] if name in strengths else tf.zeros(())


def _transformed(part: Tensor, transform: Tensor, interpolation: str) -> Tensor:
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=part[tf.newaxis],
        transforms=transform,
        output_shape=part.shape[:2],
        fill_value=0.0,
        interpolation=interpolation,
        fill_mode="CONSTANT",
    )[0]


def blurred(image: Tensor, most: float, chance: Tensor) -> Tensor:
    """Blurs by a Gaussian with a standard deviation of up to so many pixels; uint8 [H, W, 3]."""
    radius = min(math.ceil(_REACH * most), *(side - 1 for side in image.shape[:2]))
    if radius < 1:
        return image
    places = tf.range(-radius, radius + 1, dtype=tf.float32)
    weights = tf.exp(-0.5 * (places / tf.maximum(chance[0] * most, 1e-3)) ** 2)
    weights /= tf.reduce_sum(weights)
    values = tf.cast(image, tf.float32)
    # A sum of shifted images: convolutions have another order of summation on each machine.
    for axis, side in enumerate(image.shape[:2]):
        padded = tf.pad(values, [[radius, radius] if n == axis else [0, 0] for n in range(3)], "REFLECT")
        parts = [
            weights[n] * (padded[n : n + side] if axis == 0 else padded[:, n : n + side]) for n in range(2 * radius + 1)
        ]
        values = tf.add_n(parts)
    return tf.ensure_shape(to_bytes(values), image.shape)


def compressed(image: Tensor, most: float, chance: Tensor) -> Tensor:
    """Encodes as JPEG and decodes again, with a quality from 100 down to 100 * (1 - most); uint8 [H, W, 3]."""
    quality = tf.maximum(100 - tf.cast(tf.round(100 * most * chance[0]), tf.int32), 1)
    encoded = tf.raw_ops.EncodeJpegVariableQuality(images=image, quality=quality)
    return tf.ensure_shape(tf.io.decode_jpeg(encoded, channels=3, dct_method="INTEGER_ACCURATE"), image.shape)


def rand_augmented(moving: Sequence[Tensor], magnitude: float, chance: Tensor) -> list[Tensor]:
    """Applies two random changes, each with the magnitude's part of its largest strength.

    Args:
        moving: see `warped`.
        magnitude: from 0 to 1.
        chance: four numbers: two choose the changes, and two how far they go.
    """
    found = list(moving)
    for number in range(_ROUNDS):
        # Each change reads one number, a shift two.
        numbers = tf.stack([chance[_ROUNDS + number], chance[_ROUNDS + 1 - number]])
        branches = [partial(_one, found, name, magnitude * strength, numbers) for name, strength in _DRAWN.items()]
        which = tf.minimum(tf.cast(chance[number] * len(branches), tf.int32), len(branches) - 1)
        parts = tf.switch_case(which, branches)
        found = [tf.ensure_shape(part, before.shape) for part, before in zip(parts, moving, strict=True)]
    return found


def _one(moving: Sequence[Tensor], name: str, strength: float, numbers: Tensor) -> list[Tensor]:
    if name in AFFINE:
        return warped(moving, {name: strength}, {name: numbers})
    if name == "identity":
        return [tf.identity(part) for part in moving]
    if name == "blur":
        image = blurred(moving[0], strength, numbers)
    elif name == "jpeg":
        image = compressed(moving[0], strength, numbers)
    else:
        image = change_colors(moving[0], {name: (2 * numbers[0] - 1) * strength})
    return [image, *(tf.identity(part) for part in moving[1:])]


def change_colors(image: Tensor, drawn: Mapping[str, Tensor]) -> Tensor:
    """Changes the colors of an image.

    Args:
        image: uint8 [H, W, 3].
        drawn: how far each of some of `COLORS` goes. Brightness changes by a part of the range, and hue by a part of
            the circle. Contrast changes the distances from the mean by a part, and saturation those from gray.

    Returns:
        uint8 [H, W, 3].
    """
    values = tf.cast(image, tf.float32)
    if "brightness" in drawn:
        values += tf.round(drawn["brightness"] * _FULL)
    if "contrast" in drawn:
        mean = tf.reduce_mean(values)
        values = mean + (values - mean) * (1 + drawn["contrast"])
    if "saturation" in drawn:
        gray = tf.reduce_sum(values * tf.constant(_GRAY), axis=-1, keepdims=True)
        values = gray + (values - gray) * (1 + drawn["saturation"])
    if "hue" in drawn:
        values = tf.image.adjust_hue(tf.clip_by_value(values, 0.0, _FULL) / _FULL, drawn["hue"]) * _FULL
    return to_bytes(values)


def to_bytes(values: Tensor) -> Tensor:
    """Rounds values to uint8, within its range."""
    return tf.cast(tf.clip_by_value(tf.floor(values + 0.5), 0.0, _FULL), tf.uint8)
