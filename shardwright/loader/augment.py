"""What happens to an image before a model learns from it; masks follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from shardwright.config.loader import AUGMENTATIONS
from shardwright.errors import UsageError

Tensor = Any

# How far `brightness` moves a pixel at most, on the 0..255 scale.
_BRIGHTNESS = 51.0


def check_augment(augment: Sequence[str], size: tuple[int, int]) -> None:
    """Refuses what is no augmentation, or none for images of a size.

    Raises:
        UsageError: names it.
    """
    for name in augment:
        if name not in AUGMENTATIONS:
            raise UsageError(f"augment {name!r} is not known; use any of {', '.join(AUGMENTATIONS)}.")
    if "rotate90" in augment and size[0] != size[1]:
        raise UsageError(
            f"augment 'rotate90' needs square images, these are {size[0]} x {size[1]}. Leave it out, or set a square "
            "transform.size."
        )


def augmented(image: Tensor, target: Tensor, augment: Sequence[str], seed: int, count: Tensor) -> tuple[Tensor, Tensor]:
    """Changes one example; each augmentation has its own random number, whichever others are on.

    Args:
        image: uint8 [H, W, 3].
        target: uint8 [H, W, C], which moves with the image, or anything else, which does not.
        augment: any of `AUGMENTATIONS`.
        seed: the same seed and count give the same change.
        count: int64 scalar, another one for every example and epoch.

    Returns:
        Image and target.
    """
    drawn = tf.random.stateless_uniform([len(AUGMENTATIONS)], tf.stack([tf.constant(seed, tf.int64), count]))
    chance = dict(zip(AUGMENTATIONS, tf.unstack(drawn), strict=True))
    moving = [image, target] if target.shape.rank == 3 else [image]
    for name, axis in (("flip_left_right", 1), ("flip_up_down", 0)):
        if name in augment:
            moving = [_flipped(part, chance[name] < 0.5, axis) for part in moving]
    if "rotate90" in augment:
        turns = tf.cast(chance["rotate90"] * 4, tf.int32)
        moving = [tf.ensure_shape(tf.image.rot90(part, turns), part.shape) for part in moving]
    image = moving[0]
    if "brightness" in augment:
        shifted = tf.cast(image, tf.float32) + (2 * chance["brightness"] - 1) * _BRIGHTNESS
        image = tf.cast(tf.clip_by_value(tf.floor(shifted + 0.5), 0.0, 255.0), tf.uint8)
    return image, target if len(moving) == 1 else moving[1]


def _flipped(part: Tensor, flip: Tensor, axis: int) -> Tensor:
    return tf.ensure_shape(tf.cond(flip, lambda: tf.reverse(part, [axis]), lambda: part), part.shape)
