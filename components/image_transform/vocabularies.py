"""Vocabularies of texts by TensorFlow Transform, in a pass over the train split and in the TransformGraph."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import apache_beam as beam
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from shardwright.components.image_transform.shard_figures import in_groups, read_examples
from shardwright.components.image_transform.text import Tensor, Text, TextShard, keep_texts, outputs, texts_file
from shardwright.components.image_transform.transformed_features import asset_name
from shardwright.components.runtime.beam import in_process_pipeline
from shardwright.config.transform import TextConfig
from shardwright.loader.text_features import tokenize
from shardwright.staging.staging import Staging

TextConfigs: TypeAlias = Mapping[str, TextConfig]


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
        for name, words in _vocabularies([staging.location(texts_file(one)) for one, *_ in shards], texts).items():
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
