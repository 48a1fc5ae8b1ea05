"""Sections of the configuration as recipes: plain values that are equal for equal results, and are read back.

A recipe is a cache key and is stored in manifests, so its bytes count. It contains the options that differ from their
default: a later version with more options, at their defaults, writes the same recipe. Metadata of a section's field
changes that:

| metadata | effect |
|---|---|
| `place=True` | a location, or another option without effect on the result: left out |
| `always=True` | written also at its default |
| `ordered=True` | a mapping whose order counts: written as pairs |
| `written_as="a.b"` | written under this path |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from shardwright.config.options import default_of
from shardwright.config.parse_values import parse_section, plain_value
from shardwright.errors import ConfigError

# Replaces a location that a section requires and a recipe leaves out.
NOWHERE = "."


def recipe_options(section: Any) -> dict[str, Any]:
    """Returns the options of a section that belong in a recipe, as plain values."""
    options: dict[str, Any] = {}
    for field in fields(section):
        value = getattr(section, field.name)
        if field.metadata.get("place") or (value == default_of(field) and not field.metadata.get("always")):
            continue
        *folders, name = _written_as(field).split(".")
        inner = options
        for folder in folders:
            inner = inner.setdefault(folder, {})
        inner[name] = (
            [list(pair) for pair in value.items()]
            if isinstance(value, Mapping) and field.metadata.get("ordered")
            else plain_value(value, recipe_options)
        )
    return options


def run_options(section: Any) -> dict[str, Any]:
    """Returns the options of a section without effect on the result that are not at their default, as plain values."""
    values = {field: getattr(section, field.name) for field in fields(section) if field.metadata.get("place")}
    return {
        field.name: plain_value(value, recipe_options) for field, value in values.items() if value != default_of(field)
    }


def read_section(cls: type[Any], options: Mapping[str, Any], path: str) -> Any:
    """Makes a section of the result of `recipe_options`; options that were left out have their defaults.

    Args:
        cls: the section's class.
        options: the options.
        path: YAML path of the section, for messages.

    Raises:
        ConfigError: an option is unknown or a location, or a value is not allowed.
    """
    left = dict(options)
    values: dict[str, Any] = {}
    for field in fields(cls):
        *folders, name = _written_as(field).split(".")
        if field.metadata.get("place"):
            if field.name in left:
                raise ConfigError(f"{path}.{name}", "a recipe has no such option", "Write the recipe again.")
            if default_of(field) is MISSING:
                values[field.name] = NOWHERE
        elif folders and folders[0] in left:
            values[field.name] = left.pop(folders[0])[name]
        elif not folders and name in left:
            value = left.pop(name)
            values[field.name] = dict(value) if field.metadata.get("ordered") and value is not None else value
    return parse_section(cls, {**left, **values}, path)


def _written_as(field: Field[Any]) -> str:
    return str(field.metadata.get("written_as", field.name))
