"""The executor of the Pusher: TFX's, then the blessing.

Before the push, a separate process without our code checks that the model answers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tfx.components.pusher import executor
from tfx.proto import pusher_pb2
from tfx.types import artifact_utils
from tfx.types.standard_component_specs import PUSH_DESTINATION_KEY, PUSHED_MODEL_KEY
from tfx.utils import io_utils, proto_utils

from shardwright.components.evaluator.result_files import EXAMPLES_PLACE, read_evaluation
from shardwright.components.model_files.saved_model import check_saved_model
from shardwright.components.runtime.artifacts import Artifacts, flush_artifact, flushed_outputs
from shardwright.components.runtime.isolated import run_isolated
from shardwright.errors import CheckFailed
from shardwright.lineage.blessing import DIGEST, PLACE, Blessing, model_digest, read_blessing, write_blessing
from shardwright.lineage.record import read_lineage

EVALUATION = "evaluation"

_SCRIPT = Path(__file__).with_name("clean_process.py")


def check_answers(model: str | os.PathLike[str]) -> None:
    """Checks in a separate process that a model loads and answers.

    Args:
        model: folder of a SavedModel.

    Raises:
        CheckFailed: it does not.
        DatasetError: it does more than compute; nothing of it ran.
    """
    check_saved_model(model)
    what = f"{model}: blessed, but it"
    run_isolated(_SCRIPT, str(Path(model).absolute()), what=what, ending="Not pushed.")


class Executor(executor.Executor):
    """Pushes a blessed model and replaces `BLESSED.json`; the same model is not pushed a second time."""

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Pushes.

        Args:
            input_dict: `model`, `model_blessing` and `evaluation`.
            output_dict: `pushed_model`; empty when the model was not blessed.
            exec_properties: `push_destination`, see TFX's Pusher.

        Raises:
            CheckFailed: the model does not answer in a clean process, or the push folder then has another model. The
                baseline model stays the same.
        """
        pushed = artifact_utils.get_single_instance(output_dict[PUSHED_MODEL_KEY])
        if not self.CheckBlessing(input_dict):
            self._MarkNotPushed(pushed)
            return
        destination = pusher_pb2.PushDestination()
        proto_utils.json_to_proto(exec_properties[PUSH_DESTINATION_KEY], destination)
        folder = str(destination.filesystem.base_directory)
        model = self.GetModelPath(input_dict)
        digest = model_digest(model)
        current = read_blessing(folder)
        if current and current.digest == digest:
            version = current.model
            io_utils.copy_dir(model, pushed.uri)
            self._MarkPushed(pushed, os.path.join(folder, version), version)
        else:
            check_answers(model)
            super().Do(input_dict, output_dict, exec_properties)
            version = pushed.get_string_custom_property("pushed_version")
            # TFX names the folder by the second, and skips the copy if the folder exists, with any content.
            if model_digest(Path(folder, version)) != digest:
                raise CheckFailed(
                    f"{Path(folder, version)}: another model was pushed there in the same second. Run again."
                )
            # Before the blessing names it.
            flush_artifact(os.path.join(folder, version))
        evaluation = artifact_utils.get_single_instance(input_dict[EVALUATION])
        summary = read_evaluation(evaluation.uri)
        lineage = read_lineage(Path(folder, version))
        # Path and digest of the evaluated dataset, for the next run.
        place = evaluation.get_string_custom_property(EXAMPLES_PLACE)
        examples = {PLACE: place, DIGEST: read_lineage(evaluation.uri)["parents"]["examples"]} if place else {}
        write_blessing(
            folder,
            Blessing(
                model=version,
                digest=digest,
                metrics=summary.metrics,
                measured=summary.measured,
                fingerprints={"training": lineage["fingerprint"], **lineage["parents"]},
                examples=examples,
            ),
        )
