"""Finds wrong masks by what a model that did not learn from these images predicts.

Annotation and prediction are compared class by class: by their Dice, and by the connected regions of which the other
one has no pixel. Two things count: how much they differ (1 - Dice), and how sure the model is: the share of the pixels
that only one of both has, each weighted by the probability that the annotation is wrong there.

A model finds some classes worse than others. So the doubt of a class is by how much that sum is above what is typical
of the class, its median over the images in which one of both has the class. The doubt of an image is the mean over
those classes, by the square root of their pixels: a small object counts for more than its area.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.masks.regions import areas_and_hits
from shardwright.review.confident_learning import Floats, Ints

# Images by which the median of all classes counts for that of one.
_PRIOR = 10


class MaskDifference(NamedTuple):
    """How annotation and prediction of a class differ in an image.

    Attributes:
        annotated: pixels of the annotation.
        predicted: pixels of the prediction.
        shared: pixels of both.
        missed: pixels of the annotated regions of which nothing is predicted.
        extra: pixels of the predicted regions of which nothing is annotated.
        wrong: sum over the pixels that only one of both has of the probability that the annotation is wrong there.
    """

    annotated: int
    predicted: int
    shared: int
    missed: int
    extra: int
    wrong: float

    @property
    def dice(self) -> float:
        """2I / (P + T); 1 where the class is in neither."""
        total = self.annotated + self.predicted
        return 2 * self.shared / total if total else 1.0


def compare_masks(
    annotated: npt.NDArray[np.bool_],
    predicted: npt.NDArray[np.bool_],
    probabilities: npt.NDArray[Any],
    counted: npt.NDArray[np.bool_] | None = None,
) -> list[MaskDifference]:
    """Compares annotation and prediction of an image, a class after the other.

    Args:
        annotated: bool [H, W, C].
        predicted: bool [H, W, C].
        probabilities: of the prediction, [H, W, C].
        counted: pixels that are compared, bool [H, W]; by default all.
    """
    if counted is not None:
        annotated, predicted = annotated & counted[..., None], predicted & counted[..., None]
    found = []
    for c in range(annotated.shape[-1]):
        own, other, sure = annotated[..., c], predicted[..., c], np.asarray(probabilities[..., c], np.float64)
        missed, extra = (
            int(areas[hits == 0].sum()) for areas, hits in (areas_and_hits(own, other), areas_and_hits(other, own))
        )
        shared = int((own & other).sum())
        wrong = float(np.where(own, 1 - sure, sure)[own ^ other].sum())
        found.append(MaskDifference(int(own.sum()), int(other.sum()), shared, missed, extra, wrong))
    return found


def doubt_masks(images: Sequence[Sequence[MaskDifference]]) -> tuple[Ints, Floats]:
    """Ranks images by how much the model doubts their masks.

    Args:
        images: for each image the differences of its classes.

    Returns:
        Positions, the most doubtful first, int64 [N]; and for each image its doubt, float64 [N]: 0 is typical.
    """
    if not images:
        return np.zeros(0, np.int64), np.zeros(0)
    pixels = np.array([[one.annotated + one.predicted for one in classes] for classes in images], np.float64)
    wrong = np.array(
        [[1 - one.dice + one.wrong / max(1, one.annotated + one.predicted) for one in classes] for classes in images]
    )
    there = pixels > 0
    overall = np.median(wrong[there]) if there.any() else 0.0
    weights = np.sqrt(pixels)
    for c in range(wrong.shape[1]):
        own = wrong[there[:, c], c]
        # Of a class of few images, which may all be wrong, all classes say what is typical.
        typical = (len(own) * np.median(own) + _PRIOR * overall) / (len(own) + _PRIOR) if len(own) else overall
        wrong[:, c] -= typical
    doubts = (np.where(there, wrong, 0.0) * weights).sum(1) / np.maximum(weights.sum(1), 1.0)
    return np.argsort(-doubts, kind="stable").astype(np.int64), doubts
