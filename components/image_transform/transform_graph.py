"""The TransformGraph: makes of a camera's file what the training has read of it. TensorFlow alone writes it.

Its layout is TensorFlow Transform's, so that `tft.TFTransformOutput`, and every component that uses it, reads it:

    transform_fn/             SavedModel: `transform_fn` takes a mapping of features and returns one
    transform_fn/assets/      the vocabularies, a word a line, the most frequent first
    transformed_metadata/     schema of what it returns; `asset_map` has the names of the assets
    metadata/                 schema of what it takes
    statistics.json           the figures of the train split
    lineage.json              what it was made of

The graph takes `image/encoded` (string [B]) and returns `image`: float32 [B, H, W, 3], the resized uint8 values. (The
outputs of a TransformGraph must be of a type of tf.train.Example, so not uint8.) For images of different sizes, `image`
is string [B], their serialized uint8 tensors. `labels`, float32 [B, classes] of 0 and 1, come from the names in
`image/class/text`, text outputs from their features; both are omitted without these inputs. `statistics/mean` and
`statistics/std`, float32 [B, 3] on the 0..255 scale, and the sums they come from, int64 [B, n], need no input.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_encoding

from shardwright.components.image_transform.serving_preprocess import as_ingested
from shardwright.components.image_transform.shard_figures import PIXELS, read_sums
from shardwright.components.image_transform.text import outputs, vocabulary_lines
from shardwright.components.image_transform.train_figures import GraphPlan
from shardwright.components.image_transform.transformed_features import asset_name
from shardwright.config.transform import KEEP
from shardwright.dataset.manifest import NONE
from shardwright.dataset.resampled_annotations import CLASSES
from shardwright.images import tf_ops
from shardwright.loader.text_features import tokenize
from shardwright.storage import read_bytes
from shardwright.storage.whole_files import write_bytes, write_text

IMAGE_INPUT = "image/encoded"
IMAGE_OUTPUT = "image"
LABELS_OUTPUT = "labels"
CLASSES_ASSET = "vocabulary_classes"
_PREFIX = "statistics/"
# Types of TensorFlow Metadata.
_TYPES = {tf.string: "BYTES", tf.int64: "INT", tf.float32: "FLOAT"}


def write_transform_graph(
    files: Sequence[str], sums: Mapping[str, Sequence[int]], folder: Path, plan: GraphPlan
) -> None:
    """Writes a TransformGraph, without statistics and lineage.

    Args:
        files: files with the sums of the train split's shards; they have the names of its classes.
        sums: these sums, added up.
        folder: its folder, on this machine.
        plan: its content.
    """
    with tempfile.TemporaryDirectory(prefix="shardwright-") as scratch:
        assets = {name: Path(scratch, asset_name(name)) for name in plan.texts}
        for name, asset in assets.items():
            write_bytes(asset, read_bytes(plan.texts[name].vocabulary))
        module = tf.Module()
        # From the words of a file to their lines, and to -1 from all others.
        index, form = tf.lookup.TextFileIndex, (tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64)
        places = {
            name: tf.lookup.TextFileInitializer(str(asset), *form, index.LINE_NUMBER) for name, asset in assets.items()
        }
        module.tables = {name: tf.lookup.StaticHashTable(lines, -1) for name, lines in places.items()}
        inputs: dict[str, Any] = {IMAGE_INPUT: tf.TensorSpec([None], tf.string)}
        inputs |= {name: tf.SparseTensorSpec([None, None], tf.string) for name in plan.texts}
        if plan.classes and plan.labels != NONE:
            inputs[CLASSES] = tf.SparseTensorSpec([None, None], tf.string)
            shown = Counter(text for one in read_sums(files) for text in one.inputs.get(CLASSES, ()))
            assets[CLASSES] = Path(scratch, CLASSES_ASSET)
            write_bytes(assets[CLASSES], vocabulary_lines(shown))
            module.classes = tf.saved_model.Asset(str(assets[CLASSES]))

        def transform_fn(features: Mapping[str, Any]) -> dict[str, Any]:
            return _transformed(features, sums, module.tables, plan)

        traced = tf.function(transform_fn, input_signature=[inputs], autograph=False).get_concrete_function()
        module.transform_fn = traced
        tf.saved_model.save(module, str(folder / "transform_fn"))
    names = sorted(asset.name for asset in assets.values())
    write_text(folder / "transformed_metadata/asset_map", json.dumps({name: name for name in names}))
    write_text(folder / "transformed_metadata/schema.pbtxt", _schema(traced.structured_outputs))
    write_text(folder / "metadata/schema.pbtxt", _schema(inputs))


def _transformed(
    inputs: Mapping[str, Any], sums: Mapping[str, Sequence[int]], tables: Mapping[str, Any], plan: GraphPlan
) -> dict[str, Any]:
    images = inputs[IMAGE_INPUT]
    figures = {name: tf.constant(values, tf.int64) for name, values in sums.items()}
    total, squares, count = (
        tf.cast(figures[name], tf.float64) for name in ("channel_sum", "channel_square_sum", PIXELS)
    )
    mean = total / count
    variance = tf.maximum(squares / count - tf.square(mean), 0.0)
    figures |= {"mean": tf.cast(mean, tf.float32), "std": tf.cast(tf.sqrt(variance), tf.float32)}
    made = {_PREFIX + name: tf.tile(value[tf.newaxis], [tf.size(images), 1]) for name, value in figures.items()}
    made[IMAGE_OUTPUT] = _images(images, plan)
    if CLASSES in inputs:
        texts = inputs[CLASSES]
        # Unknown names match no column.
        shown = tf.cast(texts.values[:, tf.newaxis] == tf.constant(list(plan.classes))[tf.newaxis, :], tf.float32)
        of_images = tf.RaggedTensor.from_sparse(texts).with_values(shown)
        made[LABELS_OUTPUT] = tf.ensure_shape(
            tf.minimum(tf.reduce_sum(of_images, axis=1), 1.0), [None, len(plan.classes)]
        )
    for name, text in plan.texts.items():
        words = tokenize(tf.RaggedTensor.from_sparse(inputs[name]))
        stored = outputs(tables[name].lookup(words), name, text.config)
        made |= {
            key: value.to_sparse() if isinstance(value, tf.RaggedTensor) else value for key, value in stored.items()
        }
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


def _schema(features: Mapping[str, Any]) -> str:
    """Returns the text of a `tensorflow.metadata.v0.Schema`; an example may lack the values of a sparse tensor only."""
    text = ""
    for name, tensor in sorted(features.items()):
        text += f'feature {{\n  name: "{text_encoding.CEscape(name.encode("utf-8"), as_utf8=False)}"\n'
        text += f"  type: {_TYPES[tensor.dtype]}\n"
        if not isinstance(tensor, tf.SparseTensorSpec | tf.SparseTensor):
            dims = "".join(f"    dim {{\n      size: {side}\n    }}\n" for side in tensor.shape[1:])
            text += f"  presence {{\n    min_fraction: 1.0\n  }}\n  shape {{\n{dims}  }}\n"
        text += "}\n"
    return text
