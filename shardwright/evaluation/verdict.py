"""Whether a model deserves a blessing: enough images, every class, better than a trivial model and than the last one.

Everything follows from the model's answer to each image, in any order, without random numbers. Intervals are those at
95 %: of an accuracy Wilson's; of every other figure, and of the difference of two models on the same images, that of
the jackknife over images with Student's t (for an accuracy this is the paired t-test).

Sources: Wilson, "Probable inference, the law of succession, and statistical inference" (1927); Efron and Stein, "The
jackknife estimate of variance" (1981); Abramowitz and Stegun, 26.7.5, for quantiles of Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.evaluation.metrics import headline

AUTO = "auto"
# How the note on missing classes begins.
UNJUDGED = "not judged on"
# The half width that an interval may have, and the least number of images, under `min_images: auto`.
HALF_WIDTH = 0.1
LEAST_IMAGES = 50
# Of each class: the default of `evaluator.min_per_class`.
LEAST_PER_CLASS = 5
# With fewer images on which two models differ, no result has a two-sided p-value below 0.05: 2 * 0.5**5 = 0.0625.
_DIFFERENT = 6
_Z = NormalDist().inv_cdf(0.975)
_SHOWN = 8

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Limits:
    """The conditions of a blessing; `shardwright.config.EvaluatorConfig` describes each.

    Attributes:
        min_dice: least mean Dice of masks.
        min_accuracy: least accuracy; `None`: halfway from guessing to all.
        min_f1: least mean F1 of several classes an image.
        min_improvement: what the interval of the difference from the last blessed model must be above; -1: any.
        min_images: least number of images; `auto`: as many as make the interval narrow.
        min_per_class: least number of images of each class.
        allow_missing_classes: whether the split may lack classes.
        beat_trivial: whether the model must be better than a constant answer in every class.
    """

    min_dice: float
    min_accuracy: float | None
    min_f1: float
    min_improvement: float
    min_images: int | str
    min_per_class: int
    allow_missing_classes: bool
    beat_trivial: bool

    def least(self, metric: str, classes: int) -> float:
        """Returns the least value of a headline metric."""
        if metric == "accuracy" and self.min_accuracy is None:
            return round((1 + 1 / max(1, classes)) / 2, 4)
        return float({"mean_dice": self.min_dice, "accuracy": self.min_accuracy, "mean_f1": self.min_f1}[metric] or 0)


@dataclass(frozen=True)
class Interval:
    """A figure and its interval at 95 %."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """Returns plain values, rounded to six places."""
        return {name: round(value, 6) for name, value in vars(self).items()}


class Answers:
    """A model's answer to each image of a split, as counts per class.

    Args:
        task: `segmentation` or `classification`.
        classes: names, in the order of the model's outputs.
        rows: a row of whole numbers for each image, [N, 3C] or [N, 2]. Masks: for each class the pixels that are
            predicted and true, those predicted, those true. Several classes an image: the same with 0 and 1. One class:
            the numbers of the predicted and of the true class.
        multi: whether an image may have several classes.
        pixels: pixels of an image, for masks.
    """

    def __init__(
        self, task: str, classes: Sequence[str], rows: npt.ArrayLike, *, multi: bool = False, pixels: int = 0
    ) -> None:
        self.metric = headline(task, multi=multi)
        self.kind = "dice" if task == "segmentation" else "f1"
        self.classes = tuple(classes)
        self.rows = np.asarray(rows, np.float64).reshape(-1, 3 * len(classes) if task == "segmentation" or multi else 2)
        # Of how many an answer that is always yes would say yes.
        self._asked = len(self.rows) * (pixels if task == "segmentation" else 1)

    @property
    def images(self) -> int:
        """Number of images."""
        return len(self.rows)

    def column(self, index: int) -> tuple[Floats, Floats, Floats]:
        """Returns what is hit, predicted and true of a class, for each image."""
        if self.metric == "accuracy":
            predicted, true = (self.rows == index).T.astype(np.float64)
            return predicted * true, predicted, true
        hit, predicted, true = self.rows.reshape(self.images, 3, len(self.classes))[:, :, index].T
        return hit, predicted, true

    def shown(self) -> list[int]:
        """Returns for each class how many images show it."""
        return [int((self.column(index)[2] > 0).sum()) for index in range(len(self.classes))]

    def against_trivial(self, index: int) -> tuple[float, float]:
        """Returns a class's Dice or F1, and the better one of the two constant answers: never, and always."""
        hit, predicted, true = (float(values.sum()) for values in self.column(index))
        return 2 * hit / max(predicted + true, 1), 2 * true / max(self._asked + true, 1)

    def without_each(self) -> tuple[float, Floats]:
        """Returns the headline metric, and its value without each of the images, [N]."""
        if self.metric == "accuracy":
            right = (self.rows[:, 0] == self.rows[:, 1]).astype(np.float64)
            return float(right.mean()), (right.sum() - right) / max(self.images - 1, 1)
        total, classes = np.zeros(self.images), np.zeros(self.images)
        values = []
        for index in range(len(self.classes)):
            hit, predicted, true = self.column(index)
            above, below = 2 * hit, predicted + true
            left = below.sum() - below
            total += np.divide(above.sum() - above, left, out=np.zeros_like(left), where=left > 0)
            classes += left > 0
            if below.sum() > 0:
                values.append(above.sum() / below.sum())
        mean = np.divide(total, classes, out=np.zeros_like(total), where=classes > 0)
        return float(np.mean(values)) if values else 0.0, mean

    def interval(self) -> Interval:
        """Returns the headline metric with its interval, within 0 to 1."""
        value, without = self.without_each()
        if self.metric == "accuracy":
            low, high = _wilson(value, self.images)
        else:
            half = _jackknife(without)
            low, high = max(0.0, value - half), min(1.0, value + half)
        return Interval(value, low, high)

    def change_from(self, other: Answers) -> tuple[Interval, int]:
        """Compares two models on the same images, whose rows are in the same order.

        Returns:
            This model's metric less the other's, and on how many images they differ.
        """
        (value, without), (before, without_before) = self.without_each(), other.without_each()
        half = _jackknife(without - without_before)
        change = value - before
        spread = Interval(change, max(-1.0, change - half), min(1.0, change + half))
        return spread, int((self.rows != other.rows).any(axis=1).sum())


@dataclass(frozen=True)
class Verdict:
    """Whether a model is blessed.

    Attributes:
        reasons: why not; none: it is blessed.
        keys: keys of the configuration that decided.
        notes: what a blessing does not cover.
        interval: of the headline metric.
        change: its difference from the last blessed model; `None` without a comparison.
    """

    reasons: tuple[str, ...]
    keys: tuple[str, ...]
    notes: tuple[str, ...]
    interval: Interval
    change: Interval | None


def judge(
    limits: Limits,
    split: str,
    answers: Answers,
    baseline: Answers | None = None,
    lacking: Mapping[str, Sequence[str]] | None = None,
) -> Verdict:
    """Judges a model.

    Args:
        limits: the conditions.
        split: name of the evaluated split, for the reasons.
        answers: of the model.
        baseline: of the last blessed model, to the same images in the same order.
        lacking: name of another split -> the classes that it has no image of: nothing was learned or tuned for them.
    """
    interval = answers.interval()
    change = None if baseline is None else answers.change_from(baseline)
    notes: list[str] = []
    found = [
        *_images(limits, split, answers, interval),
        *_classes(limits, split, answers, notes),
        *_other_splits(limits, lacking or {}, notes),
        *(_trivial(answers) if limits.beat_trivial else ()),
        *_improvement(limits, answers, interval, change),
    ]
    return Verdict(
        reasons=tuple(reason for reason, _ in found),
        keys=tuple(dict.fromkeys(key for _, key in found)),
        notes=tuple(notes),
        interval=interval,
        change=None if change is None else change[0],
    )


def _images(limits: Limits, split: str, answers: Answers, interval: Interval) -> Iterator[tuple[str, str]]:
    count, least = answers.images, LEAST_IMAGES if limits.min_images == AUTO else int(limits.min_images)
    if split == "train":
        yield "the model was judged on train, the images that it learned from", "evaluator.split"
    if count < least:
        yield f"{split} has {count} images, fewer than evaluator.min_images {least}", "evaluator.min_images"
    half = (interval.high - interval.low) / 2
    if limits.min_images == AUTO and count >= least and half > HALF_WIDTH:
        # The width goes with one over the root of the number.
        enough = math.ceil(count * (half / HALF_WIDTH) ** 2)
        yield (
            f"{count} images of {split} say too little: {answers.metric} is {interval.value:.4f}, and with 95 % "
            f"confidence {interval.low:.4f} to {interval.high:.4f}, which is wider than ±{HALF_WIDTH}; about {enough} "
            "images would be enough",
            "evaluator.min_images",
        )


def _classes(limits: Limits, split: str, answers: Answers, notes: list[str]) -> Iterator[tuple[str, str]]:
    counts = dict(zip(answers.classes, answers.shown(), strict=True))
    missing = [name for name, count in counts.items() if not count]
    if missing and limits.allow_missing_classes:
        notes.append(f"{UNJUDGED} {_listed(missing)}, of which {split} has no image")
    elif missing:
        yield f"no image of {split} shows {_listed(missing)}", "evaluator.allow_missing_classes"
    rare = [f"{name} ({count})" for name, count in counts.items() if 0 < count < limits.min_per_class]
    if rare:
        what = f"fewer images of {split} than evaluator.min_per_class {limits.min_per_class} show {_listed(rare)}"
        yield what, "evaluator.min_per_class"


def _other_splits(limits: Limits, lacking: Mapping[str, Sequence[str]], notes: list[str]) -> Iterator[tuple[str, str]]:
    for split, classes in sorted(lacking.items()):
        if classes and limits.allow_missing_classes:
            notes.append(f"{UNJUDGED} {_listed(classes)} in {split}, which has no image of them")
        elif classes:
            yield f"no image of {split} shows {_listed(classes)}", "evaluator.allow_missing_classes"


def _trivial(answers: Answers) -> Iterator[tuple[str, str]]:
    counts = zip(answers.classes, answers.shown(), strict=True)
    shown = [(i, name) for i, (name, count) in enumerate(counts) if count]
    always = "marks every pixel" if answers.kind == "dice" else "answers so to every image"
    if shown and all(answers.against_trivial(i)[1] >= 1 for i, _ in shown):
        yield f"the figures say nothing: a model that {always} is always right", "evaluator.beat_trivial"
        return
    for index, name in shown:
        value, trivial = answers.against_trivial(index)
        # Where a constant answer is always right, no model can be better.
        if value <= trivial < 1:
            what = f"{answers.kind}/{name} {value:.4f} is not above {trivial:.4f}, that of a model that {always}"
            yield what, "evaluator.beat_trivial"


def _improvement(
    limits: Limits, answers: Answers, interval: Interval, change: tuple[Interval, int] | None
) -> Iterator[tuple[str, str]]:
    if change is None or limits.min_improvement <= -1:
        return
    moved, different = change
    least = limits.min_improvement
    if moved.low > least and different >= _DIFFERENT:
        return
    start = (
        f"{answers.metric} {interval.value:.4f} against {interval.value - moved.value:.4f} of the last blessed model "
        f"on the same {answers.images} images: "
    )
    spread = f"a change of {moved.value:+.4f}, and with 95 % confidence {moved.low:+.4f} to {moved.high:+.4f}"
    if moved.value <= least:
        yield f"{start}{spread}, is not above min_improvement {least:+.4f}", "evaluator.min_improvement"
    else:
        few = f"; the two differ on {different} images only" if different < _DIFFERENT else ""
        yield f"{start}{spread}, may be by chance (min_improvement {least:+.4f}){few}", "evaluator.min_improvement"


def _wilson(share: float, count: int) -> tuple[float, float]:
    if not count:
        return 0.0, 1.0
    below = 1 + _Z**2 / count
    middle = (share + _Z**2 / (2 * count)) / below
    half = _Z / below * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _jackknife(without: Floats) -> float:
    """Returns the half width of an interval, from the values without each of the images; infinite below two."""
    count = len(without)
    if count < 2:
        return math.inf
    error = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    return _student(count - 1) * error


def _student(freedom: int) -> float:
    """Returns the 97.5 % quantile of Student's t; at least 2 % exact from 4 degrees of freedom on."""
    z = _Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))


def _listed(names: Sequence[Any]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(map(str, names[:_SHOWN])) + more
