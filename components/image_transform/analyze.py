"""Full-pass analyzers over the figures of the train split, and the TransformGraph that serves.

Analyzers and serving share one preprocessing function: raw image bytes become pixels by `pixels.decode_resized`, the
figures become sums by TFT's analyzers. The sums are whole numbers, so neither the order nor the number of Beam's
workers can change a digit; mean and deviation are computed from them exactly and rounded once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from shardwright import pixels
from shardwright_components.image_transform.recipe import Recipe
from shardwright_components.image_transform.rewrite import Figures

IMAGE_INPUT = "image/encoded"
IMAGE_OUTPUT = "image"
_RECORDS = "records"
_PREFIX = "statistics/"


def write_transform_graph(
    pipeline: Callable[[], Any],
    figures: Sequence[Path],
    output: str,
    temporary: str,
    recipe: Recipe,
    task: str,
    classes: Sequence[str],
) -> dict[str, Any]:
    """Runs the analyzers and writes a TransformGraph.

    The graph takes `image/encoded` (string [B]) and gives `image`, float32 [B, H, W, 3], the resized uint8 values (a
    TFT graph's outputs must be kinds a tf.train.Example can hold, and uint8 is none), `statistics/mean` and
    `statistics/std`, float32 [B, 3] on the 0..255 scale, and the sums they come from, int64 [B, n]. The figures that
    the analyzers read are optional inputs, absent when serving.

    Args:
        pipeline: makes a Beam pipeline.
        figures: files with the figures of the train split's images; at least one image.
        output: folder of the TransformGraph.
        temporary: folder for TFT's scratch files.
        recipe: size and policy.
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.

    Returns:
        The statistics, see `statistics`.
    """
    widths = {
        _PREFIX + name: width
        for name, width in (
            ("channel_sum", 3),
            ("channel_square_sum", 3),
            ("pixels", 1),
            ("present", len(classes)),
            ("area", len(classes)),
            (_RECORDS, 1),
        )
    }
    spec: dict[str, Any] = {IMAGE_INPUT: tf.io.FixedLenFeature([], tf.string)}
    spec |= {name: tf.io.VarLenFeature(tf.int64) for name in widths}
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))

    def preprocess(inputs: Mapping[str, Any]) -> dict[str, Any]:
        encoded = inputs[IMAGE_INPUT]
        sums = {
            name: tft.sum(
                tf.reshape(tf.sparse.to_dense(inputs[name]), [-1, width]), reduce_instance_dims=False, name=name
            )
            for name, width in widths.items()
        }
        mean, std = _moments(*(sums[_PREFIX + name] for name in ("channel_sum", "channel_square_sum", "pixels")))
        constants = {**sums, f"{_PREFIX}mean": mean, f"{_PREFIX}std": std}
        batch = tf.size(encoded)
        outputs = {name: tf.tile(value[tf.newaxis], [batch, 1]) for name, value in constants.items()}
        images = tf.map_fn(
            lambda data: pixels.decode_resized(data, *recipe.size, recipe.resize),
            encoded,
            fn_output_signature=tf.TensorSpec([*recipe.size, 3], tf.uint8),
        )
        return {IMAGE_OUTPUT: tf.cast(images, tf.float32), **outputs}

    with pipeline() as p, tft_beam.Context(temp_dir=temporary):
        rows = p | "Files" >> beam.Create([str(file) for file in figures]) | "Figures" >> beam.FlatMap(_rows)
        transform_fn = (rows, metadata) | "Analyze" >> tft_beam.AnalyzeDataset(preprocess)
        _ = transform_fn | "WriteTransformFn" >> tft_beam.WriteTransformFn(output)
        raw = str(Path(output, tft.TFTransformOutput.RAW_METADATA_DIR))
        _ = metadata | "WriteMetadata" >> tft_beam.WriteMetadata(raw, pipeline=p)
    return statistics(_read_sums(output, list(widths)), recipe, task, classes)


def _rows(file: str) -> Iterator[dict[str, Any]]:
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            figures = Figures(**json.loads(line))
            row = {_PREFIX + name: np.atleast_1d(value).tolist() for name, value in figures._asdict().items()}
            # No pixels here: the analyzers do not need them, and the graph is only traced for them.
            yield {IMAGE_INPUT: b"", _PREFIX + _RECORDS: [1], **row}


def _moments(total: Any, squares: Any, pixel_count: Any) -> tuple[Any, Any]:
    count = tf.cast(pixel_count, tf.float64)
    mean = tf.cast(total, tf.float64) / count
    variance = tf.maximum(tf.cast(squares, tf.float64) / count - tf.square(mean), 0.0)
    return tf.cast(mean, tf.float32), tf.cast(tf.sqrt(variance), tf.float32)


def _read_sums(output: str, names: Sequence[str]) -> dict[str, list[int]]:
    """The sums as the written graph tells them to whoever serves it."""
    blank = pixels.encode(tf.zeros([1, 1, 3], tf.uint8), "png")
    served = tft.TFTransformOutput(output).transform_raw_features({IMAGE_INPUT: blank[tf.newaxis]})
    return {name[len(_PREFIX) :]: served[name][0].numpy().tolist() for name in names}


def statistics(sums: Mapping[str, Sequence[int]], recipe: Recipe, task: str, classes: Sequence[str]) -> dict[str, Any]:
    """Figures of the train split from exact sums.

    Args:
        sums: `channel_sum`, `channel_square_sum`, `pixels`, `present`, `area`, `records`.
        recipe: size and policy, told along.
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.

    Returns:
        `mean` and `std` per channel (RGB, 0..255 scale, over pixels), `class_frequency` (share of the images that show
        the class), `pixel_frequency` (share of the pixels its mask covers; empty without masks), `size` [height,
        width], `policy`.
    """
    pixel_count, images = sums["pixels"][0], sums[_RECORDS][0]
    means = [Fraction(total, pixel_count) for total in sums["channel_sum"]]
    variances = [
        Fraction(squares, pixel_count) - mean**2
        for squares, mean in zip(sums["channel_square_sum"], means, strict=True)
    ]
    areas = dict(zip(classes, sums["area"], strict=True)) if task == "segmentation" else {}
    return {
        "mean": [float(mean) for mean in means],
        "std": [math.sqrt(variance) for variance in variances],
        "class_frequency": {name: n / images for name, n in zip(classes, sums["present"], strict=True)},
        "pixel_frequency": {name: area / pixel_count for name, area in areas.items()},
        "size": list(recipe.size),
        "policy": recipe.resize,
    }
