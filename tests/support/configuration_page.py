"""The reference page of the configuration's keys, written from the sections: `docs/reference/configuration.md`."""

import dataclasses
import json
import typing
from typing import Any

from shardwright.config import Config
from shardwright.config.json_schema import config_schema

_HEAD = """# Configuration

All keys of the YAML file. Only `input.images` is required. `shardwright init FOLDER` writes a file to start with,
`shardwright validate CONFIG` finds everything that is wrong with one, and `shardwright validate CONFIG --show` prints
all values.

Relative paths start from the folder that the command is called in. Sizes may have a unit (`150MB`, `1GiB`, `200MP`),
shares a percent sign (`1%`). Where a list of text is expected, a single value works too. `off` or `null` unsets an
option that has no default.

Editors with a YAML language server check and complete the file by its JSON Schema: `shardwright validate CONFIG
--editor` writes the schema next to the file and names it in the first line.

This page is generated from the code.
"""


def page() -> str:
    """Returns the page."""
    schema = config_schema()
    sections: list[tuple[str, dict[str, Any]]] = []
    top = {name: value for name, value in schema["properties"].items() if _object(value) is None}
    lines = [_HEAD, "## Top level", "", *_table(top)]
    for name, value in schema["properties"].items():
        if (inner := _object(value)) is not None:
            sections += _sections(name, inner)
    described = {section.PATH: section for section in _classes(Config)}
    for path, section in sections:
        lines += ["", f"## `{path}`", ""]
        kind = described.get(path.replace(".*", ""))
        if kind is not None:
            lines += [(kind.__doc__ or "").partition("\n")[0], ""]
        plain = {key: value for key, value in section["properties"].items() if _object(value) is None}
        inner_keys = [key for key in section["properties"] if key not in plain]
        lines += _table(plain) if plain else []
        if inner_keys:
            below = ", ".join(f"`{path}.{key}`" for key in inner_keys)
            lines += ["", f"Further sections: {below}."]
    return "\n".join(lines) + "\n"


def _object(value: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the section that a value is, or that it is optionally."""
    for option in [value, *value.get("anyOf", [])]:
        if "properties" in option:
            return dict(option)
    return None


def _sections(path: str, section: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found = [(path, section)]
    for key, value in section["properties"].items():
        if (inner := _object(value)) is not None:
            found += _sections(f"{path}.{key}", inner)
        elif (rows := _object(value.get("additionalProperties") or {})) is not None:
            found += _sections(f"{path}.{key}.*", rows)
    return found


def _classes(section: Any) -> list[Any]:
    found = []
    for hint in typing.get_type_hints(section).values():
        for option in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(option):
                found += [option, *_classes(option)]
    return [kind for kind in found if hasattr(kind, "PATH")]


def _table(properties: dict[str, dict[str, Any]]) -> list[str]:
    rows = ["| key | type | default | what it does |", "|---|---|---|---|"]
    for key, value in properties.items():
        default = f"`{_short(value['default'])}`" if "default" in value else ""
        rows.append(f"| `{key}` | {_type(value)} | {default} | {value.get('description', '')} |")
    return rows


def _short(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _type(value: dict[str, Any]) -> str:
    """Returns the types as Python writes them, with the choices or limits."""
    types = list(dict.fromkeys(_types(value)))
    # A number may also be written as a text, and a list of one text as the text.
    shown = [kind for kind in types if kind != "`str`" or len(types) == 1]
    listed = {kind.removeprefix("list of ") for kind in shown if kind.startswith("list of ")}
    return " or ".join(kind for kind in shown if kind not in listed)


def _types(value: dict[str, Any]) -> list[str]:
    if "anyOf" in value:
        # `off` is how people write that there is none.
        options = [one for one in value["anyOf"] if one.get("type") != "null" and "const" not in one]
        return [kind for one in options for kind in _types(one)]
    if "enum" in value:
        return [", ".join(f"`{choice}`" for choice in value["enum"])]
    kind = value.get("type")
    if isinstance(kind, list):
        return [inner for one in kind if one != "null" for inner in _types({"type": one})]
    if kind == "array":
        items = _type(value["items"]) if "items" in value else "`Any`"
        plain, _, limits = items.partition(" ")
        if "enum" in value.get("items", {}):
            return [f"list of {items}"]
        return [f"`list[{plain.strip('`')}]` {limits}".strip()]
    if kind == "object":
        inner = value.get("additionalProperties")
        if not isinstance(inner, dict) or "properties" in inner:
            return ["`dict`"]
        values = "str" if "enum" in inner or "enum" in str(inner.get("anyOf")) else _type(inner).replace("`", "")
        return [f"`dict[str, {values.partition(' ')[0]}]`"]
    if kind in ("integer", "number"):
        name = "`int`" if kind == "integer" else "`float`"
        low, high = value.get("minimum"), value.get("maximum")
        if low is None:
            return [name]
        return [f"{name} ≥ {_number(low)}" if high is None else f"{name} {_number(low)} to {_number(high)}"]
    return [{"string": "`str`", "boolean": "`bool`"}.get(str(kind), "`Any`")]


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
