"""`input.classes`: names, or names with the ids that the annotations use, in the configuration or in a file.

| written as | example |
|---|---|
| list | `[daisy, rose]` |
| name -> id | `{daisy: 0, rose: 1}` |
| id -> name | `{0: daisy, 1: rose}`, as in many a `label_map.json` |
| objects (JSON) | `[{"id": 0, "name": "daisy"}]` |
| CSV | a column of names, or columns of names and ids in either order, with a header or without |
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from shardwright.errors import ConfigError
from shardwright.masks.colours import colour_number
from shardwright.storage.limits import MOST_LIST_BYTES, read_within

_PATH = "input.classes"
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
# Headers, reduced to letters; `label` and `class` may be either.
_ID_HEADERS = frozenset(("id", "classid", "labelid", "categoryid", "index", "idx", "number", "code", "value"))
_NAME_HEADERS = frozenset(("name", "classname", "labelname", "categoryname", "text", "labeltext", "description"))


def read_classes(raw: object, base: str) -> dict[str, int | None]:
    """Reads the classes.

    Args:
        raw: list, mapping, or the path of a JSON or CSV file.
        base: folder that a relative path starts from.

    Returns:
        Name -> id, in the order of the ids; name -> `None`, in the order of the list, where no ids are given.

    Raises:
        ConfigError: it is none of these, or names or ids stand there twice.
    """
    if isinstance(raw, str):
        raw = _read_file(raw, base)
    if isinstance(raw, list) and raw and all(isinstance(entry, Mapping) for entry in raw):
        raw = _of_objects(raw)
    if isinstance(raw, list):
        names = [_name(v, f"{_PATH}[{i}]") for i, v in enumerate(raw)]
        _refuse_twice(names)
        return dict.fromkeys(names)
    if isinstance(raw, Mapping):
        return _with_ids(_by_name(raw))
    raise ConfigError(
        _PATH, f"{raw!r} is neither a list nor a mapping", "Write [Fish, Flower] or {Fish: 1, Flower: 2}."
    )


def _by_name(raw: Mapping[object, object]) -> list[tuple[str, int]]:
    """Pairs of name and id of a mapping in either direction."""
    names = [value for value in raw.values() if isinstance(value, str) and _identity(value) is None]
    ids = [_identity(key) for key in raw]
    if raw and len(names) == len(raw) and None not in ids:
        return [(name, number) for name, number in zip(names, ids, strict=True) if number is not None]
    pairs = []
    for key, value in raw.items():
        number = _identity(value)
        if number is None:
            raise ConfigError(f"{_PATH}.{key}", f"{value!r} is no whole number", "Write a number such as 16.")
        pairs.append((_name(key, _PATH), number))
    return pairs


def _with_ids(pairs: Sequence[tuple[str, int]]) -> dict[str, int | None]:
    """Name -> id, in the order of the ids."""
    _refuse_twice([name for name, _ in pairs])
    first: dict[int, str] = {}
    for name, number in pairs:
        if first.setdefault(number, name) != name:
            raise ConfigError(
                _PATH, f"two classes share an id: {first[number]!r} and {name!r} have {number}", "Give each its own."
            )
    return {first[number]: number for number in sorted(first)}


def _of_objects(entries: Sequence[Mapping[object, object]]) -> dict[object, object]:
    pairs: dict[object, object] = {}
    for i, entry in enumerate(entries):
        if "name" not in entry or "id" not in entry:
            raise ConfigError(f"{_PATH}[{i}]", f"{dict(entry)!r} has no id or no name", 'Write {"id": 0, "name": "A"}.')
        name = _name(entry["name"], f"{_PATH}[{i}].name")
        if name in pairs:
            _refuse_twice([name, name])
        pairs[name] = entry["id"]
    return pairs


def _read_file(name: str, base: str) -> object:
    file = Path(base, name)
    try:
        text = read_within(str(file), 0, None, MOST_LIST_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(_PATH, f"{name!r} cannot be read ({error})", "Give a JSON or CSV file.") from None
    if file.suffix.lower() == ".json":
        try:
            return json.loads(text, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise ConfigError(_PATH, f"{name!r} is no JSON ({error})", "Mend the file.") from None
    rows = [[field.strip() for field in row] for row in csv.reader(text.splitlines()) if any(map(str.strip, row))]
    if all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    if not all(len(row) == 2 for row in rows):
        raise ConfigError(_PATH, f"{name!r} does not hold `name,id` rows", "Mend the file.")
    return _of_table(name, rows)


def _of_table(file: str, rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """Name -> id of two columns, whichever comes first; the first row may be a header."""
    by_name = [_ids_in(rows, column) for column in (0, 1)]
    header = ["", ""]
    if not any(by_name):
        header = [re.sub(r"[^a-z]", "", field.lower()) for field in rows[0]]
        rows = rows[1:]
        by_name = [_ids_in(rows, column) for column in (0, 1)]
    if not rows or not any(by_name):
        raise ConfigError(_PATH, f"{file!r} does not hold `name,id` rows", "Mend the file.")
    id_column = by_name.index(True)
    if all(by_name):
        # Names that are numbers: the header tells them from the ids, and without one names come first.
        id_first = header[0] in _ID_HEADERS or header[1] in _NAME_HEADERS
        id_second = header[1] in _ID_HEADERS or header[0] in _NAME_HEADERS
        if any(header) and id_first == id_second:
            raise ConfigError(_PATH, f"{file!r} has two columns of numbers", "Call them `name` and `id` in its header.")
        id_column = 0 if any(header) and id_first else 1
    names = [row[1 - id_column] for row in rows]
    _refuse_twice(names)
    return {name: row[id_column] for name, row in zip(names, rows, strict=True)}


def _ids_in(rows: Sequence[Sequence[str]], column: int) -> bool:
    return all(_identity(row[column]) is not None for row in rows)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    _refuse_twice([name for name, _ in pairs])
    return dict(pairs)


def _refuse_twice(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(_PATH, f"{name!r} stands there twice", "Name every class once.")
        seen.add(name)


def _identity(value: object) -> int | None:
    """An id, also one in quotes; of a colour `#rrggbb` the number that masks of colours have for it."""
    if isinstance(value, str):
        return int(value) if _INTEGER.fullmatch(value) else colour_number(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _name(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(path, f"{value!r} is no text", "Put it in quotes.")
    return value
