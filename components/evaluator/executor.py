"""The executor of the Evaluator: TFMA on streamed shards, with an optional baseline and a readable summary."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
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
from tfx.utils import path_utils, proto_utils

from shardwright.components.baseline_resolver.executor import has_baseline
from shardwright.components.evaluator.eval_config import build_eval_config
from shardwright.components.evaluator.prediction_pictures import LOOKED_AT, draw_confusion, draw_pictures
from shardwright.components.evaluator.result_files import (
    EXAMPLES_PLACE,
    EvaluationSummary,
    details,
    summarize,
    write_details,
    write_evaluation,
)
from shardwright.components.evaluator.run_tfma import bless, evaluate
from shardwright.components.evaluator.slices import SlicedShards
from shardwright.components.model_files.saved_model import check_saved_model
from shardwright.components.runtime.artifacts import Artifacts, flushed_outputs
from shardwright.components.runtime.beam import reachable
from shardwright.components.runtime.joined_examples import newest_examples, open_all
from shardwright.components.runtime.mounts import place_of
from shardwright.components.runtime.open_examples import has_manifest
from shardwright.components.runtime.user_code import check_code
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, UsageError
from shardwright.evaluation.figures import Measured
from shardwright.evaluation.thresholds import THRESHOLDS_FILE, Thresholds, read_thresholds
from shardwright.evaluation.verdict import Answers, Limits, judge
from shardwright.lineage.blessing import model_digest
from shardwright.lineage.record import read_lineage, write_lineage
from shardwright.running.progress import counted
from shardwright.storage import is_remote

_SHOWN = 3
# Parameters as JSON: the conditions of a blessing, and the code of the user's own metrics.
LIMITS, CODE_KEY = "limits", "code"


class Executor(base_beam_executor.BaseBeamExecutor):
    """Evaluates a model, and compares it with the last blessed one if both have the same classes."""

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Runs TFMA, then adds summaries, pictures and `lineage.json` to its results.

        Args:
            input_dict: `examples` (ImageExampleGen's), `model`, and `baseline_model` (BaselineResolver's).
            output_dict: `evaluation` and `blessing`.
            exec_properties: `example_splits` and maybe `eval_config`, see TFX's Evaluator; `limits`.

        Raises:
            CheckFailed: there is nothing to evaluate on.
            DatasetError: a model does more than compute.
            UsageError: Beam's workers are on other machines, and the examples are not on a bucket.
        """
        check_code(json.loads(exec_properties.get(CODE_KEY) or "{}"), option="ImageEvaluator: eval_config")
        examples = open_all(input_dict[EXAMPLES_KEY], self._get_tmp_dir)
        splits = json.loads(exec_properties[EXAMPLE_SPLITS_KEY])
        inputs, notes = _comparable(input_dict)
        _check_split(examples, splits, [])
        reachable(self._beam_pipeline_args, "the examples", examples.root)
        model = artifact_utils.get_single_instance(inputs[MODEL_KEY])
        baseline = inputs[BASELINE_MODEL_KEY][0] if inputs.get(BASELINE_MODEL_KEY) else None
        models = [(model, False), *([(baseline, True)] if baseline else [])]
        for evaluated, _ in models:
            check_saved_model(path_utils.serving_model_path(evaluated.uri))
        evaluation = artifact_utils.get_single_uri(output_dict[EVALUATION_KEY])
        limits, judged = Limits(**json.loads(exec_properties[LIMITS])), _Judged.of(model)
        eval_config = exec_properties.get(EVAL_CONFIG_KEY) or proto_utils.proto_to_json(
            build_eval_config(limits, judged.task, judged.classes, multi=judged.multi)
        )
        found = evaluate(
            self._make_beam_pipeline,
            SlicedShards.of(examples, splits),
            models,
            eval_config,
            evaluation,
            self._get_tmp_dir(),
        )
        _check_split(examples, splits, found.left_out)
        if found.left_out:
            shown = ", ".join(found.left_out[:_SHOWN]) + (", …" if len(found.left_out) > _SHOWN else "")
            left = counted(len(found.left_out), "image was", "images were")
            notes.append(f"{left} left out as damaged: {shown}")
        answers = {which: judged.answers(rows) for which, rows in found.answers.items()}
        lacking = _lacking(examples, splits, judged.classes)
        verdict = judge(limits, ", ".join(splits), answers[False], answers.get(True), lacking)
        summary = summarize(evaluation, judged.measured(splits, answers[False].images), verdict, notes)
        bless(summary.blessed, artifact_utils.get_single_instance(output_dict[BLESSING_KEY]), model, baseline)
        write_evaluation(evaluation, summary)
        _write_details(evaluation, summary, examples, splits, found.left_out, judged)
        chosen = newest_examples(input_dict[EXAMPLES_KEY])
        # For the Pusher, if the next run can find it: joined examples are in a temporary folder.
        place = place_of(chosen[0].uri) if len(chosen) == 1 and has_manifest(chosen[0].uri) else ""
        if is_remote(place) or os.path.isabs(place):
            of_results = artifact_utils.get_single_instance(output_dict[EVALUATION_KEY])
            of_results.set_string_custom_property(EXAMPLES_PLACE, place)
        recipe = {"eval_config": json.loads(eval_config), LIMITS: vars(limits)}
        _write_lineage(inputs, output_dict, examples.manifest.digest, recipe)


def _lacking(examples: ImageDataset, judged: Sequence[str], classes: Sequence[str]) -> dict[str, list[str]]:
    """Returns the classes that each other split has no image of: nothing was learned or tuned for them."""
    lacking = {}
    for split in sorted(set(examples.splits) - set(judged)):
        missing = set(classes) & set(examples.manifest.classes)
        records = 0
        for shard in examples.shards(split):
            records += shard.records
            # Most splits have all classes in their first shard.
            if missing:
                labels = {label for labels in examples.facts(shard).labels for label in labels}
                missing -= {examples.manifest.classes[label] for label in labels}
        if missing and records:
            lacking[split] = [name for name in classes if name in missing]
    return lacking


@dataclass(frozen=True)
class _Judged:
    """What the assets of a model say about its answers.

    Attributes:
        place: folder of the SavedModel.
        task: `segmentation` or `classification`.
        multi: whether an image may have several classes.
        classes: names in the order of the model's outputs.
        size: rows and columns of its images.
        chosen: its thresholds.
    """

    place: str
    task: str
    multi: bool
    classes: tuple[str, ...]
    size: tuple[int, int]
    chosen: Thresholds

    @classmethod
    def of(cls, model: Artifact) -> _Judged:
        """Reads them.

        Raises:
            UsageError: the model was not exported by ImageTrainer.
        """
        training, preparation = _asset(model, "training.json"), _asset(model, "preparation.json")
        place, classes = path_utils.serving_model_path(model.uri), _classes(model)
        file = Path(place, "assets", THRESHOLDS_FILE)
        return cls(
            place=place,
            task=training["task"],
            multi=training["multi"],
            classes=tuple(classes),
            size=(preparation["height"], preparation["width"]),
            chosen=read_thresholds(file, classes) if file.is_file() else Thresholds.fixed(len(classes)),
        )

    def answers(self, rows: list[list[float]]) -> Answers:
        """Returns the model's answers to single images."""
        height, width = self.size
        return Answers(self.task, self.classes, rows, multi=self.multi, pixels=height * width)

    def measured(self, splits: list[str], images: int) -> Measured:
        """Returns what the figures are of."""
        return Measured.of_model(", ".join(splits), images, self.size, self.task, self.multi, self.chosen)


def _write_details(
    evaluation: str,
    summary: EvaluationSummary,
    examples: ImageDataset,
    splits: list[str],
    left_out: list[str],
    judged: _Judged,
) -> None:
    found = details(evaluation, judged.classes)
    pictures = draw_pictures(judged.place, examples, splits, left_out, Path(evaluation))
    if found["confusion"] is not None:
        drawn = draw_confusion(found["confusion"], found["classes"], Path(evaluation))
        pictures.append({"file": drawn, "kind": "confusion"})
    scored = min(LOOKED_AT, summary.measured["images"])
    write_details(evaluation, {**vars(summary), **found, "splits": splits, "pictures": pictures, "scored": scored})


def _write_lineage(inputs: Artifacts, output_dict: Artifacts, examples: str, recipe: dict[str, Any]) -> None:
    trained = read_lineage(artifact_utils.get_single_uri(inputs[MODEL_KEY]))
    parents = {"model": trained["fingerprint"], "examples": examples}
    if inputs.get(BASELINE_MODEL_KEY):
        parents["baseline"] = read_lineage(artifact_utils.get_single_uri(inputs[BASELINE_MODEL_KEY]))["fingerprint"]
    for key, kind in ((EVALUATION_KEY, "evaluation"), (BLESSING_KEY, "blessing")):
        write_lineage(
            artifact_utils.get_single_uri(output_dict[key]),
            kind=kind,
            fingerprint=trained["fingerprint"],
            parents=parents,
            recipe=recipe,
        )


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
    """Removes a baseline that is empty, has other classes or is the model itself; returns the inputs, and why."""
    baselines = input_dict.get(BASELINE_MODEL_KEY)
    if not baselines:
        return input_dict, []
    alone = {key: value for key, value in input_dict.items() if key != BASELINE_MODEL_KEY}
    if not has_baseline(baselines[0]):
        return alone, []
    model = artifact_utils.get_single_instance(input_dict[MODEL_KEY])
    places = [path_utils.serving_model_path(one.uri) for one in (baselines[0], model)]
    if model_digest(places[0]) == model_digest(places[1]):
        # A training that was run again with the same result: it need not be better than itself.
        return alone, ["not compared with the last blessed model, which is this model"]
    known, new = _classes(baselines[0]), _classes(model)
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
