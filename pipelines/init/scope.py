"""Limits a hypothesis to the images that belong to the set, and accounts for all other images of the folder.

Pictures about a set (previews, results, a logo), images to predict, and a handful in a folder where nothing is
annotated are left out, with a note. Everything else that the annotations, or the folders of classes, do not explain is
a question about those files: they may be images without objects, or not part of the set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import yaml

from shardwright.config.input import TFRECORD
from shardwright.config.split import split_word, stated_split
from shardwright.config.yaml_text import parse_yaml
from shardwright.dataset.ledger import UNLISTED
from shardwright.dataset.manifest import SINGLE
from shardwright.errors import Reading, ShardwrightError, UsageError
from shardwright.formats.base import SEGMENTATION, shorten
from shardwright.formats.class_folders import CLASS_FOLDERS, FILE_NAME, IMAGES_ALONE
from shardwright.formats.image_names import FileEnds, base_stem
from shardwright.formats.mask_folders import MASK_WORDS
from shardwright.label_formats import BY_NAME, FILES, MASKS, WITHOUT_PATH
from shardwright.pipelines.init.inventory import (
    LOSSLESS,
    Inventory,
    common_folder,
    folders_above,
    is_aside,
    is_derived,
    is_handful,
    is_in,
)
from shardwright.pipelines.init.read_trial import (
    CLASSES,
    EXCLUDE,
    FORMAT,
    IMAGES,
    PATH,
    REGEX,
    UNLISTED_IMAGES,
    DetectedInput,
    absolute,
    read_input,
)
from shardwright.running.progress import counted
from shardwright.storage import read_bytes

_MOST_YAML = 1 << 16
_SHOWN = 3
_MARK = re.compile(r"[_-]")
# Images to predict, as nnU-Net calls their folder.
_TO_PREDICT = re.compile(r"(?:images|labels)Ts")
# Folders of images in which there is nothing to mark.
_NOTHING = re.compile(
    r"good|normal|ok|negatives?|empty|backgrounds?|no[_ -].+|without.+|non[_ -].+|healthy|clean", re.I
)


class _Group(NamedTuple):
    """Images of a folder, none of which is annotated.

    Attributes:
        folder: the outermost such folder, or the folder of files that lie beside annotated ones.
        keys: the images.
        patterns: the paths for `input.exclude`.
    """

    folder: str
    keys: Sequence[str]
    patterns: Sequence[str]

    @property
    def name(self) -> str:
        """Returns what messages call them."""
        return shorten(self.keys) if self.folder not in self.patterns else f"{self.folder}/"


def limit_to_set(
    found: DetectedInput, inventory: Inventory | None, given: Mapping[str, Any], failed: Mapping[str, ShardwrightError]
) -> DetectedInput:
    """Reads a hypothesis again, without the images that do not belong to the set.

    Args:
        found: the hypothesis, with the images without annotations as rejects.
        inventory: the folder, where one was looked into.
        given: YAML path -> value of what the user gave.
        failed: path -> error of files of annotations that could not be read.

    Raises:
        ShardwrightError: it is not known what some images are, with `readings`; or their annotations cannot be read.
    """
    options = {path: value for path, value in found.options.items() if path != UNLISTED_IMAGES or path in given}
    if found.format in WITHOUT_PATH and (
        {CLASSES, FORMAT} & set(given) or found.format == TFRECORD or not found.surveyed.survey.classes
    ):
        return found
    if inventory is None or inventory.spans or {EXCLUDE, UNLISTED_IMAGES} & set(given):
        return _reread(found, options, ())
    base = inventory.below(found.surveyed.listing.root)
    # Folders called after pictures about a set, which would be classes.
    by_folder = found.format in WITHOUT_PATH and CLASSES not in found.options
    asides = set(filter(is_aside, found.surveyed.survey.classes if by_folder else ()))
    of_classes = {key for key in found.explained if asides & {*key.split("/")[:-1]}} if asides else set()
    explained = {os.path.join(base, key) for key in found.explained if key not in of_classes}
    inside = {os.path.join(base, key) for key in found.surveyed.listing.keys}
    labels = inventory.below(str(found.options.get(PATH) or inventory.folder))
    of_labels = inventory.files_of(found.surveyed.source.attachments())
    # What a hypothesis leaves out itself are other pictures of the same images.
    aside = found.options.get(EXCLUDE, ())
    known = [*([labels] if labels else []), *([base] if aside else [])]
    others = [key for key in inventory.images if key not in explained and key not in of_labels]
    others = [key for key in others if key in inside or not is_in(key, known)]
    _check_asides(found, inventory)
    if IMAGES not in given and found.format not in WITHOUT_PATH:
        _check_formats(found, inventory, explained, of_labels)
    limits = _stated_folders(inventory, labels)
    left, open_groups = list[_Group](), list[_Group]()
    notes = [f"left out: {shorten(aside)}, other pictures of the same images"] if aside else []
    for group in _groups(others, explained):
        if not any(key in inside for key in group.keys) and (IMAGES in given or found.format in WITHOUT_PATH):
            continue
        reason = _why_not(group, explained, limits, found)
        (left if reason else open_groups).append(group)
        notes += [f"left out: {group.name} ({counted(len(group.keys), 'image')}), {reason}"] if reason else []
    patterns = [one for group in left if any(key in inside for key in group.keys) for one in group.patterns]
    if open_groups:
        raise _what_are(open_groups[0], found, explained, inside, failed, inventory, patterns)
    if not patterns:
        return _reread(found, options, notes)
    if found.format in WITHOUT_PATH:
        # Without some of the images, others could seem to be the classes.
        options = {**options, FORMAT: found.format}
    elif IMAGES not in given and (again := _narrow(found, inventory, options, explained, left)) is not None:
        return _reread(again, {**options, IMAGES: again.options[IMAGES]}, notes)
    options = {**options, EXCLUDE: [*options.get(EXCLUDE, ()), *(_from(base, one) for one in patterns)]}
    return _with_level(found, _reread(found, options, notes), notes)


def _with_level(found: DetectedInput, again: DetectedInput, notes: Sequence[str]) -> DetectedInput:
    """Returns what was read without some folders with the same folders as classes, since `train` alone would be one."""
    keys, names = found.surveyed.listing.keys, found.surveyed.survey.classes
    if found.format != CLASS_FOLDERS or {*again.surveyed.survey.classes} <= {*names}:
        return again
    one = next(iter(found.surveyed.source.annotations()))
    above = "[^/]+/" * keys[one.image].split("/").index(names[one.label])
    options = {**again.options, FORMAT: FILE_NAME, REGEX: f"^{above}(?P<label>[^/]+)/"}
    return _reread(found, options, notes)


def _narrow(
    found: DetectedInput,
    inventory: Inventory,
    options: Mapping[str, Any],
    explained: Collection[str],
    left: Sequence[_Group],
) -> DetectedInput | None:
    """Returns the hypothesis with the folder of the annotated images alone, if it has nothing else and explains all."""
    narrow = common_folder(explained)
    if narrow == inventory.below(found.surveyed.listing.root) or any(
        is_in(key, [narrow]) for group in left for key in group.keys
    ):
        return None
    with suppress(ShardwrightError):
        again = read_input({**options, IMAGES: inventory.named(narrow), UNLISTED_IMAGES: "reject"})
        if len(again.explained) == len(explained) and again.missing <= found.missing:
            return again
    return None


def _from(base: str, path: str) -> str:
    return path.removeprefix(f"{base}/") if base else path


def _check_asides(found: DetectedInput, inventory: Inventory) -> None:
    """Checks that no annotated images are in a folder of pictures about a set, such as results with their own files.

    Raises:
        UsageError: some are, next to others; with both readings. A table that names such images states what they are.
    """
    row = BY_NAME.get(found.format)
    folders = (
        {os.path.dirname(key) for key in found.explained} if row is not None and row.reads in (FILES, MASKS) else ()
    )
    asides = {folder for folder in folders if any(map(is_aside, folder.split("/")))}
    if asides and len(asides) < len(folders):
        shown, count = shorten(sorted(asides)), sum(os.path.dirname(key) in asides for key in found.explained)
        problem = f"{counted(count, 'annotated image')} in {shown} may belong to the set, or be made from it"
        raise UsageError(f"{absolute(inventory.folder)}: {problem}.").with_readings(
            Reading(f"{shown} is not part of the set", {EXCLUDE: sorted(asides)}),
            Reading(f"{shown} is part of the set", {EXCLUDE: []}),
        )


def _check_formats(
    found: DetectedInput, inventory: Inventory, explained: Collection[str], of_labels: Collection[str]
) -> None:
    """Checks that no image is there in several formats, in folders with the same names.

    Raises:
        UsageError: all are, as in `png` and `tiff`; with a reading for each folder.
    """
    tops: dict[str, set[str]] = {}
    endings: dict[str, set[str]] = {}
    for key in explained:
        top, _, rest = key.partition("/")
        stem, ending = os.path.splitext(rest)
        tops.setdefault(top, set()).add(stem)
        endings.setdefault(ending.lower(), set()).add(top)
    same = len(set(map(frozenset, tops.values()))) == 1 and all(len(folders) == 1 for folders in endings.values())
    if len(tops) < 2 or not same:
        return
    path = found.options.get(PATH)
    whole = isinstance(path, str) and not inventory.below(path)
    parts = {
        top: [[key for key in keys if is_in(key, [top])] for keys in (explained, of_labels)] for top in sorted(tops)
    }
    problem = f"{shorten(sorted(tops))} hold images of the same names in several formats, as copies of a set do"
    raise UsageError(f"{absolute(inventory.folder)}: {problem}. Choose one.").with_readings(
        *(
            Reading(
                f"the set is {top} alone",
                {IMAGES: inventory.named(common_folder(images)), PATH: inventory.named(common_folder(masks))}
                if whole
                else {IMAGES: inventory.named(top)},
            )
            for top, (images, masks) in parts.items()
        )
    )


def _reread(found: DetectedInput, options: Mapping[str, Any], notes: Sequence[str]) -> DetectedInput:
    probed = {**options, UNLISTED_IMAGES: found.options.get(UNLISTED_IMAGES)}
    unlisted = any(refusal.code == UNLISTED for refusal in found.surveyed.rejected.values())
    if found.options == options or (found.options == probed and not unlisted):
        # Every image is annotated, so what becomes of the others does not matter.
        again = found.with_options(options)
    else:
        again = read_input(options)
    tasks = [note for note in found.notes if note.startswith(("task:", "detected:"))]
    return replace(again, notes=tuple(dict.fromkeys((*tasks, *again.notes, *notes))))


def _groups(others: Sequence[str], explained: Collection[str]) -> list[_Group]:
    """Groups images that are in folders without annotated ones, and those next to some that are named after these."""
    beside, above = {os.path.dirname(key) for key in explained}, folders_above(explained)
    stems = {os.path.splitext(key)[0] for key in explained}
    found: dict[str, list[str]] = {}
    added: dict[str, list[str]] = {}
    for key in others:
        folder = os.path.dirname(key)
        if folder in beside:
            stem, ending = os.path.splitext(key)
            marks = (mark.start() for mark in _MARK.finditer(stem) if stem[: mark.start()] in stems)
            if (place := next(marks, None)) is not None:
                added.setdefault(os.path.join(folder, f"*{stem[place:]}{ending}"), []).append(key)
            continue
        while folder and os.path.dirname(folder) not in above:
            folder = os.path.dirname(folder)
        found.setdefault(folder, []).append(key)
    groups = [_Group(os.path.dirname(pattern), keys, [pattern]) for pattern, keys in added.items() if len(keys) > 1]
    for folder, keys in found.items():
        patterns = [folder]
        if folder in above:
            endings = sorted({os.path.splitext(key)[1] for key in keys})
            patterns = keys if len(keys) <= _SHOWN else [os.path.join(folder, f"*{ending}") for ending in endings]
        groups.append(_Group(folder, keys, patterns))
    return groups


def _why_not(group: _Group, explained: Collection[str], limits: Sequence[str], found: DetectedInput) -> str:
    """Returns why images are not part of a set; empty where they may be."""
    folder, name = group.folder, os.path.basename(group.folder)
    if limits and not any(is_in(key, limits) for key in group.keys):
        return "since data.yaml names other folders"
    if stated_split(folder) == "test" or _TO_PREDICT.fullmatch(name):
        return "called after images to test or predict, without annotations"
    added = "named like images of the set with something added, and none has annotations"
    if folder in {os.path.dirname(key) for key in explained}:
        return added
    few = is_handful(len(group.keys), len(explained))
    if folder and not split_word(name):
        if all(key.lower().endswith(LOSSLESS) for key in group.keys) and MASK_WORDS.search(name):
            return "called after masks"
        # Where folders are classes, this may be one, unless it is smaller than all others, of which there are several.
        by_table = found.format not in WITHOUT_PATH
        others = [] if by_table else [count for name, count in found.images_of.items() if not is_aside(name)]
        if is_aside(folder) and (by_table or (few and len(others) > 1 and len(group.keys) < min(others))):
            return "called after pictures about a set, and none has annotations"
        stems = {base_stem(key) for key in explained}
        if by_table and all(is_derived(base_stem(key), stems) for key in group.keys):
            return added
    return "none has annotations" if few and not split_word(name) else ""


def _stated_folders(inventory: Inventory, labels: str) -> list[str]:
    """Returns the folders of images that YOLO's YAML file names, below the inventory's; none where it names none."""
    if not labels.lower().endswith((".yaml", ".yml")) or labels not in inventory.keys:
        return []
    try:
        document = parse_yaml(read_bytes(os.path.join(inventory.root, labels), most=_MOST_YAML).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):  # The format's reader reports what is wrong.
        return []
    if not isinstance(document, dict):
        return []
    named = [document.get(key) for key in ("train", "val", "test")]
    texts = [text for one in named for text in (one if isinstance(one, list) else [one]) if isinstance(text, str)]
    # The path of the set is that of the machine which wrote the file: what counts is how its folders end.
    ends = FileEnds(sorted(folders_above(inventory.images) - {""}), inventory.root)
    with suppress(UsageError):
        found = {ends.find(text.rstrip("/")) for text in texts if not text.endswith(".txt")}
        return [] if None in found else sorted(folder for folder in found if folder is not None)
    return []


def _what_are(
    group: _Group,
    found: DetectedInput,
    explained: Collection[str],
    inside: Collection[str],
    failed: Mapping[str, ShardwrightError],
    inventory: Inventory,
    left: Sequence[str],
) -> ShardwrightError:
    """Returns the question about images that nothing explains, or the error of the file that should.

    Without them, what is left out anyway is left out, too, by the patterns `left`.
    """
    images = f"{counted(len(group.keys), 'image')} in {inventory.named(group.folder)}"
    ending = os.path.splitext(str(found.options.get(PATH)))[1]
    for path, error in failed.items():
        near = os.path.dirname(inventory.below(path))
        if os.path.splitext(path)[1] == ending and is_in(group.folder, [near]) and not error.readings:
            return UsageError(f"{error} Without it, {images} have no annotations.")
    base = inventory.below(found.surveyed.listing.root)
    aside = [*found.options.get(EXCLUDE, ()), *(_from(base, one) for one in left)]
    excluded = {EXCLUDE: [*aside, *(_from(base, one) for one in group.patterns)]}
    without = Reading(f"{group.name} is not part of the set", excluded)
    place = absolute(inventory.folder)
    if found.format in WITHOUT_PATH:
        problem = f"{place}: {images} are in no folder of a class: {shorten(group.keys)}."
        is_class = group.folder and is_aside(group.folder)
        classes = Reading(f"{group.folder} is a class", {CLASSES: sorted(found.surveyed.survey.classes)})
        return UsageError(problem).with_readings(without, classes if is_class else IMAGES_ALONE)
    name = found.surveyed.source.name or "the annotations"
    problem = f"{place}: {images} have no annotations in {name}: {shorten(group.keys)}."
    empty = found.config.task == SEGMENTATION or found.surveyed.survey.labels != SINGLE
    meaning = "images without annotations have no objects" if empty else "images without annotations have no class yet"
    unlisted: dict[str, Any] = {UNLISTED_IMAGES: "empty" if empty else "unlabeled"}
    if not any(key in inside for key in group.keys):
        chosen = {path: found.options[path] for path in (IMAGES, PATH)}
        without = Reading(f"{group.name} is not part of the set", chosen)
        unlisted |= {**chosen, IMAGES: inventory.named(common_folder([*explained, *group.keys]))}
    words = {word for key in group.keys for word in key.split("/")[:-1]}
    readings = [without, Reading(meaning, unlisted)]
    return UsageError(problem).with_readings(*(readings[::-1] if any(map(_NOTHING.fullmatch, words)) else readings))
