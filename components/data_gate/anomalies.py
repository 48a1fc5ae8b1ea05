"""From TFDV's anomaly protos to rows a person can read."""

from __future__ import annotations

from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import anomalies_pb2

ANOMALY_KINDS = tuple(anomalies_pb2.AnomalyInfo.Type.keys())


@dataclass(frozen=True)
class Anomaly:
    """One reason for which one feature of one split is odd.

    Attributes:
        split: name of the split.
        feature: name of the feature, empty for the data set as a whole.
        kind: name of the `AnomalyInfo.Type`.
        what: TFDV's description.
        examples: how many examples are concerned, `None` where that cannot be told.
        keys: keys of the first of them.
    """

    split: str
    feature: str
    kind: str
    what: str
    examples: int | None = None
    keys: tuple[str, ...] = ()


def read_anomalies(serialized: bytes, split: str) -> list[Anomaly]:
    """Lists the anomalies of one split's `SchemaDiff.pb`, sorted by feature and kind."""
    proto = anomalies_pb2.Anomalies()
    proto.ParseFromString(serialized)
    found = []
    for feature, info in proto.anomaly_info.items():
        found.extend(_reasons(info, split, feature))
    if proto.HasField("dataset_anomaly_info"):
        found.extend(_reasons(proto.dataset_anomaly_info, split, ""))
    if proto.data_missing:
        found.append(Anomaly(split, "", "NO_DATA_IN_SPAN", "The split has no examples."))
    return sorted(found, key=lambda row: (row.feature, row.kind, row.what))


def _reasons(info: anomalies_pb2.AnomalyInfo, split: str, feature: str) -> list[Anomaly]:
    if not info.reason:
        return [Anomaly(split, feature, "UNKNOWN_TYPE", info.description or info.short_description)]
    name_of = anomalies_pb2.AnomalyInfo.Type.Name
    return [
        Anomaly(split, feature, name_of(reason.type), reason.description or reason.short_description)
        for reason in info.reason
    ]


def table(rows: list[Anomaly]) -> str:
    """The anomalies as lines of text, one block a row, each naming split, feature, kind, count and keys."""
    lines = []
    for row in rows:
        where = f"{row.feature or '(whole split)'} in {row.split}"
        count = "" if row.examples is None else f", {row.examples} example{'' if row.examples == 1 else 's'}"
        lines.append(f"  {where}: {row.kind}{count}")
        lines.append(f"    {row.what}")
        if row.keys:
            more = ", …" if row.examples is not None and row.examples > len(row.keys) else ""
            lines.append(f"    e.g. {', '.join(row.keys)}{more}")
    return "\n".join(lines)
