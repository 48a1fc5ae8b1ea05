"""The executor of Predictor: one table of predictions, and a summary of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_beam_executor
from tfx.types import artifact_utils

from shardwright.components.predictor.predict_images import PredictOptions, on_beam, predict
from shardwright.components.runtime.artifacts import Artifacts, flushed_outputs
from shardwright.components.runtime.beam import staging_root
from shardwright.config.constructors import Unlabeled, config_of
from shardwright.config.input import InputConfig
from shardwright.errors import CheckFailed
from shardwright.ingest.identify import IngestSource
from shardwright.lineage.record import read_lineage, write_lineage
from shardwright.storage.durable import write_file
from shardwright.storage.fingerprint import fingerprint

FINGERPRINT, OPTIONS = "input_fingerprint", "options"
MODEL, PREDICTIONS = "model", "predictions"
TABLE, SUMMARY = "predictions.csv", "predictions.json"


class Executor(base_beam_executor.BaseBeamExecutor):
    """Predicts the images whose content the component has hashed, in parts on Beam's workers."""

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Writes the table.

        Raises:
            CheckFailed: the images have changed since the pipeline was built, or none could be predicted.
        """
        options, expected = json.loads(exec_properties[OPTIONS]), exec_properties[FINGERPRINT]
        images = options.pop("images")
        if fingerprint_of(images) != expected:
            raise CheckFailed(f"{images}: the images have changed since the pipeline was built. Build it again.")
        model = artifact_utils.get_single_uri(input_dict[MODEL])
        folder = Path(artifact_utils.get_single_uri(output_dict[PREDICTIONS]))
        done = predict(
            model,
            images,
            str(folder / TABLE),
            PredictOptions(**options),
            quiet=True,
            run_parts=on_beam(self._make_beam_pipeline, self._beam_pipeline_args),
            staging_root=staging_root(self._beam_pipeline_args, self._get_tmp_dir),
        )
        summary = {
            "images": done.images,
            "rows": done.rows,
            "dialect": done.dialect,
            "left_out": [failure._asdict() for failure in done.failures],
        }
        write_file(folder / SUMMARY, json.dumps(summary, sort_keys=True, indent=1, ensure_ascii=False) + "\n")
        parents = {"model": read_lineage(model)["fingerprint"], "images": expected}
        write_lineage(
            folder, kind="predictions", fingerprint=fingerprint([parents, options]), parents=parents, recipe=options
        )


def fingerprint_of(images: str) -> str:
    """Returns the fingerprint of the content of images."""
    config = config_of(InputConfig(images, Unlabeled()), task="classification")
    return str(IngestSource.of(config).fingerprint)
