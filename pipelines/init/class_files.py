"""Finds a file with the names of classes, where the annotations have their numbers or colors alone.

Sets have such files next to the annotations: `label_num_to_disease_map.json`, `class_dict.csv`. Its numbers or colors
must be all of those that occur; else it is about something else.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress

from shardwright.config.yaml_config import read_classes
from shardwright.errors import ShardwrightError
from shardwright.formats.classes import as_integer
from shardwright.images.colors import COLOR, color_number, show_value
from shardwright.storage import is_remote, list_names

_ENDINGS = (".json", ".csv", ".txt")
# A list of classes is short, and a folder of images has no list among thousands of files.
_MOST_BYTES, _MOST_FILES = 1 << 16, 100


def numbers_of(classes: Collection[str], stated: object) -> set[int]:
    """Returns the numbers or colors that annotations have for classes without names; nothing where they have names.

    Args:
        classes: the classes as they were detected.
        stated: `input.classes`, where it was detected: name -> color, if the names were made of colors.
    """
    if isinstance(stated, Mapping) and all(str(value).startswith("#") for value in stated.values()):
        colors = [color_number(str(value)) for value in stated.values()]
        return {color for color in colors if color is not None}
    numbers = [as_integer(name) for name in classes]
    return {number for number in numbers if number is not None} if None not in numbers else set()


def find_class_file(
    folders: Collection[str], numbers: Collection[int], others: Collection[str]
) -> tuple[str, dict[str, int | str]] | None:
    """Returns the only file that names all of the classes, and its classes as `input.classes` has them.

    Args:
        folders: where it may be, as absolute paths.
        numbers: of `numbers_of`.
        others: absolute paths of files that are read as annotations.
    """
    found = []
    for folder in dict.fromkeys(folders):
        if is_remote(folder) or not os.path.isdir(folder):
            continue
        names = [name for name in sorted(list_names(folder)) if name.lower().endswith(_ENDINGS)]
        for path in (os.path.join(folder, name) for name in names if len(names) <= _MOST_FILES):
            if path in others or not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
                continue
            with suppress(ShardwrightError):
                classes = read_classes(path, folder)
                if None not in classes.values() and set(numbers) <= set(classes.values()):
                    found.append((path, {name: _shown(value) for name, value in classes.items()}))
    return found[0] if len(found) == 1 else None


def _shown(value: int | None) -> int | str:
    assert value is not None, "every class has a number"
    return show_value(value) if value >= COLOR else value
