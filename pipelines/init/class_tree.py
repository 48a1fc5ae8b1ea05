"""Checks that folders which would be classes are classes: not parts of a set, copies of it, or masks of its images."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardwright.config.input import TFRECORD
from shardwright.config.split import split_word
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import SEGMENTATION, shorten
from shardwright.formats.class_folders import BY_FOLDER, CLASS_FOLDERS, FILE_NAME, IMAGES_ALONE
from shardwright.formats.image_names import base_stem
from shardwright.formats.mask_folders import MASK_WORDS
from shardwright.formats.mask_names import affix_pattern, affixes
from shardwright.label_formats import WITHOUT_PATH
from shardwright.pipelines.init.image_sample import find_masks
from shardwright.pipelines.init.inventory import (
    Inventory,
    common_folder,
    is_aside,
    is_derived,
    is_in,
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

# The folder that an image lies in, whatever is above.
_INNERMOST = r"(?P<label>[^/]+)/[^/]+$"
_BY_INNERMOST = Reading("the innermost folders are the classes", {FORMAT: FILE_NAME, REGEX: _INNERMOST})
# Parts of a collection, by who or what was recorded, or when.
_RECORDED = re.compile(
    r"(?:batch|part|patient|subject|video|seq(?:uence)?|scene|session|case|chunk|clip|camera|cam|site|flight|day|week|"
    r"month)[ _-]?\d+|(?:19|20)\d\d(?:[_.-]?(?:0[1-9]|1[0-2])(?:[_.-]?[0-3]\d)?)?|\d{3}[A-Z][A-Z0-9_]{4}",
    re.I,
)
# A folder of images below each class, or below some parts of a set.
_PARTS = re.compile(r"(?:im(?:age)?s?|imgs?|pictures?|photos?|masks?|labels?|annotations?)", re.I)


def check_classes(found: DetectedInput, inventory: Inventory | None, given: Mapping[str, Any]) -> DetectedInput:
    """Checks what was detected without annotations.

    Args:
        found: the hypothesis.
        inventory: the folder, where one was looked into.
        given: YAML path -> value of what the user gave.

    Returns:
        The hypothesis; without folders of pictures about a set, where no other folder is a class.

    Raises:
        UsageError: folders may not be classes; with readings.
    """
    classes = found.surveyed.survey.classes
    if {FORMAT, CLASSES} & set(given) or found.format not in WITHOUT_PATH or found.format == TFRECORD:
        return found
    check_masks(found)
    loose = [r for r in found.surveyed.rejected.values() if r.code in ("no_class_folder", "no_label")]
    if classes and loose and EXCLUDE not in given and all(map(is_aside, classes)):
        asides = {key.split(name)[0] + name for key in found.explained for name in classes if f"{name}/" in key}
        again = read_input({**found.options, EXCLUDE: sorted(asides)})
        note = f"left out: {shorten(sorted(asides))}, called after pictures about a set"
        return check_classes(replace(again, notes=(*again.notes, note)), inventory, {**given, EXCLUDE: sorted(asides)})
    if classes and found.format != FILE_NAME:
        _check_names(found, classes, len(loose))
        if inventory is not None and not inventory.spans and IMAGES not in given:
            _check_copies(found, inventory)
            _check_depth(found)
        if all(map(_RECORDED.fullmatch, classes)):
            problem = f"the folders are called after parts of a collection: {shorten(classes)}. Are these the classes?"
            raise UsageError(f"{found.options[IMAGES]}: {problem}").with_readings(IMAGES_ALONE, BY_FOLDER)
    return found


def is_in_one_place(found: DetectedInput) -> bool:
    """Returns whether folders were taken for classes that only hold what a data set consists of, such as `images`."""
    classes = found.surveyed.survey.classes
    return found.format != TFRECORD and (len(classes) < 2 or all(map(is_place, classes)))


def check_numbers(folder: str, numbers: DetectedInput, alone: DetectedInput | None) -> None:
    """Checks that a table of numbers is not next to folders that are classes.

    Args:
        folder: what was looked into.
        numbers: the images with the numbers.
        alone: the images alone, if they can be read so.

    Raises:
        UsageError: it is; with both readings.
    """
    classes = [] if alone is None or is_in_one_place(alone) else list(alone.surveyed.survey.classes)
    if sum(not is_aside(name) for name in classes) > 1:
        path, shown = numbers.options[PATH], shorten(classes)
        raise UsageError(
            f"{folder}: the folders of the images may be classes ({shown}), and {path} has numbers. Choose one of both."
        ).with_readings(BY_FOLDER, Reading(f"the annotations are the numbers in {path}", {PATH: path}))


def _check_names(found: DetectedInput, classes: Sequence[str], loose: int) -> None:
    fix, total = "Give the one with the images to learn from.", len(found.surveyed.listing.keys)
    if 2 * loose > total:
        problem = f"{loose} of {total} images are not in a folder that is a class ({shorten(classes)})."
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
    raise UsageError(f"{found.options[IMAGES]}: {problem}").with_readings(*alone)


def _check_copies(found: DetectedInput, inventory: Inventory) -> None:
    """Checks that the folders which would be classes do not hold the same folders, which are the classes then.

    Raises:
        UsageError: they do; with a reading for each of the two largest, and one for all of them.
    """
    place, below = found.options[IMAGES], dict[str, Counter[str]]()
    for key in found.surveyed.listing.keys:
        top, _, rest = key.partition("/")
        *folders, _ = rest.split("/")
        inner = [folder for folder in folders if not split_word(folder) and not is_place(folder)]
        below.setdefault(top, Counter())[inner[-1] if inner else ""] += 1
    copies = [top for top, counts in below.items() if set(counts) <= set(below) - {top} and len(counts) > 1]
    if copies:
        holds = f"{shorten(copies)} holds the folders {shorten(sorted(below[copies[0]]))}"
        without = Reading(f"{shorten(copies)} is not part of the set", {EXCLUDE: copies})
        raise UsageError(f"{place}: {holds}, as a second copy of the set does.").with_readings(without, _BY_INNERMOST)
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
    # Copies have names in common, parts have none.
    files = Counter(os.path.basename(key) for key in found.surveyed.listing.keys)
    several = [*readings, _BY_INNERMOST] if max(files.values()) > 1 else [_BY_INNERMOST, *readings]
    raise UsageError(
        f"{place}: {len(sets)} folders hold the same folders, as copies or parts of a set do: "
        f"{shorten(sorted(sets))} hold {shorten(sorted(shared))}."
    ).with_readings(*several)


def _check_depth(found: DetectedInput) -> None:
    """Checks that the folders which would be classes do not hold folders of several images that may be, too.

    Raises:
        UsageError: they do, as in `a/abbey`, `a/airport` and `b/bar`; with both readings. Those whose names have
            numbers are parts of a class, such as videos.
    """
    inside: dict[str, Counter[str]] = {}
    for key in found.surveyed.listing.keys:
        folders = [folder for folder in key.split("/")[:-1] if not (split_word(folder) or is_place(folder))]
        if len(folders) < 2:
            return
        inside.setdefault(folders[0], Counter())[folders[-1]] += 1
    inner = [name for counts in inside.values() for name in counts]
    pairs = [(top.lower(), name.lower()) for top, counts in inside.items() for name in counts]
    initials = all(name.startswith(top) and name != top for top, name in pairs)
    single = any(count == 1 for counts in inside.values() for count in counts.values())
    if any(re.search(r"\d", name) for name in inner) or (not initials and (single or len(inner) <= len(inside))):
        return
    readings = [_BY_INNERMOST, BY_FOLDER] if initials else [BY_FOLDER, _BY_INNERMOST]
    problem = f"the folders {shorten(sorted(inside))} hold the folders {shorten(sorted(inner))}"
    raise UsageError(f"{found.options[IMAGES]}: {problem}, and either may be the classes.").with_readings(*readings)


def check_masks(found: DetectedInput) -> None:
    """Checks that no masks are among the images.

    Raises:
        UsageError: there are; with the readings.
    """
    keys, classes = found.surveyed.listing.keys, found.surveyed.survey.classes
    several = sum(not is_aside(name) for name in classes) > 1
    aside = {i for i, key in enumerate(keys) if several and any(map(is_aside, key.split("/")[:-1]))}
    masks, photographs = find_masks(found.surveyed, found.config.images.max_pixels, aside)
    if not masks:
        return
    images = str(found.options[IMAGES])
    readings = []
    beside = {os.path.dirname(key) for key in masks}
    if all(any(map(is_aside, folder.split("/"))) for folder in beside):
        without = Reading(f"{shorten(sorted(beside))} is not part of the set", {EXCLUDE: sorted(beside)})
        readings.append(without)
    of_masks, of_images = (common_folder(some) for some in (masks, photographs))
    if of_masks and of_images and not (is_in(of_masks, [of_images]) or is_in(of_images, [of_masks])):
        of_masks, of_images = (os.path.join(images, folder) for folder in (of_masks, of_images))
        pair = {TASK: SEGMENTATION, IMAGES: of_images, PATH: of_masks}
        readings.append(Reading(f"{of_masks} has the masks of {of_images}", pair))
    kinds = affixes(list(map(base_stem, masks)), set(map(base_stem, keys)))
    for affix in kinds:
        form, pattern = affix_pattern(affix)
        options: dict[str, Any] = {TASK: SEGMENTATION, PATH: images, REGEX: pattern}
        if others := sorted(f"{before}*{behind}.*" for before, behind in kinds if (before, behind) != affix):
            options[EXCLUDE] = [*others, *(f"**/{other}" for other in others)]
        readings.append(Reading(f"files that {form} are masks", options))
    # Files that are named like photographs, or after masks, are neither a class nor images alone.
    stems = set(map(base_stem, photographs))
    named = [key for key in masks if MASK_WORDS.search(key) or is_derived(base_stem(key), stems)]
    no_class = is_in_one_place(found) or any(map(is_kind_of_masks, classes))
    alone = [BY_FOLDER] if found.format == CLASS_FOLDERS and not named and not no_class else []
    alone += [] if named or kinds or readings or any(base_stem(key) in stems for key in masks) else [IMAGES_ALONE]
    raise UsageError(
        f"{images}: {len(masks)} of {len(masks) + len(photographs)} files that were looked at have few colors, as "
        f"masks do: {shorten(masks)}; others are photographs: {shorten(photographs)}. Give them as annotations: init "
        "IMAGES MASKS, with input.labels.regex where their names differ."
    ).with_readings(*readings, *alone)
