"""The executor of Report: writes the report, and the verdict for the gate."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from shardwright.components.data_gate.anomalies import find_anomalous_examples, records_of, split_anomalies
from shardwright.components.runtime.artifacts import Artifacts, flushed_outputs
from shardwright.components.runtime.joined_examples import open_all
from shardwright.config.evaluation import DriftConfig, SkewConfig
from shardwright.dataset.dataset_schema import parse_schema
from shardwright.dataset.reader import ImageDataset
from shardwright.drift.chapter import record_tiles
from shardwright.drift.monitor import REFERENCE_VARIABLE, DriftCheck, check_drift, check_splits
from shardwright.lineage.record import write_lineage
from shardwright.report.anomaly_chapter import Anomaly, anomaly_chapter, leaks, write_verdict
from shardwright.report.contact_sheets import CHAPTER_BUDGET, Sheets
from shardwright.report.page import REPORT_FILE, collect_page, render, write_page
from shardwright.storage.fingerprint import canonical_json, fingerprint


class Executor(base_executor.BaseExecutor):
    """Reads the examples once, the anomalies, and the reference if there is one."""

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Writes the report and its pages."""
        report = Path(artifact_utils.get_single_uri(output_dict["report"]))
        dataset = open_all(input_dict["examples"], self._get_tmp_dir)
        seen = collect_page(dataset)
        sheets = Sheets(seen.collected, CHAPTER_BUDGET)
        anomalies = [*_anomalies(input_dict, dataset), *leaks(seen.duplicates, sheets)]
        chapters = [anomaly_chapter(anomalies, dataset, sheets)]
        parents = {"dataset": dataset.manifest.digest}
        options = json.loads(exec_properties["drift"] or "{}")
        compared = _compared(options, dataset, parents)
        for number, watched in enumerate(compared):
            anomalies += watched.anomalies()
            chapters.append(watched.chapter(record_tiles(sheets), number))
        write_verdict(report, anomalies)
        write_page(report / REPORT_FILE, render(seen, [chapter for chapter in chapters if chapter is not None]))
        # The path of the reference does not change the report.
        options.get("drift", {}).pop("location", None)
        recipe = {"drift": canonical_json(options) if options else ""}
        write_lineage(report, kind="report", fingerprint=fingerprint([parents, recipe]), parents=parents, recipe=recipe)


def _compared(options: dict[str, Any], dataset: ImageDataset, parents: dict[str, str]) -> list[DriftCheck]:
    """Runs the checks of `gate.drift` and `gate.skew`; adds the reference to the parents."""
    found = []
    if "drift" in options:
        drift = _tuples(options["drift"])
        parents["reference"] = drift.pop("digest")
        place = drift.pop("location", "") or os.environ.get(REFERENCE_VARIABLE, "")
        found.append(check_drift(dataset, DriftConfig(place, **drift), parents["reference"]))
    if "skew" in options:
        found += check_splits(dataset, SkewConfig(**_tuples(options["skew"])))
    return found


def _tuples(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, "ignore": tuple(options["ignore"])}


def _anomalies(input_dict: Artifacts, dataset: ImageDataset) -> list[Anomaly]:
    artifact = artifact_utils.get_single_instance(input_dict["anomalies"])
    schema_uri = artifact_utils.get_single_uri(input_dict["schema"])
    schema = parse_schema(Path(schema_uri, "schema.pbtxt").read_text(encoding="utf-8"), "schema.pbtxt")
    anomalies = []
    for split in artifact_utils.decode_split_names(artifact.split_names):
        records = partial(records_of, dataset.root, split)
        found = split_anomalies(artifact.uri, split, dataset.manifest.names, records).rows
        if found:
            found = find_anomalous_examples(found, schema, records())
        anomalies += [
            Anomaly(row.kind, f"{row.feature or 'whole split'} in {split}", row.what, row.keys) for row in found
        ]
    return anomalies
