"""The executor of the Pusher: TFX's, then the blessing.

Before the push, a separate process without our code checks that the model answers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tfx.components.pusher import executor
from tfx.proto import pusher_pb2
from tfx.types import Artifact, artifact_utils
from tfx.types.standard_component_specs import PUSH_DESTINATION_KEY, PUSHED_MODEL_KEY
from tfx.utils import io_utils, proto_utils

from shardwright.components.evaluator.result_files import EXAMPLES_PLACE, read_evaluation
from shardwright.components.model_files.saved_model import check_saved_model
from shardwright.components.runtime.artifacts import flush_artifact, flushed_outputs
from shardwright.errors import CheckFailed
from shardwright.lineage.blessing import DIGEST, PLACE, Blessing, model_digest, read_blessing, write_blessing
from shardwright.lineage.record import read_lineage

_SCRIPT = Path(__file__).with_name("clean_process.py")
_SECONDS = 900


def check_answers(model: str | os.PathLike[str]) -> None:
    """Checks in a separate process that a model loads and answers.

    Args:
        model: folder of a SavedModel.

    Raises:
        CheckFailed: it does not.
        DatasetError: it does more than compute; nothing of it ran.
    """
    check_saved_model(model)
    # Isolated (-I): neither the working folder nor variables of this process make our code importable.
    command = [sys.executable, "-I", str(_SCRIPT), str(Path(model).absolute())]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CheckFailed(f"{model}: blessed, but it did not answer in {_SECONDS} s. Not pushed.") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"the process ended with exit code {done.returncode}"]
        raise CheckFailed(f"{model}: blessed, but it does not answer in a clean process: {lines[-1]}. Not pushed.")


EVALUATION = "evaluation"

Artifacts = dict[str, list[Artifact]]


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
        folder = _push_folder(exec_properties)
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
            _check_copy(Path(folder, version), digest)
            # Before the blessing names it.
            flush_artifact(os.path.join(folder, version))
        evaluation = artifact_utils.get_single_instance(input_dict[EVALUATION])
        summary = read_evaluation(evaluation.uri)
        lineage = read_lineage(Path(folder, version))
        write_blessing(
            folder,
            Blessing(
                model=version,
                digest=digest,
                metrics=summary.metrics,
                measured=summary.measured,
                fingerprints={"training": lineage["fingerprint"], **lineage["parents"]},
                examples=_examples(evaluation),
            ),
        )


def _examples(evaluation: Artifact) -> dict[str, str]:
    """Returns path and digest of the evaluated dataset, for the next run."""
    place = evaluation.get_string_custom_property(EXAMPLES_PLACE)
    return {PLACE: place, DIGEST: read_lineage(evaluation.uri)["parents"]["examples"]} if place else {}


def _check_copy(folder: Path, digest: str) -> None:
    # TFX names the folder by the second, and skips the copy if the folder exists, with any content.
    if model_digest(folder) != digest:
        raise CheckFailed(f"{folder}: another model was pushed there in the same second. Run again.")


def _push_folder(exec_properties: dict[str, Any]) -> str:
    destination = pusher_pb2.PushDestination()
    proto_utils.json_to_proto(exec_properties[PUSH_DESTINATION_KEY], destination)
    return str(destination.filesystem.base_directory)
