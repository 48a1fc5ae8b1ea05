"""Columns of texts: the vocabulary of the train split, their words, and the stored features.

The same TensorFlow operations split texts into words for the vocabulary, the stored examples and the TransformGraph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import tensorflow as tf

from shardwright.components.image_transform.shard_figures import read_examples
from shardwright.components.image_transform.transformed_features import asset_name
from shardwright.config.transform import COUNTS, DENSE, TextConfig
from shardwright.dataset.reader import iter_records
from shardwright.dataset.shard_names import shard_name
from shardwright.loader.text_features import FIRST, PADDING, UNKNOWN, tokenize
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import read_bytes
from shardwright.tfrecords import encode, records
from shardwright.tfrecords.encode import FeatureValue

Tensor = Any
# The planned shard, the file or URL of its source, and the source's BLAKE3.
TextShard: TypeAlias = tuple[PlannedShard, str, str]
# Calls a function for each number below a limit, on workers.
Spread: TypeAlias = Callable[[Callable[[int], object], int], None]
# TensorFlow makes no table of an empty file. TensorFlow Transform writes the same line.
_NO_WORD = b"49d0cd50-04bb-48c0-bc6f-5b575dce351a"


@dataclass(frozen=True)
class Text:
    """The transformation of the texts in one feature; picklable.

    Attributes:
        config: the options.
        vocabulary: file or URL of its words, one per line, the most frequent first.
    """

    config: TextConfig
    vocabulary: str


def write_vocabularies(
    spread: Spread, staging: Staging, shards: Sequence[TextShard], texts: Mapping[str, TextConfig]
) -> dict[str, Text]:
    """Makes the vocabularies in a full pass over the texts of the train split, before its shards are written.

    Workers read the shards and store their texts in staging; words are counted in this process.

    Args:
        spread: calls a function on workers.
        staging: destination of texts and vocabularies.
        shards: shards of the split with their source files.
        texts: feature -> its options.

    Returns:
        Feature -> transformation of its texts.
    """
    names = {name: f"vocabularies/{asset_name(name)}" for name in texts}
    if not all(map(staging.is_shared, names.values())):
        spread(partial(keep_texts, shards=shards, names=list(texts), staging=staging), len(shards))
        counts: dict[str, Counter[bytes]] = {name: Counter() for name in texts}
        for example in read_examples([staging.location(texts_file(planned)) for planned, *_ in shards]):
            for name, count in counts.items():
                count.update(tokenize(tf.constant([example.get(name, ())], tf.string)).values.numpy().tolist())
        for name, config in texts.items():
            staging.share(names[name], vocabulary_lines(counts[name], config.vocabulary))
    return {name: Text(config, staging.location(names[name])) for name, config in texts.items()}


def vocabulary_lines(counts: Counter[bytes], most: int | None = None) -> bytes:
    """Returns words, one a line, the most frequent first; of equally frequent ones the last by their bytes first.

    Args:
        counts: how often each occurs. Those that are no line are left out.
        most: the number of words to keep; by default all.
    """
    words = [word for word in counts if word and b"\n" not in word and b"\r" not in word]
    words.sort(key=lambda word: (counts[word], word), reverse=True)
    return b"".join(word + b"\n" for word in words[:most] or [_NO_WORD])


def outputs(places: Tensor, name: str, config: TextConfig) -> dict[str, Tensor]:
    """Returns the stored values of words.

    Args:
        places: ragged int64 [B, words]: place in the vocabulary, -1 for unknown words.
        name: the feature.
        config: the options.

    Returns:
        Stored name -> ragged (`counts`, and `ids` without a length) or dense [B, n].
    """
    if config.output not in (COUNTS, DENSE):
        # On the values: on ragged tensors the trace has a hundred times as many operations.
        ids = places.with_values(tf.where(places.values < 0, tf.constant(UNKNOWN, tf.int64), places.values + FIRST))
        if config.length is None:
            return {f"{name}/ids": ids}
        return {f"{name}/ids": ids.to_tensor(PADDING, shape=[None, config.length])}
    known = tf.ragged.boolean_mask(places, places >= 0)
    if config.output == DENSE:
        cells = tf.stack([tf.cast(known.value_rowids(), tf.int64), known.values], axis=1)
        shape = tf.stack([known.nrows(tf.int64), config.vocabulary])
        counts = tf.scatter_nd(cells, tf.ones_like(known.values, tf.float32), shape)
        return {f"{name}/dense": tf.ensure_shape(counts, [None, config.vocabulary])}
    # Sorted by row and place, equal words are neighbors and are counted.
    rows, count = tf.cast(known.value_rowids(), tf.int64), known.nrows(tf.int64)
    both, _, times = tf.unique_with_counts(tf.sort(rows * config.vocabulary + known.values), tf.int64)
    begins = [tf.RaggedTensor.from_value_rowids(part, both // config.vocabulary, count) for part in (both, times)]
    return {f"{name}/indices": begins[0] % config.vocabulary, f"{name}/counts": begins[1]}


def text_values(name: str, text: Text, texts: Any) -> dict[str, FeatureValue]:
    """Returns the features to store for one image's texts.

    Args:
        name: the feature.
        text: its transformation.
        texts: the image's texts, possibly none.
    """
    made = _maker(name, text)(tf.constant([*texts], tf.string, [len(texts)]))
    kinds = {tf.int64: encode.ints, tf.float32: encode.floats}
    return {stored: kinds[value.dtype](value.numpy()) for stored, value in made.items()}


@lru_cache(maxsize=64)
def _maker(name: str, text: Text) -> Callable[[Tensor], dict[str, Tensor]]:
    """Returns a function from strings [N] to the stored values, traced once per process."""
    words = tf.constant(read_bytes(text.vocabulary).decode("utf-8").split("\n")[:-1])
    places = tf.range(tf.size(words, tf.int64), dtype=tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, places), -1)

    def make(texts: Tensor) -> dict[str, Tensor]:
        found = tokenize(texts[tf.newaxis])
        return {stored: value[0] for stored, value in outputs(table.lookup(found), name, text.config).items()}

    made: Callable[[Tensor], dict[str, Tensor]] = tf.function(make, input_signature=[tf.TensorSpec([None], tf.string)])
    return made


def keep_texts(number: int, shards: Sequence[TextShard], names: Sequence[str], staging: Staging) -> None:
    """Stores the texts of a shard in staging, unless an earlier attempt did."""
    planned, file, checksum = shards[number]
    target = texts_file(planned)
    if staging.is_shared(target):
        return
    texts: dict[str, list[bytes]] = {name: [] for name in names}
    for row in read_texts(file, checksum, names):
        for name, values in row.items():
            texts[name] += values
    features = {name: encode.byte_strings(values) for name, values in texts.items()}
    staging.share(target, records.frame(encode.encode_example(features)))


def texts_file(planned: PlannedShard) -> str:
    """Returns the path in staging of the texts of a shard."""
    return f"texts/Split-{planned.split}/{shard_name(planned.number, planned.total)}.tfrecord"


def read_texts(shard: str, checksum: str, names: Sequence[str]) -> Iterator[dict[str, list[bytes]]]:
    """Yields the texts of every record of a shard; other features are not parsed."""
    for _, record in iter_records(shard, checksum):
        found = {name: records.find_feature(record, name) for name in names}
        yield {name: [bytes(text) for text in values or ()] for name, values in found.items()}
