"""Spells out everything that was detected of an input, as YAML with comments, and the values that people change."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shardwright.config import Config, InputConfig
from shardwright.config.options import BYTES
from shardwright.config.parse_values import option_at
from shardwright.config.transform import size_of_images
from shardwright.config.yaml_text import dump_yaml
from shardwright.formats.classes import as_integer
from shardwright.images.colors import COLOR, show_value
from shardwright.ingest.survey import IngestInput
from shardwright.pipelines.commands.validate import plain_values
from shardwright.pipelines.init.image_sample import ImageSample
from shardwright.pipelines.init.question import Decision
from shardwright.pipelines.init.read_trial import DetectedInput
from shardwright.running.progress import counted
from shardwright.text.escaping import escape

_BOXES = "boxes become features; `shardwright run` trains on the classes of whole images, and detects no objects"
_FORMATS = "images.unsupported_formats"
_WIDTH = 110
# Sections, and of each the keys that are written even where they have their default.
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "name": (),
    "task": (),
    "input": ("images", "labels", "classes", "unlisted_images"),
    "images": ("verify",),
    "duplicates": ("exact",),
    "split": ("ratios", "method"),
    "shards": ("target_size",),
    "rejects": (),
}
_OF_TRAINING: Mapping[str, tuple[str, ...]] = {
    "transform": ("size", "resize"),
    "loader": ("augment",),
    "trainer": ("epochs", "batch_size", "learning_rate"),
    "evaluator": ("split",),
}
_COMMENTS = {
    "input": "The images and their annotations. Relative paths start from the folder that the command is called in.",
    "images.verify": "header, or full: every image is decoded once, and hashes and quality become features.",
    "duplicates.exact": "Files with the same bytes: keep (all of them in one split), first, or fail.",
    "split": "Which images a model learns from, and on which it is evaluated.",
    "shards.target_size": "Bytes of a TFRecord file, about. Or: count, records.",
    "transform": "The images that the model is trained on, prepared and resized.",
    "loader.augment": "For example [flip_left_right, flip_up_down].",
    "evaluator.split": "A model is blessed by its result on this split.",
}


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
    comments["split.method"] = split.comment
    evaluator = config.evaluator
    if "evaluator.split" not in found.options:  # One that has images.
        there = [name for name in split.config.names if split.counts.get(name)] or list(split.config.names)
        judged = next((name for name in ("test", "eval", "train") if name in there), there[0])
        evaluator = replace(evaluator, split=judged)
    config = replace(config, split=split.config, evaluator=evaluator)
    config = _with_size(config, found.options, sample, comments)
    survey = found.surveyed.survey
    trainable = bool(survey.classes)
    listing = found.surveyed.listing
    size = f", mostly {sample.size[0]}x{sample.size[1]}" if sample.size else ""
    counts = f"{counted(len(listing.keys), 'image')}, {sum(listing.sizes) / 1e6:,.1f} MB{size} (height x width)"
    notes = [*found.notes, counts]
    notes += [comments[_FORMATS]] if sample.formats else []
    if config.input.labels.boxes:
        notes.append(_BOXES)
    if split.stated or config.split.method != "hash":
        notes.append(f"split: {split.comment}")
    return ResolvedInput(config, comments, tuple(notes), trainable)


def yaml_text(resolved: ResolvedInput, header: list[str]) -> str:
    """Returns the text of the file.

    Args:
        resolved: the configuration.
        header: lines of comments to begin with.
    """
    # Comments name files, and a name may contain characters that YAML does not take, or that end a comment.
    lines = [*map(escape, header), ""]
    comments = {**_COMMENTS, **resolved.comments}
    values = plain_values(resolved.config)
    config = resolved.config
    plain = Config(name=config.name, task=config.task, input=InputConfig(images=config.input.images))
    defaults = plain_values(plain)
    known = {**_SECTIONS, **(_OF_TRAINING if resolved.trainable else {})}
    # The others are those that --set gave.
    given = {name: () for name in values if name not in {*_SECTIONS, *_OF_TRAINING} and values[name] != defaults[name]}
    for name, always in {**known, **given}.items():
        section = values[name]
        explained = [path.partition(".")[2] for path in resolved.comments if path.startswith(f"{name}.")]
        if isinstance(section, dict):
            section = _chosen(section, defaults[name], (*always, *explained))
        if section not in ({}, None):
            lines += _lines({name: section}, "", 0, comments)
    return "\n".join(lines) + "\n"


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


def _with_size(config: Config, options: Mapping[str, Any], sample: ImageSample, comments: dict[str, str]) -> Config:
    if sample.size is None or any(path.startswith("transform") for path in options):
        return config
    height, width = sample.size
    several = f", {len(sample.sizes)} different sizes" if len(sample.sizes) > 1 else ""
    comments["transform.size"] = (
        f"[height, width] that the model gets. The images' median is {height}x{width}{several}."
    )
    comments["transform.resize"] = "Or: stretch, fill_crop, letterbox, keep."
    size, resize = size_of_images(config.task, height, width)
    return replace(config, transform=replace(config.transform, size=size, resize=resize))


def _chosen(section: Mapping[str, Any], defaults: Mapping[str, Any], always: tuple[str, ...]) -> dict[str, Any]:
    """Returns the values of a section that are not the default, and the named ones; none that is not given."""
    chosen = {}
    for name, value in section.items():
        if name != "ratios" and isinstance(value, dict) and isinstance(defaults.get(name), dict) and defaults[name]:
            value = _chosen(value, defaults[name], ())
        elif name in defaults and value == defaults[name] and name not in always:
            continue
        if value is not None and value != {}:
            chosen[name] = value
    return chosen


def _lines(values: Mapping[str, Any], above: str, depth: int, comments: Mapping[str, str]) -> Iterator[str]:
    indent = "  " * depth
    for name, value in values.items():
        path = f"{above}.{name}".lstrip(".")
        if path in comments:
            yield from textwrap.wrap(
                escape(comments[path], lines=True),
                _WIDTH,
                initial_indent=f"{indent}# ",
                subsequent_indent=f"{indent}# ",
            )
        key = _scalar(name)
        if isinstance(value, dict) and (depth == 0 or path == "input.labels"):
            yield f"{indent}{key}:"
            yield from _lines(value, path, depth + 1, comments)
        else:
            yield f"{indent}{key}: {_scalar(_readable(path, value))}"


def _readable(path: str, value: Any) -> Any:
    """Returns a size, or the colors of classes, as people write them."""
    if path == "input.classes" and isinstance(value, dict):
        return {name: show_value(number) if number >= COLOR else number for name, number in value.items()}
    whole = isinstance(value, int) and value >= 10**6 and value % 10**6 == 0
    option = option_at(Config, path) if whole else None
    return f"{value // 10**6}MB" if option is not None and option.unit is BYTES else value


def _scalar(value: Any) -> str:
    text = dump_yaml(value, default_flow_style=True, width=float("inf"))
    return text.removesuffix("\n").removesuffix("\n...")
