"""From a serialized example to an image and its target, in fixed shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from shardwright import pixels
from shardwright.config.layout import TF_VISION, TFDS
from shardwright.config.transform import PNG
from shardwright.dataset import Dataset
from shardwright.errors import DatasetError
from shardwright.loader.masks import draw_bits, pack_bits, runs_fit
from shardwright.loader.naming import Naming
from shardwright.loader.words import StoredTexts
from shardwright.manifest import IGNORED, MULTI, NONE

Tensor = Any
Example = dict[str, Tensor]
Require = Callable[..., Tensor]

_LABEL = "image/class/label"
_DAMAGED = "the record is damaged or missing; `shardwright verify` tells what else is. Write the dataset anew."


@dataclass(frozen=True)
class Parser:
    """Makes an example of a serialized one.

    Attributes:
        dataset: whose examples they are.
        split: name of the split.
        size: height and width that every image must have.
        masks: whether masks are wanted.
        labels: whether labels are wanted.
        texts: columns of texts that are wanted.

    Raises:
        DatasetError: the features are stored in a form that is none of ours.
    """

    dataset: Dataset
    split: str
    size: tuple[int, int]
    masks: bool
    labels: bool
    texts: tuple[StoredTexts, ...] = ()

    def __call__(self, position: Tensor, record: Tensor) -> Example:
        """Parses and decodes.

        Args:
            position: int64 scalar, of the record in the split.
            record: string scalar; empty where the record could not be read.

        Returns:
            `image` uint8 [H, W, 3]; `bits` uint8 [H, W, P] where masks are wanted (`masks.draw_bits`); `label` where
            labels are: int32, or float32 [C] where an image may have several; `text` float32 [V] where texts are: how
            often each word occurs, one column behind the other.

        Raises:
            tf.errors.InvalidArgumentError: while iterating; names the record.
        """
        manifest, naming, features = self.dataset.manifest, Naming(self.dataset.shards(self.split)), self._features()
        _refuse_unreadable(self.dataset, features)
        require = naming.require
        spec = {manifest.stored(name): kind for name, kind in features.items()}
        parsed = tf.io.parse_single_example(record, spec)
        found = {name: parsed[manifest.stored(name)] for name in features}
        encoded = found["image/encoded"]
        # A record that could not be read is an empty one, and parsed as such.
        found["image/encoded"] = require(
            tf.strings.length(encoded) > 0,
            position,
            lambda: tf.where(tf.strings.length(record) > 0, "holds no image. Write the dataset anew.", _DAMAGED),
            encoded,
        )
        image = self._sized("image", _decode(found, self._encoding), 3, position, require)
        example = {"image": image}
        if self.texts:
            problem = "has words that are none of its vocabulary. Write the dataset anew."
            fit = functools.partial(require, position=position, problem=lambda: problem)
            vectors = [text.vector(found, lambda holds, value: fit(holds, value=value)) for text in self.texts]
            example["text"] = tf.concat(vectors, axis=0)
        if manifest.task == "segmentation":
            example |= self._masks(found, position, require)
        elif self.labels and manifest.labels != NONE:
            example["label"] = self._label(found[_LABEL], position, require)
        return example

    @property
    def _encoding(self) -> str | None:
        """How the recipe says that pixels are stored; `None`: as JPEG or PNG."""
        recipe = self.dataset.manifest.recipe
        return recipe.get("encoding") or recipe.get("images", {}).get("reencode")

    @property
    def _as_images(self) -> bool:
        """Whether masks are stored as images."""
        recipe = self.dataset.manifest.recipe
        return recipe.get("features", {}).get("preset") == TFDS or recipe.get("masks") == PNG

    def _features(self) -> dict[str, Any]:
        """What is parsed, by our names, whatever they are called in the records."""
        manifest = self.dataset.manifest
        # Defaults, so that a record without an image is told by us, who can name it.
        features: dict[str, Any] = {"image/encoded": tf.io.FixedLenFeature([], tf.string, default_value="")}
        if self._encoding == "raw":
            side = tf.io.FixedLenFeature([], tf.int64, default_value=0)
            features |= {"image/height": side, "image/width": side}
        for text in self.texts:
            features |= text.features
        if manifest.task == "segmentation":
            image = tf.io.FixedLenFeature([], tf.string, default_value="")
            spec = image if self._as_images else tf.io.RaggedFeature(tf.int64)
            features |= dict.fromkeys(self._mask_names(), spec)
        elif manifest.labels != NONE and self.labels:
            features[_LABEL] = tf.io.RaggedFeature(tf.int64)
        return features

    def _mask_names(self) -> list[str]:
        manifest = self.dataset.manifest
        marks = [*manifest.classes, *([IGNORED] if manifest.ignores else [])]
        return [f"image/segmentation/{name}/rle" for name in marks]

    def _masks(self, found: Mapping[str, Tensor], position: Tensor, require: Require) -> Example:
        coded = [found[name] for name in self._mask_names()]
        classes = len(self.dataset.manifest.classes)
        example: Example = {}
        if self._as_images:
            drawn = [self._sized("mask", tf.io.decode_png(data, channels=1), 1, position, require) for data in coded]
            masks = tf.concat(drawn, axis=-1)
            if self.masks:
                example["bits"] = pack_bits(masks)
            if self.labels:
                example["label"] = tf.cast(tf.reduce_max(masks[..., :classes], axis=(0, 1)), tf.float32)
            return example
        if self.masks:
            problem = f"a mask does not lie within {self.size[0]} x {self.size[1]}. Write the dataset anew."
            fit = runs_fit(coded, self.size[0] * self.size[1])
            coded = [require(fit, position, lambda: problem, coded[0]), *coded[1:]]
            example["bits"] = draw_bits(coded, *self.size)
        if self.labels:
            example["label"] = tf.cast(tf.stack([tf.size(runs) for runs in coded[:classes]]) > 0, tf.float32)
        return example

    def _label(self, labels: Tensor, position: Tensor, require: Require) -> Tensor:
        classes = len(self.dataset.manifest.classes)
        known = tf.reduce_all((labels >= 0) & (labels < classes))
        problem = f"has a class that is none of the {classes}. Write the dataset anew."
        labels = require(known, position, lambda: problem, labels)
        if self.dataset.manifest.labels == MULTI:
            return tf.minimum(tf.reduce_sum(tf.one_hot(labels, classes), axis=0), 1.0)
        # An image without a class has an empty list.
        label = tf.cast(tf.concat([labels, [-1]], 0)[0], tf.int32)
        return require(label >= 0, position, lambda: "has no label; leave unlabelled images out.", label)

    def _sized(self, what: str, image: Tensor, channels: int, position: Tensor, require: Require) -> Tensor:
        shape = tf.shape(image)
        fits = (shape[0] == self.size[0]) & (shape[1] == self.size[1])
        return tf.ensure_shape(
            require(fits, position, lambda: self._wrong_size(what, shape), image), [*self.size, channels]
        )

    def _wrong_size(self, what: str, shape: Tensor) -> Tensor:
        found = tf.strings.join([tf.strings.as_string(shape[0]), " x ", tf.strings.as_string(shape[1])])
        wanted = f", not {self.size[0]} x {self.size[1]}. Batches need one size: use a transformed set."
        return tf.strings.join([f"{what} is ", found, wanted])


def _refuse_unreadable(dataset: Dataset, features: Mapping[str, Any]) -> None:
    """Refuses a dataset whose features were stored in a form that is none of ours, or left out."""
    manifest = dataset.manifest
    for name, spec in features.items():
        kind = {tf.string: "bytes", tf.float32: "float32"}.get(spec.dtype, "int64")
        if manifest.features.get(manifest.stored(name)) != kind:
            preset = manifest.recipe.get("features", {}).get("preset", TF_VISION)
            raise DatasetError(
                f"{dataset.root}: cannot be loaded: {name} is not stored as {kind} (features.preset is {preset}). "
                f"Write the dataset with features: {{preset: {TF_VISION}}}, or transform: {{preset: {TF_VISION}}}."
            )


def _decode(example: Mapping[str, Tensor], stored: str | None) -> Tensor:
    """The pixels of a parsed example, that are stored as `stored` says."""
    encoded = example["image/encoded"]
    if stored == "raw":
        return pixels.decode_raw(encoded, example["image/height"], example["image/width"])
    decoders = {"jpeg": pixels.decode_jpeg, "tensor": pixels.parse_tensor}
    return decoders.get(str(stored), pixels.decode)(encoded)
