"""The executor of InlineSchema: writes the schema to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from shardwright.components.runtime.artifacts import Artifacts, flushed_outputs
from shardwright.dataset.dataset_schema import parse_schema

SCHEMA_TEXT = "schema_text"
SCHEMA = "schema"
_FILE = "schema.pbtxt"


class Executor(base_executor.BaseExecutor):
    """Writes `schema.pbtxt`."""

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Writes the schema.

        Raises:
            UsageError: the text is not a schema.
        """
        del input_dict
        text = exec_properties[SCHEMA_TEXT]
        parse_schema(text, SCHEMA_TEXT)
        folder = Path(artifact_utils.get_single_uri(output_dict[SCHEMA]))
        folder.mkdir(parents=True, exist_ok=True)
        Path(folder, _FILE).write_text(text, encoding="utf-8")
