"""Texts as a vector of word counts for a model, from each form in which ImageTransform stores words.

The vocabulary, the stored examples, the TransformGraph and the exported model all use `tokenize`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from shardwright.config.transform import COUNTS, DENSE, IDS
from shardwright.dataset.feature_presets import feature_name
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError

Tensor = Any

# Values of `ids`: padding, a word that is not in the vocabulary, and its first word.
PADDING, UNKNOWN, FIRST = 0, 1, 2
# All but letters, their marks, digits and apostrophes (RE2).
_BETWEEN = r"[^\p{L}\p{M}\p{N}']+"


def tokenize(texts: Tensor) -> Tensor:
    """Splits texts into words.

    Args:
        texts: ragged or dense strings [B, N]: the texts of each image, in UTF-8 (other bytes are replaced).

    Returns:
        Ragged strings [B, words], lower case, in the order of the texts.
    """
    joined = tf.strings.reduce_join(texts, axis=-1, separator=" ")
    sound = tf.strings.unicode_transcode(joined, "UTF-8", "UTF-8", errors="replace")
    lower = tf.strings.lower(sound, encoding="utf-8")
    return tf.strings.split(tf.strings.strip(tf.strings.regex_replace(lower, _BETWEEN, " ")))


@dataclass(frozen=True)
class StoredTexts:
    """A column of texts in a transformed dataset.

    Attributes:
        column: as `transform.text` names it.
        feature: the feature that its texts were ingested as.
        output: `counts`, `ids` or `dense`.
        vocabulary: words of the vocabulary: length of the vector.
        length: of `ids`, how many words of an image are stored, from the first; 0: all.
    """

    column: str
    feature: str
    output: str
    vocabulary: int
    length: int = 0

    @property
    def features(self) -> dict[str, Any]:
        """The features to parse, by our names."""
        kinds = {
            COUNTS: {"indices": tf.int64, "counts": tf.int64},
            IDS: {"ids": tf.int64},
            DENSE: {"dense": tf.float32},
        }
        return {f"{self.feature}/{name}": tf.io.RaggedFeature(dtype) for name, dtype in kinds[self.output].items()}

    def vector(self, parsed: Mapping[str, Tensor], fit: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Returns how often each word of the vocabulary occurs: float32 [vocabulary].

        Args:
            parsed: the parsed `features` of one example.
            fit: returns its second argument where the first is true, and fails elsewhere.
        """
        part = f"{self.feature}/"
        if self.output == DENSE:
            counts = parsed[f"{part}dense"]
            return tf.ensure_shape(fit(tf.size(counts) == self.vocabulary, counts), [self.vocabulary])
        if self.output == IDS:
            ids = parsed[f"{part}ids"]
            places = tf.boolean_mask(ids, ids >= FIRST) - FIRST
            return word_counts(fit(tf.reduce_all(places < self.vocabulary), places), self.vocabulary)
        places, times = parsed[f"{part}indices"], parsed[f"{part}counts"]
        sound = tf.reduce_all((places >= 0) & (places < self.vocabulary)) & (tf.size(places) == tf.size(times))
        return word_counts(fit(sound, places), self.vocabulary, times)


def word_counts(places: Tensor, vocabulary: int, times: Tensor | None = None) -> Tensor:
    """Counts words by their place in the vocabulary.

    Args:
        places: int64 [words], from 0.
        vocabulary: number of words.
        times: int64 [words]: how often each occurs; once by default.

    Returns:
        float32 [vocabulary].
    """
    each = tf.ones_like(places, tf.float32) if times is None else tf.cast(times, tf.float32)
    return tf.ensure_shape(tf.math.unsorted_segment_sum(each, places, vocabulary), [vocabulary])


def text_features(dataset: ImageDataset, columns: Sequence[str]) -> tuple[StoredTexts, ...]:
    """Finds columns of texts of a transformed dataset.

    Args:
        dataset: a dataset that ImageTransform wrote.
        columns: names as `transform.text` has them.

    Raises:
        UsageError: it has no such column.
    """
    manifest = dataset.manifest
    options = manifest.recipe.get("text", {})
    found = []
    for column in columns:
        if column not in options:
            there = f"There are: {', '.join(sorted(options))}." if options else "It has none; see transform.text."
            raise UsageError(f"texts {column!r}: {dataset.root} has no such column. {there}")
        option = options[column]
        texts = [
            StoredTexts(column, feature, option["output"], option["vocabulary"], option.get("length") or 0)
            for feature in (column, feature_name(column))
        ]
        found += [t for t in texts if all(manifest.stored(name) in manifest.features for name in t.features)][:1]
    return tuple(found)
