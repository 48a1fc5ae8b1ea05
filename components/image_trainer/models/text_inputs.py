"""Texts beside images: the columns that a training reads, and how a model takes them in.

A model sees how often each word of the vocabularies occurs. A common word of a long text must not drown a telling one:
counts go in as log(1 + count).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
from keras import layers, ops

from shardwright.components.image_trainer.spec import TextColumn

# Names of the two parts of what a model is given; `loader.load(..., texts=...)` has the same.
IMAGE, TEXT = "image", "text"
# A layer that reads words is named after them: rows of its weights mean nothing for another vocabulary.
WORDS = "words_"
_DIGITS = 12
_DROPOUT = 0.2
_HIDDEN = 4


@dataclass(frozen=True)
class Words:
    """The words that a model is told of.

    Attributes:
        count: length of the vector.
        name: of the layer that reads them.
    """

    count: int
    name: str

    @staticmethod
    def of(columns: Sequence[TextColumn]) -> Words | None:
        """Those of some columns; `None` without any."""
        if not columns:
            return None
        return Words(sum(c.vocabulary for c in columns), WORDS + "_".join(c.digest[:_DIGITS] for c in columns))


def model_inputs(height: int, width: int, words: Words | None) -> tuple[Any, Any, Any]:
    """What a model is given: the images, the counts of words (`None` without), and both as `keras.Model` takes them."""
    image = keras.Input((height, width, 3), name=IMAGE)
    if words is None:
        return image, None, image
    text = keras.Input((words.count,), name=TEXT)
    return image, text, {IMAGE: image, TEXT: text}


def read_words(text: Any, words: Words, channels: int) -> Any:
    """Counts of words, float32 [B, V], to features, [B, 4 * channels]."""
    x = layers.Dense(_HIDDEN * channels, activation="relu", name=words.name)(ops.log1p(text))
    return layers.Dropout(_DROPOUT)(x)


def added_to_map(x: Any, text: Any, words: Words | None, filters: int) -> Any:
    """A feature map, [B, h, w, C], shifted everywhere alike by what the words say."""
    if words is None:
        return x
    shift = layers.Dense(x.shape[-1], name="words_to_map")(read_words(text, words, filters))
    return layers.Add()([x, layers.Reshape((1, 1, x.shape[-1]))(shift)])


def added_to_vector(x: Any, text: Any, words: Words | None, filters: int) -> Any:
    """Features of an image, [B, C], and behind them those of its words."""
    return x if words is None else layers.Concatenate()([x, read_words(text, words, filters)])


def pixels_of(images: Any) -> Any:
    """The images of what a model is given."""
    return images[IMAGE] if isinstance(images, dict) else images


def with_pixels(images: Any, pixels: Any) -> Any:
    """What a model is given, with other images."""
    return {**images, IMAGE: pixels} if isinstance(images, dict) else pixels


def vocabulary_file(folder: str, column: TextColumn) -> Path:
    """The words of a column, one a line, in a folder of `spec.vocabularies`."""
    from shardwright.components.image_transform.features import asset_name

    return Path(folder, asset_name(column.feature))
