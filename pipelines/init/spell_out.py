"""Spells out everything that was detected of an input, as a configuration with a comment for each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shardwright.config import Config, InputConfig
from shardwright.formats.classes import as_integer
from shardwright.ingest.survey import IngestInput
from shardwright.pipelines.init.choose_split import ChosenSplit
from shardwright.pipelines.init.image_sample import ImageSample
from shardwright.pipelines.init.question import Decision
from shardwright.pipelines.init.read_trial import DetectedInput
from shardwright.running.progress import counted

# The size that a model gets: a U-Net halves its sides up to five times, and more pixels cost more than they give.
_STEP, _LARGEST, _LARGEST_OF_CLASSES = 32, 512, 224
_CLASSIFICATION = "classification"
_BOXES = "boxes become features; `shardwright run` trains on the classes of whole images, and detects no objects"
_FORMATS = "images.unsupported_formats"


@dataclass(frozen=True)
class ResolvedInput:
    """A configuration with everything spelled out.

    Attributes:
        config: it.
        comments: YAML path -> why the value is what it is, or what else there is.
        notes: what was detected, for the user.
        trainable: whether the images have masks or classes to learn.
    """

    config: Config
    comments: Mapping[str, str]
    notes: tuple[str, ...]
    trainable: bool


def resolve_input(decision: Decision) -> ResolvedInput:
    """Spells out what was detected; values that the user gave stay."""
    found, split, sample = decision
    comments = _reasons(found)
    config = replace(found.config, input=_input(found, comments))
    if sample.formats:
        shown = ", ".join(sorted(sample.formats))
        stored = config.images.unsupported_formats
        comments[_FORMATS] = f"Some images are {shown}; they are stored as {stored}. Or: jpeg, png, or reject."
    config = _with_split(config, found, split, comments)
    config = _with_size(config, found.options, sample, comments)
    survey = found.surveyed.survey
    trainable = bool(survey.classes)
    notes = [*found.notes, _counted(found.surveyed, sample)]
    notes += [comments[_FORMATS]] if sample.formats else []
    if config.input.labels.boxes:
        notes.append(_BOXES)
    if split.stated or config.split.method != "hash":
        notes.append(f"split: {split.comment}")
    return ResolvedInput(config, comments, tuple(notes), trainable)


def _reasons(found: DetectedInput) -> dict[str, str]:
    """Returns the notes that say why a value was chosen, by its path."""
    comments = {}
    for note in found.notes:
        for start, path in (("task: ", "task"), ("labels: ", "input.labels.format")):
            what, since, why = note.removeprefix(start).partition(", since ")
            if note.startswith(start) and since and what in (found.config.task, found.format):
                comments[path] = f"Since {why}."
    left = [note.removeprefix("left out: ") for note in found.notes if note.startswith("left out: ")]
    if left:
        comments["input.exclude" if found.config.input.exclude else "input.images"] = f"Left out: {'; '.join(left)}."
    return comments


def _counted(surveyed: IngestInput, sample: ImageSample) -> str:
    size = f", mostly {sample.size[0]}x{sample.size[1]}" if sample.size else ""
    images = counted(len(surveyed.listing.keys), "image")
    return f"{images}, {sum(surveyed.listing.sizes) / 1e6:,.1f} MB{size} (height x width)"


def _input(found: DetectedInput, comments: dict[str, str]) -> InputConfig:
    section, surveyed = found.config.input, found.surveyed
    labels = surveyed.source.resolved(section.labels)
    classes = section.classes
    if classes is None:
        classes = _classes(surveyed)
        if classes and None not in classes.values():
            comments["input.classes"] = "name: the number that the annotations have for it. You may change the names."
    unlisted = surveyed.source.unlisted if section.unlisted_images == "auto" else section.unlisted_images
    comments["input.unlisted_images"] = "Images without annotations: empty, unlabeled, reject or fail."
    return replace(section, labels=labels, classes=classes, unlisted_images=unlisted)


def _classes(surveyed: IngestInput) -> Mapping[str, int | None] | None:
    """Returns the classes as they were detected, with the numbers that the annotations have for them."""
    survey = surveyed.survey
    if survey.values:
        return {name: survey.values[name] for name in survey.classes if name in survey.values}
    numbers = {name: as_integer(name) for name in survey.classes}
    known = {name: number for name, number in numbers.items() if number is not None}
    if survey.classes and len(set(known.values())) == len(survey.classes):
        return {name: known[name] for name in sorted(known, key=known.__getitem__)}
    return dict.fromkeys(survey.classes) or None


def _with_split(config: Config, found: DetectedInput, split: ChosenSplit, comments: dict[str, str]) -> Config:
    """Takes the splits that were chosen, and evaluates on one that has images."""
    comments["split.method"] = split.comment
    if "evaluator.split" in found.options:
        return replace(config, split=split.config)
    there = [name for name in split.config.names if split.counts.get(name)] or list(split.config.names)
    judged = next((name for name in ("test", "eval", "train") if name in there), there[0])
    return replace(config, split=split.config, evaluator=replace(config.evaluator, split=judged))


def _with_size(config: Config, options: Mapping[str, Any], sample: ImageSample, comments: dict[str, str]) -> Config:
    if sample.size is None or any(path.startswith("transform") for path in options):
        return config
    height, width = sample.size
    several = f", {len(sample.sizes)} different sizes" if len(sample.sizes) > 1 else ""
    comments["transform.size"] = (
        f"[height, width] that the model gets. The images' median is {height}x{width}{several}."
    )
    comments["transform.resize"] = "Or: stretch, fill_crop, letterbox, keep."
    if config.task == _CLASSIFICATION:
        side = _multiple(min(height, width, _LARGEST_OF_CLASSES))
        return replace(config, transform=replace(config.transform, size=(side, side), resize="fill_crop"))
    scale = min(1.0, _LARGEST / max(height, width))
    size = (_multiple(height * scale), _multiple(width * scale))
    return replace(config, transform=replace(config.transform, size=size))


def _multiple(side: float) -> int:
    return max(_STEP, round(side / _STEP) * _STEP)
