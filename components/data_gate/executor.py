"""The executor of DataGate: reads ExampleValidator's anomalies, and stops the run or records its decision."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from shardwright.checksum import checksum_file
from shardwright.components.data_gate.anomalies import (
    Anomaly,
    find_anomalous_examples,
    read_anomalies,
    records_of,
    table,
)
from shardwright.components.runtime.artifacts import flushed_outputs
from shardwright.components.runtime.mounts import place_of
from shardwright.dataset.schema import parse_schema
from shardwright.errors import CheckFailed
from shardwright.fingerprint import fingerprint
from shardwright.lineage.record import write_lineage
from shardwright.report.anomalies import KINDS, read_verdict
from shardwright.report.page import REPORT_FILE

DECISION_FILE = "decision.json"


class Executor(base_executor.BaseExecutor):
    """Raises `CheckFailed` with a readable table unless every anomaly is of an allowed kind."""

    @flushed_outputs
    def Do(
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """See the base class.

        Raises:
            CheckFailed: there are anomalies of a kind that is not allowed.
        """
        anomalies = artifact_utils.get_single_instance(input_dict["anomalies"])
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        schema_file = Path(artifact_utils.get_single_uri(input_dict["schema"]), "schema.pbtxt")
        allow = frozenset(json.loads(exec_properties["allow"]))

        schema = parse_schema(schema_file.read_text(encoding="utf-8"), schema_file.name)
        stopping: list[Anomaly] = []
        allowed: list[Anomaly] = []
        splits = artifact_utils.decode_split_names(anomalies.split_names)
        for split in splits:
            found = read_anomalies(Path(anomalies.uri, f"Split-{split}", "SchemaDiff.pb").read_bytes(), split)
            allowed.extend(row for row in found if row.kind in allow)
            refused = [row for row in found if row.kind not in allow]
            if refused:
                stopping.extend(find_anomalous_examples(refused, schema, records_of(examples.uri, split)))
        report, rows = _report(input_dict)
        for anomaly in rows:
            (allowed if anomaly.kind in allow else stopping).append(anomaly)
        if stopping:
            kinds = ", ".join(sorted({row.kind for row in stopping}))
            count = f"{len(stopping)} anomal{'y' if len(stopping) == 1 else 'ies'}"
            raise CheckFailed(
                f"The data gate is shut: {count}.\n"
                f"{table(stopping)}\n"
                f"Fix the data or the schema file, or allow the kind with gate.allow_anomalies: [{kinds}]."
                f"{report}"
            )
        decision = artifact_utils.get_single_uri(output_dict["decision"])
        row = {
            "splits": sorted(splits),
            "anomalies": len(allowed),
            "allowed": [dataclasses.asdict(anomaly) for anomaly in allowed],
        }
        Path(decision, DECISION_FILE).write_text(json.dumps(row, sort_keys=True, indent=1) + "\n", encoding="utf-8")
        digest = examples.get_string_custom_property("dataset_digest")
        parents = {"dataset": digest, "schema": checksum_file(schema_file)}
        write_lineage(
            decision,
            kind="gate_decision",
            fingerprint=fingerprint([row, parents]),
            parents=parents,
            recipe={"allow": sorted(allow)},
        )


def _report(input_dict: dict[str, list[Any]]) -> tuple[str, list[Anomaly]]:
    """Returns a line with the report's path, and the anomalies that only the report has."""
    if not input_dict.get("report"):
        return "", []
    folder = Path(artifact_utils.get_single_uri(input_dict["report"]))
    rows = [
        Anomaly("all splits", t.where, t.kind, t.what, keys=t.keys) for t in read_verdict(folder) if t.kind in KINDS
    ]
    return f"\nSee it: {place_of(str((folder / REPORT_FILE).absolute()))}", rows
