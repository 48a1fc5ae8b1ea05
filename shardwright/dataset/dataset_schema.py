"""The schema of a dataset: `schemas/base_<task>.pbtxt` plus the classes of a configuration.

The rendered file is next to the configuration. Users commit and curate it (narrower domains, thresholds for drift), but
it must match the configuration: same features, same types, same classes. `infer_schema` narrows the domains to the
values of a dataset, and `schema_difference` compares two schemas.

Format: text form of `tensorflow.metadata.v0.Schema` (TensorFlow Metadata).
"""

from __future__ import annotations

import difflib
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import Message
from tensorflow_metadata.proto.v0 import schema_pb2

from shardwright.dataset.feature_presets import COMMON_FEATURES, ONE_HOT
from shardwright.dataset.manifest import MASK_PREFIX, MULTI, NONE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.running.progress import SILENT, Progress
from shardwright.storage.checksum import ALGORITHMS, BLAKE3, image_feature, stored_algorithm
from shardwright.text.escaping import escape
from shardwright.tfrecords.lazy_example import LazyExample

_OF_PIXELS = ("image/hash/", "image/quality/")
TRAINING, SERVING = "TRAINING", "SERVING"
# The features that an image has without annotations.
_SERVED = (
    "image/encoded",
    "image/format",
    "image/height",
    "image/width",
    "image/channels",
    "image/orientation",
)
# The maxima of measures that can exceed 1: four neighbors less four times a pixel; colors at both ends of both axes.
_MOST = {"contrast": 0.5, "sharpness": 4, "colorfulness": 2}
# The ingest refuses larger images.
_MOST_PIXELS = 2**29
FEATURE_TYPES = {"bytes": schema_pb2.BYTES, "int64": schema_pb2.INT, "float32": schema_pb2.FLOAT}
# A domain of texts is a list of so many at most; a feature with more of them is a name, not a category.
_MOST_VALUES = 20
_IDENTITY = ("image/key", "image/filename", *map(image_feature, ALGORITHMS))
_HASHES = "image/hash/"
_FREE = ("image/encoded", "image/class/text")
_RUNS = "/rle"
# With so few values, all distinct, a column may still be one of categories.
_FEWEST, _NEARLY_ALL = 10, 0.9


def schema_file_for(config_file: str | os.PathLike[str]) -> Path:
    """Returns the path of the schema of a configuration file: `<config>.schema.pbtxt` next to it."""
    file = Path(config_file)
    return file.with_name(f"{file.stem}.schema.pbtxt")


def render_schema(task: str, classes: Sequence[str], labels: str, features: Mapping[str, str]) -> str:
    """Renders the schema of a dataset.

    Args:
        task: `segmentation` or `classification`.
        classes: class names in the order of their labels.
        labels: the annotations of an image, as `Manifest.labels` has them.
        features: name -> kind (`bytes`, `int64`, `float32`) of all features that examples may have.

    Returns:
        Text proto, the same for the same arguments on every machine.
    """
    file = f"base_{task}.pbtxt"
    schema = parse_schema(resources.files("shardwright.schemas").joinpath(file).read_text(encoding="utf-8"), file)
    known = {feature.name: feature for feature in schema.feature}
    label = known["image/class/label"]
    label.int_domain.min = 0
    label.int_domain.max = max(0, len(classes) - 1)
    label.int_domain.is_categorical = True
    known["image/class/text"].string_domain.value.extend(classes)
    if labels in (MULTI, NONE):
        for name in ("image/class/label", "image/class/text"):
            known[name].ClearField("presence")
            known[name].ClearField("shape")
            known[name].value_count.min = 0
    # The base has the feature of the default algorithm.
    known[image_feature(BLAKE3)].name = image_feature(stored_algorithm(features, {}))
    known = {feature.name: feature for feature in schema.feature}
    for name, kind in features.items():
        if name not in known:
            _add(schema, name, kind)
    # An image lacks the annotations when a model is asked about it.
    del schema.default_environment[:]
    schema.default_environment.extend([TRAINING, SERVING])
    for feature in schema.feature:
        if not feature.name.startswith(_OF_PIXELS) and feature.name not in _SERVED:
            feature.not_in_environment.append(SERVING)
    header = f"# Rendered by `shardwright schema render` for {task}: {', '.join(classes)}.\n"
    header += "# Commit it; narrow domains and add thresholds as you like. It must go on fitting the configuration.\n"
    return _text(header, schema)


def _text(header: str, schema: schema_pb2.Schema) -> str:
    """Returns the text proto; characters that a terminal must not get are escaped as text protos have it."""
    text = header + text_format.MessageToString(schema, as_utf8=True)
    return escape(text, lines=True, escaped=lambda c: "".join(f"\\{byte:03o}" for byte in c.encode("utf-8")))


def _add(schema: schema_pb2.Schema, name: str, kind: str) -> None:
    feature = schema.feature.add(name=name, type=FEATURE_TYPES[kind])
    if name.startswith(MASK_PREFIX) and name.endswith("/rle"):
        # Runs are pairs: start and length, from 0, column by column.
        feature.value_count.min = 0
        feature.int_domain.min = 0
    elif name.startswith(MASK_PREFIX) and name.endswith("/area"):
        feature.presence.min_fraction = 1
        feature.presence.min_count = 1
        feature.shape.dim.add(size=1)
        feature.int_domain.min = 0
        feature.int_domain.max = _MOST_PIXELS
    elif name.startswith(_OF_PIXELS):
        feature.presence.min_fraction = 1
        feature.presence.min_count = 1
        feature.shape.dim.add(size=1)
        if kind == "float32":
            feature.float_domain.min = 0
            feature.float_domain.max = _MOST.get(name.rpartition("/")[2], 1)
    else:
        # A further column of a table: it may be missing, and it may be a list.
        feature.value_count.min = 0


def parse_schema(text: str, where: str) -> schema_pb2.Schema:
    """Parses a text proto.

    Raises:
        UsageError: it is not a schema; the message has `where` and the line.
    """
    try:
        return text_format.Parse(text, schema_pb2.Schema())
    except text_format.ParseError as error:
        problem = str(error).rstrip(".")
        raise UsageError(
            f"{where}: not a schema: {problem}. Fix it, or delete it and run `shardwright schema render`."
        ) from None


def check_schema(text: str, rendered: str, where: str) -> None:
    """Checks that a curated schema still matches the rendered schema of the dataset.

    Curation may change everything but the names and types of the features and the list of classes.

    Raises:
        UsageError: it does not match; the message shows the difference line by line.
    """
    found = _essence(parse_schema(text, where))
    wanted = _essence(parse_schema(rendered, "rendered schema"))
    if found != wanted:
        lines = difflib.unified_diff(found, wanted, where, "what the configuration needs", lineterm="", n=0)
        differences = "\n".join(f"  {line}" for line in lines if not line.startswith("@@"))
        raise UsageError(
            f"{where}: does not match the configuration:\n{differences}\n"
            "Change the file, or delete it and run `shardwright schema render`."
        )


def _essence(schema: schema_pb2.Schema) -> list[str]:
    """Returns the lines that a curated file must not change: name and type of each feature, and the classes."""
    named = {domain.name: list(domain.value) for domain in schema.string_domain}
    lines = []
    for feature in schema.feature:
        lines.append(f"feature {feature.name}: {schema_pb2.FeatureType.Name(feature.type)}")
        if feature.name == "image/class/text":
            values = named.get(feature.domain, []) if feature.domain else list(feature.string_domain.value)
            lines.extend(f"class {i}: {value}" for i, value in enumerate(values))
    return sorted(lines)


def identity_features(features: Iterable[str], names: Mapping[str, str]) -> frozenset[str]:
    """Returns the features that tell images from each other: the next images have others, so no value is a category.

    Args:
        features: stored names.
        names: our name -> stored name, of those that differ; see `Manifest.names`.
    """
    ours = {stored: name for name, stored in names.items()}
    return frozenset(name for name in features if _identifies(ours.get(name, name)))


def class_features(features: Iterable[str], names: Mapping[str, str]) -> frozenset[str]:
    """Returns the features with the classes of images, also those of masks; see `identity_features`."""
    ours = {stored: name for name, stored in names.items()} | {ONE_HOT: "image/class/one_hot"}
    return frozenset(name for name in features if ours.get(name, name).startswith(("image/class/", MASK_PREFIX)))


def nearly_distinct(values: int, distinct: int) -> bool:
    """Returns whether a column of texts has names and not categories, by its values and how many are distinct."""
    return distinct >= _FEWEST and distinct >= _NEARLY_ALL * values


def _identifies(name: str) -> bool:
    return name in _IDENTITY or name.startswith(_HASHES)


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


def infer_schema(dataset: ImageDataset, *, margin: float = 0.1, shown: Progress = SILENT) -> str:
    """Returns the schema of a dataset with domains as narrow as its values, and some room beyond them.

    Args:
        dataset: read once.
        margin: how far beyond the values seen a measured value may go, as a part of their range. Sizes, channels and
            other whole numbers that people choose get none.
        shown: counts the records.

    Returns:
        Text proto.
    """
    manifest = dataset.manifest
    names = {
        name: kind
        for name, kind in manifest.features.items()
        if name not in _FREE and not name.endswith(_RUNS) and not _identifies(name)
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
    return _text("".join(comments), schema)


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
    low = max(low, known.min) if known.HasField("min") else low
    high = min(high, known.max) if known.HasField("max") else high
    # A bound is rounded for its reader, unless that would exclude a value.
    feature.float_domain.min = rounded if (rounded := round(low, 6)) <= seen.least else low
    feature.float_domain.max = rounded if (rounded := round(high, 6)) >= seen.most else high


def schema_difference(one: str, other: str, name_one: str, name_other: str) -> list[str]:
    """Compares two schemas, feature by feature, in the order of names.

    Args:
        one: text of the one.
        other: text of the other.
        name_one: its name in the output.
        name_other: likewise.

    Returns:
        Lines of a unified difference; none if both are equal.

    Raises:
        UsageError: one is not a schema.
    """
    before, after = _lines(parse_schema(one, name_one)), _lines(parse_schema(other, name_other))
    return list(difflib.unified_diff(before, after, name_one, name_other, lineterm="", n=0))


def _lines(schema: schema_pb2.Schema) -> list[str]:
    """Returns a line for every value that a schema sets, with the way to it."""
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
