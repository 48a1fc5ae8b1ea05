"""Full-pass analyzers over the figures of the train split, `statistics.json`, and the TransformGraph for serving.

Analyzers and serving share one preprocessing function: `tf_ops.decode_resized` turns image bytes into pixels,
`text.outputs` turns texts into numbers, and TFT's analyzers add up the figures. The sums are whole numbers, so neither
the order nor the number of Beam's workers can change a digit. Mean and deviation are computed from them exactly and
rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from PIL import Image
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from shardwright.components.image_transform import vocabularies
from shardwright.components.image_transform.serving_preprocess import as_ingested
from shardwright.components.image_transform.shard_figures import PIXELS, in_groups, read_sums
from shardwright.components.image_transform.train_figures import GraphPlan
from shardwright.components.runtime.beam import in_process_pipeline
from shardwright.config.transform import KEEP
from shardwright.dataset.manifest import NONE
from shardwright.dataset.resampled_annotations import CLASSES
from shardwright.dataset.stored_image import encode_image
from shardwright.images import tf_ops

IMAGE_INPUT = "image/encoded"
IMAGE_OUTPUT = "image"
LABELS_OUTPUT = "labels"
CLASSES_ASSET = "vocabulary_classes"
_PREFIX = "statistics/"
_SUMS_INPUT = _PREFIX + "sums"


def write_transform_graph(sums: Sequence[str], output: str, plan: GraphPlan, temporary: str) -> None:
    """Runs the analyzers and writes a TransformGraph.

    They always run in this process: TFT passes its graph to workers in a folder that TensorFlow must reach, and there
    is only one row per shard.

    The graph takes `image/encoded` (string [B]) and returns `image`: float32 [B, H, W, 3], the resized uint8 values. (A
    TFT graph's outputs must be of a type of tf.train.Example, so not uint8.) For images of different sizes, `image` is
    string [B], their serialized uint8 tensors. `labels`, float32 [B, classes] of 0 and 1, come from the names in
    `image/class/text`, text outputs from their features; both are omitted without these inputs. `statistics/mean` and
    `statistics/std`, float32 [B, 3] on the 0..255 scale, and the sums they come from, int64 [B, n], need no input.

    Args:
        sums: files with the sums of the train split's shards; at least one image.
        output: folder of the TransformGraph, on this machine.
        plan: its content.
        temporary: folder for TFT's scratch files.
    """
    spec: dict[str, Any] = {IMAGE_INPUT: tf.io.FixedLenFeature([], tf.string)}
    spec[_SUMS_INPUT] = tf.io.FixedLenFeature([sum(plan.widths.values())], tf.int64)
    spec |= dict.fromkeys(plan.texts, tf.io.VarLenFeature(tf.string))
    if plan.classes and plan.labels != NONE:
        spec[CLASSES] = tf.io.VarLenFeature(tf.string)
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    with in_process_pipeline() as p, tft_beam.Context(temp_dir=temporary):
        files = p | "Files" >> beam.Create(in_groups(sums))
        names = sorted(set(spec) - {IMAGE_INPUT, _SUMS_INPUT})
        rows = files | "Sums" >> beam.FlatMap(_rows, widths=plan.widths, names=names)
        transform_fn = (rows, metadata) | "Analyze" >> tft_beam.AnalyzeDataset(lambda inputs: _preprocess(inputs, plan))
        _ = transform_fn | "WriteTransformFn" >> tft_beam.WriteTransformFn(output)
        raw = str(Path(output, tft.TFTransformOutput.RAW_METADATA_DIR))
        _ = metadata | "WriteMetadata" >> tft_beam.WriteMetadata(raw, pipeline=p)


def _rows(files: Sequence[str], widths: Mapping[str, int], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for one in read_sums(files):
        sums = [number for name, width in widths.items() for number in one.sums.get(name, [0] * width)]
        # No pixels here: the analyzers do not need them, and the graph is only traced for them.
        yield {IMAGE_INPUT: b"", _SUMS_INPUT: sums, **{name: one.inputs.get(name, []) for name in names}}


def _preprocess(inputs: Mapping[str, Any], plan: GraphPlan) -> dict[str, Any]:
    # All sums at once: TFT adds stages to its pipeline for every analyzer, which take longer than adding up.
    total = tft.sum(inputs[_SUMS_INPUT], reduce_instance_dims=False, name=_SUMS_INPUT)
    rows = tf.tile(total[tf.newaxis], [tf.size(inputs[IMAGE_INPUT]), 1])
    sums = dict(zip(plan.widths, tf.split(rows, list(plan.widths.values()), axis=1), strict=True))
    mean, std = _moments(sums["channel_sum"], sums["channel_square_sum"], sums[PIXELS])
    made = {_PREFIX + name: value for name, value in {**sums, "mean": mean, "std": std}.items()}
    made[IMAGE_OUTPUT] = _images(inputs[IMAGE_INPUT], plan)
    if CLASSES in inputs:
        made[LABELS_OUTPUT] = _labels(inputs[CLASSES], plan.classes)
    for name, config in plan.texts.items():
        made |= vocabularies.in_graph(inputs[name], name, config)
    return made


def _images(encoded: Any, plan: GraphPlan) -> Any:
    if plan.size is None:
        return tf.map_fn(lambda data: tf.io.serialize_tensor(tf_ops.decode(as_ingested(data, plan.ingested))), encoded)
    size = plan.size

    def resized(data: Any) -> Any:
        data = as_ingested(data, plan.ingested)
        if plan.recipe.resize == KEEP:
            return tf.ensure_shape(tf_ops.decode(data), [*size, 3])
        return tf_ops.decode_resized(data, *size, plan.recipe.resize)

    images = tf.map_fn(resized, encoded, fn_output_signature=tf.TensorSpec([*size, 3], tf.uint8))
    return tf.cast(images, tf.float32)


def _labels(texts: Any, classes: Sequence[str]) -> Any:
    """Returns float32 [B, classes] of 0 and 1. The graph saves the vocabulary of the train split's classes."""
    tft.vocabulary(texts, vocab_filename=CLASSES_ASSET, name=CLASSES_ASSET)
    # Unknown names match no column.
    shown = tf.cast(texts.values[:, tf.newaxis] == tf.constant(list(classes))[tf.newaxis, :], tf.float32)
    of_images = tf.RaggedTensor.from_sparse(texts).with_values(shown)
    return tf.ensure_shape(tf.minimum(tf.reduce_sum(of_images, axis=1), 1.0), [None, len(classes)])


def _moments(total: Any, squares: Any, pixel_count: Any) -> tuple[Any, Any]:
    count = tf.cast(pixel_count, tf.float64)
    mean = tf.cast(total, tf.float64) / count
    variance = tf.maximum(tf.cast(squares, tf.float64) / count - tf.square(mean), 0.0)
    return tf.cast(mean, tf.float32), tf.cast(tf.sqrt(variance), tf.float32)


def served_sums(output: str, plan: GraphPlan) -> dict[str, list[int]]:
    """Returns the sums that the written graph gives when it is served."""
    height, width = plan.size or (1, 1)
    blank, _ = encode_image(Image.new("RGB", (width, height)), "png")
    served = tft.TFTransformOutput(output).transform_raw_features({IMAGE_INPUT: tf.constant([blank])})
    return {name: np.asarray(served[_PREFIX + name])[0].tolist() for name in plan.widths}
