"""Normalizes pixels and unpacks masks within a compiled step, on the device.

A float32 has four times the bytes of a pixel, and a mask's byte up to eight times those of its bit. To write them takes
a host longer than all else that it does for an image after decoding. So batches travel to the device as bytes and bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from shardwright.components.image_trainer.models.text_inputs import pixels_of, with_pixels
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.config.loader import MIXING, read_augmentations
from shardwright.images import tf_ops
from shardwright.loader.masks import unpack_bits, unpack_masks


@dataclass(frozen=True)
class DeviceInput:
    """The values that a step needs to prepare its batch.

    Attributes:
        normalize: `loader.normalize`.
        mean: per channel, for `normalize: dataset`.
        std: per channel, likewise.
        classes: number of classes.
        ignore: whether masks mark pixels that are ignored.
    """

    normalize: str
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    classes: int
    ignore: bool

    @staticmethod
    def of(spec: TrainSpec) -> DeviceInput:
        """Returns that of a training."""
        return DeviceInput(spec.recipe.loader.normalize, spec.mean, spec.std, len(spec.classes), spec.ignore)

    # Nothing here is a condition on tensors, and converting these functions takes longer than tracing them.
    @tf.autograph.experimental.do_not_convert
    def images(self, images: Any) -> Any:
        """Returns images as float32, normalized; images that are not uint8 have been normalized by the loader."""
        pixels = pixels_of(images)
        if not _is_bytes(pixels):
            return images
        # On TensorFlow the operations are those of the loader and of the exported model.
        if _on_tensorflow():
            return with_pixels(images, tf_ops.normalize(pixels, self.normalize, self.mean, self.std))
        rule = tf_ops.normalization(self.normalize, self.mean, self.std)
        values = ops.cast(ops.flip(pixels, -1) if rule.reverse else pixels, "float32")
        return with_pixels(images, values * rule.scale + rule.offset)

    @tf.autograph.experimental.do_not_convert
    def targets(self, targets: Any) -> Any:
        """Returns masks of 0, 1 and `IGNORE_VALUE` for bits; targets that are not uint8 are not bits."""
        if not _is_bytes(targets):
            return targets
        if _on_tensorflow():
            return unpack_bits(targets, self.classes, self.ignore)
        return unpack_masks(targets, self.classes, ops, self.ignore)


def train_options(spec: TrainSpec) -> dict[str, Any]:
    """Returns the options of `load` for the batches of `DeviceInput`: bytes and bits, or floats where images are mixed.

    Mixed images and masks are fractions, so the loader normalizes them first.
    """
    if any(name in MIXING for name in read_augmentations(spec.recipe.loader.augment)):
        return {"normalize": spec.recipe.loader.normalize, "statistics": spec.statistics}
    return {"normalize": "none", "dtype": "uint8", **mask_options(spec)}


def mask_options(spec: TrainSpec) -> dict[str, Any]:
    """Returns the options of `load` for masks as bits."""
    return {"masks": "bits"} if spec.task == "segmentation" else {}


def _is_bytes(values: Any) -> bool:
    return bool(keras.backend.standardize_dtype(values.dtype) == "uint8")


def _on_tensorflow() -> bool:
    return bool(keras.backend.backend() == "tensorflow")
