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
from shardwright.formats.class_folders import BY_FOLDER
from shardwright.formats.image_names import NameIndex
from shardwright.formats.mask_names import common_start
from shardwright.formats.rows import CsvFormat
from shardwright.formats.table_formats import NUMBERS
from shardwright.images.header import has_image_ending
from shardwright.ingest.split_inputs import listed_image
from shardwright.ingest.survey import IGNORED_FILES
from shardwright.label_formats import WITHOUT_PATH
from shardwright.pipelines.init.choose_split import choose_split
from shardwright.pipelines.init.class_files import find_class_file, numbers_of
from shardwright.pipelines.init.class_tree import check_folders, is_in_one_place
from shardwright.pipelines.init.hypotheses import propose
from shardwright.pipelines.init.image_sample import try_input
from shardwright.pipelines.init.inventory import Inventory, folders_above, is_aside, is_in, is_kind_of_masks, is_place
from shardwright.pipelines.init.question import Decision, ask
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
    has_images,
    read_input,
)
from shardwright.pipelines.init.scope import limit_to_set
from shardwright.running.progress import counted
from shardwright.storage import is_folder, is_remote, list_names, read_once, read_start
from shardwright.storage.listing import is_several, name_lines

_MOST_ERRORS, _SHOWN = 2, 3
_MOST_TEXTS, _TEXT_BYTES = 20, 1 << 16
_RECORDS = re.compile(r"\.tf_?rec(?:ord)?s?(?:$|[-.])", re.IGNORECASE)
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
    with read_once():
        return _decide(folder, options.get(PATH, labels), options)


def _decide(folder: str, labels: Any, options: Mapping[str, Any]) -> Decision:
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
        path: the annotations; of several files, all of their paths.
        read: those that could be read, the best first; images without annotations are rejects.
        error: of one that could not be read; one with readings is preferred.
    """

    path: str | None
    read: list[DetectedInput] = field(default_factory=list)
    error: ShardwrightError | None = None

    def add(self, given: Mapping[str, Any]) -> None:
        """Reads a hypothesis."""
        if PATH in given and UNLISTED_IMAGES not in given:
            given = {**given, UNLISTED_IMAGES: "reject"}
        try:
            self.read.append(read_input(given))
        except ShardwrightError as error:
            if self.error is None or (error.readings and not self.error.readings):
                probe = (UNLISTED_IMAGES, "reject")
                rest = [
                    (one.meaning, {k: v for k, v in one.options.items() if (k, v) != probe}, one)
                    for one in error.readings
                ]
                self.error = error.with_readings(
                    *(Reading(meaning, left or one.options) for meaning, left, one in rest)
                )
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
    def chosen(self) -> Mapping[str, Any]:
        """Returns the options that choose these annotations; of several files, with their images."""
        best = self.best
        several = best is not None and not isinstance(best.options.get(PATH), str)
        return {IMAGES: best.options[IMAGES], PATH: best.options[PATH]} if several and best else {PATH: self.path}

    @property
    def explained(self) -> frozenset[str]:
        """Returns the absolute paths of the images that the best hypothesis explains."""
        best = self.best
        return (
            frozenset()
            if best is None
            else frozenset(os.path.join(best.surveyed.listing.root, key) for key in best.explained)
        )

    @property
    def is_possible(self) -> bool:
        """Returns whether the annotations are of images of the folder, perhaps after an answer."""
        return bool(self.read) or (self.error is not None and bool(self.error.readings))


def _detect(folder: str, inventory: Inventory | None, labels: Any, given: Mapping[str, Any]) -> DetectedInput:
    # Several files that are named, as a list or by split, are one choice, which the options contain.
    if given.get(FORMAT) in WITHOUT_PATH or (labels is not None and not isinstance(labels, str)):
        return _finish(read_input({IMAGES: folder, **given}), inventory, given)
    trials = _try_all(folder, inventory, labels, given)
    if (
        inventory is not None
        and not {EXCLUDE, FORMAT, PATH} & set(given)
        and not any(one.read for one in trials if one.path)
    ):
        _check_records(inventory)
    if labels is None and all(trial.path is not None and not trial.is_possible for trial in trials):
        return _without_annotations(folder, inventory, trials, given)
    possible = _compare([trial for trial in trials if trial.is_possible], given)
    if len(possible) > 1:
        raise _several(folder, possible)
    chosen = next(iter(possible), trials[0])
    found = chosen.best
    if chosen.path is None and inventory is not None and (found is None or is_in_one_place(found)):
        _check_texts(inventory)
    if found is None:
        assert chosen.error is not None, "a hypothesis is read or has an error"
        raise chosen.error
    if chosen.path is None:
        return _finish(check_folders(found, inventory, given), inventory, given)
    if labels is None and found.format == NUMBERS:
        _check_numbers(folder, given, found)
    # Records hold their annotations.
    read = trials if labels is None and found.format != TFRECORD else []
    failed = {one.path: one.error for one in read if one.path is not None and not one.read and one.error is not None}
    limited = limit_to_set(_of_one_scope(chosen), inventory, given, failed)
    # The files of a glob are read already.
    return _finish(limited, inventory, given, [error for path, error in failed.items() if not is_several(path)])


def _try_all(folder: str, inventory: Inventory | None, labels: str | None, given: Mapping[str, Any]) -> list[_Trial]:
    """Reads the hypotheses; of one file, further folders of images only where one cannot be read or has too few."""
    if inventory is None:
        alone = _Trial(labels)
        alone.add({IMAGES: folder, **({PATH: labels} if labels else {}), **given})
        return [alone]
    trials: dict[str, _Trial] = {}
    proposals = propose(inventory.keys, None if labels is None else inventory.below(labels))
    for images, below in dict.fromkeys(proposals):
        if inventory.spans and is_several(below):
            continue  # A path of spans is not a glob, too.
        path = labels if labels is not None or below is None else inventory.named(below)
        if path is None:
            return [_read_alone(inventory.named(images), inventory, given)]
        trial = trials.setdefault(path, _Trial(path))
        if trial.best is None or trial.best.missing or trial.error is not None:
            trial.add({IMAGES: inventory.named(images), PATH: path, **given})
    return list(trials.values())


def _of_one_scope(trial: _Trial) -> DetectedInput:
    """Returns the hypothesis that is ahead of the others with the same annotations.

    Raises:
        UsageError: separate folders of images fit equally, as copies do.
    """
    # Colored copies have the names of the images, too.
    read = [one for one in trial.read if not is_aside(one.surveyed.listing.root)] or trial.read
    best, *others = read
    alike = [one for one in others if (len(one.explained), one.missing) == (len(best.explained), best.missing)]
    root, roots = f"{best.surveyed.listing.root}/", [f"{one.surveyed.listing.root}/" for one in alike]
    even = [
        one for one, other in zip(alike, roots, strict=True) if not (root.startswith(other) or other.startswith(root))
    ]
    split = stated_split(os.path.basename(str(trial.path)))
    of_split = [one for one in (best, *even) if stated_split(str(one.options[IMAGES])) == split is not None]
    if not even or len(of_split) == 1:
        return of_split[0] if even else best
    folders = [str(one.options[IMAGES]) for one in (best, *even)]
    raise UsageError(f"{trial.path}: fits the images of {' and '.join(folders)} alike. Choose one.").with_readings(
        *(Reading(f"the images are those of {images}", {IMAGES: images, PATH: trial.path}) for images in folders)
    )


def _compare(possible: list[_Trial], given: Mapping[str, Any]) -> list[_Trial]:
    """Returns those that may be right: without parts of others, and those that explain next to nothing."""
    globs = [str(trial.path) for trial in possible if is_several(trial.path)]
    covered = {trial.path for trial in possible if any(fnmatch.fnmatchcase(str(trial.path), glob) for glob in globs)}
    possible = [trial for trial in possible if trial.path in globs or trial.path not in covered]
    possible = [trial for trial in possible if not _is_referred_to(trial.path, possible)]
    if len(possible) > 1:
        possible = [trial for trial in possible if trial.best is None or trial.best.format != NUMBERS] or possible
    read = [trial for trial in possible if trial.best is not None]
    if len(read) == 1 and read[0].is_whole:
        return read
    if len(possible) == len(read) > 1:
        most = max(len(trial.explained) for trial in read)
        ahead = [trial for trial in read if len(trial.explained) * _NEXT_TO_NOTHING > most]
        joined, parts = _join(ahead, given)
        if joined is not None:
            return [joined, *(trial for trial in ahead if not any(trial is part for part in parts))]
        return ahead
    return possible


def _join(read: Sequence[_Trial], given: Mapping[str, Any]) -> tuple[_Trial | None, Sequence[_Trial]]:
    """Returns one hypothesis of files of one format and header, each of which annotates other images; and these."""
    kinds: dict[tuple[str, ...], list[_Trial]] = {}
    for trial in read:
        if trial.best is not None and trial.path is not None:
            source = trial.best.surveyed.source
            header = source.header if isinstance(source, CsvFormat) else ()
            kinds.setdefault((trial.best.format, *header), []).append(trial)
    read = max(kinds.values(), key=len)
    bests = [trial.best for trial in read if trial.best is not None]
    union = frozenset().union(*(trial.explained for trial in read))
    files = [trial.path for trial in read if trial.path is not None and not is_folder(absolute(trial.path))]
    disjoint = len(union) == sum(len(trial.explained) for trial in read)
    if len(files) < max(2, len(read)) or not disjoint:
        return None, ()
    roots = [f"{best.surveyed.listing.root}/" for best in bests]
    above = (best for best, root in zip(bests, roots, strict=True) if all(one.startswith(root) for one in roots))
    whole = next((str(best.options[IMAGES]) for best in above), None)
    images = whole if whole is not None else os.path.commonpath([str(best.options[IMAGES]) for best in bests])
    joined = _Trial(None)
    joined.add({**given, IMAGES: images, PATH: files})
    best = joined.best
    if best is None or len(best.explained) != len(union):
        return None, ()
    joined.path = ", ".join(files)
    return joined, read


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
        *_as_classes(possible),
        *(Reading(f"the annotations are {trial.path}", trial.chosen) for trial in possible if trial.path is not None),
    )


def _as_classes(possible: Sequence[_Trial]) -> list[Reading]:
    """Returns the reading of folders such as `mask_car` and `mask_road` as one class each; none of other paths."""
    places = [os.path.split(trial.path.rstrip("/")) for trial in possible if trial.path is not None]
    names = [name for _, name in places]
    start, end = common_start(names), common_start([name[::-1] for name in names])[::-1]
    labels = [name[len(start) : len(name) - len(end)] for name in names]
    together = len({above for above, _ in places}) == 1 and all(
        is_folder(absolute(os.path.join(*one))) for one in places
    )
    if not together or not all(labels) or any(map(is_kind_of_masks, names)):
        return []
    pattern = f"^{re.escape(start)}(?P<label>[^/]+){re.escape(end)}/(?P<image>.+)$"
    images = {str(trial.best.options[IMAGES]) for trial in possible if trial.best is not None}
    options = {IMAGES: images.pop(), PATH: places[0][0], REGEX: pattern} if len(images) == 1 else {}
    return [Reading(f"each folder is a class ({shorten(labels)})", options)] if options else []


def _without_annotations(
    folder: str, inventory: Inventory | None, trials: Sequence[_Trial], given: Mapping[str, Any]
) -> DetectedInput:
    """Reads images whose folders or names may state classes, since no file of annotations can be read."""
    alone = _read_alone(folder, inventory, given)
    if inventory is not None:
        places = [inventory.below(str(trial.path)) for trial in trials]
        trials = [one for one, path in zip(trials, places, strict=True) if not any(map(is_aside, path.split("/")[:-1]))]
    # An error of a file helps more than one of a folder, whose images were tried as masks.
    ordered = sorted(trials, key=lambda trial: trial.path is not None and is_folder(absolute(trial.path)))
    errors = list(dict.fromkeys(str(trial.error) for trial in ordered if trial.error is not None))
    found = alone.best
    unlikely = found is None or is_in_one_place(found) or any(map(is_place, found.surveyed.survey.classes))
    if errors and unlikely and has_images(folder):
        problem = f"{folder}: its annotations cannot be read, and its folders are not classes."
        fix = "Where these are no annotations, move them out of the folder, or name the right ones after it."
        raise UsageError(f"{problem} {' '.join(errors[:_MOST_ERRORS])} {fix}")
    if found is None:
        assert alone.error is not None, "a hypothesis is read or has an error"
        raise alone.error
    # Records hold their annotations: a file of them was read, as images.
    read = trials if found.format != TFRECORD else []
    failed = [trial.error for trial in read if trial.path and trial.error]
    return _finish(check_folders(found, inventory, given), inventory, given, failed)


def _read_alone(images: str, inventory: Inventory | None, given: Mapping[str, Any]) -> _Trial:
    """Reads images without annotations; an error has the reading without folders of pictures about a set."""
    alone = _Trial(None)
    alone.add({IMAGES: images, **given})
    if alone.read or inventory is None or inventory.spans or EXCLUDE in given:
        return alone
    base = inventory.below(images)
    folders = [folder[len(base) + bool(base) :] for folder in folders_above(inventory.images) if is_in(folder, [base])]
    asides = sorted(folder for folder in folders if folder and is_aside(folder))
    readings = alone.error.readings if alone.error is not None else ()
    if asides and alone.error is not None and not any(EXCLUDE in reading.options for reading in readings):
        without = Reading(f"{shorten(asides)} is not part of the set", {EXCLUDE: asides})
        alone.error = alone.error.with_readings(without, *readings)
    return alone


def _check_records(inventory: Inventory) -> None:
    """Checks that images are not a few beside TFRecord files, which hold the images.

    Raises:
        UsageError: they are; with the readings without one or the other.
    """
    records = [key for key in inventory.keys if _RECORDS.search(key)]
    if records and inventory.images:
        others = sorted({os.path.dirname(key) or key for key in inventory.keys if key not in records})
        problem = f"{inventory.folder}: {shorten(records)} may hold the images, next to {shorten(inventory.images)}."
        raise UsageError(problem).with_readings(
            Reading(f"the set is {shorten(records)}", {EXCLUDE: others}),
            Reading(f"{shorten(records)} is not part of the set", {EXCLUDE: records}),
        )


def _check_texts(inventory: Inventory) -> None:
    """Checks that no text file states something for each image, in a form that is not read.

    Raises:
        UsageError: one has the name of an image and more in most of its lines.
    """
    names = NameIndex(inventory.images)
    texts = [key for key in inventory.keys if key.lower().endswith((".txt", ".lst"))]
    for path in (os.path.join(inventory.root, key) for key in texts[:_MOST_TEXTS]):
        lines, stated = [], []
        with suppress(OSError, UnicodeDecodeError, ShardwrightError):
            lines = name_lines(read_start(path, _TEXT_BYTES).decode("utf-8-sig"))[:-1]
            stated = [line for line in lines if names.find(line) is None and listed_image(line, names) is not None]
        if 2 * len(stated) > len(lines):
            problem = f"{path}: names images, with more behind each name ({stated[0][:80]!r}), and is no table"
            raise UsageError(f"{problem} that is read. Write it as a CSV with a header such as image,label.")


def _check_numbers(folder: str, given: Mapping[str, Any], numbers: DetectedInput) -> None:
    """Checks that a table of numbers is not next to folders that are classes.

    Raises:
        UsageError: it is; with both readings.
    """
    found = _read_alone(folder, None, given).best
    if found is None or is_in_one_place(found) or sum(not is_aside(name) for name in found.surveyed.survey.classes) < 2:
        return
    path = numbers.options[PATH]
    shown = shorten(found.surveyed.survey.classes)
    raise UsageError(
        f"{folder}: the folders of the images may be classes ({shown}), and {path} has numbers. Choose one of both."
    ).with_readings(BY_FOLDER, Reading(f"the annotations are the numbers in {path}", {PATH: path}))


def _finish(
    found: DetectedInput,
    inventory: Inventory | None,
    given: Mapping[str, Any],
    failed: Sequence[ShardwrightError] = (),
) -> DetectedInput:
    """Adds names of classes from a file, and notes on files that were not used."""
    found = _with_names(found, inventory, given)
    kinds: dict[str, list[str]] = {}
    for error in failed:
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
    keys = {inventory.below(path) for path in used}
    rest = [key for key in inventory.keys if key not in keys]
    rest = [key for key in rest if not (key.lower().endswith(_NO_DATA) or has_image_ending(key))]
    shown = ", ".join(rest) if len(rest) <= _SHOWN else f"{counted(len(rest), 'file')}: {counted_endings(rest)}"
    return [f"not used: {shown}"] if rest else []


def _with_names(found: DetectedInput, inventory: Inventory | None, given: Mapping[str, Any]) -> DetectedInput:
    """Takes the names of classes from a file next to the annotations, where these have numbers or colors alone."""
    path = found.options.get(PATH)
    if CLASSES in given or not isinstance(path, str):
        return found
    numbers = numbers_of(found.surveyed.survey, found.options.get(CLASSES))
    labels = found.surveyed.labels or absolute(path)
    if inventory is None or inventory.spans:
        near = os.path.dirname(labels.rstrip("/"))
        if is_remote(near) or not os.path.isdir(near):
            return found
        inventory = Inventory(near, near, sorted(list_names(near)), spans=False)
    named = find_class_file(inventory, labels, numbers) if numbers else None
    if named is None:
        return found
    with suppress(ShardwrightError):
        again = read_input({**found.options, CLASSES: named[1]})
        return replace(again, notes=(*again.notes, f"classes: the names are those of {named[0]}"))
    return found
