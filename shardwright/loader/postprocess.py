"""From decoded examples to a model's input, after batching: one op for the batch instead of one an image."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from shardwright.dataset.manifest import MULTI, Manifest
from shardwright.images import tf_ops
from shardwright.loader.augment import cutmix, mixup
from shardwright.loader.load_options import BOTH, LABELS, MASKS, ResolvedOptions
from shardwright.loader.masks import unpack_bits
from shardwright.loader.parse_example import Example

Tensor = Any

# The number that 255 becomes, by methods that scale all channels alike.
_HIGHEST = {"unit": 1.0, "none": 255.0}


def finish_batch(batch: Example, manifest: Manifest, options: ResolvedOptions) -> tuple[Any, ...]:
    """Makes (image, target[, weight][, id]) of a batch; see `load`.

    Args:
        batch: `count`, `position`, `image`, and optionally `bits`, `label`, `text`, `numbers`, `weight`, all [B, ...].
        manifest: the dataset's.
        options: of the loader.
    """
    image: Tensor = batch["image"] if options.dtype == "uint8" else _normalized(batch["image"], options)
    targets: dict[str, Tensor] = {}
    if options.with_masks:
        bits, classes = batch["bits"], len(manifest.classes)
        targets[MASKS] = bits if options.masks == "bits" else unpack_bits(bits, classes, manifest.ignores)
    if options.with_labels:
        targets[LABELS] = batch["label"] if "label" in batch else batch.get("numbers", batch["position"])
    target: Any = targets if options.targets == BOTH else targets[options.targets]
    if options.mixing:
        one_hot = manifest.task == "classification" and manifest.labels != MULTI
        image, target = (
            tf.cast(image, tf.float32),
            tf.nest.map_structure(
                lambda part: tf.one_hot(part, len(manifest.classes)) if one_hot else tf.cast(part, tf.float32), target
            ),
        )
        for name, mix in (("mixup", mixup), ("cutmix", cutmix)):
            if name in options.mixing:
                image, target = mix(image, target, options.mixing[name], options.seed, batch["count"][0])
    image = tf.cast(image, options.dtype)
    parts = [{"image": image, "text": batch["text"]} if "text" in batch else image, target]
    parts += [batch["weight"]] if "weight" in batch else []
    return (*parts, batch["position"]) if options.ids else tuple(parts)


def _normalized(image: Tensor, options: ResolvedOptions) -> Tensor:
    highest = _HIGHEST.get(options.normalize)
    if highest is not None and image.dtype == tf.uint8:
        # Converts and scales in one pass over the memory of a batch, with the same bits as two: half of the work.
        levels = tf.bitcast(image, tf.quint8)
        return tf.raw_ops.Dequantize(input=levels, min_range=0.0, max_range=highest, mode="MIN_COMBINED")
    figures = options.statistics or {}
    return tf_ops.normalize(image, options.normalize, figures.get("mean"), figures.get("std"))
