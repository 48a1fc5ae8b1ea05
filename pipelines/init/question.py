"""Turns readings of an input into a question: each answer is tried, and says what it does to this input."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from shardwright.errors import CheckFailed, Reading, ShardwrightError, UsageError
from shardwright.formats.base import SEGMENTATION, ClassesInText
from shardwright.formats.mask_folders import MASK_WORDS
from shardwright.pipelines.init.choose_split import ChosenSplit
from shardwright.pipelines.init.image_sample import ImageSample
from shardwright.pipelines.init.inventory import DERIVED
from shardwright.pipelines.init.read_trial import EXCLUDE, PATH, REGEX, DetectedInput
from shardwright.running.progress import counted

_MOST_ANSWERS, _MOST_CLASSES, _MOST_DEPTH = 3, 5, 2
_LIMITS = ("rejects.",)


class Decision(NamedTuple):
    """The hypothesis that is right.

    Attributes:
        input: it, read.
        split: how its images are divided.
        sample: some of its images, tried.
    """

    input: DetectedInput
    split: ChosenSplit
    sample: ImageSample


Detect = Callable[[Mapping[str, Any]], Decision]


def ask(error: ShardwrightError, detect: Detect) -> ShardwrightError:
    """Returns the same error with the answers that work for this input, at most three, each with its counts.

    Args:
        error: with `readings`.
        detect: reads the input with further options, YAML path -> value.
    """
    causes: list[str] = []
    # Each reading comes before the further questions of another one.
    by_reading = [
        list(_answers(error.with_readings(reading), {}, detect, causes, _MOST_DEPTH)) for reading in error.readings
    ]
    answers = [answer for row in zip_longest(*by_reading) for answer in row if answer is not None]
    if not answers:
        further = [cause for cause in dict.fromkeys(causes) if cause not in str(error)]
        kind = UsageError if isinstance(error, UsageError) else CheckFailed
        return kind(" ".join([str(error), *further[:1]])) if further else error.with_readings()
    kinds = {str([answer.options.get(path) for path in (PATH, REGEX, EXCLUDE)]) for answer, _ in answers}
    if len(kinds) > 1 and any(all(path in answer.options for answer, _ in answers) for path in (PATH, REGEX)):
        answers.sort(key=_rank)
    # An answer that raises a limit is no answer where another one needs none.
    raised = [answer for answer, _ in answers if any(path.startswith(_LIMITS) for path in answer.options)]
    return error.with_readings(*([one for one, _ in answers if one not in raised] or raised)[:_MOST_ANSWERS])


def _rank(answer: tuple[Reading, int]) -> tuple[bool | int, ...]:
    """Returns how far behind annotations are: parts of others, of fewer images, by more answers, derived, unnamed."""
    reading, images = answer
    kind = os.path.basename(str(reading.options.get(REGEX, reading.options.get(PATH))).rstrip("/"))
    by_color = re.search(r"\bcolor_[0-9a-f]{6}:", reading.meaning) is not None
    by_word = re.search(r"[^\W\d_][\w ]*: [\d,]+[,;]", reading.meaning) is not None
    derived = DERIVED.search(kind) is not None
    called = MASK_WORDS.search(kind.rpartition(")")[2]) is not None
    return REGEX not in reading.options, -images, len(reading.options), derived, by_color, not called, not by_word


def _answers(
    error: ShardwrightError,
    chosen: Mapping[str, Any],
    detect: Detect,
    causes: list[str],
    depth: int,
    above: str = "",
) -> Iterator[tuple[Reading, int]]:
    """Yields the answers that can be read, and that no ingest stops for, with the images that each annotates.

    Adds to `causes` why others cannot.
    """
    for reading in error.readings:
        if any(chosen.get(path, value) != value for path, value in reading.options.items()):
            continue  # It takes an answer back.
        options, meaning = {**chosen, **reading.options}, f"{above}{reading.meaning}"
        if options == chosen:
            continue
        try:
            decision = detect(options)
        except ShardwrightError as further:
            if further.readings and depth:
                yield from _answers(further, options, detect, causes, depth - 1, f"{meaning}; ")
            else:
                causes.append(f"That {meaning} cannot be: {further}")
            continue
        yield Reading(f"{meaning}: {describe(decision)}", options), len(decision.input.explained)


def describe(decision: Decision) -> str:
    """Returns what a configuration makes of an input: images, classes, shares of pixels, splits, and rejects."""
    found, split, sample = decision
    surveyed = found.surveyed
    parts = [counted(len(surveyed.listing.keys) - len(surveyed.rejected), "image")]
    by_class: Mapping[str, int] = {}
    if sample.is_whole:
        by_class = {name: sample.classes[name] for name in surveyed.survey.classes if sample.classes[name]}
    elif not isinstance(surveyed.source.dialect, ClassesInText):  # Not all masks were read.
        by_class = {name: count for name, count in found.images_of.items() if count}
    if by_class:
        shown = [f"{name}: {by_class[name]:,}" for name in list(by_class)[:_MOST_CLASSES]]
        more = len(by_class) - len(shown)
        parts.append(", ".join(shown) + (f" and {more} more classes" if more > 0 else ""))
    if found.config.task == SEGMENTATION and sample.pixels:
        looked = "" if sample.is_whole else f" of {sample.tried:,} images"
        parts.append(f"masks on {100 * sample.masked / sample.pixels:.1f} % of the pixels{looked}")
    counts = {name: count for name, count in split.counts.items() if count}
    if len(counts) > 1:
        parts.append(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    if surveyed.rejected:
        codes = Counter(refusal.code for refusal in surveyed.rejected.values())
        parts.append("rejected: " + ", ".join(f"{code} {count:,}" for code, count in sorted(codes.items())))
    return "; ".join(parts)
