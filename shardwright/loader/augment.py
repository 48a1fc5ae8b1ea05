"""Random changes of an image before a model is trained on it; masks follow.

| name | strength |
|---|---|
| `flip_left_right`, `flip_up_down`, `rotate90` | none: every other one; a quarter turn of four, for square images |
| `crop=0.7` | a random part, of at least so much of each side, is enlarged to the whole |
| `rotate=15` | by up to so many degrees |
| `scale=0.2` | larger or smaller by up to so much |
| `shift=0.1` | by up to so much of each side |
| `brightness=0.2` | is moved by up to so much of the range |
| `contrast=0.2` | distances from the image's mean are stretched or shrunk by up to so much |
| `saturation=0.3` | distances from gray are stretched or shrunk by up to so much |
| `hue=0.05` | is turned by up to so much of the circle |
| `blur=1.5` | a Gaussian with a standard deviation of up to so many pixels |
| `jpeg=0.5` | JPEG's losses, with a quality from 100 down to 50 |
| `randaugment=0.5` | two random changes of color, sharpness and place, each up to so much of its largest strength |
| `cutout=0.3` | a rectangle of up to so much of each side becomes the image's mean color, and no class in the masks |
| `mixup=0.2` | images of a batch are mixed in pairs, alpha of Zhang et al., 2018; see `mixup` |
| `cutmix=1` | a rectangle comes from another image of the batch, alpha of Yun et al., 2019; see `cutmix` |

They are applied in this order, not in the order of the option. Each has separate random numbers, which do not depend on
the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from shardwright.config.loader import AUGMENTATIONS, Augmentation
from shardwright.loader.image_changes import (
    AFFINE,
    COLORS,
    blurred,
    change_colors,
    compressed,
    rand_augmented,
    to_bytes,
    warped,
)
from shardwright.loader.parse_example import Example
from shardwright.masks.regions import IGNORE_VALUE

Tensor = Any

# Random numbers for each augmentation.
_NUMBERS = 4
# Separates the random numbers of the second image of a pair.
_OTHER = 1 << 40
# The first version had so many augmentations; further ones have other random numbers, so that its changes stay.
_FIRST = 10
_FURTHER = 1 << 41


def apply_augmentations(example: Example, augment: Mapping[str, Augmentation], seed: int, count: Tensor) -> Example:
    """Changes one example.

    Args:
        example: `image` uint8 [H, W, 3]; `bits` uint8 [H, W, P], where there is one, moves with it.
        augment: by name; `mixup` and `cutmix` are left to the batch.
        seed: the same seed and count give the same change.
        count: int64 scalar, another one for every example and epoch.

    Returns:
        The example, changed.
    """
    chance = _drawn(AUGMENTATIONS[:_FIRST], seed, count)
    if any(name in augment for name in AUGMENTATIONS[_FIRST:]):
        chance |= _drawn(AUGMENTATIONS[_FIRST:], seed, count + _FURTHER)
    image, bits = example["image"], example.get("bits")
    moving = [image] if bits is None else [image, bits]
    for name, axis in (("flip_left_right", 1), ("flip_up_down", 0)):
        if name in augment:
            flip = chance[name][0] < 0.5
            flipped = [tf.cond(flip, partial(tf.reverse, part, [axis]), partial(tf.identity, part)) for part in moving]
            moving = [tf.ensure_shape(part, before.shape) for part, before in zip(flipped, moving, strict=True)]
    if "rotate90" in augment:
        turns = tf.cast(chance["rotate90"][0] * 4, tf.int32)
        moving = [tf.ensure_shape(tf.image.rot90(part, turns), part.shape) for part in moving]
    if "crop" in augment:
        moving = _cropped(moving, augment["crop"].strength, chance["crop"])
    if affine := {name: augment[name].strength for name in AFFINE if name in augment}:
        moving = warped(moving, affine, chance)
    if any(name in augment for name in COLORS):
        chosen = [name for name in COLORS if name in augment]
        moving[0] = change_colors(
            moving[0], {name: (2 * chance[name][0] - 1) * augment[name].strength for name in chosen}
        )
    for name, change in (("blur", blurred), ("jpeg", compressed)):
        if name in augment:
            moving[0] = change(moving[0], augment[name].strength, chance[name])
    if "randaugment" in augment:
        moving = rand_augmented(moving, augment["randaugment"].strength, chance["randaugment"])
    if "cutout" in augment:
        moving = _cut_out(moving, augment["cutout"].strength, chance["cutout"])
    return {**example, **dict(zip(("image", "bits"), moving, strict=False))}


def _drawn(names: Sequence[str], seed: int, count: Tensor) -> dict[str, Tensor]:
    """Returns random numbers from 0 to 1 for each augmentation."""
    numbers = tf.random.stateless_uniform([len(names), _NUMBERS], tf.stack([tf.constant(seed, tf.int64), count]))
    return {name: numbers[row] for row, name in enumerate(names)}


def _box(height: int, width: int, shares: tuple[Tensor, Tensor], chance: Tensor) -> tuple[Tensor, ...]:
    """Returns top, left, height and width, int32, of a random box with shares of the sides, at least one pixel."""
    sides = [
        tf.clip_by_value(tf.cast(tf.round(share * side), tf.int32), 1, side)
        for share, side in zip(shares, (height, width), strict=True)
    ]
    begins = [
        tf.minimum(tf.cast(chance[n] * tf.cast(side - own + 1, tf.float32), tf.int32), side - own)
        for n, (side, own) in enumerate(zip((height, width), sides, strict=True))
    ]
    return (*begins, *sides)


def _cropped(moving: list[Tensor], least: float, chance: Tensor) -> list[Tensor]:
    """Crops and enlarges: the image bilinearly, masks to the nearest pixel."""
    height, width = moving[0].shape[:2]
    share = least + (1 - least) * chance[2]
    top, left, rows, columns = _box(height, width, (share, share), chance)
    parts = [part[top : top + rows, left : left + columns] for part in moving]
    resized = tf.image.resize(parts[0], (height, width), "bilinear")
    found = [tf.ensure_shape(to_bytes(resized), moving[0].shape)]
    for part, whole in zip(parts[1:], moving[1:], strict=True):
        down, across = (
            ((2 * tf.range(size) + 1) * own) // (2 * size) for size, own in ((height, rows), (width, columns))
        )
        found.append(tf.ensure_shape(tf.gather(tf.gather(part, down), across, axis=1), whole.shape))
    return found


def _cut_out(moving: list[Tensor], most: float, chance: Tensor) -> list[Tensor]:
    image = moving[0]
    height, width = image.shape[:2]
    top, left, rows, columns = _box(height, width, (most * chance[2], most * chance[3]), chance)
    down, across = tf.range(height)[:, tf.newaxis, tf.newaxis], tf.range(width)[tf.newaxis, :, tf.newaxis]
    inside = (down >= top) & (down < top + rows) & (across >= left) & (across < left + columns)
    color = to_bytes(tf.reduce_mean(tf.cast(image, tf.float32), axis=(0, 1)))
    return [tf.where(inside, color, image), *(tf.where(inside, tf.zeros((), tf.uint8), part) for part in moving[1:])]


def mixup(images: Tensor, target: Any, alpha: float, seed: int, count: Tensor) -> tuple[Tensor, Any]:
    """Mixes every image of a host's batch with the one before it, and the targets alike.

    The same seed, step and number of hosts mix the same pairs; another number of hosts has other batches, and so other
    pairs.

    The share of the first image is drawn for each pair from Beta(alpha, alpha), and the larger of the two shares is
    taken. A pixel that is ignored in one of the two is ignored in their mixture.

    Args:
        images: float32 [B, H, W, 3].
        target: float32 [B, ...], or several of them; may contain `IGNORE_VALUE`.
        alpha: of the distribution.
        seed: the same seed and count give the same mixture.
        count: int64 scalar, of the first example of the batch.

    Returns:
        Images and target, mixed.
    """
    shape = tf.shape(images)[:1]
    state = tf.stack([tf.constant(seed, tf.int64), count])
    one, other = (
        tf.random.stateless_gamma(shape, state + tf.constant([0, add], tf.int64), alpha) for add in (0, _OTHER)
    )
    share = tf.math.divide_no_nan(one, one + other)
    share = tf.maximum(share, 1 - share)
    return _mixed(images, share), tf.nest.map_structure(lambda part: _mixed_targets(part, share), target)


def _mixed(values: Tensor, share: Tensor) -> Tensor:
    share = tf.reshape(share, [-1, *[1] * (len(values.shape) - 1)])
    return values * share + tf.roll(values, 1, axis=0) * (1 - share)


def _mixed_targets(target: Tensor, share: Tensor) -> Tensor:
    left_out = (target == IGNORE_VALUE) | (tf.roll(target, 1, axis=0) == IGNORE_VALUE)
    return tf.where(left_out, tf.constant(IGNORE_VALUE, tf.float32), _mixed(target, share))


def cutmix(images: Tensor, target: Any, alpha: float, seed: int, count: Tensor) -> tuple[Tensor, Any]:
    """Replaces a rectangle of every image of a host's batch by that of the image before it, and the targets alike.

    Labels are mixed by area, masks have those of the pixels. The rectangle's part of the area is drawn for each pair
    from Beta(alpha, alpha). For seeds and hosts, see `mixup`.

    Args:
        images: float32 [B, H, W, 3].
        target: float32 [B, C] or [B, H, W, C], or several of them; may contain `IGNORE_VALUE`.
        alpha: of the distribution.
        seed: the same seed and count give the same rectangles.
        count: int64 scalar, of the first example of the batch.

    Returns:
        Images and target, mixed.
    """
    batch, (height, width) = tf.shape(images)[0], images.shape[1:3]
    state = tf.stack([tf.constant(seed, tf.int64), count])
    one, other = (
        tf.random.stateless_gamma([batch], state + tf.constant([0, add], tf.int64), alpha)
        for add in (_FURTHER, _FURTHER + _OTHER)
    )
    side = tf.sqrt(tf.math.divide_no_nan(one, one + other))
    places = tf.random.stateless_uniform([2, batch], state + tf.constant([0, _FURTHER + 2 * _OTHER], tf.int64))
    inside = _within(height, side, places[0])[:, :, tf.newaxis] & _within(width, side, places[1])[:, tf.newaxis]
    area = tf.reduce_mean(tf.cast(inside, tf.float32), axis=(1, 2))

    def pasted(values: Tensor) -> Tensor:
        return tf.where(inside[..., tf.newaxis], tf.roll(values, 1, axis=0), values)

    return pasted(images), tf.nest.map_structure(
        lambda part: pasted(part) if len(part.shape) == len(images.shape) else _mixed_targets(part, 1 - area), target
    )


def _within(length: int, part: Tensor, place: Tensor) -> Tensor:
    """Returns for each image of a batch which rows, or columns, are in its rectangle: bool [B, length]."""
    own = tf.round(part * length)
    begin = tf.floor(place * (length - own + 1))[:, tf.newaxis]
    numbers = tf.range(length, dtype=tf.float32)[tf.newaxis]
    return (numbers >= begin) & (numbers < begin + own[:, tf.newaxis])
