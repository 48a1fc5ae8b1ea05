"""From decoded examples to a model's input, after batching: one op for the batch instead of one an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from shardwright.dataset.manifest import MULTI, NONE, Manifest
from shardwright.images import tf_ops
from shardwright.loader.augment import cutmix, mixup
from shardwright.loader.load_options import BOTH, LABELS, MASKS, ResolvedOptions
from shardwright.loader.masks import unpack_bits
from shardwright.loader.parse_example import Example

Tensor = Any


# The number that 255 becomes, by methods that scale all channels alike.
_HIGHEST = {"unit": 1.0, "none": 255.0}


@dataclass(frozen=True)
class Postprocess:
    """Makes (image, target[, weight][, id]) of a batch.

    Attributes:
        manifest: the dataset's.
        options: of the loader.
    """

    manifest: Manifest
    options: ResolvedOptions

    def __call__(self, batch: Example) -> tuple[Any, ...]:
        """Returns the elements of a batch; see `load`.

        Args:
            batch: `count`, `position`, `image`, and optionally `bits`, `label`, `text`, `numbers`, `weight`, all
                [B, ...].
        """
        image, target = self._image(batch["image"]), self._target(batch)
        if self.options.mixing:
            image, target = self._mixed(tf.cast(image, tf.float32), target, batch["count"][0])
        image = tf.cast(image, self.options.dtype)
        found = [{"image": image, "text": batch["text"]} if "text" in batch else image, target]
        found += [batch["weight"]] if "weight" in batch else []
        return (*found, batch["position"]) if self.options.ids else tuple(found)

    def _image(self, image: Tensor) -> Tensor:
        if self.options.dtype == "uint8":
            return image
        highest = _HIGHEST.get(self.options.normalize)
        if highest is not None and image.dtype == tf.uint8:
            # Converts and scales in one pass over the memory of a batch, with the same bits as two: half of the work.
            levels = tf.bitcast(image, tf.quint8)
            return tf.raw_ops.Dequantize(input=levels, min_range=0.0, max_range=highest, mode="MIN_COMBINED")
        figures = self.options.statistics or {}
        return tf_ops.normalize(image, self.options.normalize, figures.get("mean"), figures.get("std"))

    def _target(self, batch: Example) -> Any:
        if self.manifest.labels == NONE:
            return batch.get("numbers", batch["position"])
        found = {}
        if self.options.with_masks:
            found[MASKS] = batch["bits"] if self.options.masks == "bits" else self._unpacked(batch["bits"])
        if self.options.with_labels:
            found[LABELS] = batch["label"]
        return found if self.options.targets == BOTH else found[self.options.targets]

    def _unpacked(self, bits: Tensor) -> Tensor:
        return unpack_bits(bits, len(self.manifest.classes), self.manifest.ignores)

    def _mixed(self, image: Tensor, target: Any, count: Tensor) -> tuple[Tensor, Any]:
        one_hot = self.manifest.task == "classification" and self.manifest.labels != MULTI
        soft = tf.nest.map_structure(
            lambda part: tf.one_hot(part, len(self.manifest.classes)) if one_hot else tf.cast(part, tf.float32), target
        )
        for name, mix in (("mixup", mixup), ("cutmix", cutmix)):
            if name in self.options.mixing:
                image, soft = mix(image, soft, self.options.mixing[name], self.options.seed, count)
        return image, soft
