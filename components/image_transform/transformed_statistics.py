"""Statistics and schema of the transformed examples, like those of TFX's Transform.

They have the layout of StatisticsGen and SchemaGen, so ExampleValidator and others read them. Statistics cover numbers
and words, but not pixels and runs, whose statistics mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate, islice
from typing import Any

import apache_beam as beam
import pyarrow as pa
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

from shardwright.components.image_transform.shard_figures import figures_file
from shardwright.components.image_transform.transform_plan import TransformPlan
from shardwright.components.runtime.tfdv_compat import StatisticsOfSplits
from shardwright.config.transform import COUNTS
from shardwright.dataset.dataset_schema import FEATURE_TYPES, parse_schema, render_schema
from shardwright.dataset.feature_presets import ONE_HOT, SIZE
from shardwright.dataset.manifest import Manifest
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.tfrecords.records import read_records

STATISTICS_NAME, SCHEMA_NAME = "FeatureStats.pb", "schema.pbtxt"
_IMAGE = "image/encoded"
_BATCH = 1000


def write_statistics(p: Any, shards: Mapping[str, int], staging: Staging) -> None:
    """Writes the statistics of every split into staging, as `statistics_file`, within a pipeline.

    The pipeline gets shard numbers only: workers read the figures from staging and write the statistics there.

    Args:
        p: the Beam pipeline.
        shards: split -> number of its shards.
        staging: contains their figures.
    """
    _ = (
        p
        | "Shards" >> beam.Create(range(sum(shards.values())))
        | "Spread" >> beam.Reshuffle()
        | "Batches" >> beam.FlatMap(_batches, shards=dict(shards), staging=staging)
        | "Statistics" >> StatisticsOfSplits(list(shards))
        | "Keep" >> beam.Map(_keep, staging=staging)
    )


def statistics_file(split: str) -> str:
    """Returns the path of a split's statistics, in staging and in the artifact."""
    return f"Split-{split}/{STATISTICS_NAME}"


def _batches(number: int, shards: Mapping[str, int], staging: Staging) -> Iterator[tuple[str, pa.RecordBatch]]:
    begins = accumulate(shards.values(), initial=0)
    shard = next(
        PlannedShard(split, number - begin, total)
        for (split, total), begin in zip(shards.items(), begins, strict=False)
        if number < begin + total
    )
    decoder = ExamplesToRecordBatchDecoder()
    records = (record for _, record in read_records(staging.location(figures_file(shard))))
    while batch := list(islice(records, _BATCH)):
        yield shard.split, decoder.DecodeBatch(batch)


def _keep(made: tuple[str, statistics_pb2.DatasetFeatureStatisticsList], staging: Staging) -> None:
    split, statistics = made
    for dataset in statistics.datasets:
        for feature in dataset.features:
            if feature.HasField("num_stats"):
                # The last digit depends on the order in which workers' results are added.
                numbers = feature.num_stats
                numbers.mean, numbers.std_dev = (float(f"{x:.12g}") for x in (numbers.mean, numbers.std_dev))
    staging.share(statistics_file(split), statistics.SerializeToString(deterministic=True))


def render_post_schema(source: Manifest, plan: TransformPlan, size: tuple[int, int] | None) -> str:
    """Returns the schema of the transformed examples as a text proto, without inference from data.

    Args:
        source: the manifest of the ingested dataset.
        plan: of the transform.
        size: height and width of all images; `None` if they differ.
    """
    classes = plan.dataset.classes
    rendered = render_schema(plan.dataset.task, classes, str(plan.dataset.labels), source.features)
    known = {feature.name: feature for feature in parse_schema(rendered, "the schema").feature}
    schema = schema_pb2.Schema()
    for ours, (name, kind, form) in plan.stored.stored.items():
        made = schema.feature.add()
        if ours in known and form == "same":
            made.CopyFrom(known[ours])
        else:
            made.value_count.min = 0
        made.name, made.type = name, FEATURE_TYPES[kind]
        if form == "png":
            _fix_length(made, 1)
            made.image_domain.SetInParent()
        else:
            _describe(made, ours, plan.recipe.encoding, size, len(classes))
    outputs = {f"{name}/{text.output}": text for name, text in plan.texts.items()}
    for entry in schema.feature:
        text = outputs.get(entry.name)
        length = text and (text.vocabulary if text.output == "dense" else text.length)
        if length:
            _fix_length(entry, length)
    for name, text in plan.texts.items():
        if text.output == COUNTS:
            sparse = schema.sparse_feature.add(name=name + "/sparse")
            sparse.index_feature.add(name=f"{name}/indices")
            sparse.value_feature.name = f"{name}/counts"
    return text_format.MessageToString(schema, as_utf8=True)


def _describe(made: schema_pb2.Feature, ours: str, encoding: str, size: tuple[int, int] | None, classes: int) -> None:
    """Sets what the transform changed about a feature, given by its internal name."""
    if ours == _IMAGE and encoding not in ("jpeg", "png"):
        made.ClearField("domain_info")
    elif ours == "image/format":
        del made.string_domain.value[:]
        made.string_domain.value.append(encoding)
    elif size is not None and ours in ("image/height", "image/width"):
        side = size[ours == "image/width"]
        made.int_domain.min = made.int_domain.max = side
    elif ours.startswith("image/original/"):
        _fix_length(made, 1)
        made.int_domain.min = 1
    elif ours == SIZE:
        _fix_length(made, 2)
    elif ours in (ONE_HOT, "image/class/one_hot", "image/class/multi_hot"):
        _fix_length(made, classes)


def _fix_length(feature: schema_pb2.Feature, numbers: int) -> None:
    """Declares that every example has so many values."""
    feature.ClearField("value_count")
    del feature.shape.dim[:]
    feature.shape.dim.add(size=numbers)
