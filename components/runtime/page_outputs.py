"""Outputs that the pages of Vertex AI and Kubeflow show: the report, the metrics, the confusion matrix.

TFX's artifacts have TFX's types, which neither page shows. A compiled pipeline declares further outputs of the types
that both do (`system.HTML`, `system.Metrics` and `system.ClassificationMetrics`; kfp, dsl/types/artifact_types.py).
TFX does not know them, so the container takes them out of the task's description and fills them afterwards.

Kubeflow adds an output that no document declares: `executor-logs`, a `system.Artifact`, which its launcher fills
(kubeflow/pipelines from 2.5 on, backend/src/v2/driver/driver.go, `provisionOutputs`). TFX would fail on its type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shardwright.components.evaluator.result_files import read_details, read_evaluation
from shardwright.report.page import REPORT_FILE
from shardwright.storage import buckets
from shardwright.storage.durable import copy_file
from shardwright.storage.paths import is_remote

HTML, METRICS, CLASSIFICATION_METRICS = "system.HTML", "system.Metrics", "system.ClassificationMetrics"
# Component -> key of a further output -> its type.
PAGE_OUTPUTS: Mapping[str, Mapping[str, str]] = {
    "Report": {"page": HTML},
    "Evaluator": {"metrics": METRICS, "confusion_matrix": CLASSIFICATION_METRICS},
}
SCHEMA_VERSION = "0.0.1"
# The outputs of TFX's components that the pages' outputs are made of.
_REPORT, _EVALUATION = "report", "evaluation"
_TYPES = {kind for outputs in PAGE_OUTPUTS.values() for kind in outputs.values()}
_SERVICE_TYPES = "system."


def take_page_outputs(invocation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Removes the outputs of the service's own types from an ExecutorInput, which TFX could not read.

    Returns:
        Those for pages, by key. The others are the service's to fill.
    """
    artifacts = invocation["outputs"].get("artifacts", {})
    taken = {key: artifacts.pop(key) for key in list(artifacts) if _type(artifacts[key]).startswith(_SERVICE_TYPES)}
    return {key: listed for key, listed in taken.items() if _type(listed) in _TYPES}


def fill_page_outputs(
    outputs: Mapping[str, dict[str, Any]], places: Mapping[str, str], folders: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Writes the outputs for pages, once the task is done.

    Args:
        outputs: as `take_page_outputs` returns them.
        places: key -> file or URL of each of them.
        folders: key -> folder on this machine of the component's own outputs.

    Returns:
        The outputs with their metadata, for the ExecutorOutput.
    """
    filled = {}
    for key, listed in outputs.items():
        artifact = dict(listed["artifacts"][0])
        kind = _type(listed)
        if kind == HTML:
            file, place = Path(folders[_REPORT], REPORT_FILE), places[key]
            if is_remote(place):
                buckets.upload(place, str(file))
            else:
                Path(place).parent.mkdir(parents=True, exist_ok=True)
                copy_file(file, place)
        elif kind == METRICS:
            figures = read_evaluation(folders[_EVALUATION]).figures
            artifact["metadata"] = {**figures.values, "measured": figures.measured.words()}
        else:
            details = read_details(folders[_EVALUATION])
            # As kfp's `ClassificationMetrics.log_confusion_matrix` writes it; nothing for masks.
            rows = [{"row": row} for row in details.get("confusion") or ()]
            names = [{"displayName": name} for name in details["classes"]] if rows else []
            artifact["metadata"] = {"confusionMatrix": {"annotationSpecs": names, "rows": rows}} if rows else {}
        filled[key] = {"artifacts": [artifact]}
    return filled


def _type(listed: Mapping[str, Any]) -> str:
    kind = listed["artifacts"][0].get("type", {})
    # Kubeflow's driver passes the type of an output as the document has it, Vertex AI maybe as YAML.
    schema = kind.get("instanceSchema", "")
    first = next(iter(schema.strip().splitlines()), "")
    of_schema = json.loads(schema).get("title", "") if first.startswith("{") else first.removeprefix("title:").strip()
    return str(kind.get("schemaTitle") or of_schema)
