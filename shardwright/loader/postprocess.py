"""From decoded examples to what a model is fed: after batching, so that one op does what would take one an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from shardwright.dataset.manifest import MULTI, NONE, Manifest
from shardwright.images import tf_ops
from shardwright.loader.augment import mixup
from shardwright.loader.masks import unpack_bits
from shardwright.loader.parsing import Example

Tensor = Any

MASKS, LABELS, BOTH = "masks", "labels", "both"


@dataclass(frozen=True)
class Postprocess:
    """Makes (image, target[, weight][, id]) of a batch.

    Attributes:
        manifest: the dataset's.
        targets: `masks`, `labels` or `both`.
        as_bits: hand masks on as bits.
        normalize: see `pixels.normalize`.
        figures: mean and std for it.
        dtype: of the images.
        mixup: alpha, 0 for none.
        seed: of the mixing.
        ids: whether positions in the split are wanted.
    """

    manifest: Manifest
    targets: str
    as_bits: bool
    normalize: str
    figures: Mapping[str, Any] | None
    dtype: str
    mixup: float
    seed: int
    ids: bool

    def __call__(self, batch: Example) -> tuple[Any, ...]:
        """See `load` for what comes out.

        Args:
            batch: `count`, `position`, `image`, and `bits`, `label`, `text`, `weight` where there are such, all
                [B, ...].
        """
        image, target = self._image(batch["image"]), self._target(batch)
        if self.mixup:
            image, target = self._mixed(tf.cast(image, tf.float32), target, batch["count"][0])
        image = tf.cast(image, self.dtype)
        found = [{"image": image, "text": batch["text"]} if "text" in batch else image, target]
        found += [batch["weight"]] if "weight" in batch else []
        return (*found, batch["position"]) if self.ids else tuple(found)

    def _image(self, image: Tensor) -> Tensor:
        if self.dtype == "uint8":
            return image
        figures = self.figures or {}
        return tf_ops.normalize(image, self.normalize, figures.get("mean"), figures.get("std"))

    def _target(self, batch: Example) -> Any:
        if self.manifest.labels == NONE:
            return batch["position"]
        found = {}
        if self.targets in (MASKS, BOTH):
            found[MASKS] = batch["bits"] if self.as_bits else self._unpacked(batch["bits"])
        if self.targets in (LABELS, BOTH):
            found[LABELS] = batch["label"]
        return found if self.targets == BOTH else found[self.targets]

    def _unpacked(self, bits: Tensor) -> Tensor:
        return unpack_bits(bits, len(self.manifest.classes), self.manifest.ignores)

    def _mixed(self, image: Tensor, target: Any, count: Tensor) -> tuple[Tensor, Any]:
        one_hot = self.manifest.task == "classification" and self.manifest.labels != MULTI
        soft = tf.nest.map_structure(
            lambda part: tf.one_hot(part, len(self.manifest.classes)) if one_hot else tf.cast(part, tf.float32), target
        )
        return mixup(image, soft, self.mixup, self.seed, count)
