"""JSON Schema of the configuration, derived from the options: editors complete and check the YAML with it.

Conditions on several keys are checked by `shardwright validate` only. `shardwright.schema.json` in this folder is the
text of `schema_text`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, Union, get_args, get_origin

from shardwright.config.config import Config
from shardwright.config.options import Option, Pattern, default_of, options_of
from shardwright.config.parse_values import NUMBER, keys_of, plain_value, section_of

SCHEMA_FILE = "shardwright.schema.json"
# The comment that names the schema to editors with YAML support, as the first line of a configuration next to it.
SCHEMA_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


@functools.cache
def config_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a configuration file, draft 2020-12; all callers get the same object."""
    schema = _section(Config)
    schema["required"] = ["input"]
    title = {"$schema": _DRAFT, "title": "Configuration of Shardwright"}
    return {**title, **schema}


def schema_text() -> str:
    """Returns the schema as the text of its file."""
    return json.dumps(config_schema(), indent=1, ensure_ascii=False) + "\n"


def leaves(section: type[Any] = Config, path: str = "") -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yields every key that is not a section: its path, its schema and its default (`MISSING` if it is required).

    `*` in a path stands for any name or number.
    """
    for of, hint, option in _fields(section):
        here = f"{path}.{of.name}" if path else of.name
        inner = _inner_section(hint)
        if inner is None:
            yield here, _option(of, hint, option), default_of(of)
        else:
            yield from leaves(inner, here + _marks(hint))


def _fields(section: type[Any]) -> Iterator[tuple[dataclasses.Field[Any], Any, Option]]:
    """Yields the fields that are keys of the file, with their types and options."""
    hints, options = keys_of(section), options_of(section)
    yield from ((of, hints[of.name], options[of.name]) for of in dataclasses.fields(section) if of.name in hints)


def _option(of: dataclasses.Field[Any], hint: Any, option: Option) -> dict[str, Any]:
    return dict(of.metadata["schema"]) if "schema" in of.metadata else _value(hint, option)


def _inner_section(hint: Any) -> type[Any] | None:
    section = section_of(hint)
    for arg in () if section else get_args(hint):
        section = section or _inner_section(arg)
    return section


def _marks(hint: Any) -> str:
    """Returns `.*` for each mapping or list between a key and its section."""
    if section_of(hint) is not None:
        return ""
    return ".*" + "".join(_marks(arg) for arg in get_args(hint) if _inner_section(arg))


def _section(section: type[Any]) -> dict[str, Any]:
    properties, required = {}, []
    for of, hint, option in _fields(section):
        described: dict[str, Any] = {"description": option.help}
        default = default_of(of)
        if default is dataclasses.MISSING:
            required.append(of.name)
        elif not dataclasses.is_dataclass(default) and default is not None:
            described["default"] = plain_value(default)
        properties[of.name] = {**described, **_option(of, hint, option)}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    # A section without a value, such as one whose keys are all comments, has its defaults.
    return {**schema, "required": required} if required else {**schema, "type": ["object", "null"]}


def _value(hint: Any, option: Option) -> dict[str, Any]:
    if get_origin(hint) in (Union, types.UnionType):
        options = [_value(inner, option) for inner in get_args(hint) if inner is not type(None)]
        if type(None) in get_args(hint):
            # YAML reads `off` as false.
            options += [{"type": "null"}, *([] if bool in get_args(hint) else [{"const": False}])]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _section(hint)
    args = get_args(hint)
    if get_origin(hint) is tuple:
        items = {"type": "array", "items": _value(args[0], option)}
        if args[-1] is not Ellipsis:
            return {**items, "minItems": len(args), "maxItems": len(args)}
        return {"anyOf": [items, items["items"]]} if args[0] is str else items
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        return {"type": "object", "additionalProperties": _value(args[1], option)}
    if option.choices and (hint is str or not option.has_range):
        return {"enum": list(option.choices)}
    if hint is str:
        pattern = option.form.regex.pattern if isinstance(option.form, Pattern) else ""
        # Names of groups are written differently in JavaScript, and nothing is taken out of them.
        plain = re.sub(r"\(\?P<\w+>", "(", pattern)
        return {"type": "string", **({"pattern": f"^({plain})$"} if pattern else {})}
    if hint is bool:
        return {"type": "boolean"}
    limits = {"minimum": option.least, "maximum": option.most}
    number = {
        "type": "integer" if hint is int else "number",
        **{name: limit for name, limit in limits.items() if limit is not None},
    }
    return {"anyOf": [number, {"type": "string", "pattern": NUMBER if hint is float else option.unit.regex}]}
