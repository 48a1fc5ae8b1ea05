"""Checks of single values, and sections made of plain values; `path` is always the YAML path."""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import math
import os
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Union, get_args, get_origin

from shardwright.config.options import NO_UNIT, Option, Unit, options_of
from shardwright.errors import ConfigError
from shardwright.text.redaction import has_credentials, redact
from shardwright.untrusted.json_text import is_text

_LARGEST = 2**63 - 1
# A number as a text, in the syntax of JSON Schema, too.
NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*%?\s*$"
# To evaluate the types of a section again takes most of the time of parsing it.
_KEYS: dict[type[Any], Mapping[str, Any]] = {}
# Names that other tools use.
_USUAL = {"lr": "learning_rate", "wd": "weight_decay", "bs": "batch_size"}
_CLOSE = 0.75
# Words that YAML reads as these values.
_AS_READ = {True: "yes, on or true", False: "no, off or false", None: "null or ~"}


def plain_value(value: Any, of_section: Callable[[Any], Any] | None = None) -> Any:
    """Returns a value of the configuration as YAML has it: sections and mappings as dicts, tuples as lists.

    Paths become texts, numbers and arrays of NumPy those of Python.

    Args:
        value: the value.
        of_section: makes the dict of a section; by default of all its fields.
    """
    if dataclasses.is_dataclass(value):
        if of_section is not None:
            return of_section(value)
        return {field.name: plain_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: plain_value(inner, of_section) for name, inner in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    return [plain_value(inner, of_section) for inner in value] if isinstance(value, (tuple, list)) else value


def may_be_named(name: str) -> bool:
    """Returns whether a class may have this name, which becomes a part of features' names, in UTF-8."""
    return not any(ord(c) < 32 or 0xD800 <= ord(c) <= 0xDFFF for c in name)


def parse_section(cls: type[Any], raw: object, path: str) -> Any:
    """Makes a section from plain values.

    Args:
        cls: class of the section, a frozen dataclass.
        raw: mapping of its fields, `None` for all defaults.
        path: YAML path of the section, for messages.

    Raises:
        ConfigError: an unknown key, a wrong type, or a value that the section refuses.
    """
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        raise ConfigError(path, f"{raw!r} is not a mapping", "Write keys and values below it.")
    hints, options = keys_of(cls), options_of(cls)
    values = {}
    for key, value in raw.items():
        here = f"{path}.{key}" if path else str(key)
        if key not in hints:
            raise ConfigError(here, "unknown key", _suggest(str(key), value, list(hints), path, cls))
        values[key] = _value(hints[key], value, here, options[key].unit)
    missing = [
        f.name
        for f in dataclasses.fields(cls)
        if f.name not in values and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"{path}.{missing[0]}".lstrip("."), "missing", "Add it.")
    return cls(**values)


def check_keys(cls: type[Any], raw: object, path: str) -> None:
    """Refuses unknown keys of a section and of the sections in it, before any value is looked at.

    Raises:
        ConfigError: a key is unknown; the message suggests the key that is close, or the section that has it.
    """
    if not isinstance(raw, Mapping):
        return
    known = keys_of(cls)
    for key, value in raw.items():
        here = f"{path}.{key}" if path else str(key)
        if key not in known:
            raise ConfigError(here, "unknown key", _suggest(str(key), value, list(known), path, cls))
        for inner, inside, below in _sections_in(known[key], value, here):
            check_keys(inner, inside, below)


def keys_of(cls: type[Any]) -> Mapping[str, Any]:
    """Returns the keys of a section with the types of their values."""
    if cls not in _KEYS:
        hints = typing.get_type_hints(cls)
        keys = {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.metadata.get("key", True)}
        _KEYS[cls] = types.MappingProxyType(keys)
    return _KEYS[cls]


def option_at(section: type[Any], path: str) -> Option | None:
    """Returns the option at a path below a section, or `None` where none is, such as at a name of the user's."""
    name, _, below = path.partition(".")
    inner = section_of(keys_of(section).get(name))
    return options_of(section).get(name) if not below else option_at(inner, below) if inner is not None else None


def section_of(hint: Any) -> type[Any] | None:
    """Returns the section that a type is, or that it is optionally."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    sections: list[type[Any]] = [
        option for option in options if isinstance(option, type) and dataclasses.is_dataclass(option)
    ]
    return sections[0] if sections else None


def _sections_in(hint: Any, value: object, path: str) -> list[tuple[type[Any], object, str]]:
    """Returns the sections in a value, each with its part of the value and its path."""
    if (section := section_of(hint)) is not None:
        return [(section, value, path)]
    args = get_args(hint)
    if isinstance(value, Mapping) and len(args) == 2 and isinstance(get_origin(hint), type):
        return [section for k, v in value.items() for section in _sections_in(args[1], v, f"{path}.{k}")]
    if isinstance(value, list) and args and args[-1] is Ellipsis:
        return [section for i, v in enumerate(value) for section in _sections_in(args[0], v, f"{path}[{i}]")]
    return []


def _suggest(key: str, value: object, known: list[str], path: str, cls: type[Any]) -> str:
    prefix = f"{path}." if path else ""
    if "ratios" in known and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"Shares of splits are keys of {prefix}ratios: write {prefix}ratios: {{{key}: {value}}}."
    close = [_USUAL[key]] if _USUAL.get(key) in known else difflib.get_close_matches(key, known, n=1, cutoff=_CLOSE)
    words = key.split("_")
    named = close or [name for name in known if name in words]
    if len(named) == 1:
        return f"Did you mean {prefix}{named[0]}?"
    sections = {} if path else {name: section_of(hint) for name, hint in keys_of(cls).items()}
    elsewhere = [f"{name}.{key}" for name, section in sections.items() if section and key in keys_of(section)]
    if len(elsewhere) == 1:
        return f"Did you mean {elsewhere[0]}?"
    return f"Known here: {', '.join(known)}."


def _value(hint: Any, value: object, path: str, unit: Unit) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not type(None)]
        if value is None and len(options) == len(get_args(hint)):
            raise ConfigError(path, "null", "Give a value or remove the key.")
        # For a list or a single value, the type of the value decides.
        of_list = [option for option in options if get_origin(option) is tuple]
        single = [option for option in options if option not in of_list]
        if str in single and len(single) > 1:
            # A number or a word: a text is the word, unless it is a number.
            word = isinstance(value, str) and not re.match(NUMBER, value)
            single = [option for option in single if (option is str) == word]
        chosen = of_list if of_list and (isinstance(value, list) or not single) else single
        # `off` is how people write it, and YAML reads that as false.
        optional = len(options) < len(get_args(hint))
        off = optional and (value is None or (value is False and bool not in options))
        return None if off else _value(chosen[0], value, path, unit)
    if dataclasses.is_dataclass(hint):
        return parse_section(typing.cast(type[Any], hint), value, path)
    if value is None:
        raise ConfigError(path, "null", "Give a value or remove the key.")
    if origin is tuple:
        return _sequence(get_args(hint), value, path, unit)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ConfigError(path, f"{value!r} is not a mapping", "Write keys and values below it.")
        for key in value:
            # A whole number is the name of a class, too.
            if not isinstance(key, str) and (isinstance(key, bool) or not isinstance(key, int)):
                problem = f"YAML does not read the key {_AS_READ.get(key, key)} as a text"
                raise ConfigError(path, problem, "Put it in quotes.")
        return {str(k): _value(get_args(hint)[1], v, f"{path}.{k}", unit) for k, v in value.items()}
    return parse_scalar(hint, value, path, unit)


def _sequence(args: tuple[Any, ...], value: object, path: str, unit: Unit) -> tuple[Any, ...]:
    if isinstance(value, str) and args[0] is str:
        value = [value]  # One name stands for a list of one.
    if not isinstance(value, list):
        raise ConfigError(path, f"{value!r} is not a list", "Write it in square brackets.")
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(_value(args[0], v, f"{path}[{i}]", unit) for i, v in enumerate(value))
    if len(value) != len(args):
        raise ConfigError(path, f"{value!r} has {len(value)} entries", f"Give {len(args)}.")
    return tuple(_value(a, v, f"{path}[{i}]", unit) for i, (a, v) in enumerate(zip(args, value, strict=True)))


def parse_string(value: object, path: str) -> str:
    """Returns a text; YAML reads some words as other things."""
    if isinstance(value, (list, Mapping)):
        raise ConfigError(path, f"{value!r} is not a text", "Give one value.")
    if not isinstance(value, str):
        shown = value if isinstance(value, datetime.date) else repr(value)
        raise ConfigError(path, f"{shown} is not a text", "Put it in quotes.")
    if "\0" in value:
        raise ConfigError(path, f"{value!r} contains a NUL, which no file name may have", f"Remove {path}.")
    if not is_text(value):
        raise ConfigError(path, f"{value!r} is not UTF-8", "Rename the file or folder.")
    if has_credentials(value):
        problem = f"{redact(value)!r} contains credentials, which would be published with what is made"
        raise ConfigError(path, problem, "Remove them; the client of each store finds its credentials itself.")
    return value


def _bool(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(path, f"{value!r} is neither true nor false", "Write true or false.")
    return value


def _int(value: object, path: str, unit: Unit = NO_UNIT) -> int:
    number = value
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]+)(\.[0-9]+)?\s*([A-Za-z]*)\s*", value)
        if match and match[3].upper() in unit.factors:
            digits = float(match[1] + match[2]) if match[2] else int(match[1])
            number = digits * unit.factors[match[3].upper()]
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        example = f"16 or {unit.example}" if unit.example else "16"
        raise ConfigError(path, f"{value!r} is not a whole number", f"Write a number such as {example}.")
    if abs(number) > _LARGEST:
        raise ConfigError(path, "a number of more than 63 bits", "Write a number such as 16.")
    return number


def parse_float(value: object, path: str) -> float:
    """Returns a number, which may be written with a percent sign."""
    wrong = ConfigError(path, f"{value!r} is not a number", "Write a number such as 0.1 or 1%.")
    if isinstance(value, str):
        # YAML 1.1 reads `1e-3` (no dot) as text; people write it for learning rates.
        if not re.match(NUMBER, value):
            raise wrong
        digits, percent, _ = value.partition("%")
        value = float(digits) / 100 if percent else float(digits)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong
    if isinstance(value, int):
        return float(_int(value, path))
    if not math.isfinite(value):
        raise wrong
    return value


_SCALARS: dict[Any, Callable[[object, str], Any]] = {str: parse_string, bool: _bool, float: parse_float}


def parse_scalar(kind: Any, value: object, path: str, unit: Unit = NO_UNIT) -> Any:
    """Returns a text, number or truth value as YAML and people write it.

    Args:
        kind: `str`, `bool`, `int` or `float`.
        value: the value.
        path: its YAML path, for messages.
        unit: the units of a whole number.

    Raises:
        ConfigError: the value is of another type.
    """
    return _int(value, path, unit) if kind is int else _SCALARS[kind](value, path)
