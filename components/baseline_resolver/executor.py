"""The executor of BaselineResolver: copies the blessed model, so that the artifact never changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import Artifact, artifact_utils
from tfx.utils import path_utils

from shardwright.components.runtime.artifacts import Artifacts, flushed_outputs
from shardwright.errors import CheckFailed
from shardwright.lineage.blessing import BLESSING_FILE, model_digest, read_blessing
from shardwright.lineage.record import LINEAGE_FILE

PUSH_DIRECTORY = "push_directory"
BASELINE_DIGEST = "baseline_digest"
MODEL = "model"
HAS_BASELINE = "has_baseline"

# In place of a digest: the baseline model at run time.
AT_RUN = "at run"


def has_baseline(model: Artifact) -> bool:
    """Returns whether BaselineResolver found a model. Containers pass whole numbers as floating-point ones."""
    found = model.mlmd_artifact.custom_properties[HAS_BASELINE]
    return bool(found.int_value or found.double_value)


class Executor(base_executor.BaseExecutor):
    """Copies the blessed model into a Model artifact."""

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Looks up the blessing and copies its model.

        Args:
            input_dict: empty.
            output_dict: `model`.
            exec_properties: `push_directory`, and the `baseline_digest` at the start of the run or `AT_RUN`.

        Raises:
            CheckFailed: another model was blessed since, or the blessed model's files were changed.
        """
        del input_dict
        folder, expected = exec_properties[PUSH_DIRECTORY], exec_properties[BASELINE_DIGEST]
        output = artifact_utils.get_single_instance(output_dict[MODEL])
        blessing = read_blessing(folder)
        found = blessing.digest if blessing else ""
        if expected not in (found, AT_RUN):
            raise CheckFailed(
                f"{Path(folder, BLESSING_FILE)}: another model was blessed since this run began "
                f"({found[:12] or 'none'} instead of {expected[:12] or 'none'}). Run again."
            )
        output.set_int_custom_property(HAS_BASELINE, int(blessing is not None))
        if blessing is None:
            return
        source = Path(folder, blessing.model)
        if model_digest(source) != blessing.digest:
            raise CheckFailed(f"{source}: its files are not the ones that were blessed. Restore them, or push again.")
        target = Path(path_utils.serving_model_dir(output.uri))
        shutil.copytree(source, target)
        shutil.copyfile(target / LINEAGE_FILE, Path(output.uri, LINEAGE_FILE))
