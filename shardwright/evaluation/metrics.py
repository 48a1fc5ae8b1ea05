"""Dice, IoU and F1 of a whole split, from sums over its images; accuracy and F1 from a confusion matrix or sums.

Dice is per class over the whole split, 2·sum(I) / (sum(P) + sum(T)), then the mean over classes. So a model that
predicts nothing scores 0 on every class that is there. (The mean of the images' own scores, Kaggle's, where empty
against empty counts 1, rewards such a model; it is reported as `kaggle_dice`.) Only sums of whole numbers are added up,
so any partition of the images, in any order, gives the same figure to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shardwright.masks.regions import IGNORE_VALUE

if TYPE_CHECKING:
    from typing_extensions import Self

Floats = npt.NDArray[np.float64]

# The Dice of an image of fewer than 2**64 pixels is 0 or above 2**-64, so that its last bit is above 2**-117: a whole
# number of these parts. Sums of whole numbers do not depend on the order of the images.
_KAGGLE_BITS = 128
KAGGLE_UNITS = 1 << _KAGGLE_BITS
# Begins the name of a metric at the best of several thresholds for each class.
TUNED = "tuned_"


class _Added:
    """Sums and counts over images; two of them are added field by field."""

    def __add__(self, other: Self) -> Self:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return type(self)(*(one + more for one, more in pairs))


@dataclass(frozen=True)
class MaskSums(_Added):
    """Pixels per class, added up over images.

    Attributes:
        intersection: predicted and true, float64 [C].
        prediction: predicted, float64 [C].
        truth: true, float64 [C].
        kaggle: the images' own Dice, added up exactly: for each class a whole number of `1 / KAGGLE_UNITS`.
        found: images that show the class and are predicted to, float64 [C].
        predicted: images that are predicted to show the class, float64 [C].
        shown: images that show the class, float64 [C].
        images: how many images.
    """

    intersection: Floats
    prediction: Floats
    truth: Floats
    kaggle: npt.NDArray[np.object_]
    found: Floats
    predicted: Floats
    shown: Floats
    images: int

    @classmethod
    def zero(cls, classes: int) -> MaskSums:
        """Returns the sums over no image."""
        i, p, t, found, predicted, shown = np.zeros((6, classes))
        return cls(i, p, t, np.zeros(classes, object), found, predicted, shown, images=0)

    @classmethod
    def of_images(cls, intersection: npt.ArrayLike, prediction: npt.ArrayLike, truth: npt.ArrayLike) -> MaskSums:
        """Adds up the images of a batch.

        Args:
            intersection: pixels per image and class, [N, C].
            prediction: the same of what is predicted, [N, C].
            truth: the same of what is true, [N, C].
        """
        i, p, t = (np.asarray(v, np.float64) for v in (intersection, prediction, truth))
        found, predicted, shown = (m.sum(0, dtype=np.float64) for m in ((p > 0) & (t > 0), p > 0, t > 0))
        units = np.ldexp(image_dice(i, p, t), _KAGGLE_BITS).T.tolist()
        kaggle = np.array([sum(map(int, column)) for column in units], object)
        return cls(i.sum(0), p.sum(0), t.sum(0), kaggle, found, predicted, shown, images=len(i))

    @classmethod
    def of_masks(cls, predicted: npt.NDArray[Any], true: npt.NDArray[Any], *, ignore: bool = False) -> MaskSums:
        """Adds up a batch of masks, 0 or 1, [N, H, W, C] each.

        Args:
            predicted: what is predicted.
            true: what is true.
            ignore: whether `true` may hold `UNCOUNTED`; such pixels are left out of both.
        """
        p, t = np.asarray(predicted, bool), np.asarray(true, bool)
        if ignore:
            counted = np.asarray(true) != IGNORE_VALUE
            p, t = p & counted, t & counted
        return cls.of_images(*(m.sum((1, 2), dtype=np.int64) for m in (p & t, p, t)))

    def dice(self) -> Floats:
        """Returns 2I / (P + T) per class, float64 [C]; NaN for a class that is neither there nor predicted."""
        return _ratio(2 * self.intersection, self.prediction + self.truth)

    def iou(self) -> Floats:
        """Returns I / (P + T - I) per class, float64 [C]; NaN for a class that is neither there nor predicted."""
        return _ratio(self.intersection, self.prediction + self.truth - self.intersection)

    def f1(self) -> Floats:
        """Returns the F1 of whether an image shows a class, float64 [C]; NaN for one neither there nor predicted."""
        return _ratio(2 * self.found, self.predicted + self.shown)

    def report(self, classes: Sequence[str]) -> dict[str, float]:
        """Names and values: `mean_dice`, `mean_iou`, `mean_f1`, `kaggle_dice`; `dice/`, `iou/` and `f1/<class>`.

        F1 is that of the images: whether they show the class at all (that of the pixels is their Dice). A class that is
        neither there nor predicted has no Dice: it is left out of the report and of the means. Without any class left
        the means are 0.
        """
        dice, iou, f1 = self.dice(), self.iou(), self.f1()
        kaggle = sum(self.kaggle) / (KAGGLE_UNITS * max(self.images * len(classes), 1))
        values = {"mean_dice": _mean(dice), "mean_iou": _mean(iou), "mean_f1": _mean(f1), "kaggle_dice": kaggle}
        for index, name in enumerate(classes):
            if not np.isnan(dice[index]):
                values[f"dice/{name}"] = float(dice[index])
                values[f"iou/{name}"] = float(iou[index])
                values[f"f1/{name}"] = float(f1[index])
        return values


def image_dice(intersection: npt.ArrayLike, prediction: npt.ArrayLike, truth: npt.ArrayLike) -> Floats:
    """Returns Kaggle's Dice of single images: 2I / (P + T), and 1 where neither is there. Any shape, elementwise."""
    i, p, t = (np.asarray(v, np.float64) for v in (intersection, prediction, truth))
    return np.nan_to_num(_ratio(2 * i, p + t), nan=1.0)


@dataclass(frozen=True)
class LabelCounts(_Added):
    """Confusion matrix of a split: float64 [K, K], truth by row, prediction by column."""

    confusion: Floats

    @classmethod
    def zero(cls, classes: int) -> LabelCounts:
        """Returns the counts over no image."""
        return cls(np.zeros((classes, classes)))

    @classmethod
    def of_labels(cls, predicted: npt.ArrayLike, true: npt.ArrayLike, classes: int) -> LabelCounts:
        """Counts a batch of class indices, [N] each."""
        counts = np.zeros((classes, classes))
        np.add.at(counts, (np.asarray(true, np.int64), np.asarray(predicted, np.int64)), 1.0)
        return cls(counts)

    def report(self, classes: Sequence[str]) -> dict[str, float]:
        """Names and values: `accuracy`, `mean_f1`, `f1/<class>`; a class neither there nor predicted is left out."""
        hits, total = np.diagonal(self.confusion), self.confusion.sum()
        f1 = _ratio(2 * hits, self.confusion.sum(0) + self.confusion.sum(1))
        values = {"accuracy": float(hits.sum() / max(total, 1.0)), "mean_f1": _mean(f1)}
        values.update({f"f1/{n}": float(v) for n, v in zip(classes, f1, strict=True) if not np.isnan(v)})
        return values


@dataclass(frozen=True)
class ClassSums(_Added):
    """Images per class, added up, where an image may have several classes.

    Attributes:
        hits: predicted and true, float64 [C].
        prediction: predicted, float64 [C].
        truth: true, float64 [C].
        exact: how many images have all their classes predicted and no other.
        images: how many images.
    """

    hits: Floats
    prediction: Floats
    truth: Floats
    exact: int
    images: int

    @classmethod
    def zero(cls, classes: int) -> ClassSums:
        """Returns the sums over no image."""
        return cls(np.zeros(classes), np.zeros(classes), np.zeros(classes), 0, 0)

    @classmethod
    def of_labels(cls, predicted: npt.ArrayLike, true: npt.ArrayLike) -> ClassSums:
        """Adds up a batch, 0 or 1 per image and class, [N, C] each."""
        p, t = np.asarray(predicted, bool), np.asarray(true, bool)
        hits, prediction, truth = (m.sum(0, dtype=np.float64) for m in (p & t, p, t))
        return cls(hits, prediction, truth, int((p == t).all(1).sum()), len(p))

    def report(self, classes: Sequence[str]) -> dict[str, float]:
        """Names and values: `mean_f1`, `exact_match`, `f1/<class>`; a class neither there nor predicted is left out."""
        f1 = _ratio(2 * self.hits, self.prediction + self.truth)
        values = {"mean_f1": _mean(f1), "exact_match": self.exact / max(self.images, 1)}
        values.update({f"f1/{n}": float(v) for n, v in zip(classes, f1, strict=True) if not np.isnan(v)})
        return values


def headline(task: str, *, multi: bool = False) -> str:
    """Returns the metric that selects models: `mean_dice` for masks, `accuracy`, or `mean_f1` for several labels."""
    return "mean_dice" if task == "segmentation" else "mean_f1" if multi else "accuracy"


def better(task: str, candidate: Mapping[str, float], best: Mapping[str, float] | None, *, multi: bool = False) -> bool:
    """Returns whether metrics are better than the best so far: by the headline, then by the lower loss.

    Where both have the headline at tuned thresholds, as the model will be exported, that one decides.
    """
    if best is None:
        return True
    name = _selecting(task, candidate, best, multi)
    return (candidate[name], -candidate["loss"]) > (best[name], -best["loss"])


def as_good(task: str, candidate: Mapping[str, float], best: Mapping[str, float], images: int, *, multi: bool) -> bool:
    """Returns whether a later model is worse than the best one by no more than chance.

    That is so if labels of so few images differ by less than twice the standard error of the difference: 0.27 for 23
    images, 0.03 for 2,000. Dice counts pixels, of which even a few images have many: there any difference counts.

    Args:
        task: `segmentation` or `classification`.
        candidate: metrics of the later model.
        best: metrics of the best one.
        images: how many images both were measured on.
        multi: whether an image may have several classes.
    """
    if task == "segmentation":
        return False
    name = _selecting(task, candidate, best, multi)
    return candidate[name] > best[name] - 2 * math.sqrt(2 * best[name] * (1 - best[name]) / max(images, 1))


def _selecting(task: str, candidate: Mapping[str, float], best: Mapping[str, float], multi: bool) -> str:
    name = headline(task, multi=multi)
    return TUNED + name if TUNED + name in candidate and TUNED + name in best else name


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.full_like(below, np.nan), where=below > 0)


def _mean(values: Floats) -> float:
    there = values[~np.isnan(values)]
    return float(there.mean()) if there.size else 0.0
