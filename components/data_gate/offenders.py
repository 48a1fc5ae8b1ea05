"""Which examples are behind an anomaly: TFDV tells of features only, a person wants to look at an image."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from tensorflow_metadata.proto.v0 import schema_pb2

from shardwright.components.data_gate.anomalies import Anomaly
from shardwright.storage import list_names
from shardwright.tfrecords.records import decode_example, read_records

_SHOWN = 3


def name_offenders(rows: list[Anomaly], schema: schema_pb2.Schema, records: Iterable[bytes]) -> list[Anomaly]:
    """Adds counts and keys to the anomalies of one split.

    Args:
        rows: the split's anomalies.
        schema: what they were validated against.
        records: the split's serialized `tf.train.Example`s, read once.

    Returns:
        The rows in the same order. Those of kinds no single example is to blame for (drift, whole split) stay as they
        are.
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
                    keys[feature].append(_key(example))
    return [
        dataclasses.replace(row, examples=counts[row.feature], keys=tuple(keys[row.feature]))
        if counts.get(row.feature)
        else row
        for row in rows
    ]


def records_of(examples: str, split: str) -> Iterator[bytes]:
    """The records of a split of examples, file by file; they may be on a bucket."""
    folder = f"{examples}/Split-{split}"
    for name in list_names(folder):
        for _, record in read_records(f"{folder}/{name}"):
            yield record


def offends(
    example: Mapping[str, Any],
    name: str,
    expected: schema_pb2.Feature | None,
    domains: Mapping[str, frozenset[str]],
) -> bool:
    """Whether one example alone breaks what the schema says of a feature.

    Args:
        example: decoded example: lists of bytes, or arrays of int64 or float32.
        name: the feature.
        expected: the schema's word on it; `None` if it has none, then its mere presence offends.
        domains: the schema's named string domains.
    """
    values = example.get(name)
    if expected is None:
        return values is not None
    if values is None:
        return expected.presence.min_fraction >= 1
    if not _type_fits(values, expected.type):
        return True
    return _count_offends(len(values), expected) or _domain_offends(values, expected, domains)


def _type_fits(values: Any, wanted: int) -> bool:
    if isinstance(values, list):
        return wanted == schema_pb2.BYTES
    return wanted == (schema_pb2.INT if np.issubdtype(values.dtype, np.integer) else schema_pb2.FLOAT)


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


def _key(example: Mapping[str, Any]) -> str:
    values = example.get("image/key")
    return values[0].decode("utf-8", "replace") if isinstance(values, list) and values else "(no key)"
