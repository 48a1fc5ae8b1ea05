"""Computes statistics of all images, of every class and of every source, in one pass over what is beside the pixels."""

from __future__ import annotations

import json
import os
from typing import Any

import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.components.util import tfxio_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.types import artifact_utils

from shardwright.components.flushed_outputs import flushed_outputs
from shardwright.components.statistics_gen.slices import slices
from shardwright.dataset import Dataset

STATISTICS_FILE = "FeatureStats.pb"
_TYPES = {"bytes": schema_pb2.BYTES, "int64": schema_pb2.INT, "float32": schema_pb2.FLOAT}


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes `Split-<name>/FeatureStats.pb`: the data set `All Examples`, which all readers take, and one a slice."""

    @flushed_outputs
    def Do(
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """See the base class."""
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        statistics = artifact_utils.get_single_instance(output_dict["statistics"])
        dataset = Dataset.open(examples.uri)
        features = [name for name in json.loads(exec_properties["features"]) if name in dataset.manifest.features]
        statistics.split_names = examples.split_names
        statistics.span = examples.span
        # What the schema does not name is not even parsed: no pixel is copied.
        schema = schema_pb2.Schema()
        for name in features:
            schema.feature.add(name=name, type=_TYPES[dataset.manifest.features[name]])
        options = tfdv.StatsOptions(experimental_slice_functions=slices(dataset, features) or None)
        with self._make_beam_pipeline() as pipeline:
            for split in artifact_utils.decode_split_names(examples.split_names):
                source = tfxio_utils.get_split_tfxio(
                    examples=[examples], split=split, telemetry_descriptors=["StatisticsGen"], schema=schema
                )
                # On a bucket, as on Dataflow, only Beam and TFDV read and write: a URL is no `Path`.
                file = os.path.join(artifact_utils.get_split_uri([statistics], split), STATISTICS_FILE)
                _ = (
                    pipeline
                    | f"Read[{split}]" >> source.BeamSource()
                    | f"StatisticsOf[{split}]" >> tfdv.GenerateStatistics(options)
                    | f"Write[{split}]" >> tfdv.WriteStatisticsToBinaryFile(file)
                )
