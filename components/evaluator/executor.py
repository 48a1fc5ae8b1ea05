"""The executor of the Evaluator: TFX's, with an optional baseline and a readable summary."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

from tfx.components.evaluator import executor
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
from shardwright.components.evaluator.pictures import draw_confusion, draw_pictures
from shardwright.components.evaluator.slices import write_sliced
from shardwright.components.evaluator.summary import (
    EXAMPLES_PLACE,
    details,
    summarize,
    write_details,
    write_evaluation,
)
from shardwright.components.runtime.artifacts import flushed_outputs
from shardwright.components.runtime.mounts import place_of
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed
from shardwright.lineage.record import read_lineage, write_lineage
from shardwright.storage import is_remote

Artifacts = dict[str, list[Artifact]]

_SHOWN = 3


class Executor(executor.Executor):
    """Evaluates a model, and compares it with the last blessed one if both have the same classes."""

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Runs TFX's Evaluator, then adds summaries, pictures and `lineage.json` to TFMA's results.

        Args:
            input_dict: `examples` (ImageExampleGen's), `model`, and `baseline_model` (BaselineResolver's).
            output_dict: `evaluation` and `blessing`.
            exec_properties: `eval_config` and `example_splits`, see TFX's Evaluator.

        Raises:
            CheckFailed: there is nothing to evaluate on.
        """
        examples = ImageDataset.open(artifact_utils.get_single_uri(input_dict[EXAMPLES_KEY]))
        splits = json.loads(exec_properties[EXAMPLE_SPLITS_KEY])
        inputs, reasons = _comparable(input_dict)
        sliced, left_out = self._sliced(examples, splits, input_dict)
        _check_split(examples, splits, left_out)
        inputs = {**inputs, EXAMPLES_KEY: [sliced]}
        if left_out:
            shown = ", ".join(left_out[:_SHOWN]) + (", …" if len(left_out) > _SHOWN else "")
            reasons = [*reasons, f"{len(left_out)} images cannot be decoded and were left out: {shown}"]
        super().Do(inputs, output_dict, exec_properties)
        evaluation = artifact_utils.get_single_uri(output_dict[EVALUATION_KEY])
        summary = summarize(evaluation, reasons)
        write_evaluation(evaluation, summary)
        place = path_utils.serving_model_path(artifact_utils.get_single_uri(inputs[MODEL_KEY]))
        found = details(evaluation, _classes(artifact_utils.get_single_instance(inputs[MODEL_KEY])))
        pictures = draw_pictures(place, examples, splits, left_out, Path(evaluation))
        if found["confusion"] is not None:
            pictures.append(
                {"file": draw_confusion(found["confusion"], found["classes"], Path(evaluation)), "kind": "confusion"}
            )
        write_details(evaluation, {**vars(summary), **found, "splits": splits, "pictures": pictures})
        _name_location(artifact_utils.get_single_instance(output_dict[EVALUATION_KEY]), input_dict)
        model = read_lineage(artifact_utils.get_single_uri(inputs[MODEL_KEY]))
        parents = {"model": model["fingerprint"], "examples": examples.manifest.digest}
        if inputs.get(BASELINE_MODEL_KEY):
            parents["baseline"] = read_lineage(artifact_utils.get_single_uri(inputs[BASELINE_MODEL_KEY]))["fingerprint"]
        for key, kind in ((EVALUATION_KEY, "evaluation"), (BLESSING_KEY, "blessing")):
            write_lineage(
                artifact_utils.get_single_uri(output_dict[key]),
                kind=kind,
                fingerprint=model["fingerprint"],
                parents=parents,
                recipe={"eval_config": json.loads(exec_properties[EVAL_CONFIG_KEY])},
            )

    def _sliced(self, examples: ImageDataset, splits: list[str], input_dict: Artifacts) -> tuple[Artifact, list[str]]:
        """Returns the examples with the features of slices, and the keys of those that cannot be decoded."""
        folder = os.path.join(self._get_tmp_dir(), "sliced")
        left_out = write_sliced(examples, splits, Path(folder))
        artifact = copy.deepcopy(artifact_utils.get_single_instance(input_dict[EXAMPLES_KEY]))
        artifact.uri = folder
        return artifact, left_out


def _name_location(evaluation: Artifact, input_dict: Artifacts) -> None:
    """Records the folder of the images for the Pusher, if the next run can find it."""
    place = place_of(artifact_utils.get_single_uri(input_dict[EXAMPLES_KEY]))
    if is_remote(place) or os.path.isabs(place):
        evaluation.set_string_custom_property(EXAMPLES_PLACE, place)


def _check_split(examples: ImageDataset, splits: list[str], left_out: list[str]) -> None:
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
    folder = Path(path_utils.serving_model_path(model.uri), "assets")
    return list(json.loads((folder / "classes.json").read_text(encoding="utf-8")))
