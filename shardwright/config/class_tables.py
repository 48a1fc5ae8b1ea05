"""`input.classes`: names, or names with the numbers or colors that annotations have for them.

| form | example |
|---|---|
| list | `[daisy, rose]` |
| name -> id | `{daisy: 0, rose: 1}` |
| id -> name | `{0: daisy, 1: rose}`, as in many a `label_map.json` |
| objects (JSON) | `[{"id": 0, "name": "daisy"}]`, `{"classes": [{"title": "daisy", "color": "#804080"}]}` |
| file | as below |

| file | content |
|---|---|
| JSON | what `input.classes` takes, and name -> `[r, g, b]`; the `labels` of nnU-Net's `dataset.json` |
| CSV | a column of names; names and ids in either order, with a header or without; names and colors |
| text | `128 64 128 road` or `7 road 128 64 128` in each line, `7: road`, `7 road`, or `road 7` |
| `label_map.pbtxt` | `item { id: 1 name: 'road' }` of TensorFlow's Object Detection API |

A color is in one column (`#804080`, `128,64,128`, …) or in three.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from shardwright.errors import ConfigError
from shardwright.images.colors import COLOR, color_number, show_value
from shardwright.storage.limits import MOST_LIST_BYTES, read_within
from shardwright.storage.listing import name_lines
from shardwright.untrusted.json_text import parse_untrusted_json

_PATH = "input.classes"
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
# Headers, reduced to letters; `label` and `class` may be either.
_ID_HEADERS = frozenset(("id", "classid", "labelid", "categoryid", "index", "idx", "number", "code", "value"))
_NAME_HEADERS = frozenset(("name", "classname", "labelname", "categoryname", "text", "labeltext", "description"))
_COLOR_HEADERS = (("r", "g", "b"), ("red", "green", "blue"))
_ONE_COLOR = frozenset(("color", "colour", "rgb", "hex", "colorrgb", "colourrgb", "rgbcolor", "colorhex", "hexcolor"))
_NNUNET = frozenset(("channel_names", "modality"))
_BYTE = 255
_HEX = re.compile(r"(?:#|0x)?([0-9a-fA-F]{6})")
_PARTS = re.compile(r"(?:rgb)?[(\[]?\s*([0-9]{1,3})[\s,;]+([0-9]{1,3})[\s,;]+([0-9]{1,3})\s*[)\]]?", re.IGNORECASE)
# Numbers, a name, and numbers.
_LINE = re.compile(r"((?:[0-9]{1,3}(?:\s*:\s*|\s+))*)(\S|\S.*?\S)((?:(?:\s*:\s*|\s+)[0-9]{1,3})*)")
_NUMBER = re.compile(r"[0-9]+")
# A decimal number, or several numbers: no name.
_NUMBERS = re.compile(r"[-+]?[0-9]*\.[0-9]+(?:e[-+]?[0-9]+)?|[-+.0-9e]+(?:\s+[-+.0-9e]+)+", re.IGNORECASE)
_COMMENT = re.compile(r"#(?![0-9a-fA-F]{6}\b)|//")
_ITEM = re.compile(r"\bitem\s*\{([^{}]*)\}")
_ITEM_ID = re.compile(r"\bid\s*:\s*([0-9]{1,18})")
_ITEM_NAME = re.compile(r"\bname\s*:\s*(['\"])(.*?)\1")


def read_classes(raw: object, base: str) -> dict[str, int | None]:
    """Reads the classes.

    Args:
        raw: list, mapping, or the path of a JSON or CSV file.
        base: folder that a relative path starts from.

    Returns:
        Name -> id, in the order of the ids; name -> `None`, in the order of the list, where no ids are given.

    Raises:
        ConfigError: it has another form, or names or ids are there twice.
    """
    if isinstance(raw, str):
        raw = _read_class_file(raw, base)
    if isinstance(raw, Mapping) and len(lists := [value for value in raw.values() if _is_objects(value)]) == 1:
        (raw,) = lists
    if isinstance(raw, list) and _is_objects(raw):
        pairs: dict[object, object] = {}
        for i, entry in enumerate(raw):
            entry = {**entry, "name": entry.get("name", entry.get("title")), "id": entry.get("id", entry.get("color"))}
            if entry["name"] is None or entry["id"] is None:
                problem = f"{dict(entry)!r} has no id or no name"
                raise ConfigError(f"{_PATH}[{i}]", problem, 'Write {"id": 0, "name": "A"}.')
            name = _name(entry["name"], f"{_PATH}[{i}].name")
            check_unique([name] * (1 + (name in pairs)))
            pairs[name] = entry["id"]
        raw = pairs
    if isinstance(raw, list):
        names = [_name(v, f"{_PATH}[{i}]") for i, v in enumerate(raw)]
        check_unique(names)
        return dict.fromkeys(names)
    if isinstance(raw, Mapping):
        return _by_id(raw)
    raise ConfigError(
        _PATH, f"{raw!r} is neither a list nor a mapping", "Write [Fish, Flower] or {Fish: 1, Flower: 2}."
    )


def _is_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _by_id(raw: Mapping[object, object]) -> dict[str, int | None]:
    """Returns the name -> id of a mapping in either direction, in the order of the ids."""
    names = [value for value in raw.values() if isinstance(value, str) and identity(value) is None]
    if raw and len(names) == len(raw) and all(identity(key) is not None for key in raw):
        raw = dict(zip(names, raw, strict=True))
        check_unique(names)
    first: dict[int, str] = {}
    for key, value in raw.items():
        number = identity(value)
        if number is None:
            raise ConfigError(f"{_PATH}.{key}", f"{value!r} is not a whole number", "Write a number such as 16.")
        name = _name(key, _PATH)
        if first.setdefault(number, name) != name:
            raise ConfigError(
                _PATH, f"two classes share an id: {first[number]!r} and {name!r} have {number}", "Give each its own."
            )
    return {first[number]: number for number in sorted(first)}


def _name(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(path, f"{value!r} is not a text", "Put it in quotes.")
    return value


def _read_class_file(name: str, base: str) -> object:
    """Returns what a file of classes holds, as `input.classes` takes it.

    Args:
        name: its path.
        base: folder that a relative path starts from.

    Raises:
        ConfigError: it cannot be read, or has another form.
    """
    file = Path(base, name)
    try:
        text = read_within(str(file), 0, None, MOST_LIST_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(_PATH, f"{name!r} cannot be read ({error})", "Give a JSON or CSV file.") from None
    if file.suffix.lower() == ".json":
        try:
            document = parse_untrusted_json(text, object_pairs_hook=_unique)
        except ValueError as error:
            raise ConfigError(_PATH, f"{name!r} is not JSON ({error})", "Fix the file.") from None
        of_nnunet = isinstance(document, dict) and "labels" in document and not _NNUNET.isdisjoint(document)
        return document["labels"] if of_nnunet else document
    if items := _ITEM.findall(text):
        return _of_items(items, name)
    lines = [line for line in name_lines(text) if not _COMMENT.match(line)]
    if numbered := _of_lines(lines):
        return numbered
    try:
        rows = [[field.strip() for field in row] for row in csv.reader(lines) if any(map(str.strip, row))]
    except csv.Error as error:
        raise ConfigError(_PATH, f"{name!r} is not CSV ({error})", "Fix the file.") from None
    if all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    if colors := _colors_of(rows):
        return colors
    if not all(len(row) == 2 for row in rows):
        raise ConfigError(_PATH, f"{name!r} does not contain `name,id` rows", "Fix the file.")
    return _of_table(name, rows)


def _of_lines(lines: Sequence[str]) -> dict[str, str]:
    """Returns the name -> id or color of a text with both in each line; nothing of other texts, such as a list."""
    named = [match.groups() for line in lines if (match := _LINE.fullmatch(line.strip()))]
    if any(_NUMBERS.fullmatch(name) for _, name, _ in named):
        return {}  # Such as an object of YOLO, `0 0.5 0.5 0.2 0.2`.
    parts = [(_NUMBER.findall(before), name, _NUMBER.findall(behind)) for before, name, behind in named]
    counts = {(len(before), len(behind)) for before, _, behind in parts}
    if len(counts) != 1 or len(parts) < len(lines) or "," in "".join(lines):
        return {}
    before, behind = counts.pop()
    if before == 3 and not behind:
        return _of_colors([(name, ",".join(color)) for color, name, _ in parts])
    if before < 2 and behind in (3, 4):  # The fourth is how opaque the color is.
        return _of_colors([(name, ",".join(color[:3])) for _, name, color in parts])
    numbers = [int(number) for first, _, last in parts for number in (*first, *last)]
    in_order = all(one < other for one, other in pairwise(numbers))
    # `Boeing 707` is a name.
    counted = numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] < 2 if numbers else False
    if before + behind != 1 or not in_order or (behind and not counted):
        return {}
    names = [name for _, name, _ in parts]
    return dict(zip(names, map(str, numbers), strict=True)) if len(set(names)) == len(names) else {}


def _of_items(items: Sequence[str], file: str) -> dict[str, str]:
    """Returns the name -> id of a `label_map.pbtxt` of TensorFlow's Object Detection API."""
    numbers: dict[str, str] = {}
    for item in items:
        number, name = _ITEM_ID.search(item), _ITEM_NAME.search(item)
        if number is None or name is None:
            raise ConfigError(_PATH, f"{file!r}: 'item {{{item[:60]}}}' has no id or no name", "Fix the file.")
        check_unique([*numbers, name[2]])
        numbers[name[2]] = number[1]
    return numbers


def _of_colors(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    colors: dict[str, str] = {}
    for name, text in pairs:
        value = color_of(text)
        if value is None:
            raise ConfigError(_PATH, f"{name!r}: {text!r} is not a color", "Write e.g. #804080, or 128,64,128.")
        check_unique([*colors, name])
        colors[name] = show_value(value)
    return colors


def _colors_of(rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """Returns the name -> `#rrggbb` of a table with a name and a color, in one column or in three; else nothing."""
    header = [re.sub(r"[^a-z]", "", field.lower()) for field in rows[0]] if rows else []
    parts = next((names for names in _COLOR_HEADERS if all(name in header for name in names)), ())
    places = [header.index(part) for part in parts] or [i for i, name in enumerate(header) if name in _ONE_COLOR]
    named = [i for i, name in enumerate(header) if name in (*_NAME_HEADERS, "class", "label")]
    body = rows[1:]
    if rows and len(rows[0]) == 4 and color_of(",".join(rows[0][1:])) is not None:
        places, named, header, body = [1, 2, 3], [0], [""] * 4, rows  # Without a header.
    elif rows and len(rows[0]) == 2 and not rows[0][1].isalnum() and color_of(rows[0][1]) is not None:
        places, named, header, body = [1], [0], [""] * 2, rows
    if len(places) not in (1, 3) or len(named) != 1:
        return {}
    for row in body:
        if len(row) != len(header):
            raise ConfigError(_PATH, f"{row!r} is not a name and a color", "Fix the file.")
    return _of_colors([(row[named[0]], ",".join(row[place] for place in places)) for row in body])


def _of_table(file: str, rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """Returns the name -> id of two columns, whichever comes first; the first row may be a header."""
    by_name = [_ids_in(rows, column) for column in (0, 1)]
    header = ["", ""]
    if not any(by_name):
        header = [re.sub(r"[^a-z]", "", field.lower()) for field in rows[0]]
        rows = rows[1:]
        by_name = [_ids_in(rows, column) for column in (0, 1)]
    if not rows or not any(by_name):
        raise ConfigError(_PATH, f"{file!r} does not contain `name,id` rows", "Fix the file.")
    id_column = by_name.index(True)
    if all(by_name):
        # Names that are numbers: the header distinguishes them from the ids, and without one names come first.
        id_first = header[0] in _ID_HEADERS or header[1] in _NAME_HEADERS
        id_second = header[1] in _ID_HEADERS or header[0] in _NAME_HEADERS
        if any(header) and id_first == id_second:
            raise ConfigError(_PATH, f"{file!r} has two columns of numbers", "Call them `name` and `id` in its header.")
        id_column = 0 if any(header) and id_first else 1
    names = [row[1 - id_column] for row in rows]
    check_unique(names)
    return {name: row[id_column] for name, row in zip(names, rows, strict=True)}


def _ids_in(rows: Sequence[Sequence[str]], column: int) -> bool:
    return all(identity(row[column]) is not None for row in rows)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    check_unique([name for name, _ in pairs])
    return dict(pairs)


def check_unique(names: Sequence[str]) -> None:
    """Checks that no class is named twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(_PATH, f"{name!r} is there twice", "Name every class once.")
        seen.add(name)


def identity(value: object) -> int | None:
    """Returns an id, also one in quotes; of a color the number that masks of colors have for it."""
    if isinstance(value, str):
        return int(value) if _INTEGER.fullmatch(value) else color_number(value)
    if isinstance(value, list):
        return color_of(",".join(map(str, value)))
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def color_of(text: str) -> int | None:
    """Returns the number of a color in one of the ways that tables write it; `None` for other texts.

    These are `#804080`, `0x804080`, `804080`, `128,64,128`, `128 64 128`, `(128, 64, 128)`, `rgb(128, 64, 128)`.
    """
    if match := _HEX.fullmatch(text.strip()):
        return COLOR + int(match[1], 16)
    match = _PARTS.fullmatch(text.strip())
    parts = [int(part) for part in match.groups()] if match else [_BYTE + 1]
    return COLOR + (parts[0] << 16 | parts[1] << 8 | parts[2]) if max(parts) <= _BYTE else None
