"""The schema of a dataset as code: `schemas/base_<task>.pbtxt` plus the classes of a configuration.

The rendered file lies beside the configuration, is committed and curated by the user (narrower domains, thresholds for
drift), and must go on fitting the configuration: same features, same types, same classes.

Format: text form of `tensorflow.metadata.v0.Schema` (TensorFlow Metadata).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from shardwright.errors import UsageError

_MASK_PREFIX = "image/segmentation/"


def schema_file_for(config_file: str | os.PathLike[str]) -> Path:
    """Where the schema of a configuration file lies: `<config>.schema.pbtxt` beside it."""
    file = Path(config_file)
    return file.with_name(f"{file.stem}.schema.pbtxt")


def render_schema(task: str, classes: Sequence[str]) -> str:
    """Renders the schema of a task and its classes.

    Args:
        task: `segmentation` or `classification`.
        classes: class names in the order of their labels.

    Returns:
        Text proto, the same for the same arguments on every machine.
    """
    schema = _base(task)
    features = {feature.name: feature for feature in schema.feature}
    label = features["image/class/label"]
    label.int_domain.min = 0
    label.int_domain.max = len(classes) - 1
    label.int_domain.is_categorical = True
    features["image/class/text"].string_domain.value.extend(classes)
    if task == "segmentation":
        for name in classes:
            # Runs are pairs: start and length, from 0, column by column.
            runs = schema.feature.add(name=f"{_MASK_PREFIX}{name}/rle", type=schema_pb2.INT)
            runs.value_count.min = 0
            runs.int_domain.min = 0
            area = schema.feature.add(name=f"{_MASK_PREFIX}{name}/area", type=schema_pb2.INT)
            area.presence.min_fraction = 1
            area.presence.min_count = 1
            area.shape.dim.add(size=1)
            area.int_domain.min = 0
    header = f"# Rendered by `shardwright schema render` for {task}: {', '.join(classes)}.\n"
    header += "# Commit it; narrow domains and add thresholds as you like. It must go on fitting the configuration.\n"
    return header + text_format.MessageToString(schema, as_utf8=True)


def parse_schema(text: str, where: str) -> schema_pb2.Schema:
    """Parses a text proto.

    Raises:
        UsageError: it is no schema; names `where` and the line.
    """
    try:
        return text_format.Parse(text, schema_pb2.Schema())
    except text_format.ParseError as error:
        raise UsageError(f"{where}: not a schema: {error}. Mend it, or delete it to have it rendered anew.") from None


def check_schema(text: str, task: str, classes: Sequence[str], where: str) -> None:
    """Checks that a curated schema still fits a task and its classes.

    Curation may change everything but the names and types of the features and the list of classes.

    Raises:
        UsageError: it does not fit; the message shows the difference line by line.
    """
    found = _essence(parse_schema(text, where))
    wanted = _essence(parse_schema(render_schema(task, classes), "rendered schema"))
    if found != wanted:
        lines = difflib.unified_diff(found, wanted, where, "what the configuration needs", lineterm="", n=0)
        shown = "\n".join(f"  {line}" for line in lines if not line.startswith("@@"))
        raise UsageError(
            f"{where}: does not fit the configuration:\n{shown}\n"
            "Change the file, or delete it to have it rendered anew (`shardwright schema render`)."
        )


def _base(task: str) -> schema_pb2.Schema:
    file = resources.files("shardwright_schemas").joinpath(f"base_{task}.pbtxt")
    return parse_schema(file.read_text(encoding="utf-8"), f"base_{task}.pbtxt")


def _essence(schema: schema_pb2.Schema) -> list[str]:
    """One line a feature (name and type), one a class: what a curated file must not change."""
    named = {domain.name: list(domain.value) for domain in schema.string_domain}
    lines = []
    for feature in schema.feature:
        lines.append(f"feature {feature.name}: {schema_pb2.FeatureType.Name(feature.type)}")
        if feature.name == "image/class/text":
            values = named.get(feature.domain, []) if feature.domain else list(feature.string_domain.value)
            lines.extend(f"class {i}: {value}" for i, value in enumerate(values))
    return sorted(lines)
