"""Turns readings of an input into a question: each answer is tried, and says what it does to this input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from shardwright.errors import Reading, ShardwrightError
from shardwright.formats.base import NO_LABEL, ClassesInText
from shardwright.formats.request import SEGMENTATION
from shardwright.images.header import ImageError
from shardwright.images.read_header import read_header
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.masks.rle import RleError
from shardwright.pipelines.init.choose_split import ChosenSplit
from shardwright.pipelines.init.trial import DetectedInput
from shardwright.progress import counted
from shardwright.staging.commit import allowed_rejects
from shardwright.storage import read_start

_MOST_ANSWERS, _MOST_CLASSES, _MOST_DEPTH = 3, 5, 2
# Images whose masks are drawn for the share of their pixels.
_DRAWN, _HEADER = 16, 1 << 20

Detect = Callable[[Mapping[str, Any]], "tuple[DetectedInput, ChosenSplit]"]


def ask(error: ShardwrightError, detect: Detect) -> ShardwrightError:
    """Returns the same error with the answers that work for this input, at most three, each with its counts.

    Args:
        error: with `readings`.
        detect: reads the input with further options, YAML path -> value.
    """
    answers = list(_answers(error, {}, detect, _MOST_DEPTH))
    usable = [answer for answer, rejected in answers if not rejected]
    # One answer is no choice: those that need more than this command are named, too.
    listed = usable if len(usable) > 1 else [*usable, *(answer for answer, rejected in answers if rejected)]
    return error.with_readings(*listed[:_MOST_ANSWERS])


def _answers(
    error: ShardwrightError, chosen: Mapping[str, Any], detect: Detect, depth: int, above: str = ""
) -> Iterator[tuple[Reading, bool]]:
    """Yields the answers that can be read, and whether an ingest stops for its rejects with each."""
    for reading in error.readings:
        options = {**chosen, **reading.options}
        meaning = f"{above}{reading.meaning}"
        if options == chosen:
            continue
        try:
            found, split = detect(options)
        except ShardwrightError as further:
            if further.readings and depth:
                yield from _answers(further, options, detect, depth - 1, f"{meaning}; ")
            continue
        rejected = stops(found)
        more = ", for which an ingest stops" if rejected else ""
        yield Reading(f"{meaning}: {describe(found, split)}{more}", options), rejected


def stops(found: DetectedInput) -> bool:
    """Returns whether an ingest would stop for its rejects, as far as they are known before images are read."""
    surveyed = found.surveyed
    listed = len(surveyed.survey.refused) + len(surveyed.listing.refused)
    unusable = sum(refusal.code != "unlisted" for refusal in surveyed.rejected.values()) + listed
    return unusable > allowed_rejects(found.config.rejects.max_fraction, len(surveyed.listing.keys) + listed)


def describe(found: DetectedInput, split: ChosenSplit) -> str:
    """Returns what a configuration makes of an input: images, classes, shares of pixels, and splits."""
    surveyed = found.surveyed
    good = len(surveyed.listing.keys) - len(surveyed.rejected)
    parts = [counted(good, "image")]
    by_class = _by_class(found)
    if by_class:
        shown = [f"{name} {by_class[name]}" for name in list(by_class)[:_MOST_CLASSES]]
        more = len(by_class) - len(shown)
        parts.append(", ".join(shown) + (f" and {more} more classes" if more > 0 else ""))
    if found.config.task == SEGMENTATION:
        parts += _share(found)
    counts = {name: count for name, count in split.counts.items() if count}
    if len(counts) > 1:
        parts.append(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    if surveyed.rejected:
        codes = Counter(refusal.code for refusal in surveyed.rejected.values())
        parts.append("rejected: " + ", ".join(f"{code} {count:,}" for code, count in sorted(codes.items())))
    return "; ".join(parts)


def _by_class(found: DetectedInput) -> dict[str, int]:
    """Returns the number of images of each class; nothing where it is in masks that are not read here."""
    surveyed, images = found.surveyed, dict[str, set[int]]()
    if isinstance(surveyed.source.dialect, ClassesInText):
        return {name: len(found.explained) for name in surveyed.survey.classes[:1] if len(surveyed.survey.classes) == 1}
    for annotation in surveyed.source.annotations():
        if annotation.label >= 0:
            images.setdefault(surveyed.survey.classes[annotation.label], set()).add(annotation.image)
    return {name: len(images[name]) for name in surveyed.survey.classes if name in images}


def _share(found: DetectedInput) -> list[str]:
    """Returns the share of pixels that masks have, measured on some images."""
    surveyed = found.surveyed
    texts: dict[int, list[tuple[int, str]]] = {}
    for annotation in surveyed.source.annotations():
        if annotation.text is not None and (annotation.image in texts or len(texts) < _DRAWN):
            texts.setdefault(annotation.image, []).append((annotation.label, annotation.text))
    pixels = of_masks = 0
    for i, rows in texts.items():
        with suppress(OSError, ImageError, RleError, ShardwrightError, ValueError):
            start = read_start(surveyed.listing.path(i), _HEADER, surveyed.listing.pin(i))
            header = read_header(start, max_pixels=found.config.images.max_pixels)
            frames = CoordinateFrame(header.height, header.width, header.orientation)
            stated = next((size for _, text in rows if (size := surveyed.source.dialect.size(text))), None)
            height, width = frames.size(frames.is_displayed(surveyed.survey.frame, stated))
            drawn = 0
            for label, text in rows:
                for number, runs in surveyed.source.dialect.masks(label, text, height=height, width=width):
                    drawn += int(runs[:, 1].sum()) if number >= 0 or number == NO_LABEL else 0
            pixels, of_masks = pixels + height * width, of_masks + drawn
    return (
        [f"masks on {100 * of_masks / pixels:.1f} % of the pixels of {counted(len(texts), 'image')}"] if pixels else []
    )
