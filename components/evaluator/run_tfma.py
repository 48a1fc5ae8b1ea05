"""Runs TFMA over the shards of an evaluation, on Beam, and records the verdict.

TFX's Evaluator reads whole folders of files, so the examples with features of slices would have to be copied first.
Here Beam maps over shard numbers: each worker reads its shards as streams. Only sums leave it, which are added exactly,
and a few whole numbers for each image, from which `shardwright.evaluation.verdict` judges the model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from google.protobuf import json_format
from tensorflow_model_analysis.evaluators.evaluator import Evaluator
from tensorflow_model_analysis.extractors.extractor import LAST_EXTRACTOR_STAGE_NAME
from tensorflow_model_analysis.proto import config_pb2
from tfx.components.evaluator import constants
from tfx.types import Artifact
from tfx.utils import io_utils, path_utils

from shardwright.components.evaluator.slices import LeftOut, SlicedShards
from shardwright.components.runtime.beam import spread
from shardwright.storage import read_bytes

LEFT_OUT_FILE, ANSWERS_FILE = "left_out.json", "answers.json"
_KEPT, _REFUSED = "batches", "left_out"


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation found besides TFMA's results.

    Attributes:
        left_out: keys of the images that cannot be decoded, in the order of the records.
        answers: is-baseline -> for each image the numbers that `shardwright.evaluation.verdict.Answers` takes; the
            images have the same order for both models, and the order is the same in every run.
    """

    left_out: list[str]
    answers: dict[bool, list[list[float]]]


def evaluate(
    make_pipeline: Callable[[], beam.Pipeline],
    shards: SlicedShards,
    models: list[tuple[Artifact, bool]],
    eval_config: str,
    output: str,
    temporary: str,
) -> Evaluated:
    """Writes TFMA's results.

    Args:
        make_pipeline: returns a pipeline with the configured runner.
        shards: the examples.
        models: the model, and the baseline with `True` where there is one.
        eval_config: TFMA's configuration as JSON.
        output: folder of the results.
        temporary: folder for lists of keys and answers; Beam's workers write to it.
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
    refused_file, answers_file = (os.path.join(temporary, name) for name in (LEFT_OUT_FILE, ANSWERS_FILE))
    models_shared = shared[0] if len(shared) == 1 else shared
    names = {spec.is_baseline: spec.name if len(shared) > 1 else "" for spec in config.model_specs}
    evaluators = [
        *tfma.default_evaluators(eval_shared_model=models_shared, eval_config=config),
        Evaluator("WriteAnswers", LAST_EXTRACTOR_STAGE_NAME, _write_answers(names, answers_file)),
    ]
    with make_pipeline() as pipeline:
        reading = beam.ParDo(_ReadShard(shards)).with_outputs(_REFUSED, main=_KEPT)
        read = spread(pipeline, range(len(shards))) | "ReadShard" >> reading
        _ = (
            read[_REFUSED]
            | "Together" >> beam.combiners.ToList()
            | "AsJson" >> beam.Map(lambda rows: json.dumps([row.key for row in sorted(rows)]))
            | "WriteLeftOut" >> _write_text(refused_file)
        )
        _ = read[_KEPT] | "ExtractEvaluateAndWriteResults" >> tfma.ExtractEvaluateAndWriteResults(
            eval_shared_model=models_shared, eval_config=config, evaluators=evaluators, output_path=output
        )
    rows = json.loads(read_bytes(answers_file))
    answers = {which: [row[place] for row in rows] for place, which in enumerate(names)}
    return Evaluated(list(json.loads(read_bytes(refused_file))), answers)


def _write_text(file: str) -> beam.io.WriteToText:
    return beam.io.WriteToText(file, shard_name_template="", append_trailing_newlines=False)


@beam.ptransform_fn
def _write_answers(extracts: Any, names: dict[bool, str], file: str) -> dict[str, Any]:
    """Writes the models' answers to every image, in the order of their numbers: that of Beam changes."""
    written = (
        extracts
        | "AnswersOfImage"
        >> beam.Map(lambda one: [_answers(one[tfma.constants.PREDICTIONS_KEY], name) for name in names.values()])
        | "AnswersTogether" >> beam.combiners.ToList()
        | "AnswersAsJson" >> beam.Map(lambda rows: json.dumps(sorted(rows)))
        | "WriteAnswersFile" >> _write_text(file)
    )
    return {ANSWERS_FILE: written}


def _answers(predictions: Any, model: str) -> list[float]:
    """Returns the numbers of one image: see `shardwright.evaluation.verdict.Answers`."""
    outputs = predictions[model] if model else predictions
    if "probabilities" in outputs:
        return [int(np.argmax(outputs["probabilities"])), int(np.reshape(outputs["label"], -1)[0])]
    predicted, true = (np.reshape(outputs[name], -1) for name in ("prediction", "truth"))
    hit = np.reshape(outputs["intersection"], -1) if "intersection" in outputs else predicted * true
    return [float(value) for part in (hit, predicted, true) for value in part.tolist()]


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


def bless(passed: bool, blessing: Artifact, model: Artifact, baseline: Artifact | None) -> None:
    """Records the verdict in the blessing, as TFX's Evaluator does.

    Args:
        passed: whether the model is blessed.
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
    name = constants.BLESSED_FILE_NAME if passed else constants.NOT_BLESSED_FILE_NAME
    io_utils.write_string_file(os.path.join(blessing.uri, name), "")
    value = constants.BLESSED_VALUE if passed else constants.NOT_BLESSED_VALUE
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY, value)
