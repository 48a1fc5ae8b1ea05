"""Decides which hypothesis on a folder is right: which files are images, which annotations, and how both are read.

Every hypothesis is read as an ingest reads it. The one that explains most without a contradiction is taken; where
another one may be right as well, or files are left that nothing explains, it is a question, and nothing is guessed.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from shardwright.config.input import TFRECORD
from shardwright.config.split import stated_split
from shardwright.errors import Reading, ShardwrightError, UsageError
from shardwright.formats.base import counted_endings, shorten
from shardwright.formats.class_folders import BY_FOLDER, IMAGES_ALONE
from shardwright.formats.table_formats import NUMBERS
from shardwright.images.header import has_image_ending
from shardwright.ingest.survey import IGNORED_FILES
from shardwright.label_formats import WITHOUT_PATH
from shardwright.pipelines.init.choose_split import choose_split
from shardwright.pipelines.init.class_files import find_class_file, numbers_of
from shardwright.pipelines.init.class_tree import check_folders, is_in_one_place
from shardwright.pipelines.init.hypotheses import propose
from shardwright.pipelines.init.image_sample import try_input
from shardwright.pipelines.init.inventory import Inventory, is_place
from shardwright.pipelines.init.question import Decision, ask
from shardwright.pipelines.init.read_trial import (
    CLASSES,
    EXCLUDE,
    FORMAT,
    IMAGES,
    PATH,
    UNLISTED_IMAGES,
    DetectedInput,
    absolute,
    has_images,
    read_input,
)
from shardwright.pipelines.init.scope import FailedFile, limit_to_set
from shardwright.running.progress import counted
from shardwright.storage import is_folder, is_remote
from shardwright.storage.listing import is_several

_MOST_ERRORS, _SHOWN = 2, 3
# Annotations of one image in so many are an example next to those of all others.
_NEXT_TO_NOTHING = 100
# Files that no ingest reads and nobody misses: descriptions, code, settings.
_NO_DATA = (".md", ".py", ".ipynb", ".sh", ".yaml", ".yml", ".toml", ".cfg", ".html", ".pdf", ".rst")


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
    labels = options.get(PATH, labels)
    inventory = Inventory.of(folder)

    def detect(further: Mapping[str, Any]) -> Decision:
        chosen = {**options, **further}
        found, sample = try_input(_detect(folder, inventory, chosen.get(PATH, labels), chosen))
        return Decision(found, choose_split(found, inventory), sample)

    try:
        return detect({})
    except ShardwrightError as error:
        raise (ask(error, detect) if error.readings else error) from None


@dataclass
class _Trial:
    """Hypotheses with the same annotations that were read.

    Attributes:
        path: the annotations.
        images: folder of the images of the first one.
        read: those that could be read, the best first; images without annotations are rejects.
        error: of one that could not be read; one with readings is preferred.
    """

    path: str | None
    images: str = ""
    read: list[DetectedInput] = field(default_factory=list)
    error: ShardwrightError | None = None

    def add(self, given: Mapping[str, Any]) -> None:
        """Reads a hypothesis."""
        self.images = self.images or str(given[IMAGES])
        if PATH in given and UNLISTED_IMAGES not in given:
            given = {**given, UNLISTED_IMAGES: "reject"}
        try:
            self.read.append(read_input(given))
        except ShardwrightError as error:
            if self.error is None or (error.readings and not self.error.readings):
                self.error = error.with_readings(*(_without_probe(one) for one in error.readings))
        self.read.sort(key=lambda one: (-len(one.explained), one.missing))

    @property
    def best(self) -> DetectedInput | None:
        """Returns the hypothesis that explains most images."""
        return self.read[0] if self.read else None

    @property
    def is_whole(self) -> bool:
        """Returns whether every image of the best one is annotated, and every annotation is of an image."""
        best = self.best
        return best is not None and not best.missing and len(best.explained) == len(best.surveyed.listing.keys)

    @property
    def is_possible(self) -> bool:
        """Returns whether the annotations are of images of the folder, perhaps after an answer."""
        return bool(self.read) or (self.error is not None and bool(self.error.readings))


def _without_probe(reading: Reading) -> Reading:
    probed = (UNLISTED_IMAGES, "reject")
    options = {path: value for path, value in reading.options.items() if (path, value) != probed}
    return Reading(reading.meaning, options or reading.options)


def _detect(folder: str, inventory: Inventory | None, labels: Any, given: Mapping[str, Any]) -> DetectedInput:
    # Several files that are named, as a list or by split, are one choice, which the options contain.
    if given.get(FORMAT) in WITHOUT_PATH or (labels is not None and not isinstance(labels, str)):
        return _finish(read_input({IMAGES: folder, **given}), folder, inventory, given)
    trials = _try_all(folder, inventory, labels, given)
    if labels is None and all(trial.path is not None and not trial.is_possible for trial in trials):
        return _without_annotations(folder, inventory, trials, given)
    possible = _compare([trial for trial in trials if trial.is_possible], inventory, given)
    if len(possible) > 1:
        raise _several(folder, possible)
    chosen = next(iter(possible), trials[0])
    found = chosen.best
    if found is None:
        assert chosen.error is not None, "a hypothesis is read or has an error"
        raise chosen.error
    if chosen.path is None:
        return _finish(check_folders(found, inventory, given), folder, inventory, given)
    if labels is None and found.format == NUMBERS:
        _check_numbers(folder, given, found)
    # The files of a glob are read already, and records hold their annotations.
    failed = [
        FailedFile(trial.path, trial.error)
        for trial in trials
        if labels is None and trial.path is not None and not trial.read and trial.error is not None
        if found.format != TFRECORD
    ]
    limited = limit_to_set(_of_one_scope(chosen, given), inventory, given, failed)
    return _finish(limited, folder, inventory, given, [one for one in failed if not is_several(one.path)])


def _try_all(folder: str, inventory: Inventory | None, labels: str | None, given: Mapping[str, Any]) -> list[_Trial]:
    """Reads the hypotheses; of one file, further folders of images only where one cannot be read or has too few."""
    if inventory is None:
        alone = _Trial(labels)
        alone.add({IMAGES: folder, **({PATH: labels} if labels else {}), **given})
        return [alone]
    trials: dict[str | None, _Trial] = {}
    proposals = propose(inventory.keys, None if labels is None else inventory.below(labels))
    for images, below in dict.fromkeys(proposals):
        if inventory.spans and is_several(below):
            continue  # A path of spans is not a glob, too.
        path = labels if labels is not None or below is None else inventory.named(below)
        trial = trials.setdefault(path, _Trial(path))
        if trial.best is None or trial.best.missing or trial.error is not None:
            trial.add({IMAGES: inventory.named(images), **({PATH: path} if path else {}), **given})
    return list(trials.values())


def _of_one_scope(trial: _Trial, given: Mapping[str, Any]) -> DetectedInput:
    """Returns the hypothesis that is ahead of the others with the same annotations.

    Raises:
        UsageError: separate folders of images fit equally, as copies do.
    """
    best, *others = trial.read
    even = [
        one
        for one in others
        if (len(one.explained), one.missing) == (len(best.explained), best.missing)
        and not _overlap(one.surveyed.listing.root, best.surveyed.listing.root)
    ]
    split = stated_split(os.path.basename(str(trial.path)))
    of_split = [one for one in (best, *even) if stated_split(str(one.options[IMAGES])) == split is not None]
    if not even or len(of_split) == 1:
        return of_split[0] if even else best
    folders = [str(one.options[IMAGES]) for one in (best, *even)]
    raise UsageError(f"{trial.path}: fits the images of {' and '.join(folders)} alike. Choose one.").with_readings(
        *(Reading(f"the images are those of {images}", {IMAGES: images, PATH: trial.path}) for images in folders)
    )


def _overlap(one: str, other: str) -> bool:
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)


def _compare(possible: list[_Trial], inventory: Inventory | None, given: Mapping[str, Any]) -> list[_Trial]:
    """Returns those that may be right: without parts of others, and those that explain next to nothing."""
    globs = [trial.path for trial in possible if is_several(trial.path)]
    possible = [trial for trial in possible if trial.path in globs or not _is_in_glob(trial.path, globs)]
    possible = [trial for trial in possible if not _is_referred_to(trial.path, possible)]
    if len(possible) > 1:
        possible = [trial for trial in possible if trial.best is None or trial.best.format != NUMBERS] or possible
    read = [trial for trial in possible if trial.best is not None]
    if len(read) == 1 and read[0].is_whole:
        return read
    if len(possible) == len(read) > 1:
        explained = {trial.path: _paths(trial) for trial in read}
        most = max(map(len, explained.values()))
        ahead = [trial for trial in read if len(explained[trial.path]) * _NEXT_TO_NOTHING > most]
        joined = _join(ahead, explained, given)
        return [joined] if joined is not None else ahead
    return possible


def _paths(trial: _Trial) -> frozenset[str]:
    """Returns the absolute paths of the images that the best hypothesis explains."""
    assert trial.best is not None, "it was read"
    return frozenset(os.path.join(trial.best.surveyed.listing.root, key) for key in trial.best.explained)


def _join(
    read: Sequence[_Trial], explained: Mapping[str | None, frozenset[str]], given: Mapping[str, Any]
) -> _Trial | None:
    """Returns one hypothesis of several files of one format, each of which annotates other images."""
    bests = [trial.best for trial in read if trial.best is not None and trial.path is not None]
    union = frozenset().union(*(explained[trial.path] for trial in read))
    files = [trial.path for trial in read if trial.path is not None and not is_folder(absolute(trial.path))]
    disjoint = len(union) == sum(len(explained[trial.path]) for trial in read)
    if len(files) < max(2, len(read)) or not disjoint or len({best.format for best in bests}) > 1:
        return None
    roots = [best.surveyed.listing.root for best in bests]
    whole = next((str(best.options[IMAGES]) for best in bests if all(_is_below(root, best) for root in roots)), None)
    images = whole if whole is not None else os.path.commonpath([str(best.options[IMAGES]) for best in bests])
    joined = _Trial(None)
    joined.add({**given, IMAGES: images, PATH: files})
    best = joined.best
    if best is None or len(best.explained) != len(union):
        return None
    joined.path = ", ".join(files)
    return joined


def _is_below(root: str, best: DetectedInput) -> bool:
    return f"{root}/".startswith(f"{best.surveyed.listing.root}/")


def _is_in_glob(path: str | None, globs: Sequence[str | None]) -> bool:
    return path is not None and any(glob is not None and fnmatch.fnmatchcase(path, glob) for glob in globs)


def _is_referred_to(folder: str | None, possible: Sequence[_Trial]) -> bool:
    """Returns whether another file of annotations consists of the files of a folder, too, as COCO panoptic does."""
    if folder is None or not is_folder(absolute(folder)):
        return False
    inside = absolute(folder).rstrip("/") + "/"
    for trial in possible:
        if trial.path in (None, folder) or trial.best is None or is_folder(absolute(trial.path)):
            continue
        attached = trial.best.surveyed.source.attachments()
        if attached is not None and any(attached.path(i).startswith(inside) for i in range(len(attached.keys))):
            return True
    return False


def _several(folder: str, possible: Sequence[_Trial]) -> UsageError:
    paths = [trial.path for trial in possible if trial.path is not None]
    problem = f"{folder}: several files may be its annotations: {shorten(paths, len(paths))}. Name one of them after"
    return UsageError(f"{problem} the folder.").with_readings(
        *(Reading(f"the annotations are {path}", {PATH: path}) for path in paths)
    )


def _without_annotations(
    folder: str, inventory: Inventory | None, trials: Sequence[_Trial], given: Mapping[str, Any]
) -> DetectedInput:
    """Reads images whose folders or names may state classes, since no file of annotations can be read."""
    alone = _Trial(None)
    alone.add({IMAGES: folder, **given})
    # An error of a file helps more than one of a folder, whose images were tried as masks.
    ordered = sorted(trials, key=lambda trial: trial.path is not None and is_folder(absolute(trial.path)))
    errors = list(dict.fromkeys(str(trial.error) for trial in ordered if trial.error is not None))
    found = alone.best
    unlikely = found is None or is_in_one_place(found) or any(map(is_place, found.surveyed.survey.classes))
    if errors and unlikely and has_images(folder):
        problem = f"{folder}: its annotations cannot be read, and its folders are not classes."
        # The images are those next to the annotations, not the masks.
        images = {trial.images for trial in trials}
        there = {IMAGES: images.pop()} if len(images) == 1 else {}
        alone_there = Reading(IMAGES_ALONE.meaning, {**there, **IMAGES_ALONE.options})
        raise UsageError(f"{problem} {' '.join(errors[:_MOST_ERRORS])}").with_readings(alone_there)
    if found is None:
        assert alone.error is not None, "a hypothesis is read or has an error"
        raise alone.error
    # Records hold their annotations: a file of them was read, as images.
    read = trials if found.format != TFRECORD else []
    failed = [FailedFile(trial.path, trial.error) for trial in read if trial.path and trial.error]
    return _finish(check_folders(found, inventory, given), folder, inventory, given, failed)


def _check_numbers(folder: str, given: Mapping[str, Any], numbers: DetectedInput) -> None:
    """Checks that a table of numbers is not next to folders that are classes.

    Raises:
        UsageError: it is; with both readings.
    """
    alone = _Trial(None)
    alone.add({IMAGES: folder, **given})
    found = alone.best
    if found is None or len(found.surveyed.survey.classes) < 2 or is_in_one_place(found):
        return
    path = numbers.options[PATH]
    shown = shorten(found.surveyed.survey.classes)
    raise UsageError(
        f"{folder}: the folders of the images may be classes ({shown}), and {path} has numbers. Choose one of both."
    ).with_readings(BY_FOLDER, Reading(f"the annotations are the numbers in {path}", {PATH: path}))


def _finish(
    found: DetectedInput,
    folder: str,
    inventory: Inventory | None,
    given: Mapping[str, Any],
    failed: Sequence[FailedFile] = (),
) -> DetectedInput:
    """Adds names of classes from a file, and notes on files that were not used."""
    found = _with_names(found, folder, given)
    kinds: dict[str, list[str]] = {}
    for _, error in failed:
        kinds.setdefault(re.sub(r"\S*[/.]\S*", "", str(error)), []).append(str(error))
    notes = [
        f"not read as annotations: {same[0]}"
        + (f" Likewise {counted(len(same) - 1, 'more file')}." if same[1:] else "")
        for same in kinds.values()
    ]
    notes += _unused(found, inventory)
    # What follows on files that are left out says more.
    known = [note for note in found.notes if not (inventory is not None and note.startswith(IGNORED_FILES))]
    if EXCLUDE not in given:
        known = [note for note in known if not note.startswith("images: left out by input.exclude")]
    return replace(found, notes=(*known, *notes))


def _unused(found: DetectedInput, inventory: Inventory | None) -> list[str]:
    """Returns a note on the files of the folder that are neither images of the set nor its annotations."""
    if inventory is None or inventory.spans or is_remote(inventory.root) or found.format == TFRECORD:
        return []
    surveyed = found.surveyed
    used = {surveyed.listing.path(i) for i in range(len(surveyed.listing.keys))}
    attached = surveyed.source.attachments()
    used |= set() if attached is None else {attached.path(i) for i in range(len(attached.keys))}
    used |= {surveyed.labels or "", *surveyed.further}
    rest = [key for key in inventory.keys if os.path.join(inventory.root, key) not in used]
    rest = [key for key in rest if not (key.lower().endswith(_NO_DATA) or has_image_ending(key))]
    shown = ", ".join(rest) if len(rest) <= _SHOWN else f"{counted(len(rest), 'file')}: {counted_endings(rest)}"
    return [f"not used: {shown}"] if rest else []


def _with_names(found: DetectedInput, folder: str, given: Mapping[str, Any]) -> DetectedInput:
    """Takes the names of classes from a file next to the annotations, where these have numbers or colors alone."""
    path = found.options.get(PATH)
    if CLASSES in given or not isinstance(path, str):
        return found
    numbers = numbers_of(found.surveyed.survey.classes, found.options.get(CLASSES))
    labels = found.surveyed.labels or absolute(path)
    folders = [absolute(folder), os.path.dirname(labels.rstrip("/")), *([labels] if is_folder(labels) else [])]
    named = find_class_file(folders, numbers, [labels]) if numbers else None
    if named is None:
        return found
    with suppress(ShardwrightError):
        again = read_input({**found.options, CLASSES: named[1]})
        return replace(again, notes=(*again.notes, f"classes: the names are those of {named[0]}"))
    return found
