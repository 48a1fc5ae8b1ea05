"""Runs TFMA over the shards of an evaluation, on Beam, and blesses the model if it reaches its thresholds.

TFX's Evaluator reads whole folders of files, so the examples with features of slices would have to be copied first.
Here Beam maps over shard numbers: each worker reads its shards as streams. Only sums leave it; they are added exactly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import apache_beam as beam
import tensorflow_model_analysis as tfma
from google.protobuf import json_format
from tensorflow_model_analysis.proto import config_pb2
from tfx.components.evaluator import constants
from tfx.types import Artifact
from tfx.utils import io_utils, path_utils

from shardwright.components.evaluator.slices import LeftOut, SlicedShards
from shardwright.storage import read_bytes

LEFT_OUT_FILE = "left_out.json"
_KEPT, _REFUSED = "batches", "left_out"


def evaluate(
    make_pipeline: Callable[[], beam.Pipeline],
    shards: SlicedShards,
    models: list[tuple[Artifact, bool]],
    eval_config: str,
    output: str,
    temporary: str,
) -> list[str]:
    """Writes TFMA's results.

    Args:
        make_pipeline: returns a pipeline with the configured runner.
        shards: the examples.
        models: the model, and the baseline with `True` where there is one.
        eval_config: TFMA's configuration as JSON.
        output: folder of the results.
        temporary: folder for a list of keys; Beam's workers write to it.

    Returns:
        Keys of the images that cannot be decoded and were left out, in the order of the records.
    """
    config = with_defaults(eval_config, has_baseline=any(baseline for _, baseline in models))
    by_kind = {baseline: artifact for artifact, baseline in models}
    shared = [
        tfma.default_eval_shared_model(
            eval_saved_model_path=path_utils.serving_model_path(by_kind[spec.is_baseline].uri),
            model_name=spec.name,
            eval_config=config,
        )
        for spec in config.model_specs
    ]
    refused_file = os.path.join(temporary, LEFT_OUT_FILE)
    with make_pipeline() as pipeline:
        read = (
            pipeline
            | "ShardNumbers" >> beam.Create(range(len(shards)))
            # Without the reshuffle the numbers stay in one bundle, and one worker reads every shard.
            | "Spread" >> beam.Reshuffle()
            | "ReadShard" >> beam.ParDo(_ReadShard(shards)).with_outputs(_REFUSED, main=_KEPT)
        )
        _ = (
            read[_REFUSED]
            | "Together" >> beam.combiners.ToList()
            | "AsJson" >> beam.Map(lambda rows: json.dumps([row.key for row in sorted(rows)]))
            | "WriteLeftOut"
            >> beam.io.WriteToText(refused_file, shard_name_template="", append_trailing_newlines=False)
        )
        _ = read[_KEPT] | "ExtractEvaluateAndWriteResults" >> tfma.ExtractEvaluateAndWriteResults(
            eval_shared_model=shared[0] if len(shared) == 1 else shared, eval_config=config, output_path=output
        )
    return list(json.loads(read_bytes(refused_file)))


class _ReadShard(beam.DoFn):
    def __init__(self, shards: SlicedShards) -> None:
        self._shards = shards

    def process(self, number: int) -> Any:
        for one in self._shards.batches(number):
            yield beam.pvalue.TaggedOutput(_REFUSED, one) if isinstance(one, LeftOut) else one


def with_defaults(eval_config: str, *, has_baseline: bool) -> tfma.EvalConfig:
    """Returns TFMA's configuration; changes from a baseline are left out where there is none."""
    config = json_format.Parse(eval_config, config_pb2.EvalConfig())
    # The functions moved between the versions of both stacks.
    where = tfma.utils if hasattr(tfma, "utils") else tfma
    config = where.update_eval_config_with_defaults(config, has_baseline=has_baseline, rubber_stamp=True)
    where.verify_eval_config(config)
    return config


def bless(evaluation: str, blessing: Artifact, model: Artifact, baseline: Artifact | None) -> None:
    """Records the verdict of TFMA in the blessing, as TFX's Evaluator does.

    Args:
        evaluation: folder of TFMA's results.
        blessing: the artifact to write.
        model: the evaluated model.
        baseline: the model that it was compared with.
    """
    for prefix, artifact in (("CURRENT", model), ("BASELINE", baseline)):
        if artifact is not None:
            uri = getattr(constants, f"ARTIFACT_PROPERTY_{prefix}_MODEL_URI_KEY")
            blessing.set_string_custom_property(uri, artifact.uri)
            blessing.set_int_custom_property(
                getattr(constants, f"ARTIFACT_PROPERTY_{prefix}_MODEL_ID_KEY"), artifact.id
            )
    passed = bool(tfma.load_validation_result(evaluation).validation_ok)
    name = constants.BLESSED_FILE_NAME if passed else constants.NOT_BLESSED_FILE_NAME
    io_utils.write_string_file(os.path.join(blessing.uri, name), "")
    value = constants.BLESSED_VALUE if passed else constants.NOT_BLESSED_VALUE
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY, value)
