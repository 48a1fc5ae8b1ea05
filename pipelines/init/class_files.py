"""Finds a file with the names of classes, where the annotations have their numbers or colors alone.

Sets have such files next to the annotations: `label_num_to_disease_map.json`, `class_dict.csv`, or Roboflow's
`train/_classes.csv`. Its numbers or colors must be all of those that occur; else it is about something else. A plain
list counts from 0 where the background is its first entry; one that is called after classes, from 0 or 1 as they do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from shardwright.config.class_tables import read_classes
from shardwright.config.split import split_word
from shardwright.errors import ShardwrightError
from shardwright.formats.base import BACKGROUND, Survey
from shardwright.formats.classes import as_integer, special_label
from shardwright.formats.mask_names import ONE_CLASS
from shardwright.images.colors import COLOR, color_number, show_value
from shardwright.images.header import has_image_ending
from shardwright.pipelines.init.inventory import Inventory
from shardwright.pipelines.init.read_trial import CLASSES, IMAGES, PATH, DetectedInput, absolute, read_input
from shardwright.storage import is_remote, list_names

_ENDINGS = (".json", ".csv", ".tsv", ".txt", ".names")
_OF_CLASSES = re.compile("class|name|label|categor", re.IGNORECASE)
# A list of classes is short, and a folder of images has no list among thousands of files.
_MOST_BYTES, _MOST_FILES = 1 << 16, 100


def with_names(found: DetectedInput, inventory: Inventory | None, given: Mapping[str, Any]) -> DetectedInput:
    """Takes the names of classes from a file next to the annotations, where these have numbers or colors alone."""
    path = found.options.get(PATH, "")
    if CLASSES in given or not isinstance(path, str):
        return found
    numbers = _numbers_of(found.surveyed.survey, found.options.get(CLASSES))
    labels = found.surveyed.labels or absolute(path or str(found.options[IMAGES]))
    if inventory is None or inventory.spans:
        near = os.path.dirname(labels.rstrip("/"))
        if is_remote(near) or not os.path.isdir(near):
            return found
        inventory = Inventory(near, near, sorted(list_names(near)), spans=False)
    named = _find_class_file(inventory, labels, numbers) if numbers else None
    if named is None:
        return found
    with suppress(ShardwrightError):
        again = read_input({**found.options, CLASSES: named[1]})
        return replace(again, notes=(*again.notes, f"classes: the names are those of {named[0]}"))
    return found


def _numbers_of(survey: Survey, stated: object) -> set[int]:
    """Returns the numbers or colors that annotations have for classes without names; nothing where they have names.

    Args:
        survey: of the annotations.
        stated: `input.classes`, where it was detected: name -> color, if the names were made of colors.
    """
    classes = survey.classes
    if tuple(classes) == (ONE_CLASS,) and survey.values:
        return set(survey.values.values())
    if isinstance(stated, Mapping) and all(str(value).startswith("#") for value in stated.values()):
        colors = [color_number(str(value)) for value in stated.values()]
        return {color for color in colors if color is not None}
    numbers = [as_integer(name) for name in classes]
    return {number for number in numbers if number is not None} if None not in numbers else set()


def _find_class_file(
    inventory: Inventory, labels: str, numbers: Collection[int]
) -> tuple[str, dict[str, int | str]] | None:
    """Returns a file that names all of the classes, and its classes as `input.classes` has them.

    Args:
        inventory: the folder. A file counts in the folder itself, next to the annotations and among them, and where
            every split has its own; `None` is the result where two say different things.
        labels: absolute path of the annotations, which are no file of classes.
        numbers: of `_numbers_of`.
    """
    places = {inventory.below(path) for path in (inventory.root, os.path.dirname(labels.rstrip("/")), labels)}
    files: dict[str, list[str]] = {}
    for key in inventory.keys:
        if key.lower().endswith(_ENDINGS) and key != inventory.below(labels):
            files.setdefault(os.path.dirname(key), []).append(key)
    near = [key for folder, keys in files.items() if folder in places and len(keys) <= _MOST_FILES for key in keys]
    near += [key for folder, keys in files.items() if folder not in places and split_word(folder) for key in keys]
    found: dict[str, dict[str, int]] = {}
    for path in (os.path.join(inventory.root, key) for key in near):
        with suppress(ShardwrightError, OSError):
            classes = {} if is_remote(path) or os.path.getsize(path) > _MOST_BYTES else read_classes(path, "")
            if len(classes) > 1 and None in classes.values():
                start = _first_number(path, list(classes), numbers)
                classes = classes if start is None else {name: number for number, name in enumerate(classes, start)}
            if max(numbers) < COLOR:  # Gray values.
                grays = {COLOR + 0x010101 * value: value for value in range(256)}
                classes = {name: grays.get(number or 0, number) for name, number in classes.items()}
            known = {name: number for name, number in classes.items() if number is not None}
            if any(map(has_image_ending, classes)):
                continue  # A list of images, with the class of each.
            if known == classes and set(numbers) <= set(known.values()):
                found[path] = {name: n for name, n in known.items() if n in numbers or not _is_background(name)}
    named = list(found.values())
    if not named or named.count(named[0]) < len(named):
        return None
    return next(iter(found)), {name: show_value(value) if value >= COLOR else value for name, value in named[0].items()}


def _first_number(path: str, names: Sequence[str], numbers: Collection[int]) -> int | None:
    """Returns the number of the first name of a list, `None` where it may be a list of something else."""
    if _is_background(names[0]):
        return 0
    if not _OF_CLASSES.search(os.path.basename(path)):
        return None
    return 0 if set(numbers) == set(range(len(names))) else 1 if set(numbers) == set(range(1, len(names) + 1)) else None


def _is_background(name: str) -> bool:
    return special_label(name, None) == BACKGROUND
