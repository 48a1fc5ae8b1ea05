"""Reads one hypothesis on an input as an ingest reads it: what is detected here is what `format: auto` detects."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from shardwright.config import Config, LabelsConfig, parse_section
from shardwright.config.yaml_config import label_options, parse_config
from shardwright.dataset.ledger import MISSING_IMAGE, UNLISTED
from shardwright.errors import ShardwrightError, UsageError
from shardwright.formats.base import CLASSIFICATION, SEGMENTATION
from shardwright.formats.class_folders import IMAGES_ALONE
from shardwright.formats.detect import detect_task
from shardwright.formats.split_files import find_files
from shardwright.images.header import has_image_ending
from shardwright.ingest.recipe import IngestRecipe, InputLocation, locate
from shardwright.ingest.select_spans import read_spans
from shardwright.ingest.survey import IngestInput, survey_input
from shardwright.storage import is_remote, list_inputs
from shardwright.storage.spans import NEWEST, Choice

TASK, IMAGES, PATH, LABELS = "task", "input.images", "input.labels.path", "input.labels."
FORMAT, REGEX = LABELS + "format", LABELS + "regex"
# Codes of images that nothing states anything about.
_UNEXPLAINED = frozenset((UNLISTED, "no_class_folder", "no_label"))
CLASSES, EXCLUDE, UNLISTED_IMAGES = "input.classes", "input.exclude", "input.unlisted_images"


@dataclass(frozen=True)
class DetectedInput:
    """A hypothesis that was read.

    Attributes:
        options: YAML path -> value of everything that was given or chosen.
        config: the configuration of these options.
        surveyed: the result of reading it.
        notes: what was detected and why, for the user.
    """

    options: Mapping[str, Any]
    config: Config
    surveyed: IngestInput
    notes: tuple[str, ...]

    @cached_property
    def explained(self) -> frozenset[str]:
        """Returns the keys of the images with annotations, those that cannot be used among them."""
        survey, rejected = self.surveyed.survey, self.surveyed.rejected
        return frozenset(
            key
            for i, key in enumerate(self.surveyed.listing.keys)
            if (survey.listed[i] and i not in rejected) or (i in rejected and rejected[i].code not in _UNEXPLAINED)
        )

    @cached_property
    def missing(self) -> int:
        """Returns how many images are named that are not there."""
        return sum(refusal.code == MISSING_IMAGE for refusal in self.surveyed.survey.refused)

    @cached_property
    def images_of(self) -> dict[str, int]:
        """Returns how many images that are not rejected have each class of the annotations."""
        survey, images = self.surveyed.survey, dict[int, set[int]]()
        for annotation in self.surveyed.source.annotations():
            if annotation.label >= 0 and annotation.image not in self.surveyed.rejected:
                images.setdefault(annotation.label, set()).add(annotation.image)
        return {name: len(images.get(label, ())) for label, name in enumerate(survey.classes)}

    def with_options(self, options: Mapping[str, Any]) -> DetectedInput:
        """Returns the same input with options that make no difference to it."""
        config = parse_config(nested(options), base=os.getcwd())
        return replace(
            self, options=options, config=config, surveyed=replace(self.surveyed, recipe=IngestRecipe.of(config))
        )

    @property
    def format(self) -> str:
        """Returns the format of the annotations."""
        return self.surveyed.source.format


def read_input(options: Mapping[str, Any]) -> DetectedInput:
    """Reads an input; the task is detected where none is given.

    Raises:
        ShardwrightError: it cannot be read; with `readings` where several readings fit.
    """
    if TASK in options:
        return _read(options, ())
    task, reason = _task(options)
    if task is not None:
        return _read({**options, TASK: task}, (f"task: {task}, since {reason}",))
    try:  # Files that are not images may be records, with masks or without.
        return _read({**options, TASK: SEGMENTATION}, ())
    except UsageError:
        return _read({**options, TASK: CLASSIFICATION}, ())


def _read(options: Mapping[str, Any], notes: tuple[str, ...]) -> DetectedInput:
    while True:
        try:
            config = parse_config(nested(options), base=os.getcwd())
            surveyed = survey_input(IngestRecipe.of(config), locate(config))
            return DetectedInput(options, config, surveyed, (*notes, *surveyed.survey.notes))
        except ShardwrightError as error:
            # The only reading that fits is not a question, but that images have no classes is.
            if len(error.readings) != 1 or error.readings[0] == IMAGES_ALONE:
                raise
            (reading,) = error.readings
            if reading.asked or options.items() >= reading.options.items():
                raise
            notes = () if TASK in reading.options else notes  # The first guess was another task.
            options, notes = {**options, **reading.options}, (*notes, f"detected: {reading.meaning}")


def _task(options: Mapping[str, Any]) -> tuple[str | None, str]:
    """Returns the task and why; `None` where it is not known before the files are read."""
    images, path = str(options[IMAGES]), options.get(PATH)
    if path is None and not has_images(images):
        return None, ""
    given = nested({name.removeprefix(LABELS): value for name, value in options.items() if name.startswith(LABELS)})
    section: LabelsConfig = parse_section(LabelsConfig, label_options(given), "input.labels")
    if path is None:
        return detect_task(None, section)
    path = section.path or ""
    if section.files:
        path = find_files(absolute(path), section.files)[0].path
    if "{" in images or "{" in path:
        span, version = (str(Choice.written(options.get(f"input.{name}", NEWEST))) for name in ("span", "version"))
        spans = read_spans(InputLocation(absolute(images), absolute(path), {}, None, span, version), NEWEST)
        return detect_task(spans.labels[-1].path, section, spans.listing.root, spans.listing.keys)
    listing = list_inputs(absolute(images), one_file=True)
    return detect_task(absolute(path), section, listing.root, listing.keys)


def has_images(images: str) -> bool:
    """Returns whether a folder has files that are called like images; paths of spans count as such."""
    return "{" in images or any(has_image_ending(key) for key in list_inputs(absolute(images), one_file=True).keys)


def absolute(path: str) -> str:
    """Returns an absolute path, or a URL as it is."""
    return path if is_remote(path) else os.path.abspath(os.path.expanduser(path))


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
