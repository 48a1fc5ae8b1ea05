"""Texts as an additional input: the columns that a training reads, and the layers that read them.

The input is the count of each word of the vocabularies. Layers use log(1 + count), so that frequent words of long texts
do not outweigh rare ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
from keras import layers, ops

from shardwright.components.image_trainer.spec import TextColumn

# Names of the two inputs of a model, as in `loader.load(..., texts=...)`.
IMAGE, TEXT = "image", "text"
# The name of a layer that reads words has their digest: its weights are useless for another vocabulary.
WORDS = "words_"
_DIGITS = 12
_DROPOUT = 0.2
_HIDDEN = 4


@dataclass(frozen=True)
class Words:
    """The words that a model reads.

    Attributes:
        count: length of the vector.
        name: name of the layer that reads them.
    """

    count: int
    name: str

    @staticmethod
    def of(columns: Sequence[TextColumn]) -> Words | None:
        """Returns the words of some columns; `None` without columns."""
        if not columns:
            return None
        return Words(sum(c.vocabulary for c in columns), WORDS + "_".join(c.digest[:_DIGITS] for c in columns))


def model_inputs(height: int, width: int, words: Words | None) -> tuple[Any, Any, Any]:
    """Returns the input for images, the one for counts of words (or `None`), and both in the form of `keras.Model`."""
    image = keras.Input((height, width, 3), name=IMAGE)
    if words is None:
        return image, None, image
    text = keras.Input((words.count,), name=TEXT)
    return image, text, {IMAGE: image, TEXT: text}


def read_words(text: Any, words: Words, channels: int) -> Any:
    """Turns counts of words, float32 [B, V], into features, [B, 4 * channels]."""
    x = layers.Dense(_HIDDEN * channels, activation="relu", name=words.name)(ops.log1p(text))
    return layers.Dropout(_DROPOUT)(x)


def added_to_map(x: Any, text: Any, words: Words | None, filters: int) -> Any:
    """Shifts a feature map, [B, h, w, C], by features of the words, the same everywhere."""
    if words is None:
        return x
    shift = layers.Dense(x.shape[-1], name="words_to_map")(read_words(text, words, filters))
    return layers.Add()([x, layers.Reshape((1, 1, x.shape[-1]))(shift)])


def added_to_vector(x: Any, text: Any, words: Words | None, filters: int) -> Any:
    """Appends the features of the words to those of an image, [B, C]."""
    return x if words is None else layers.Concatenate()([x, read_words(text, words, filters)])


def pixels_of(images: Any) -> Any:
    """Returns the images in the inputs of a model."""
    return images[IMAGE] if isinstance(images, dict) else images


def with_pixels(images: Any, pixels: Any) -> Any:
    """Returns the inputs of a model with other images."""
    return {**images, IMAGE: pixels} if isinstance(images, dict) else pixels


def vocabulary_file(folder: str, column: TextColumn) -> Path:
    """Returns the file with the words of a column, one per line, in the folder `spec.vocabularies`."""
    from shardwright.components.image_transform.transformed_features import asset_name

    return Path(folder, asset_name(column.feature))
