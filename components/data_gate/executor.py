"""The executor of DataGate: reads ExampleValidator's anomalies, and stops the run or records its decision."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from shardwright.components.data_gate.anomalies import (
    Anomaly,
    find_anomalous_examples,
    records_of,
    split_anomalies,
    table,
)
from shardwright.components.runtime.artifacts import flushed_outputs
from shardwright.components.runtime.joined_examples import newest_examples
from shardwright.components.runtime.mounts import place_of
from shardwright.components.runtime.open_examples import has_manifest
from shardwright.dataset.dataset_schema import class_features, parse_schema
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed
from shardwright.lineage.record import write_lineage
from shardwright.report.anomaly_chapter import KINDS, read_verdict
from shardwright.report.page import REPORT_FILE
from shardwright.running.progress import print_note
from shardwright.storage.checksum import checksum_file
from shardwright.storage.fingerprint import fingerprint

DECISION_FILE = "decision.json"
# What YAML reads in a list in brackets as it stands.
_PLAIN = re.compile(r"[\w/.:-]+")


class Executor(base_executor.BaseExecutor):
    """Raises `CheckFailed` with a readable table unless every anomaly is of an allowed kind."""

    @flushed_outputs
    def Do(
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """Decides.

        Raises:
            CheckFailed: there are anomalies of a kind that is not allowed.
        """
        anomalies = artifact_utils.get_single_instance(input_dict["anomalies"])
        examples = newest_examples(input_dict["examples"])
        schema_file = Path(artifact_utils.get_single_uri(input_dict["schema"]), "schema.pbtxt")
        allow = frozenset(json.loads(exec_properties["allow"]))

        schema = parse_schema(schema_file.read_text(encoding="utf-8"), schema_file.name)
        stopping: list[Anomaly] = []
        allowed: list[Anomaly] = []
        splits = artifact_utils.decode_split_names(anomalies.split_names)
        newest = examples[-1].uri
        names = ImageDataset.open(newest).manifest.names if has_manifest(newest) else {}
        listed: set[str] = set()
        for split in splits:
            records = partial(_records, examples, split)
            rows, of_names = split_anomalies(anomalies.uri, split, names, records)
            listed |= {row.feature for row in of_names}
            allowed += [*of_names, *(row for row in rows if _is_allowed(row, allow))]
            refused = [row for row in rows if not _is_allowed(row, allow)]
            if refused:
                stopping.extend(find_anomalous_examples(refused, schema, records()))
        if listed:
            print_note(
                "the schema lists the images that it was made of as the only allowed values of "
                f"{', '.join(sorted(listed))}. These are names, and the next images have others: remove the domains, "
                "or write the schema with `shardwright schema infer`"
            )
        report, rows = _report(input_dict)
        for anomaly in rows:
            (allowed if _is_allowed(anomaly, allow) else stopping).append(anomaly)
        if stopping:
            count = f"{len(stopping)} anomal{'y' if len(stopping) == 1 else 'ies'}"
            raise CheckFailed(f"The data gate is shut: {count}.\n{table(stopping)}\n{_way_on(stopping, names)}{report}")
        decision = artifact_utils.get_single_uri(output_dict["decision"])
        row = {
            "splits": sorted(splits),
            "anomalies": len(allowed),
            "allowed": [dataclasses.asdict(anomaly) for anomaly in allowed],
        }
        Path(decision, DECISION_FILE).write_text(json.dumps(row, sort_keys=True, indent=1) + "\n", encoding="utf-8")
        digests = [one.get_string_custom_property("dataset_digest") for one in examples]
        parents = {
            "dataset": digests[0] if len(digests) == 1 else fingerprint(digests),
            "schema": checksum_file(schema_file),
        }
        write_lineage(
            decision,
            kind="gate_decision",
            fingerprint=fingerprint([row, parents]),
            parents=parents,
            recipe={"allow": sorted(allow)},
        )


def _records(examples: Sequence[Any], split: str) -> Iterator[bytes]:
    for one in examples:
        if split in artifact_utils.decode_split_names(one.split_names):
            yield from records_of(one.uri, split)


def _is_allowed(row: Anomaly, allow: Collection[str]) -> bool:
    return row.kind in allow or f"{row.kind}:{row.feature}" in allow


def _way_on(stopping: Sequence[Anomaly], names: Mapping[str, str]) -> str:
    """Returns what to do: no check is switched off for the features with the classes, nor for others than these."""
    classes = class_features({row.feature for row in stopping}, names)
    entries = {
        row.kind if row.kind in KINDS or not row.feature else f"{row.kind}:{row.feature}"
        for row in stopping
        if row.feature not in classes
    }
    fix = "Fix the data or the schema file"
    if entries:
        shown = ", ".join(entry if _PLAIN.fullmatch(entry) else json.dumps(entry) for entry in sorted(entries))
        fix += f", or, if the change is right, allow it with gate.allow_anomalies: [{shown}]"
    if classes:
        fix += ". If the classes have changed on purpose, change them in the schema file"
    return f"{fix}."


def _report(input_dict: dict[str, list[Any]]) -> tuple[str, list[Anomaly]]:
    """Returns a line with the report's path, and the anomalies that only the report has."""
    if not input_dict.get("report"):
        return "", []
    folder = Path(artifact_utils.get_single_uri(input_dict["report"]))
    rows = [
        Anomaly("all splits", t.where, t.kind, t.what, keys=t.keys) for t in read_verdict(folder) if t.kind in KINDS
    ]
    return f"\nSee it: {place_of(str((folder / REPORT_FILE).absolute()))}", rows
