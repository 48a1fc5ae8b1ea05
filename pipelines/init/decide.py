"""Detects the input in a folder: which files are images, which annotations, and how both are read.

Every hypothesis is read as an ingest reads it. The one that explains most without a contradiction is taken; where
another one may be right as well, or files are left that nothing explains, it is a question, and nothing is guessed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardwright.config.input import TFRECORD
from shardwright.errors import ShardwrightError, UsageError
from shardwright.formats.class_folders import IMAGES_ALONE
from shardwright.formats.detect import NUMBERS
from shardwright.formats.mask_folders import MASK_WORDS
from shardwright.label_formats import WITHOUT_PATH
from shardwright.pipelines.init.choose_split import choose_split
from shardwright.pipelines.init.class_files import with_names
from shardwright.pipelines.init.class_tree import check_classes, check_masks, check_numbers, is_in_one_place
from shardwright.pipelines.init.compare import Trial, best_scope, choose, read_alone, try_all
from shardwright.pipelines.init.hypotheses import without_annotations
from shardwright.pipelines.init.image_sample import try_input
from shardwright.pipelines.init.inventory import Inventory, is_aside, is_place
from shardwright.pipelines.init.other_files import check_records, check_texts, other_notes, with_unread
from shardwright.pipelines.init.question import Decision, ask
from shardwright.pipelines.init.read_trial import (
    EXCLUDE,
    FORMAT,
    IMAGES,
    PATH,
    DetectedInput,
    absolute,
    has_images,
    read_input,
)
from shardwright.pipelines.init.scope import limit_to_set
from shardwright.storage import is_folder, read_once

_MOST_ERRORS = 2


def detect_input(folder: str, labels: str | None, options: Mapping[str, Any]) -> Decision:
    """Detects an input.

    Args:
        folder: folder, glob or URL of the images, or a folder with images and annotations.
        labels: the annotations, where they are known.
        options: YAML path -> value of the configuration, as far as it is given.

    Raises:
        UsageError: there are no images, or the annotations cannot be read. With `readings` where several fit.
        CheckFailed: nothing matched, images without annotations, or an ingest would stop for its rejects. With
            `readings`.
    """
    with read_once():
        inventory = Inventory.of(folder)

        def detect(further: Mapping[str, Any]) -> Decision:
            chosen = {**options, **further}
            found, sample = try_input(_detect(folder, inventory, chosen.get(PATH, labels), chosen))
            return Decision(found, choose_split(found, inventory), sample)

        try:
            return detect({})
        except ShardwrightError as error:
            raise (ask(error, detect) if error.readings else error) from None


def _detect(folder: str, inventory: Inventory | None, labels: Any, given: Mapping[str, Any]) -> DetectedInput:
    # Several files that are named, as a list or by split, are one choice, which the options contain.
    place = folder if inventory is None else inventory.named(without_annotations(inventory.keys))
    if given.get(FORMAT) in WITHOUT_PATH or (labels is not None and not isinstance(labels, str)):
        return _finish(read_input({IMAGES: folder if labels else place, **given}), inventory, given, {})
    trials = try_all(folder, inventory, labels, given)
    by_file = [trial for trial in trials if trial.path is not None]
    if inventory is not None and not {EXCLUDE, FORMAT, PATH} & set(given) and not any(one.read for one in by_file):
        check_records(inventory)
    if labels is None and not any(trial.is_possible for trial in by_file):
        found = _without_annotations(place, inventory, trials, given)
    else:
        chosen = choose(folder, trials, given)
        if chosen.best is None:
            assert chosen.error is not None, "a hypothesis is read or has an error"
            raise chosen.error
        found = best_scope(chosen)
        if labels is None and found.format == NUMBERS:
            check_numbers(folder, found, read_alone(folder, None, given).best)
    # Records hold their annotations: a file of them may have been read as images.
    failed = {one.path: one.error for one in by_file if one.path and one.error is not None and not one.read}
    failed = failed if labels is None and found.format != TFRECORD else {}
    return _finish(limit_to_set(found, inventory, given, failed), inventory, given, failed)


def _without_annotations(
    place: str, inventory: Inventory | None, trials: Sequence[Trial], given: Mapping[str, Any]
) -> DetectedInput:
    """Reads images whose folders or names may state classes, since there are no annotations, or none that are read."""
    failed = [trial for trial in trials if trial.path is not None]
    alone = read_alone(place, inventory, given) if failed else trials[0]
    found = alone.best
    if inventory is not None:
        check_texts(inventory, found)
        places = [inventory.below(str(trial.path)) for trial in failed]
        failed = [one for one, path in zip(failed, places, strict=True) if not any(map(is_aside, path.split("/")[:-1]))]
    # An error of a file helps more than one of a folder whose images were tried as masks, unless it is called so.
    failed.sort(key=lambda trial: _is_likely(str(trial.path)), reverse=True)
    errors = list(dict.fromkeys(str(trial.error) for trial in failed))
    unlikely = found is None or is_in_one_place(found) or any(map(is_place, found.surveyed.survey.classes))
    # A tool has written a file for each image.
    of_tool = any(is_folder(absolute(str(trial.path))) and not has_images(str(trial.path)) for trial in failed)
    of_tool = of_tool or (inventory is not None and 2 * len(failed) >= len(inventory.images))
    try:
        asked = alone.error is not None and any(EXCLUDE in one.options for one in alone.error.readings)
        if errors and (of_tool or (unlikely and not asked)) and has_images(place):
            problem = f"{place}: its annotations cannot be read, and its folders are not classes."
            fix = "Where these are no annotations, move them out of the folder, or name the right ones after it."
            raise UsageError(f"{problem} {' '.join(errors[:_MOST_ERRORS])} {fix}")
        if found is None:
            assert alone.error is not None, "a hypothesis is read or has an error"
            if IMAGES_ALONE in alone.error.readings:
                check_masks(read_input({IMAGES: place, **given, **IMAGES_ALONE.options}))
            raise alone.error
        return check_classes(found, inventory, given)
    except UsageError as error:
        raise with_unread(error, inventory) from None


def _is_likely(path: str) -> bool:
    return MASK_WORDS.search(os.path.basename(path)) is not None if is_folder(absolute(path)) else True


def _finish(
    found: DetectedInput,
    inventory: Inventory | None,
    given: Mapping[str, Any],
    failed: Mapping[str, ShardwrightError],
) -> DetectedInput:
    """Adds names of classes from a file, and notes on files that were not used."""
    found = with_names(found, inventory, given)
    return replace(found, notes=other_notes(found, inventory, given, failed))
