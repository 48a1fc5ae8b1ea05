"""The executor of an ImageTrainer with a user's function: TFX's own, then the lineage of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tfx.components.trainer import executor as trainer_executor
from tfx.types import artifact_utils
from tfx.types.standard_component_specs import EXAMPLES_KEY, MODEL_KEY
from tfx.utils import json_utils, path_utils

from shardwright.components.runtime.artifacts import flushed_outputs
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.fingerprint import fingerprint
from shardwright.lineage.record import LINEAGE_FILE, write_lineage


class Executor(trainer_executor.GenericExecutor):
    """Calls the user's `run_fn`, and writes `lineage.json` where the function wrote none."""

    @flushed_outputs
    def Do(
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """See the base class."""
        super().Do(input_dict, output_dict, exec_properties)
        model = Path(artifact_utils.get_single_uri(output_dict[MODEL_KEY]))
        serving = Path(path_utils.serving_model_dir(str(model)))
        recipe = json_utils.loads(exec_properties["custom_config"])
        parents = _parents(artifact_utils.get_single_uri(input_dict[EXAMPLES_KEY]))
        for folder in (serving, model):
            if not Path(folder, LINEAGE_FILE).exists():
                write_lineage(
                    folder,
                    kind="model",
                    fingerprint=fingerprint([recipe, parents]),
                    parents=parents,
                    recipe=recipe,
                    files=folder == serving,
                )


def _parents(examples: str) -> dict[str, str]:
    """Returns the digest of the dataset; nothing for examples without a manifest, which other components wrote."""
    try:
        return {"dataset": ImageDataset.open(examples).manifest.digest}
    except DatasetError:
        return {}
