"""Reads and checks JSON that anyone may have written: a manifest, an index, a ledger, a lineage, a blessing.

A check takes a value and its name, and returns the value; it raises `ValueError` with both when the value is wrong.
`record`, `listed` and `mapped` make checks of checks. `parse_untrusted_json` has one error for all that is not JSON.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import typing
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

from shardwright.errors import DatasetError
from shardwright.untrusted.budget import Budget

Check = Callable[[Any, str], Any]

# COCO has a list, mapping or member for 13 bytes where it has boxes alone, and Python takes 64 to 230 bytes for each.
# Real files of boxes have a member for 12 bytes. Of the most that is allowed Python makes 18 bytes for each byte.
JSON_BUDGET = Budget("lists, mappings and members", objects=2_000_000, bytes_each=10)
_MARKS = ("[", "{", ":")
# The switch for models of one's own, in pipelines and containers; see `components.model_files`.
TRUST_VARIABLE = "SHARDWRIGHT_TRUST_MODELS"
# Numbers of files and sizes, and those of numpy.
MOST = 2**63 - 1
_DIGEST = re.compile(r"[0-9a-f]{64}")
# Control characters have no place in a file's name; `/`, `\` and NUL make it a path or end it.
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f-\x9f/\\\ud800-\udfff]")
# A class's name is part of features' names, never of a path; see `config.parsing.may_be_named`.
_NOT_IN_CLASSES = re.compile(r"[\x00-\x1f\ud800-\udfff]")
_HALVES = re.compile(r"[\ud800-\udfff]")
# Bytes that file systems allow.
_LONGEST_NAME = 255
_SHOWN = 60


def is_text(value: Any) -> bool:
    """Returns whether a value is a text that UTF-8 can encode: JSON can contain unpaired surrogates."""
    return type(value) is str and (value.isascii() or not _HALVES.search(value))


def is_file_name(value: str) -> bool:
    """Returns whether a text is one component of a path, and cannot lead to another folder."""
    if value in ("", ".", "..") or _NOT_IN_NAMES.search(value):
        return False
    return len(value.encode("utf-8")) <= _LONGEST_NAME


def is_inside(path: str) -> bool:
    """Returns whether a path with forward slashes leads to a place below the folder it is joined to."""
    return all(map(is_file_name, path.split("/")))


def inside(folder: str | os.PathLike[str], path: str) -> Path:
    """Returns the path of a file to write below a folder; every writer gets its target here.

    Raises:
        DatasetError: the path leads outside of the folder.
    """
    if not is_inside(path):
        raise DatasetError(f"{_shown(path)}: leads outside of {os.fspath(folder)}. Nothing is written there.")
    return Path(folder, path)


def _check(sound: Callable[[Any], bool], wanted: str) -> Check:
    """Returns a check for a value that is sound; the message says what was wanted."""

    def check(value: Any, name: str) -> Any:
        if not sound(value):
            raise _wrong(value, name, wanted)
        return value

    return check


text = _check(is_text, "a text")
truth = _check(lambda value: type(value) is bool, "true or false")
# Whole numbers of at most 63 bits, and numbers that may be infinite or NaN.
count = _check(lambda value: type(value) is int and 0 <= value <= MOST, "a whole number from 0")
integer = _check(lambda value: type(value) is int and abs(value) <= MOST, "a whole number")
measured = _check(lambda value: type(value) in (int, float), "a number")
number = _check(lambda value: type(value) in (int, float) and abs(value) < float("inf"), "a number")
digest = _check(lambda value: type(value) is str and bool(_DIGEST.fullmatch(value)), "a BLAKE3 of 64 hex digits")
# One component of a path, or a path with forward slashes: neither leads to a place outside of its folder.
file_name = _check(lambda value: type(value) is str and is_file_name(value), "the name of a file or folder")
relative_path = _check(lambda value: type(value) is str and is_inside(value), "a path below the dataset's folder")
class_name = _check(lambda value: type(value) is str and not _NOT_IN_CLASSES.search(value), "the name of a class")
anything = _check(lambda _: True, "")
_TYPES: Mapping[Any, Check] = {str: text, int: integer, float: measured, bool: truth}


def of_type(annotation: Any) -> Check:
    """Returns the check of a dataclass's field, by its type; of types that JSON does not have, any value is taken."""
    arguments = [one for one in typing.get_args(annotation) if one is not type(None)]
    if len(arguments) < len(typing.get_args(annotation)):
        return optional(of_type(arguments[0])) if len(arguments) == 1 else anything
    origin = typing.get_origin(annotation) or annotation
    if origin is list:
        return listed(of_type(arguments[0]))
    if origin is dict:
        return mapped(of_type(arguments[1]))
    return _TYPES.get(origin, anything)


def fields(kind: type[Any]) -> Check:
    """Returns a check for a mapping of the fields of a dataclass; those with a default may be missing."""
    hints = typing.get_type_hints(kind)
    checks = {one.name: of_type(hints[one.name]) for one in dataclasses.fields(kind)}
    required = [
        one.name
        for one in dataclasses.fields(kind)
        if one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
    ]
    return record({name: checks[name] for name in required}, checks)


def choice(*known: str) -> Check:
    """Returns a check for one of a few texts."""
    return _check(lambda value: type(value) is str and value in known, f"one of: {', '.join(known)}")


def optional(inner: Check) -> Check:
    """Allows null, too."""

    def check(value: Any, name: str) -> Any:
        return None if value is None else inner(value, name)

    return check


def either(*checks: Check) -> Check:
    """Passes if one of several checks passes; the message is that of the last."""

    def check(value: Any, name: str) -> Any:
        for inner in checks[:-1]:
            try:
                return inner(value, name)
            except ValueError:
                continue
        return checks[-1](value, name)

    return check


def listed(inner: Check, *, unique: bool = False, length: int | None = None) -> Check:
    """Returns a check for a list."""

    def check(value: Any, name: str) -> list[Any]:
        if type(value) is not list or (length is not None and len(value) != length):
            raise _wrong(value, name, "a list" if length is None else f"a list of {length}")
        for place, item in enumerate(value):
            inner(item, f"{name}[{place}]")
        if unique:
            seen: set[Hashable] = set()
            for place, item in enumerate(value):
                if item in seen:
                    raise _wrong(item, f"{name}[{place}]", "different from those before")
                seen.add(item)
        return value

    return check


def mapped(inner: Check, key: Check = text, required: tuple[str, ...] = ()) -> Check:
    """Returns a check for a mapping of any names, and some that must be there."""

    def check(value: Any, name: str) -> dict[str, Any]:
        found = _mapping(value, name, required)
        for one, item in found.items():
            key(one, f"a name in {name}")
            inner(item, f"{name}.{_shown(one)}")
        return found

    return check


def record(required: Mapping[str, Check], further: Mapping[str, Check] | None = None, *, closed: bool = True) -> Check:
    """Returns a check for a mapping of known names.

    Args:
        required: name -> check, of those that must be there.
        further: the same of those that may be missing.
        closed: whether no other names may be there.
    """
    known = {**required, **(further or {})}

    def check(value: Any, name: str) -> dict[str, Any]:
        found = _mapping(value, name, tuple(required))
        for one, item in found.items():
            if one in known:
                known[one](item, f"{name}.{one}" if name else one)
            elif closed:
                raise ValueError(f"{name or 'it'} has an unknown name: {_shown(one)}")
        return found

    return check


def _mapping(value: Any, name: str, required: tuple[str, ...]) -> dict[str, Any]:
    if type(value) is not dict:
        raise _wrong(value, name or "it", "a mapping")
    missing = [one for one in required if one not in value]
    if missing:
        raise ValueError(f"{name or 'it'} lacks {', '.join(missing)}")
    return value


def _wrong(value: Any, name: str, wanted: str) -> ValueError:
    return ValueError(f"{name}: {_shown(value)} is not {wanted}")


def _shown(value: Any) -> str:
    """Returns a value for messages: nothing of it reaches a terminal as a control sequence."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    if isinstance(value, int) and not -MOST <= value <= MOST:
        return "a very large number"
    shown = ascii(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def parse_untrusted_json(text: str | bytes, **hooks: Any) -> Any:
    """Reads a JSON document.

    Args:
        text: the document.
        **hooks: those of `json.loads`.

    Raises:
        ValueError: it is not JSON, is nested deeper than Python reads it, or has far more values than a real one.
    """
    # A shorter one cannot have as many.
    if len(text) > JSON_BUDGET.objects:
        # Both bytes or both text, which a type checker cannot see.
        marks = [mark.encode() for mark in _MARKS] if isinstance(text, bytes) else _MARKS
        JSON_BUDGET.check_objects(sum(map(text.count, marks)), len(text))  # type: ignore[arg-type]
    try:
        return json.loads(text, **hooks)
    except RecursionError:
        raise ValueError("lists or mappings within each other without end") from None
