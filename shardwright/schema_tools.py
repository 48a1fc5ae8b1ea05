"""Curating a schema: what a dataset's values say of its domains, and in what two schemas differ."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from google.protobuf import text_format
from google.protobuf.message import Message
from tensorflow_metadata.proto.v0 import schema_pb2

from shardwright.console import SILENT, Progress
from shardwright.dataset import Dataset
from shardwright.presets import COMMON_FEATURES
from shardwright.schema import parse_schema, render_schema
from shardwright.tfrecords.lazy_example import LazyExample

# A domain of texts is a list of so many at most; what has more is a name, not a kind.
_MOST_VALUES = 20
_FREE = ("image/key", "image/filename", "image/sha256", "image/encoded", "image/class/text")
_HASHES = "image/hash/"
_RUNS = "/rle"


@dataclass
class _Seen:
    """The values of one feature."""

    least: float = math.inf
    most: float = -math.inf
    texts: Counter[str] = field(default_factory=Counter)

    def add(self, example: LazyExample, name: str, kind: str) -> None:
        if kind == "bytes":
            for text in example.texts(name):
                if len(self.texts) <= _MOST_VALUES:
                    self.texts[text] += 1
            return
        values = example.get(name)
        if values is not None and not isinstance(values, list) and len(values):
            self.least = min(self.least, float(values.min()))
            self.most = max(self.most, float(values.max()))


def infer_schema(dataset: Dataset, *, margin: float = 0.1, shown: Progress = SILENT) -> str:
    """The schema of a dataset with domains as narrow as its values, and some room beyond them.

    Args:
        dataset: read once.
        margin: how far beyond the values seen a measured value may go, as a part of their range. Sizes, channels and
            other whole numbers that people choose get none.
        shown: told of every record.

    Returns:
        Text proto.
    """
    manifest = dataset.manifest
    names = {
        name: kind
        for name, kind in manifest.features.items()
        if name not in _FREE and not name.endswith(_RUNS) and not name.startswith(_HASHES)
    }
    seen = {name: _Seen() for name in names}
    for split in dataset.splits:
        for _, payload in dataset.records(split):
            example = LazyExample(payload)
            for name, kind in names.items():
                seen[name].add(example, name, kind)
            shown.advance()
    text = render_schema(manifest.task, manifest.classes, manifest.labels, manifest.features)
    comments = [line for line in text.splitlines(keepends=True) if line.startswith("#")]
    schema = parse_schema(text, "rendered schema")
    for feature in schema.feature:
        if feature.name in seen:
            _narrow(feature, seen[feature.name], margin)
    comments[0] = comments[0].replace("schema render", "schema infer")
    return "".join(comments) + text_format.MessageToString(schema, as_utf8=True)


def _narrow(feature: schema_pb2.Feature, seen: _Seen, margin: float) -> None:
    if feature.type == schema_pb2.BYTES:
        if 0 < len(seen.texts) <= _MOST_VALUES:
            del feature.string_domain.value[:]
            feature.string_domain.value.extend(sorted(seen.texts))
        return
    if feature.name == "image/class/label" or not math.isfinite(seen.least):
        return
    if feature.type == schema_pb2.INT:
        room = 0.0 if feature.name in COMMON_FEATURES else margin * (seen.most - seen.least)
        least, most = math.floor(seen.least - room), math.ceil(seen.most + room)
        domain = feature.int_domain
        feature.int_domain.min = max(least, domain.min) if domain.HasField("min") else least
        feature.int_domain.max = min(most, domain.max) if domain.HasField("max") else most
        return
    room = margin * (seen.most - seen.least)
    known = feature.float_domain
    low, high = seen.least - room, seen.most + room
    feature.float_domain.min = round(max(low, known.min) if known.HasField("min") else low, 6)
    feature.float_domain.max = round(min(high, known.max) if known.HasField("max") else high, 6)


def schema_difference(one: str, other: str, name_one: str, name_other: str) -> list[str]:
    """In what two schemas differ, a line for each: features by name, whatever their order.

    Args:
        one: text of the one.
        other: text of the other.
        name_one: what to call it.
        name_other: likewise.

    Returns:
        Lines of a unified difference; none where both say the same.

    Raises:
        UsageError: one is no schema.
    """
    before, after = _lines(parse_schema(one, name_one)), _lines(parse_schema(other, name_other))
    return list(difflib.unified_diff(before, after, name_one, name_other, lineterm="", n=0))


def _lines(schema: schema_pb2.Schema) -> list[str]:
    """A line for every value that a schema sets, with the way to it."""
    lines = []
    for feature in sorted(schema.feature, key=lambda feature: feature.name):
        lines += [f"{feature.name} {line}" for line in _flat(feature, "") if not line.startswith("name:")]
    rest = schema_pb2.Schema()
    rest.CopyFrom(schema)
    del rest.feature[:]
    return [*lines, *(f"schema {line}" for line in _flat(rest, ""))]


def _flat(message: Message, way: str) -> Iterator[str]:
    for descriptor, value in message.ListFields():
        here = f"{way}{descriptor.name}"
        for item in [value] if isinstance(value, (Message, str, bytes, int, float)) else value:
            if isinstance(item, Message):
                yield f"{here}: there"
                yield from _flat(item, f"{here}.")
            elif descriptor.enum_type is not None and isinstance(item, int):
                yield f"{here}: {descriptor.enum_type.values_by_number[item].name}"
            else:
                yield f"{here}: {item:g}" if isinstance(item, float) else f"{here}: {item!r}"
