"""TFDV's anomalies as readable rows, with the examples that cause them.

TFDV reports features only; the keys of examples lead to the images.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

from shardwright.components.runtime.open_examples import payloads_of
from shardwright.dataset.dataset_schema import class_features, identity_features, nearly_distinct
from shardwright.running.progress import counted
from shardwright.storage import list_names
from shardwright.tfrecords.records import decode_example

ANOMALY_KINDS = tuple(anomalies_pb2.AnomalyInfo.Type.keys())
# A text is not among the allowed ones.
_SHOWN = 3
_OUT_OF_DOMAIN = "ENUM_TYPE_UNEXPECTED_STRING_VALUES"


@dataclass(frozen=True)
class Anomaly:
    """One reason for which one feature of one split is odd.

    Attributes:
        split: name of the split.
        feature: name of the feature, empty for the data set as a whole.
        kind: name of the `AnomalyInfo.Type`.
        what: TFDV's description.
        examples: number of affected examples, `None` if unknown.
        keys: keys of the first affected examples.
    """

    split: str
    feature: str
    kind: str
    what: str
    examples: int | None = None
    keys: tuple[str, ...] = ()


class SplitAnomalies(NamedTuple):
    """The anomalies of a split.

    Attributes:
        rows: those that need a decision.
        of_names: those that are only that images have other names than the schema lists. Every next month has them.
    """

    rows: list[Anomaly]
    of_names: list[Anomaly]


def split_anomalies(
    folder: str, split: str, names: Mapping[str, str], records: Callable[[], Iterable[bytes]]
) -> SplitAnomalies:
    """Reads what ExampleValidator found in a split.

    Args:
        folder: of the artifact.
        split: name of the split.
        names: our name of a feature -> stored name, see `Manifest.names`.
        records: returns the split's serialized `tf.train.Example`s.
    """
    found = read_anomalies(Path(folder, f"Split-{split}", "SchemaDiff.pb").read_bytes(), split)
    listed = names_of_images(found, names, records)
    of_names = [row for row in found if row.kind == _OUT_OF_DOMAIN and row.feature in listed]
    return SplitAnomalies([row for row in found if row not in of_names], of_names)


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
    """Formats anomalies as text; each block has split, feature, kind, count and keys."""
    lines = []
    for row in rows:
        where = f"{row.feature or '(whole split)'} in {row.split}"
        count = "" if row.examples is None else f", {counted(row.examples, 'example')}"
        lines.append(f"  {where}: {row.kind}{count}")
        lines.append(f"    {row.what}")
        if row.keys:
            more = ", …" if row.examples is not None and row.examples > len(row.keys) else ""
            lines.append(f"    e.g. {', '.join(row.keys)}{more}")
    return "\n".join(lines)


def find_anomalous_examples(rows: list[Anomaly], schema: schema_pb2.Schema, records: Iterable[bytes]) -> list[Anomaly]:
    """Adds counts and keys to the anomalies of one split.

    Args:
        rows: the split's anomalies.
        schema: the schema of the validation.
        records: the split's serialized `tf.train.Example`s, read once.

    Returns:
        The rows in the same order. Kinds without a causing example (drift, whole split) are unchanged.
    """
    expectations = {feature.name: feature for feature in schema.feature}
    domains = {domain.name: frozenset(domain.value) for domain in schema.string_domain}
    counts = dict.fromkeys((row.feature for row in rows if row.feature), 0)
    keys: dict[str, list[str]] = {feature: [] for feature in counts}
    for record in records:
        example = decode_example(record)
        for feature in counts:
            if offends(example, feature, expectations.get(feature), domains):
                counts[feature] += 1
                if len(keys[feature]) < _SHOWN:
                    named = example.get("image/key")
                    key = named[0].decode("utf-8", "replace") if isinstance(named, list) and named else "(no key)"
                    keys[feature].append(key)
    return [
        dataclasses.replace(row, examples=counts[row.feature], keys=tuple(keys[row.feature]))
        if counts.get(row.feature)
        else row
        for row in rows
    ]


def names_of_images(rows: list[Anomaly], names: Mapping[str, str], records: Callable[[], Iterable[bytes]]) -> set[str]:
    """Returns the features whose values are names of images, which the schema lists as allowed values.

    Args:
        rows: the anomalies of one split.
        names: our name of a feature -> stored name, see `Manifest.names`.
        records: returns the split's serialized `tf.train.Example`s.
    """
    unexpected = {row.feature for row in rows if row.kind == _OUT_OF_DOMAIN}
    found = set(identity_features(unexpected, names))
    others = unexpected - found - class_features(unexpected, names)
    values: dict[str, list[bytes]] = {feature: [] for feature in others}
    for record in records() if others else ():
        example = decode_example(record)
        for feature, seen in values.items():
            texts = example.get(feature)
            seen.extend(texts if isinstance(texts, list) else ())
    return found | {name for name, seen in values.items() if nearly_distinct(len(seen), len(set(seen)))}


def records_of(examples: str, split: str) -> Iterator[bytes]:
    """Yields the records of a split of examples, file by file; they may be compressed, and on a bucket.

    Raises:
        DatasetError: a record is damaged.
    """
    folder = f"{examples}/Split-{split}"
    for name in list_names(folder):
        yield from payloads_of(f"{folder}/{name}")


def offends(
    example: Mapping[str, Any],
    name: str,
    expected: schema_pb2.Feature | None,
    domains: Mapping[str, frozenset[str]],
) -> bool:
    """Returns whether one example alone violates the schema of a feature.

    Args:
        example: decoded example: lists of bytes, or arrays of int64 or float32.
        name: the feature.
        expected: its entry in the schema; `None` if it must not be present.
        domains: the schema's named string domains.
    """
    values = example.get(name)
    if expected is None:
        return values is not None
    if values is None:
        return expected.presence.min_fraction >= 1
    number = (
        schema_pb2.INT if not isinstance(values, list) and np.issubdtype(values.dtype, np.integer) else schema_pb2.FLOAT
    )
    if expected.type != (schema_pb2.BYTES if isinstance(values, list) else number):
        return True
    return _count_offends(len(values), expected) or _domain_offends(values, expected, domains)


def _count_offends(count: int, expected: schema_pb2.Feature) -> bool:
    if expected.HasField("shape"):
        return count != int(np.prod([dim.size for dim in expected.shape.dim], dtype=np.int64))
    if expected.HasField("value_count"):
        return count < expected.value_count.min or 0 < expected.value_count.max < count
    return False


def _domain_offends(values: Any, expected: schema_pb2.Feature, domains: Mapping[str, frozenset[str]]) -> bool:
    if isinstance(values, list):
        named = domains.get(expected.domain, frozenset())
        allowed = named or frozenset(expected.string_domain.value)
        return bool(allowed) and any(value.decode("utf-8", "replace") not in allowed for value in values)
    if len(values) == 0:
        return False
    if np.issubdtype(values.dtype, np.floating) and bool(np.isnan(values).any()):
        return True
    domain = expected.int_domain if expected.HasField("int_domain") else expected.float_domain
    below = domain.HasField("min") and bool((values < domain.min).any())
    above = domain.HasField("max") and bool((values > domain.max).any())
    return below or above
