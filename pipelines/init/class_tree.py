"""Checks that folders which would be classes are classes: not parts of a set, copies of it, or pictures about it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardwright.config.input import TFRECORD
from shardwright.config.split import split_word, stated_split
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import SEGMENTATION, shorten
from shardwright.formats.class_folders import BY_FOLDER, CLASS_FOLDERS, FILE_NAME, IMAGES_ALONE
from shardwright.formats.image_names import base_stem
from shardwright.label_formats import WITHOUT_PATH
from shardwright.pipelines.init.image_sample import MasksAmong, find_masks
from shardwright.pipelines.init.inventory import (
    MASK_WORDS,
    Inventory,
    is_aside,
    is_derived,
    is_handful,
    is_kind_of_masks,
    is_place,
)
from shardwright.pipelines.init.read_trial import (
    CLASSES,
    EXCLUDE,
    FORMAT,
    IMAGES,
    PATH,
    REGEX,
    TASK,
    DetectedInput,
    read_input,
)
from shardwright.running.progress import counted

_SHOWN = 3
# The folder that an image lies in, whatever is above.
_INNERMOST = r"(?P<label>[^/]+)/[^/]+$"
# A folder of images below each class, or below some parts of a set.
_PARTS = re.compile(r"(?:im(?:age)?s?|imgs?|pictures?|photos?|masks?|labels?|annotations?)", re.I)


def check_folders(found: DetectedInput, inventory: Inventory | None, given: Mapping[str, Any]) -> DetectedInput:
    """Checks what was detected without annotations, and leaves out what is no class.

    Args:
        found: the hypothesis.
        inventory: the folder, where one was looked into.
        given: YAML path -> value of what the user gave.

    Raises:
        UsageError: folders may not be classes; with readings.
    """
    if {FORMAT, CLASSES} & set(given) or found.format not in WITHOUT_PATH or found.format == TFRECORD:
        return found
    _check_masks(found)
    if not found.surveyed.survey.classes:
        return found
    by_class = _images_by_class(found)
    loose = by_class.pop("", [])
    if loose and EXCLUDE not in given and all(map(is_aside, by_class)):
        asides = sorted(_folder(keys, name) for name, keys in by_class.items())
        return check_folders(
            _without(found, asides, [f"{shorten(asides)}, called after pictures about a set"]), inventory, given
        )
    if found.format == FILE_NAME:
        return found if EXCLUDE in given else _with_names_alone(found, sum(map(len, by_class.values())), loose)
    _check_names(found, list(by_class), loose)
    if inventory is not None and not inventory.spans and IMAGES not in given:
        _check_copies(found, inventory)
    if EXCLUDE in given or len(by_class) < 2:
        return found
    left, reasons = list(loose), [f"{shorten(loose)}, in no folder of a class"] if loose else []
    rest = sum(map(len, by_class.values()))
    if loose and not is_handful(len(loose), rest):
        problem = f"{_place(found)}: {counted(len(loose), 'image')} are in no folder of a class: {shorten(loose)}."
        endings = sorted({os.path.splitext(key)[1] for key in loose})
        keys = loose if len(loose) <= _SHOWN else [f"*{ending}" for ending in endings]
        raise UsageError(problem).with_readings(
            Reading("these images are not part of the set", {EXCLUDE: keys}), IMAGES_ALONE
        )
    for name in filter(is_aside, by_class):
        keys, others = by_class[name], {other: len(keys) for other, keys in by_class.items() if not is_aside(other)}
        folder = _folder(keys, name)
        count = counted(len(keys), "image")
        if len(others) < 2 or not is_handful(len(keys), sum(others.values())) or len(keys) >= min(others.values()):
            problem = f"{_place(found)}: {folder} ({count}) may be a class, or pictures about the set."
            raise UsageError(problem).with_readings(
                Reading(f"{folder} is not part of the set", {EXCLUDE: [folder]}),
                Reading(f"{name} is a class", {CLASSES: sorted(by_class)}),
            )
        left.append(folder)
        reasons.append(f"{folder} ({count}), called after pictures about a set, not after a class")
    if not left:
        return found
    return _without(found, left, reasons)


def _with_names_alone(found: DetectedInput, named: int, loose: Sequence[str]) -> DetectedInput:
    """Leaves out images whose names state no class, if their folder calls them to be predicted, or a handful."""
    folders = sorted({os.path.dirname(key) for key in loose})
    to_predict = {stated_split(folder) for folder in folders} == {"test"}
    if not loose or not (to_predict or is_handful(len(loose), named)):
        return found
    left, why = (folders, "to predict") if to_predict else (loose, "whose names state no class")
    found = replace(found, options={**found.options, FORMAT: FILE_NAME})
    return _without(found, left, [f"{shorten(left)} ({counted(len(loose), 'image')}), {why}"])


def _without(found: DetectedInput, left: Sequence[str], reasons: Sequence[str]) -> DetectedInput:
    """Reads a hypothesis again without some files and folders."""
    again = read_input({**found.options, EXCLUDE: left})
    notes = (*again.notes, *(f"left out: {reason}" for reason in reasons))
    return DetectedInput(again.options, again.config, again.surveyed, notes)


def is_in_one_place(found: DetectedInput) -> bool:
    """Returns whether folders were taken for classes that only hold what a data set consists of, such as `images`."""
    classes = found.surveyed.survey.classes
    return found.format != TFRECORD and (len(classes) < 2 or all(map(is_place, classes)))


def _place(found: DetectedInput) -> str:
    return str(found.options[IMAGES])


def _images_by_class(found: DetectedInput) -> dict[str, list[str]]:
    """Returns the keys of each class's images; an empty text has those without one."""
    keys, rejected = found.surveyed.listing.keys, found.surveyed.rejected
    names = found.surveyed.survey.classes
    by_class: dict[str, list[str]] = {name: [] for name in names}
    for annotation in found.surveyed.source.annotations():
        by_class[names[annotation.label]].append(keys[annotation.image])
    by_class[""] = [keys[i] for i in rejected if rejected[i].code in ("no_class_folder", "no_label")]
    return by_class


def _folder(keys: Sequence[str], name: str) -> str:
    """Returns the path of the folder of a class."""
    parts = keys[0].split("/")
    return "/".join(parts[: parts.index(name) + 1]) if name in parts else name


def _check_names(found: DetectedInput, classes: Sequence[str], loose: Sequence[str]) -> None:
    fix = "Give the one with the images to learn from."
    if len(loose) > sum(1 for _ in found.surveyed.listing.keys) / 2:
        problem = f"{len(loose)} of {len(found.surveyed.listing.keys)} images are not in a folder that is a class "
        problem += f"({shorten(classes)})."
    elif len(classes) > 1 and all(map(is_place, classes)):
        problem = f"the folders that would be classes are called after parts of a data set: {shorten(classes)}. {fix}"
    elif len(classes) == 1:
        problem = f"the only folder that would be a class is {classes[0]}, and there is nothing to learn. Give a file "
        problem += "of labels (CSV, TSV, JSON lines or Parquet), or the folder that has one folder for each class."
    elif parts := [name for name in classes if _PARTS.fullmatch(name)]:
        problem = f"some images are in folders called after classes, others in {parts[0]}. {fix}"
    else:
        return
    # A single class is nothing to learn, and parts of a set are no classes.
    alone = [] if any(map(_PARTS.fullmatch, classes)) and not all(map(is_place, classes)) else [IMAGES_ALONE]
    raise UsageError(f"{_place(found)}: {problem}").with_readings(*alone)


def _check_copies(found: DetectedInput, inventory: Inventory) -> None:
    """Checks that the folders which would be classes do not hold the same folders, which are the classes then.

    Raises:
        UsageError: they do; with a reading for each of the two largest, and one for all of them.
    """
    keys = found.surveyed.listing.keys
    below: dict[str, Counter[str]] = {}
    for key in keys:
        top, _, rest = key.partition("/")
        *folders, _ = rest.split("/")
        inner = [folder for folder in folders if not split_word(folder) and not is_place(folder)]
        below.setdefault(top, Counter())[inner[-1] if inner else ""] += 1
    copies = [top for top, counts in below.items() if set(counts) <= set(below) - {top} and len(counts) > 1]
    if copies:
        problem = (
            f"{shorten(copies)} holds the folders {shorten(sorted(below[copies[0]]))}, as a second copy of the set"
        )
        raise UsageError(f"{_place(found)}: {problem} does.").with_readings(
            Reading(f"{shorten(copies)} is not part of the set", {EXCLUDE: copies}),
            Reading("the innermost folders are the classes", {FORMAT: FILE_NAME, REGEX: _INNERMOST}),
        )
    sets = {top: counts for top, counts in below.items() if len(counts) > 1 and "" not in counts}
    repeated = Counter(name for counts in sets.values() for name in counts)
    shared = [name for name, count in repeated.items() if count > 1]
    if len(sets) < 2 or len(shared) < 2 or not set(sets) <= set(found.surveyed.survey.classes):
        return
    base = inventory.below(found.surveyed.listing.root)
    largest = sorted(sets, key=lambda top: (-sum(sets[top].values()), top))[:2]
    readings = [
        Reading(f"the set is {top} alone", {IMAGES: inventory.named(os.path.join(base, top))}) for top in largest
    ]
    together = Reading("the innermost folders are the classes", {FORMAT: FILE_NAME, REGEX: _INNERMOST})
    raise UsageError(
        f"{_place(found)}: {len(sets)} folders hold the same folders, as copies or parts of a set do: "
        f"{shorten(sorted(sets))} hold {shorten(sorted(shared))}."
    ).with_readings(*readings, together)


def _check_masks(found: DetectedInput) -> None:
    """Checks that no masks are among the images.

    Raises:
        UsageError: there are; with the readings.
    """
    keys = found.surveyed.listing.keys
    several = sum(not is_aside(name) for name in found.surveyed.survey.classes) > 1
    aside = {i for i, key in enumerate(keys) if several and any(map(is_aside, key.split("/")[:-1]))}
    among: MasksAmong | None = find_masks(found.surveyed, found.config.images.max_pixels, aside)
    if among is None:
        return
    images, total = str(found.options[IMAGES]), len(among.masks) + len(among.photographs)
    fix = "Give them as annotations: init IMAGES MASKS, with input.labels.regex where their names differ."
    readings = []
    folders = [{os.path.dirname(key) for key in keys} for keys in (among.masks, among.photographs)]
    if len(folders[0]) == len(folders[1]) == 1 and folders[0] != folders[1]:
        of_masks, of_images = (os.path.join(images, next(iter(one))) for one in folders)
        pair = {TASK: SEGMENTATION, IMAGES: of_images, PATH: of_masks}
        readings.append(Reading(f"{of_masks} has the masks of {of_images}", pair))
    if among.suffix:
        masks = {TASK: SEGMENTATION, PATH: images, REGEX: f"(?P<image>[^/]+){re.escape(among.suffix)}$"}
        readings.append(Reading(f"files that end with {among.suffix} are masks", masks))
    # Files that are named like photographs, or after masks, are neither a class nor images alone.
    stems = set(map(base_stem, among.photographs))
    named = [key for key in among.masks if MASK_WORDS.search(key) or is_derived(base_stem(key), stems)]
    no_class = is_in_one_place(found) or any(map(is_kind_of_masks, found.surveyed.survey.classes))
    alone = [BY_FOLDER] if found.format == CLASS_FOLDERS and not named and not no_class else []
    alone += [] if named or any(base_stem(key) in stems for key in among.masks) else [IMAGES_ALONE]
    raise UsageError(
        f"{images}: {len(among.masks)} of {total} files that were looked at have few colors, as masks do: "
        f"{shorten(among.masks)}; others are photographs: {shorten(among.photographs)}. {fix}"
    ).with_readings(*readings, *alone)
