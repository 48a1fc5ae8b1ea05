"""From a serialized example to an image and its target, in fixed shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright import pixels
from shardwright.config.layout import TF_VISION, TFDS
from shardwright.dataset import Dataset
from shardwright.errors import DatasetError
from shardwright.manifest import IGNORED, MULTI, NONE
from shardwright.metrics import UNCOUNTED

Tensor = Any

_LABEL = "image/class/label"


def parser(dataset: Dataset, size: tuple[int, int]) -> Any:
    """A function from (shard, position in the split, serialized example) to (uint8 [H, W, 3], target).

    Args:
        dataset: whose examples they are.
        size: height and width that every image must have.
    """
    manifest = dataset.manifest
    stored = manifest.recipe.get("encoding") or manifest.recipe.get("images", {}).get("reencode")
    # By our names, whatever they are called here.
    features: dict[str, Any] = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/key": tf.io.FixedLenFeature([], tf.string),
    }
    if stored == "raw":
        features |= {f"image/{side}": tf.io.FixedLenFeature([], tf.int64) for side in ("height", "width")}
    as_images = manifest.recipe.get("features", {}).get("preset") == TFDS
    masks = [f"image/segmentation/{name}/rle" for name in manifest.classes]
    if manifest.task == "segmentation":
        drawn = [*masks, *([f"image/segmentation/{IGNORED}/rle"] if manifest.ignores else [])]
        spec = tf.io.FixedLenFeature([], tf.string) if as_images else tf.io.RaggedFeature(tf.int64)
        features |= dict.fromkeys(drawn, spec)
    elif manifest.labels != NONE:
        features[_LABEL] = tf.io.RaggedFeature(tf.int64)

    _refuse_unreadable(dataset, features)

    def parse(shard: Tensor, position: Tensor, record: Tensor) -> tuple[Tensor, Tensor]:
        damaged = tf.strings.join([shard, ": a record is damaged or missing. Write the dataset anew."])
        with tf.control_dependencies([tf.debugging.Assert(tf.strings.length(record) > 0, [damaged])]):
            parsed = tf.io.parse_single_example(
                record, {manifest.stored(name): spec for name, spec in features.items()}
            )
        example = {name: parsed[manifest.stored(name)] for name in features}
        where = tf.strings.join([shard, " key ", example["image/key"], ": "])
        image = _decode(example, stored)
        _assert_size(image, size, where)
        image.set_shape([*size, 3])
        if manifest.task == "segmentation":
            coded = [example[name] for name in drawn]
            target = _decode_masks(coded, size, where) if as_images else pixels.draw_masks(coded, *size)
            return image, _uncounted(target) if manifest.ignores else target
        if manifest.labels == NONE:
            return image, position
        if manifest.labels == MULTI:
            return image, _multi_hot(example[_LABEL], len(manifest.classes), where)
        # An image without a class has an empty list.
        label = tf.cast(tf.concat([example[_LABEL], [-1]], 0)[0], tf.int32)
        tf.debugging.Assert(label >= 0, [tf.strings.join([where, "has no label; leave unlabelled images out."])])
        return image, label

    return parse


def _refuse_unreadable(dataset: Dataset, features: Mapping[str, Any]) -> None:
    """Refuses a dataset whose features were stored in a form that is none of ours, or left out."""
    manifest = dataset.manifest
    for name, spec in features.items():
        kind = "bytes" if spec.dtype == tf.string else "int64"
        if manifest.features.get(manifest.stored(name)) != kind:
            preset = manifest.recipe.get("features", {}).get("preset", TF_VISION)
            raise DatasetError(
                f"{dataset.root}: cannot be loaded: {name} is not stored as {kind} (features.preset is {preset}). "
                f"Write the dataset with features: {{preset: {TF_VISION}}}."
            )


def _decode_masks(images: Sequence[Tensor], size: tuple[int, int], where: Tensor) -> Tensor:
    """Uint8 [H, W, C] of 0 and 1 from an image for each class."""
    masks = []
    for data in images:
        mask = tf.io.decode_png(data, channels=1)
        _assert_size(mask, size, where)
        masks.append(tf.ensure_shape(mask, [*size, 1]))
    return tf.concat(masks, axis=-1)


def _uncounted(masks: Tensor) -> Tensor:
    """Takes off the last mask, of what is ignored, and marks its pixels in all the others."""
    # All bits of 255 are 1, so what a class says of the pixel makes no difference.
    return tf.bitwise.bitwise_or(masks[..., :-1], masks[..., -1:] * np.uint8(UNCOUNTED))


def _decode(example: Mapping[str, Tensor], stored: str | None) -> Tensor:
    """The pixels of a parsed example, that are stored as the recipe says; `None`: as JPEG or PNG."""
    encoded = example["image/encoded"]
    if stored == "raw":
        return pixels.decode_raw(encoded, example["image/height"], example["image/width"])
    decoders = {"jpeg": pixels.decode_jpeg, "tensor": pixels.parse_tensor}
    return decoders.get(str(stored), pixels.decode)(encoded)


def _multi_hot(labels: Tensor, classes: int, where: Tensor) -> Tensor:
    """Float32 [C]: 1 for every class of an image, else 0."""
    message = tf.strings.join([where, f"has a class that is none of the {classes}. Write the dataset anew."])
    tf.debugging.Assert(tf.reduce_all((labels >= 0) & (labels < classes)), [message])
    return tf.minimum(tf.reduce_sum(tf.one_hot(labels, classes), axis=0), 1.0)


def _assert_size(image: Tensor, size: tuple[int, int], where: Tensor) -> None:
    shape = tf.shape(image)
    found = tf.strings.join([tf.strings.as_string(shape[0]), " x ", tf.strings.as_string(shape[1])])
    message = tf.strings.join(
        [where, "image is ", found, f", not {size[0]} x {size[1]}. Batches need one size: use a transformed set."]
    )
    tf.debugging.Assert((shape[0] == size[0]) & (shape[1] == size[1]), [message])
