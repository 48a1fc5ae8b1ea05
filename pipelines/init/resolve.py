"""Spells out everything that was detected of an input, as a configuration with a comment for each value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from shardwright.config import Config, EvaluatorConfig, InputConfig, SplitConfig
from shardwright.config.split import split_word
from shardwright.errors import CheckFailed
from shardwright.formats.classes import as_integer
from shardwright.ingest.split_inputs import predefined_splits
from shardwright.ingest.survey import SurveyedInput
from shardwright.pipelines.init.detect_input import DetectedInput
from shardwright.pipelines.init.image_sample import ImageSample, look_at_images
from shardwright.pipelines.init.thin_splits import thin_splits
from shardwright.progress import counted
from shardwright.staging.commit import allowed_rejects

# The size that a model gets: a U-Net halves its sides up to five times, and more pixels cost more than they give.
_STEP, _LARGEST, _LARGEST_OF_CLASSES = 32, 512, 224
_CLASSIFICATION = "classification"
_SHOWN = 3


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


def resolve_input(found: DetectedInput) -> ResolvedInput:
    """Spells out what was detected; values that the user gave stay."""
    sample = look_at_images(found.surveyed, found.config.images)
    comments: dict[str, str] = {}
    config = replace(found.config, input=_input(found, comments))
    config = _with_images(config, found, sample, comments)
    config = _with_split(config, found, comments)
    config = _with_size(config, found.options, sample, comments)
    survey = found.surveyed.survey
    trainable = bool(survey.classes)
    notes = [*found.notes, _counted(found.surveyed, sample)]
    notes += [comments[path] for path in ("images.unsupported_formats", "rejects.max_fraction") if path in comments]
    if config.split.method in ("predefined", "stratified"):
        notes.append(f"split: {comments['split.method']}")
    return ResolvedInput(config, comments, tuple(notes), trainable)


def _counted(surveyed: SurveyedInput, sample: ImageSample) -> str:
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


def _classes(surveyed: SurveyedInput) -> Mapping[str, int | None] | None:
    """Returns the classes as they were detected, with the numbers that the annotations have for them."""
    survey = surveyed.survey
    if survey.values:
        return {name: survey.values[name] for name in survey.classes if name in survey.values}
    numbers = {name: as_integer(name) for name in survey.classes}
    known = {name: number for name, number in numbers.items() if number is not None}
    if survey.classes and len(set(known.values())) == len(survey.classes):
        return {name: known[name] for name in sorted(known, key=known.__getitem__)}
    return dict.fromkeys(survey.classes) or None


def _with_images(config: Config, found: DetectedInput, sample: ImageSample, comments: dict[str, str]) -> Config:
    """Converts what must be converted, and allows as many rejects as there are, so that the ingest does not stop."""
    options, surveyed = found.options, found.surveyed
    if sample.other_formats and "images.unsupported_formats" not in options:
        config = replace(config, images=replace(config.images, unsupported_formats="png"))
        shown = ", ".join(sample.other_formats)
        comments["images.unsupported_formats"] = (
            f"Some images are {shown}; they are stored as png. Or: jpeg, or reject."
        )
    images = len(surveyed.listing.keys)
    known = len(surveyed.rejected) + len(surveyed.survey.refused) + len(surveyed.listing.refused)
    total = images + len(surveyed.survey.refused) + len(surveyed.listing.refused)
    estimate = known + math.ceil(sample.unusable / max(1, sample.looked_at) * (images - len(surveyed.rejected)))
    share = math.ceil(100 * estimate / max(1, total)) / 100
    allowed = allowed_rejects(config.rejects.max_fraction, total)
    if estimate > allowed and "rejects.max_fraction" not in options:
        config = replace(config, rejects=replace(config.rejects, max_fraction=min(1.0, share + 0.01)))
        reasons = Counter(refusal.code for refusal in (*surveyed.rejected.values(), *surveyed.survey.refused))
        by_reason = [f"{code} {count}" for code, count in reasons.most_common(_SHOWN)]
        first = [f"for example {sample.first}"] if sample.first else []
        comments["rejects.max_fraction"] = (
            f"About {estimate:,} of {total:,} inputs cannot be used ({'; '.join([*by_reason, *first])}). "
            "This share may be rejected; fix or remove the files and lower it."
        )
    return config


def _with_split(config: Config, found: DetectedInput, comments: dict[str, str]) -> Config:
    """Takes the splits that the input itself has, where every image has one."""
    if not any(path == "split" or path.startswith("split.") for path in found.options):
        counts = _predefined(found.surveyed)
        if counts:
            total = sum(counts.values())
            shares = {name: round(count / total, 4) for name, count in counts.items()}
            shares["train"] = round(1 - sum(share for name, share in shares.items() if name != "train"), 4)
            config = replace(
                config, split=SplitConfig(ratios=shares, method="predefined"), evaluator=_evaluator(counts)
            )
            shown = ", ".join(f"{name} {count:,}" for name, count in counts.items())
            comments["split.method"] = f"predefined: the input itself states the splits ({shown})."
            return config
        thin, split = thin_splits(config.split, found.surveyed)
        if thin:
            config = replace(config, split=split)
            comments["split.method"] = (
                f"stratified, since a hash leaves {thin}. New images may then move old ones, unless split.keep_from "
                "names the dataset before."
            )
    comments.setdefault(
        "split.method", "hash: new images never move old ones. Or: group, stratified, kfold, predefined."
    )
    return replace(config, evaluator=replace(config.evaluator, split=_split(config)))


def _split(config: Config) -> str:
    names = config.split.names
    return config.evaluator.split if config.evaluator.split in names else names[0]


def _evaluator(counts: Mapping[str, int]) -> EvaluatorConfig:
    return EvaluatorConfig(split=next(name for name in ("test", "eval", "train") if name in counts))


def _predefined(surveyed: SurveyedInput) -> dict[str, int]:
    """Images in each split that the input states; nothing unless it states one for every image, `train` among them."""
    words = {word for key in surveyed.listing.keys for folder in key.split("/")[:-1] if (word := split_word(folder))}
    words |= {word for text in surveyed.survey.splits.values() if (word := split_word(text))}
    if "train" not in words or len(words) < 2:
        return {}
    options = SplitConfig(ratios=dict.fromkeys(sorted(words), 1 / len(words)), method="predefined")
    with suppress(CheckFailed):
        stated = predefined_splits(options, surveyed, {})
        good = [i for i in range(len(surveyed.listing.keys)) if i not in surveyed.rejected]
        numbers = Counter(int(stated.split_of[i]) for i in good)
        if -1 not in numbers and not stated.refused:
            counts = {name: numbers[i] for i, name in enumerate(options.names) if numbers[i]}
            return counts if "train" in counts and len(counts) > 1 else {}
    return {}


def _with_size(config: Config, options: Mapping[str, Any], sample: ImageSample, comments: dict[str, str]) -> Config:
    if sample.size is None or any(path.startswith("transform") for path in options):
        return config
    height, width = sample.size
    several = f", {sample.sizes} different sizes" if sample.sizes > 1 else ""
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
