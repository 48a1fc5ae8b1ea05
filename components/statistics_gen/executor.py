"""The executor of StatisticsGen: statistics of all images, each class and each source, in one pass without pixels."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems
from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2
from tfx.components.util import tfxio_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.types import artifact_utils
from tfx_bsl.arrow import table_util

from shardwright.components.runtime.artifacts import flushed_outputs
from shardwright.components.runtime.joined_examples import as_artifact, newest_examples, open_all, span_of
from shardwright.components.runtime.tfdv_compat import Slicer, StatisticsOfSplits
from shardwright.dataset.dataset_schema import FEATURE_TYPES, class_features, identity_features, nearly_distinct
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.report.samples import key_folder
from shardwright.storage import is_remote

# The most slices by class (the first classes) and by source (the largest): each slice counts its images again.
MOST = 24
CLASS, SOURCE = "class/", "source/"
FEATURES = "features"
# 1: a feature that the examples lack is an error.
REQUIRED = "required"
STATISTICS_FILE = "FeatureStats.pb"
_CLASSES, _KEY, _PIXELS = "image/class/text", "image/key", "image/encoded"


def sources(dataset: ImageDataset) -> list[str]:
    """Returns the first folders of the keys, the most frequent ones first; none if there is only one."""
    counts = Counter(
        key_folder(key)
        for split in dataset.splits
        for shard in dataset.shards(split)
        for key, _ in dataset.entries(shard)
    )
    order = sorted(counts, key=lambda folder: (-counts[folder], folder))
    return order[:MOST] if len(order) > 1 else []


def slices(dataset: ImageDataset, features: Sequence[str]) -> list[Slicer]:
    """Returns functions that slice batches of a dataset.

    Args:
        dataset: source of the batches.
        features: names of their columns.
    """
    stored = dataset.manifest.stored
    found = []
    classes = dataset.manifest.classes[:MOST]
    if stored(_CLASSES) in features and len(classes) > 1:
        wanted = {name.encode(): f"{CLASS}{name}" for name in classes}
        found.append(_slicer(stored(_CLASSES), wanted, bytes))
    folders = sources(dataset) if stored(_KEY) in features else []
    # Folders that are the classes would give the same slices twice.
    if folders and set(folders) != set(classes):
        wanted = {folder.encode(): f"{SOURCE}{folder or '(none)'}" for folder in folders}
        found.append(_slicer(stored(_KEY), wanted, lambda key: key_folder(key.decode("utf-8", "replace")).encode()))
    return found


def _slicer(column: str, wanted: Mapping[bytes, str], kind: Callable[[bytes], bytes]) -> Slicer:
    """Returns a function that slices a batch by a column of texts; a row may be in several slices, or in none."""

    def cut(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        place = batch.schema.get_field_index(column)
        rows: dict[bytes, list[int]] = {}
        for row, values in enumerate(batch.column(place).to_pylist() if place >= 0 else ()):
            for value in {kind(value) for value in values or ()}:
                rows.setdefault(value, []).append(row)
        for value in sorted(rows):
            if value in wanted:
                yield wanted[value], table_util.RecordBatchTake(batch, pa.array(rows[value], pa.int32()))

    return cut


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes `Split-<name>/FeatureStats.pb`: the data set `All Examples`, which all readers use, and one per slice."""

    @flushed_outputs
    def Do(
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """Measures the splits and writes a file for each."""
        given = newest_examples(input_dict["examples"])
        statistics = artifact_utils.get_single_instance(output_dict["statistics"])
        dataset = open_all(given, self._get_tmp_dir)
        examples = given[0] if len(given) == 1 else as_artifact(dataset)
        required = bool(exec_properties.get(REQUIRED))
        features = _features(exec_properties[FEATURES], dataset, required=required)
        statistics.split_names = examples.split_names
        statistics.span = span_of(given[-1])[0]
        # Features outside the schema are not parsed: no pixel is copied.
        schema = schema_pb2.Schema()
        for name in features:
            schema.feature.add(name=name, type=FEATURE_TYPES[dataset.manifest.features[name]])
        splits = artifact_utils.decode_split_names(examples.split_names)
        # A URL is not a `Path`: on a bucket, as on Dataflow, only Beam reads and writes.
        files = {
            split: os.path.join(artifact_utils.get_split_uri([statistics], split), STATISTICS_FILE) for split in splits
        }
        with self._make_beam_pipeline() as pipeline:
            batches = []
            for split in splits:
                source = tfxio_utils.get_split_tfxio(
                    examples=[examples], split=split, telemetry_descriptors=["StatisticsGen"], schema=schema
                )
                read = pipeline | f"Read[{split}]" >> source.BeamSource()
                batches.append(read | f"Label[{split}]" >> beam.Map(lambda batch, split: (split, batch), split=split))
            _ = (
                batches
                | "Together" >> beam.Flatten(pipeline=pipeline)
                | "Statistics" >> StatisticsOfSplits(splits, slices(dataset, features))
                | "AllSplits" >> beam.combiners.ToList()
                | "WithoutNames" >> beam.FlatMap(_without_names, names=dict(dataset.manifest.names))
                | "Write" >> beam.Map(_write, files=files)
            )


def _without_names(
    made: Sequence[tuple[str, statistics_pb2.DatasetFeatureStatisticsList]], names: Mapping[str, str]
) -> Sequence[tuple[str, statistics_pb2.DatasetFeatureStatisticsList]]:
    """Leaves the values of texts that tell images from each other out: SchemaGen would allow these and no others.

    Args:
        made: splits with their statistics.
        names: our name -> stored name, see `Manifest.names`.
    """
    values, distinct = Counter[str](), Counter[str]()
    for _, statistics in made:
        for feature in statistics.datasets[0].features:
            (name,) = feature.path.step
            values[name] += feature.string_stats.common_stats.tot_num_values
            distinct[name] += feature.string_stats.unique
    free = {name for name in values if nearly_distinct(values[name], distinct[name])} - class_features(values, names)
    free |= identity_features(values, names)
    for _, statistics in made:
        for feature in (feature for dataset in statistics.datasets for feature in dataset.features):
            if feature.path.step[0] in free and feature.HasField("string_stats"):
                feature.string_stats.ClearField("top_values")
                feature.string_stats.ClearField("rank_histogram")
    return made


def _write(made: tuple[str, statistics_pb2.DatasetFeatureStatisticsList], files: Mapping[str, str]) -> None:
    split, statistics = made
    if not is_remote(files[split]):
        os.makedirs(os.path.dirname(files[split]), exist_ok=True)
    with FileSystems.create(files[split]) as file:
        file.write(statistics.SerializeToString(deterministic=True))


def _features(asked: str, dataset: ImageDataset, *, required: bool) -> list[str]:
    """Returns the features with statistics: those that were asked for, or all but pixels and run lengths.

    Raises:
        UsageError: the dataset lacks a feature that is required, or all of them.
    """
    stored = dataset.manifest.features
    if asked:
        names = json.loads(asked)
        unknown = [name for name in names if name not in stored]
        # TFDV would read all features, pixels too, by an empty schema.
        if unknown and (required or len(unknown) == len(names)):
            problem = f"the examples have no feature {', '.join(map(repr, unknown))}"
            raise UsageError(f"StatisticsGen: features: {problem}. Use names of these: {', '.join(sorted(stored))}.")
        return [name for name in names if name in stored]
    return sorted(name for name in stored if name != dataset.manifest.stored(_PIXELS) and not name.endswith("/rle"))
