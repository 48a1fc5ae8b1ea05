"""Columns of texts: words, a vocabulary of the train split, and the stored features.

The same TensorFlow operations split texts into words for the vocabulary, the stored examples and the TransformGraph.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import apache_beam as beam
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from shardwright.components.image_transform.shard_figures import in_groups, read_examples
from shardwright.components.image_transform.transformed_features import asset_name
from shardwright.components.runtime.beam import in_process_pipeline
from shardwright.config.transform import COUNTS, DENSE, TextConfig
from shardwright.dataset.reader import iter_records
from shardwright.dataset.shard_names import shard_name
from shardwright.loader.text_features import FIRST, PADDING, UNKNOWN, tokenize
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import read_bytes
from shardwright.tfrecords import encode, records
from shardwright.tfrecords.encode import FeatureValue

Tensor = Any
TextConfigs: TypeAlias = Mapping[str, TextConfig]
# The planned shard, the file or URL of its source, and the source's BLAKE3.
TextShard: TypeAlias = tuple[PlannedShard, str, str]


@dataclass(frozen=True)
class Text:
    """The transformation of the texts in one feature; picklable.

    Attributes:
        config: the options.
        vocabulary: file or URL of its words, one per line, the most frequent first.
    """

    config: TextConfig
    vocabulary: str


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
        return {f"{name}/dense": _counted(known, config.vocabulary)}
    # Sorted by row and place, equal words are neighbors and are counted.
    rows, count = tf.cast(known.value_rowids(), tf.int64), known.nrows(tf.int64)
    both, _, times = tf.unique_with_counts(tf.sort(rows * config.vocabulary + known.values), tf.int64)
    begins = [tf.RaggedTensor.from_value_rowids(part, both // config.vocabulary, count) for part in (both, times)]
    return {f"{name}/indices": begins[0] % config.vocabulary, f"{name}/counts": begins[1]}


def _counted(known: Tensor, words: int) -> Tensor:
    cells = tf.stack([tf.cast(known.value_rowids(), tf.int64), known.values], axis=1)
    shape = tf.stack([known.nrows(tf.int64), words])
    return tf.ensure_shape(tf.scatter_nd(cells, tf.ones_like(known.values, tf.float32), shape), [None, words])


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


def in_graph(texts: Tensor, name: str, config: TextConfig) -> dict[str, Tensor]:
    """Does the same within a preprocessing function: an analyzer makes the vocabulary, and the graph saves it.

    Args:
        texts: sparse strings [B, N].
        name: the feature.
        config: the options.

    Returns:
        Stored name -> sparse or dense tensor.
    """
    words, vocabulary = _analyzed(texts, name, config)
    found = tft.apply_vocabulary(words, vocabulary, default_value=-1, file_format="text")
    made = outputs(tf.RaggedTensor.from_sparse(found), name, config)
    return {
        stored: value.to_sparse() if isinstance(value, tf.RaggedTensor) else value for stored, value in made.items()
    }


def _analyzed(texts: Tensor, name: str, config: TextConfig) -> tuple[Tensor, Tensor]:
    """Returns the words of sparse texts, sparse, and the vocabulary of an analyzer."""
    words, asset = tokenize(tf.RaggedTensor.from_sparse(texts)).to_sparse(), asset_name(name)
    return words, tft.vocabulary(words, top_k=config.vocabulary, vocab_filename=asset, name=asset)


def write_vocabularies(
    pipeline: Callable[[], Any], staging: Staging, shards: Sequence[TextShard], texts: TextConfigs
) -> dict[str, Text]:
    """Makes the vocabularies in a full pass over the texts of the train split, before its shards are written.

    Workers read the shards and store their texts in staging. Words are split and counted in this process, like the
    graph (`analyze.write_transform_graph`).

    Args:
        pipeline: makes a Beam pipeline.
        staging: destination of texts and vocabularies.
        shards: shards of the split with their source files.
        texts: feature -> its options.

    Returns:
        Feature -> transformation of its texts.
    """
    assets = {name: asset_name(name) for name in texts}
    names = {name: f"vocabularies/{asset}" for name, asset in assets.items()}
    if not all(map(staging.is_shared, names.values())):
        with pipeline() as p:
            numbers = p | "Shards" >> beam.Create(range(len(shards))) | "Spread" >> beam.Reshuffle()
            _ = numbers | "Texts" >> beam.Map(keep_texts, shards=shards, names=list(texts), staging=staging)
        for name, words in _vocabularies([staging.location(_texts_file(one)) for one, *_ in shards], texts).items():
            staging.share(names[name], words)
    return {name: Text(config, staging.location(names[name])) for name, config in texts.items()}


def _vocabularies(files: Sequence[str], texts: TextConfigs) -> dict[str, bytes]:
    """Returns feature -> its words, one per line."""
    spec = dict.fromkeys(texts, tf.io.VarLenFeature(tf.string))
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))

    def preprocess(inputs: Mapping[str, Any]) -> dict[str, Any]:
        for name, config in texts.items():
            _analyzed(inputs[name], name, config)
        return dict(inputs)

    with tempfile.TemporaryDirectory(prefix="shardwright-") as folder:
        output = str(Path(folder, "graph"))
        with in_process_pipeline() as p, tft_beam.Context(temp_dir=str(Path(folder, "scratch"))):
            rows = p | "Files" >> beam.Create(in_groups(files)) | "Texts" >> beam.FlatMap(_rows, names=list(texts))
            transform_fn = (rows, metadata) | "Vocabularies" >> tft_beam.AnalyzeDataset(preprocess)
            _ = transform_fn | "Write" >> tft_beam.WriteTransformFn(output)
        graph = tft.TFTransformOutput(output)
        return {name: Path(graph.vocabulary_file_by_name(asset_name(name))).read_bytes() for name in texts}


def _rows(files: Sequence[str], names: Sequence[str]) -> Iterator[dict[str, list[bytes]]]:
    for example in read_examples(files):
        yield {name: [bytes(text) for text in example.get(name, ())] for name in names}


def keep_texts(number: int, shards: Sequence[TextShard], names: Sequence[str], staging: Staging) -> None:
    """Stores the texts of a shard in staging, unless an earlier attempt did."""
    planned, file, checksum = shards[number]
    target = _texts_file(planned)
    if staging.is_shared(target):
        return
    texts: dict[str, list[bytes]] = {name: [] for name in names}
    for row in read_texts(file, checksum, names):
        for name, values in row.items():
            texts[name] += values
    features = {name: encode.byte_strings(values) for name, values in texts.items()}
    staging.share(target, records.frame(encode.encode_example(features)))


def _texts_file(planned: PlannedShard) -> str:
    return f"texts/Split-{planned.split}/{shard_name(planned.number, planned.total)}.tfrecord"


def read_texts(shard: str, checksum: str, names: Sequence[str]) -> Iterator[dict[str, list[bytes]]]:
    """Yields the texts of every record of a shard; other features are not parsed."""
    for _, record in iter_records(shard, checksum):
        found = {name: records.find_feature(record, name) for name in names}
        yield {name: [bytes(text) for text in values or ()] for name, values in found.items()}
