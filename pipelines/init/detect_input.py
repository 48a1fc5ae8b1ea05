"""Detects the input of a configuration: which files of a folder are images, which are annotations, how both are read.

Every candidate is read as an ingest reads it, so what is detected here is what `format: auto` detects.
"""

from __future__ import annotations

import copy
import fnmatch
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shardwright.config import Config, LabelsConfig, parse_section
from shardwright.config.input import TFRECORD
from shardwright.config.load import label_options, parse_config
from shardwright.config.split import split_word
from shardwright.errors import Reading, ShardwrightError, UsageError
from shardwright.formats.candidates import Candidate, find_candidates
from shardwright.formats.detect import (
    BY_FOLDER,
    CLASS_FOLDERS,
    CLASSIFICATION,
    IMAGES_ALONE,
    SEGMENTATION,
    WITHOUT_PATH,
    detect_task,
)
from shardwright.formats.split_files import find_files
from shardwright.formats.table_formats import NUMBERS
from shardwright.images.header import has_image_ending
from shardwright.ingest.recipe import IngestRecipe, InputLocation, locate
from shardwright.ingest.spans import read_spans
from shardwright.ingest.survey import SurveyedInput, survey_input
from shardwright.pipelines.init.class_files import find_class_file, numbers_of
from shardwright.pipelines.init.masks_among_images import find_masks
from shardwright.progress import counted
from shardwright.storage import is_folder, is_remote, list_inputs, list_names
from shardwright.storage.listing import has_wildcard, is_several
from shardwright.storage.spans import NEWEST, Choice, SpanPath

_TASK, _IMAGES, _PATH = "task", "input.images", "input.labels.path"
_LABELS = "input.labels."
_SHOWN = 3
_MOST_ERRORS = 2
# Folders of files of one kind, not of one class.
_PLACES = re.compile(
    r"(?:jpeg|png)?(?:im(?:age)?s?|imgs?|pictures?|photos?|masks?|labels?|annot(?:ation)?s?|data|gt(?:fine|coarse)?|"
    r"leftimg|ground|truth|input|pred(?:ict(?:ion)?s?)?)",
    re.I,
)
# A folder of images below each class, or below some parts of a set.
_PARTS = re.compile(r"(?:im(?:age)?s?|imgs?|pictures?|photos?|masks?|labels?|annotations?)", re.I)


@dataclass(frozen=True)
class DetectedInput:
    """An input that was read.

    Attributes:
        options: YAML path -> value of everything that was given or chosen.
        config: the configuration of these options.
        surveyed: the result of reading it.
        notes: what was detected and why, for the user.
    """

    options: Mapping[str, Any]
    config: Config
    surveyed: SurveyedInput
    notes: tuple[str, ...]


class _Score(NamedTuple):
    """How well a folder fits annotations: images that they name, and the share of those that there are."""

    named: int
    share: float


_NO_SCORE = _Score(-1, 0.0)


@dataclass
class _Trials:
    """Candidates with the same annotations that were read.

    Attributes:
        detected: the best one, or `None`.
        score: of it.
        error: of one that could not be read; one with readings is preferred.
        error_score: how well the folder of that one fits once the first reading is chosen.
    """

    detected: DetectedInput | None = None
    score: _Score = _NO_SCORE
    error: ShardwrightError | None = None
    error_score: _Score = _NO_SCORE

    def add(self, found: DetectedInput) -> None:
        """Takes a candidate if it is better than those before."""
        score = _score(found)
        if score > self.score:
            self.detected, self.score = found, score

    def add_error(self, error: ShardwrightError, score: _Score) -> None:
        """Keeps an error; one with readings may be answered, so it comes before others, as does a better folder."""
        known = self.error
        if known is None or (bool(error.readings), score) > (bool(known.readings), self.error_score):
            self.error, self.error_score = error, score

    @property
    def whole(self) -> bool:
        """Returns whether the annotations were read without a question, and every image has some."""
        return self.detected is not None and self.score.share == 1

    @property
    def possible(self) -> bool:
        """Returns whether the annotations are of images of the folder, perhaps after an answer."""
        return self.detected is not None or (self.error is not None and bool(self.error.readings))


def detect_input(folder: str, labels: str | None, options: Mapping[str, Any]) -> DetectedInput:
    """Detects an input.

    Args:
        folder: folder, glob or URL of the images, or a folder with images and annotations.
        labels: the annotations, where they are known.
        options: YAML path -> value of the configuration, as far as it is given.

    Raises:
        UsageError: there are no images, or the annotations cannot be read. With `readings` where several fit.
        CheckFailed: nothing matched, or images without annotations. With `readings`.
    """
    labels = options.get(_PATH, labels)
    trials: dict[str | None, _Trials] = {}
    by_keys = options.get(_LABELS + "format") in WITHOUT_PATH
    # Several files that are named, as a list or by split, are one choice, which the options contain.
    named = labels is not None and not isinstance(labels, str)
    candidates: list[tuple[str, str | None]] = [(folder, None)] if by_keys or named else _candidates(folder, labels)
    folders = Counter(path for _, path in candidates)
    for images, path in candidates:
        given = {_IMAGES: images, **({_PATH: path} if path else {}), **options}
        _try(trials.setdefault(path, _Trials()), given, compared=folders[path] > 1)
    if labels is None and candidates[0][1] is not None and not any(one.possible for one in trials.values()):
        # The tables may be about something else, unless nothing else states classes.
        alone = _Trials()
        _try(alone, {_IMAGES: folder, **options})
        # An error of a file helps more than one of a folder, whose images were tried as masks.
        files_first = sorted(trials, key=lambda path: path is not None and is_folder(_absolute(path)))
        errors = {str(error): error for path in files_first if (error := trials[path].error) is not None}
        if errors and alone.detected is not None and _in_one_place(alone.detected):
            raise _not_read(folder, list(errors)[:_MOST_ERRORS])
        if alone.error is not None and not _has_images(folder):
            raise alone.error
        trials[None] = alone
    possible = {path: one for path, one in trials.items() if one.possible}
    # A file that is read together with others is not another choice.
    joined = [path for path in possible if is_several(path)]
    possible = {path: one for path, one in possible.items() if path in joined or not _in_glob(path, joined)}
    possible = {path: one for path, one in possible.items() if not _is_referred_to(path, possible)}
    if len(possible) > 1:
        possible = {path: one for path, one in possible.items() if not _has_numbers(one)} or possible
    read = {path: one for path, one in possible.items() if one.detected is not None}
    if len(read) == 1 and all(one.whole for one in read.values()):
        possible = read
    if len(possible) > 1:
        raise _several(folder, [path for path in possible if path is not None])
    chosen = next(iter(possible.values()), next(iter(trials.values())))
    if labels is None and chosen.detected is not None and _has_numbers(chosen):
        _check_folders(folder, options, chosen.detected)
    if chosen.detected is None:
        assert chosen.error is not None, "a candidate is read or has an error"
        raise chosen.error
    passed_over = [
        one.error for path, one in trials.items() if path is not None and one.detected is None and not is_several(path)
    ]
    if labels is not None or chosen.detected.surveyed.source.format == TFRECORD:
        passed_over = []  # Records hold their annotations.
    _check_places(folder, options, chosen.detected)
    detected = _with_names(folder, options, chosen.detected)
    return replace(detected, notes=(*detected.notes, *_passed_over_notes(passed_over)))


def _check_places(folder: str, options: Mapping[str, Any], found: DetectedInput) -> None:
    """Checks what was detected without annotations: that folders are classes, and that all files are images.

    Raises:
        UsageError: they may not be; with the readings.
    """
    if {_LABELS + "format", "input.classes"} & set(options) or found.surveyed.source.format not in WITHOUT_PATH:
        return
    if found.surveyed.source.format == TFRECORD:
        return
    _check_masks(folder, found)
    classes = found.surveyed.survey.classes
    if found.surveyed.source.format != CLASS_FOLDERS:
        return
    shown, fix = ", ".join(classes), "Give the one with the images to learn from."
    if len(classes) > 1 and all(map(_is_place, classes)):
        problem = f"the folders that would be classes are called after parts of a data set: {shown}. {fix}"
    elif len(classes) == 1:
        problem = f"the only folder that would be a class is {shown}, and there is nothing to learn. Give a file of "
        problem += "labels (CSV, TSV, JSON lines or Parquet), or the folder that has one folder for each class."
    elif parts := [name for name in classes if _PARTS.fullmatch(name)]:
        problem = f"some images are in folders called after classes, others in {parts[0]}. {fix}"
    else:
        return
    raise UsageError(f"{folder}: {problem}").with_readings(IMAGES_ALONE, BY_FOLDER)


def _check_masks(folder: str, found: DetectedInput) -> None:
    """Checks that no masks are among the images.

    Raises:
        UsageError: there are; with the readings.
    """
    among = find_masks(found.surveyed, found.config.images.max_pixels)
    if among is None:
        return
    total = len(among.masks) + len(among.photographs)
    fix = "Give them as annotations: init IMAGES MASKS, with input.labels.regex where their names differ."
    images = str(found.options[_IMAGES])
    masks = {_TASK: SEGMENTATION, _PATH: images, _LABELS + "regex": f"(?P<image>[^/]+){re.escape(among.suffix)}$"}
    readings = [Reading(f"files that end with {among.suffix} are masks", masks)] if among.suffix else []
    raise UsageError(
        f"{folder}: {len(among.masks)} of {total} files that were looked at have few colors, as masks do: "
        f"{', '.join(among.masks[:_SHOWN])}; others are photographs: {', '.join(among.photographs[:_SHOWN])}. {fix}"
    ).with_readings(*readings, IMAGES_ALONE, BY_FOLDER)


def _passed_over_notes(errors: Sequence[ShardwrightError | None]) -> list[str]:
    """Returns a note for each kind of error: files of one kind have the same one, but for their names."""
    kinds: dict[str, list[str]] = {}
    for error in filter(None, errors):
        kinds.setdefault(re.sub(r"\S*[/.]\S*", "", str(error)), []).append(str(error))
    return [
        f"not read as annotations: {same[0]}"
        + (f" Likewise {counted(len(same) - 1, 'more file')}." if same[1:] else "")
        for same in kinds.values()
    ]


def _with_names(folder: str, options: Mapping[str, Any], found: DetectedInput) -> DetectedInput:
    """Takes the names of classes from a file next to the annotations, where these have numbers or colors alone."""
    path = found.options.get(_PATH)
    if "input.classes" in options or not isinstance(path, str):
        return found
    numbers = numbers_of(found.surveyed.survey.classes, found.options.get("input.classes"))
    labels = found.surveyed.labels or _absolute(path)
    folders = [_absolute(folder), os.path.dirname(labels.rstrip("/")), *([labels] if is_folder(labels) else [])]
    named = find_class_file(folders, numbers, [labels]) if numbers else None
    if named is None:
        return found
    try:
        again = _read({**found.options, "input.classes": named[1]})
    except ShardwrightError:
        return found
    return replace(again, notes=(*again.notes, f"classes: the names are those of {named[0]}"))


def _is_referred_to(folder: str | None, possible: Mapping[str | None, _Trials]) -> bool:
    """Returns whether another file of annotations consists of the files of a folder, too, as COCO panoptic does."""
    if folder is None or not is_folder(_absolute(folder)):
        return False
    inside = _absolute(folder).rstrip("/") + "/"
    for path, one in possible.items():
        if path is None or path == folder or one.detected is None or is_folder(_absolute(path)):
            continue
        attached = one.detected.surveyed.source.attachments()
        if attached is not None and any(attached.path(i).startswith(inside) for i in range(len(attached.keys))):
            return True
    return False


def _in_one_place(found: DetectedInput) -> bool:
    """Returns whether folders were taken for classes that only hold what a data set consists of, such as `images`."""
    survey = found.surveyed.survey
    if found.surveyed.source.format == TFRECORD:
        return False
    return len(survey.classes) < 2 or all(map(_is_place, survey.classes))


def _is_place(folder: str) -> bool:
    """Returns whether a folder is called after what a data set consists of, as `train_images` or `gtFine` is."""
    return any(_PLACES.fullmatch(word) or split_word(word) for word in re.findall(r"[A-Za-z]+", folder))


def _has_numbers(one: _Trials) -> bool:
    """Returns whether annotations are numbers, which a table about other annotations may have, too."""
    return one.detected is not None and one.detected.surveyed.source.format == NUMBERS


def _check_folders(folder: str, options: Mapping[str, Any], numbers: DetectedInput) -> None:
    """Checks that a table of numbers is not next to folders that are classes.

    Raises:
        UsageError: it is; with both readings.
    """
    alone = _Trials()
    _try(alone, {_IMAGES: folder, **options})
    if alone.detected is None or len(alone.detected.surveyed.survey.classes) < 2 or _in_one_place(alone.detected):
        return
    path = numbers.options[_PATH]
    shown = ", ".join(alone.detected.surveyed.survey.classes[:_SHOWN])
    raise UsageError(
        f"{folder}: the folders of the images may be classes ({shown}), and {path} has numbers. Choose one of both."
    ).with_readings(BY_FOLDER, Reading(f"the annotations are the numbers in {path}", {_PATH: path}))


def _not_read(folder: str, errors: Sequence[str]) -> UsageError:
    problem = f"{folder}: its annotations cannot be read, and its folders are not classes. {' '.join(errors)}"
    return UsageError(problem).with_readings(IMAGES_ALONE, BY_FOLDER)


def _in_glob(path: str | None, globs: Sequence[str | None]) -> bool:
    return path is not None and any(glob is not None and fnmatch.fnmatchcase(path, glob) for glob in globs)


def _candidates(folder: str, labels: str | None) -> list[tuple[str, str | None]]:
    """Images and annotations to try, as paths for the configuration."""
    newest = _newest_span(folder) if "{" in folder and labels is None else ""
    if has_wildcard(folder) or ("{" in folder and not newest):
        return [(folder, labels)]
    listing = list_inputs(newest or _absolute(folder), one_file=True)
    if len(listing.keys) == 1 and listing.path(0) == _absolute(folder):
        return [(folder, labels)]
    keys = listing.keys
    below = None if labels is None else _below(folder, labels)
    # A path of spans is not a glob, too.
    found = [one for one in find_candidates(keys, below) if not (newest and has_wildcard(one.labels or ""))]
    return [_named(folder, labels, candidate) for candidate in dict.fromkeys(found)]


def _newest_span(folder: str) -> str:
    """Returns the folder of the newest span, which shows how all of them look; empty if there is none."""
    spans = None if has_wildcard(folder) else SpanPath.parse("input.images", _absolute(folder))
    found = spans.find(list_names) if spans is not None else []
    return found[-1].path if found and is_folder(found[-1].path) else ""


def _named(folder: str, labels: str | None, candidate: Candidate) -> tuple[str, str | None]:
    images = os.path.join(folder, candidate.images) if candidate.images else folder
    if labels is not None or candidate.labels is None:
        return images, labels
    return images, os.path.join(folder, candidate.labels) if candidate.labels else folder


def _below(folder: str, labels: str) -> str:
    """Returns the path of annotations below a folder; an absolute path where they are elsewhere."""
    whole, root = _absolute(labels).rstrip("/"), _absolute(folder).rstrip("/")
    return "" if whole == root else whole.removeprefix(root + "/")


def _absolute(path: str) -> str:
    return path if is_remote(path) else os.path.abspath(os.path.expanduser(path))


def _try(trials: _Trials, options: Mapping[str, Any], *, compared: bool = False) -> None:
    try:
        trials.add(_read(options))
    except ShardwrightError as error:
        trials.add_error(error, _score_of_answer(options, error) if compared else _NO_SCORE)


def _score(found: DetectedInput) -> _Score:
    listed = found.surveyed.survey.listed
    return _Score(sum(listed), sum(listed) / len(listed))


def _score_of_answer(options: Mapping[str, Any], error: ShardwrightError) -> _Score:
    """Returns how well a folder fits once the first reading of an error is chosen."""
    for reading in error.readings[:1]:
        with suppress(ShardwrightError):
            return _score(_read({**options, **reading.options}))
    return _NO_SCORE


def _read(options: Mapping[str, Any]) -> DetectedInput:
    notes: tuple[str, ...] = ()
    if _TASK not in options:
        task, reason = _task(options)
        if task is None:
            return _read_records(options)
        options, notes = {**options, _TASK: task}, (f"task: {task}, since {reason}",)
    return _read_as(options, notes)


def _read_as(options: Mapping[str, Any], notes: tuple[str, ...]) -> DetectedInput:
    while True:
        try:
            config = parse_config(nested(options), base=os.getcwd())
            surveyed = survey_input(IngestRecipe.of(config), locate(config))
            _check_classes(config, surveyed)
            return DetectedInput(options, config, surveyed, (*notes, *surveyed.survey.notes))
        except ShardwrightError as error:
            # The only reading that fits is not a question.
            if len(error.readings) != 1 or options.items() >= error.readings[0].options.items():
                raise
            (reading,) = error.readings
            if _TASK in reading.options:
                notes = ()  # The first guess was another task.
            options, notes = {**options, **reading.options}, (*notes, f"detected: {reading.meaning}")


def _check_classes(config: Config, surveyed: SurveyedInput) -> None:
    """Checks that folders, where they were detected as the classes, are those of most images.

    Raises:
        UsageError: most images are in none of them.
    """
    reasons = Counter(refusal.code for refusal in surveyed.rejected.values())
    without, images = reasons["no_class_folder"] + reasons["no_label"], len(surveyed.listing.keys)
    if config.input.labels.format == "auto" and 2 * without > images:
        classes = ", ".join(surveyed.survey.classes)
        problem = f"{without} of {images} images are not in a folder that is a class ({classes})"
        fix = "Set input.labels.format: none, or class_folders to reject these images."
        raise UsageError(f"{config.input.images}: {problem}. {fix}").with_readings(IMAGES_ALONE, BY_FOLDER)


def _read_records(options: Mapping[str, Any]) -> DetectedInput:
    """Reads files that are not images, which may be records with masks or without."""
    try:
        return _read({**options, _TASK: SEGMENTATION})
    except UsageError:
        return _read({**options, _TASK: CLASSIFICATION})


def _task(options: Mapping[str, Any]) -> tuple[str | None, str]:
    """Returns the task and why; `None` where it is not known before the files are read."""
    path = options.get(_PATH)
    if path is None and not _has_images(str(options[_IMAGES])):
        return None, ""
    given = nested({name.removeprefix(_LABELS): value for name, value in options.items() if name.startswith(_LABELS)})
    section: LabelsConfig = parse_section(LabelsConfig, label_options(given), "input.labels")
    if section.path is not None and section.files:
        path = find_files(_absolute(section.path), section.files)[0].path
    images = str(options[_IMAGES])
    if path is None:
        return detect_task(None, section)
    if "{" in images or "{" in path:
        span, version = (str(Choice.written(options.get(f"input.{name}", NEWEST))) for name in ("span", "version"))
        location = InputLocation(_absolute(images), _absolute(path), {}, None, span, version)
        spans = read_spans(location, NEWEST)
        return detect_task(spans.labels[-1].path, section, spans.listing.root, spans.listing.keys)
    listing = list_inputs(_absolute(images), one_file=True)
    return detect_task(_absolute(path), section, listing.root, listing.keys)


def _has_images(images: str) -> bool:
    if "{" in images:
        return True
    return any(has_image_ending(key) for key in list_inputs(_absolute(images), one_file=True).keys)


def _several(folder: str, paths: list[str]) -> UsageError:
    shown = ", ".join(paths)
    error = UsageError(f"{folder}: several files may be its annotations: {shown}. Name one of them after the folder.")
    return error.with_readings(*(Reading(f"the annotations are {path}", {_PATH: path}) for path in paths))


def nested(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns YAML paths as mappings in mappings: `{"input.images": "a"}` is `{"input": {"images": "a"}}`.

    A key that is set itself replaces that of a section which is set as a whole.
    """
    whole: dict[str, Any] = {}
    for path, value in sorted(copy.deepcopy(dict(options)).items(), key=lambda pair: pair[0].count(".")):
        *sections, last = path.split(".")
        place = whole
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise UsageError(f"--set {path}: {section} is a value already. Set one of both.")
        place[last] = value
    return whole
