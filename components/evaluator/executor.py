"""The executor of the Evaluator: TFMA on streamed shards, with an optional baseline and a readable summary."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_beam_executor
from tfx.types import Artifact, artifact_utils
from tfx.types.standard_component_specs import (
    BASELINE_MODEL_KEY,
    BLESSING_KEY,
    EVAL_CONFIG_KEY,
    EVALUATION_KEY,
    EXAMPLE_SPLITS_KEY,
    EXAMPLES_KEY,
    MODEL_KEY,
)
from tfx.utils import path_utils

from shardwright.components.baseline_resolver.executor import has_baseline
from shardwright.components.evaluator.evaluate import bless, evaluate
from shardwright.components.evaluator.pictures import draw_confusion, draw_pictures
from shardwright.components.evaluator.slices import SlicedShards
from shardwright.components.evaluator.summary import (
    EXAMPLES_PLACE,
    details,
    summarize,
    write_details,
    write_evaluation,
)
from shardwright.components.model_files.saved_model import check_saved_model
from shardwright.components.runtime.artifacts import flushed_outputs
from shardwright.components.runtime.beam import reachable
from shardwright.components.runtime.examples import has_manifest
from shardwright.components.runtime.joined_examples import newest_examples, open_all
from shardwright.components.runtime.mounts import place_of
from shardwright.components.runtime.user_code import check_code
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, UsageError
from shardwright.evaluation.metrics import headline
from shardwright.lineage.record import read_lineage, write_lineage
from shardwright.progress import counted
from shardwright.storage import is_remote

Artifacts = dict[str, list[Artifact]]

_SHOWN = 3
METRICS_MODULE = "shardwright.components.evaluator.metrics"
# Parameter with the code of the user's own metrics as JSON.
CODE_KEY = "code"


class Executor(base_beam_executor.BaseBeamExecutor):
    """Evaluates a model, and compares it with the last blessed one if both have the same classes."""

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Runs TFMA, then adds summaries, pictures and `lineage.json` to its results.

        Args:
            input_dict: `examples` (ImageExampleGen's), `model`, and `baseline_model` (BaselineResolver's).
            output_dict: `evaluation` and `blessing`.
            exec_properties: `eval_config` and `example_splits`, see TFX's Evaluator.

        Raises:
            CheckFailed: there is nothing to evaluate on.
            DatasetError: a model does more than compute.
            UsageError: Beam's workers are on other machines, and the examples are not on a bucket.
        """
        check_code(json.loads(exec_properties.get(CODE_KEY) or "{}"), option="ImageEvaluator: eval_config")
        examples = open_all(input_dict[EXAMPLES_KEY], self._get_tmp_dir)
        splits = json.loads(exec_properties[EXAMPLE_SPLITS_KEY])
        inputs, reasons = _comparable(input_dict)
        _check_split(examples, splits, [])
        reachable(self._beam_pipeline_args, "the examples", examples.root)
        model = artifact_utils.get_single_instance(inputs[MODEL_KEY])
        baseline = inputs[BASELINE_MODEL_KEY][0] if inputs.get(BASELINE_MODEL_KEY) else None
        models = [(model, False), *([(baseline, True)] if baseline else [])]
        for evaluated, _ in models:
            check_saved_model(path_utils.serving_model_path(evaluated.uri))
        evaluation = artifact_utils.get_single_uri(output_dict[EVALUATION_KEY])
        eval_config = _fitted(exec_properties[EVAL_CONFIG_KEY], model)
        shards = SlicedShards.of(examples, splits)
        left_out = evaluate(self._make_beam_pipeline, shards, models, eval_config, evaluation, self._get_tmp_dir())
        _check_split(examples, splits, left_out)
        if left_out:
            shown = ", ".join(left_out[:_SHOWN]) + (", …" if len(left_out) > _SHOWN else "")
            left = counted(len(left_out), "image was", "images were")
            reasons = [*reasons, f"{left} left out, because of damage: {shown}"]
        bless(evaluation, artifact_utils.get_single_instance(output_dict[BLESSING_KEY]), model, baseline)
        summary = summarize(evaluation, reasons)
        write_evaluation(evaluation, summary)
        place = path_utils.serving_model_path(model.uri)
        found = details(evaluation, _classes(model))
        pictures = draw_pictures(place, examples, splits, left_out, Path(evaluation))
        if found["confusion"] is not None:
            pictures.append(
                {"file": draw_confusion(found["confusion"], found["classes"], Path(evaluation)), "kind": "confusion"}
            )
        write_details(evaluation, {**vars(summary), **found, "splits": splits, "pictures": pictures})
        _name_location(artifact_utils.get_single_instance(output_dict[EVALUATION_KEY]), input_dict)
        trained = read_lineage(model.uri)
        parents = {"model": trained["fingerprint"], "examples": examples.manifest.digest}
        if inputs.get(BASELINE_MODEL_KEY):
            parents["baseline"] = read_lineage(artifact_utils.get_single_uri(inputs[BASELINE_MODEL_KEY]))["fingerprint"]
        for key, kind in ((EVALUATION_KEY, "evaluation"), (BLESSING_KEY, "blessing")):
            write_lineage(
                artifact_utils.get_single_uri(output_dict[key]),
                kind=kind,
                fingerprint=trained["fingerprint"],
                parents=parents,
                recipe={"eval_config": json.loads(eval_config)},
            )


def _fitted(eval_config: str, model: Artifact) -> str:
    """Returns TFMA's configuration with the metrics that fit the model, for the model's classes.

    A configuration that was built before the model is known has the metrics of every task, without classes.

    Raises:
        UsageError: the model was not exported by ImageTrainer.
    """
    value = json.loads(eval_config)
    specs = value.get("metrics_specs", [])
    metrics = [metric for spec in specs for metric in spec.get("metrics", ()) if metric.get("module") == METRICS_MODULE]
    if all(json.loads(metric["config"])["classes"] for metric in metrics):
        return eval_config
    training = _asset(model, "training.json")
    name = headline(training["task"], multi=training["multi"])
    if len(specs) > 1:
        value["metrics_specs"] = [spec for spec in specs if name in spec.get("per_slice_thresholds", {})]
    for metric in metrics:
        metric["config"] = json.dumps({"classes": _classes(model)}, ensure_ascii=False)
    return json.dumps(value)


def _name_location(evaluation: Artifact, input_dict: Artifacts) -> None:
    """Records the folder of the images for the Pusher, if the next run can find it."""
    chosen = newest_examples(input_dict[EXAMPLES_KEY])
    # Joined examples are in a temporary folder.
    if len(chosen) > 1 or not has_manifest(chosen[0].uri):
        return
    place = place_of(chosen[0].uri)
    if is_remote(place) or os.path.isabs(place):
        evaluation.set_string_custom_property(EXAMPLES_PLACE, place)


def _check_split(examples: ImageDataset, splits: list[str], left_out: list[str]) -> None:
    for split in splits:
        if split not in examples.splits:
            fix = f"Use one of: {', '.join(examples.splits)}, by ImageEvaluator(split=…) or evaluator.split."
            raise UsageError(f"ImageEvaluator: examples: {examples.root} has no split {split!r}. {fix}")
    if sum(examples.num_records(split) for split in splits) <= len(left_out):
        raise CheckFailed(
            f"the split {', '.join(splits)} of {examples.root} has no image that can be decoded, so nothing can be "
            "evaluated. Give more images, a larger share in `split`, or another evaluator.split."
        )


def _comparable(input_dict: Artifacts) -> tuple[Artifacts, list[str]]:
    """Removes a baseline that is empty or has other classes from the inputs; returns them, and the reason."""
    baselines = input_dict.get(BASELINE_MODEL_KEY)
    if not baselines:
        return input_dict, []
    alone = {key: value for key, value in input_dict.items() if key != BASELINE_MODEL_KEY}
    if not has_baseline(baselines[0]):
        return alone, []
    known, new = _classes(baselines[0]), _classes(artifact_utils.get_single_instance(input_dict[MODEL_KEY]))
    if known != new:
        return alone, [
            f"not compared with the last blessed model, which has other classes: {', '.join(known)} "
            f"instead of {', '.join(new)}"
        ]
    return input_dict, []


def _classes(model: Artifact) -> list[str]:
    return list(_asset(model, "classes.json"))


def _asset(model: Artifact, name: str) -> Any:
    file = Path(path_utils.serving_model_path(model.uri), "assets", name)
    if not file.is_file():
        raise UsageError(
            f"{file}: is missing, so this is not a model of ImageTrainer. Evaluate it with tfx.components.Evaluator."
        )
    return json.loads(file.read_text(encoding="utf-8"))
