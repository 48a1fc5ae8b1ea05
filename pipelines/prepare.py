"""What has to be known before the graph can be built: the input's place, classes and fingerprint, and the schema."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from shardwright.config import Config
from shardwright.errors import UsageError
from shardwright.ingest import InputLocation, ingest_recipe, input_fingerprint, locate, resolve_classes
from shardwright.schema import check_schema, render_schema, schema_file_for


@dataclass(frozen=True)
class PreparedInput:
    """The input of a run.

    Attributes:
        location: absolute paths of images and annotations.
        fingerprint: of their content.
        classes: class names in the order of their labels.
        recipe: ImageExampleGen's options as canonical JSON.
        schema_text: the curated, or freshly rendered, schema.
        notes: what was told from the data, to be shown.
    """

    location: InputLocation
    fingerprint: str
    classes: tuple[str, ...]
    recipe: str
    schema_text: str
    notes: tuple[str, ...]


def prepare_input(config: Config, config_file: Path) -> PreparedInput:
    """Lists and hashes the input and finds or renders the schema.

    Raises:
        ShardwrightError: something about the input or the schema is wrong.
    """
    location = locate(config)
    classes, notes = resolve_classes(config, location)
    schema_file = schema_file_for(config_file)
    if schema_file.exists():
        schema_text = schema_file.read_text(encoding="utf-8")
        check_schema(schema_text, config.task, classes, str(schema_file))
    else:
        schema_text = _write_schema(config, classes, schema_file)
        notes = (*notes, f"schema rendered to {schema_file}: commit it")
    fingerprint = input_fingerprint(config, location)
    return PreparedInput(location, fingerprint, classes, ingest_recipe(config, classes), schema_text, notes)


def render_schema_file(config: Config, config_file: Path, *, force: bool) -> Path:
    """Writes the schema of a configuration beside it.

    Raises:
        UsageError: there is one already and `force` was not asked for.
    """
    file = schema_file_for(config_file)
    classes, _ = resolve_classes(config, locate(config))
    if file.exists() and not force:
        check_schema(file.read_text(encoding="utf-8"), config.task, classes, str(file))
        raise UsageError(f"{file}: is there already and fits. Use --force to replace what may have been curated.")
    _write_schema(config, classes, file)
    return file


def _write_schema(config: Config, classes: tuple[str, ...], file: Path) -> str:
    text = render_schema(config.task, classes)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error}). Copy the configuration to a folder of yours.") from None
    return text
