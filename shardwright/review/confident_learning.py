"""Finds wrong classes by the probabilities of a model that did not learn from these images.

Confident learning (Northcutt, Jiang, Chuang: "Confident Learning: Estimating Uncertainty in Dataset Labels", 2021). The
probabilities are calibrated by a temperature (Guo et al., 2017). The threshold of a class is the mean probability of
the class over the images that have it, so that a class of which the model is never sure is not blamed for that. An
image that reaches the threshold of another class, and not of its own, is off the diagonal of the confident joint. Those
images come first; within both parts the image with the lowest self-confidence, the probability of its own class, does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LEAST = 1e-7
# Of log(1 / temperature), and how often the interval is cut; the loss is convex in 1 / temperature.
_INTERVAL, _CUTS = (-3.0, 3.0), 60


@dataclass(frozen=True)
class LabelDoubts:
    """How much a model doubts the classes of images.

    Attributes:
        order: positions of the images, the most doubtful first, int64 [N].
        confidence: calibrated probability that the annotation is right, float64 [N]; of several classes the lowest.
        suspected: whether it is off the diagonal of the confident joint, bool [N].
        temperature: of the calibration; above 1 the model was too sure.
        joint: the confident joint, int64 [K, K]: annotation by row, likely class by column. Of several classes an image
            [K, 2, 2]: absent and present.
    """

    order: Ints
    confidence: Floats
    suspected: npt.NDArray[np.bool_]
    temperature: float
    joint: Ints


def doubt_labels(probabilities: npt.ArrayLike, labels: npt.ArrayLike) -> LabelDoubts:
    """Ranks images of one class each.

    Args:
        probabilities: of each class, [N, K].
        labels: the annotated class of each, whole numbers [N].
    """
    given, own = np.asarray(probabilities, np.float64), np.asarray(labels, np.int64)
    scores = np.log(np.maximum(given, _LEAST))
    temperature = fit_temperature(scores, own)
    calibrated = _softmax(scores / temperature)
    confidence = calibrated[np.arange(len(own)), own]
    likely, joint = confident_joint(calibrated, own)
    suspected = (likely >= 0) & (likely != own)
    return LabelDoubts(_order(confidence, suspected), confidence, suspected, temperature, joint)


def doubt_label_sets(probabilities: npt.ArrayLike, labels: npt.ArrayLike) -> LabelDoubts:
    """Ranks images that may have several classes, each of which is a question of its own: is it there or not.

    Args:
        probabilities: of each class, [N, C].
        labels: 0 or 1 for each class, [N, C].
    """
    given, own = np.asarray(probabilities, np.float64), np.asarray(labels, np.int64)
    pairs = np.log(np.maximum(np.stack([1 - given, given], -1), _LEAST))
    temperature = fit_temperature(pairs.reshape(-1, 2), own.reshape(-1))
    calibrated = _softmax(pairs / temperature)
    confidence = np.take_along_axis(calibrated, own[..., None], -1)[..., 0]
    found = [confident_joint(calibrated[:, c], own[:, c]) for c in range(own.shape[1])]
    likely = np.stack([one for one, _ in found], 1)
    suspected = (likely >= 0) & (likely != own)
    # Of a suspected image the class that is suspected.
    lowest = np.where(suspected.any(1), np.where(suspected, confidence, np.inf).min(1), confidence.min(1))
    joint = np.stack([one for _, one in found])
    return LabelDoubts(_order(lowest, suspected.any(1)), lowest, suspected.any(1), temperature, joint)


def confident_joint(probabilities: Floats, labels: Ints) -> tuple[Ints, Ints]:
    """Counts images by their annotated and their confidently predicted class.

    Args:
        probabilities: calibrated, float64 [N, K].
        labels: annotated classes, int64 [N].

    Returns:
        The likeliest class of those whose threshold the image reaches, int64 [N], -1 where it reaches none; and the
        counts, int64 [K, K]. A class that no image has is never likely.
    """
    classes = probabilities.shape[1]
    thresholds = np.array(
        [probabilities[labels == k, k].mean() if (labels == k).any() else np.inf for k in range(classes)]
    )
    # The mean of equal numbers may be a bit above them.
    reached = probabilities >= thresholds - _LEAST
    likely = np.where(reached.any(1), np.where(reached, probabilities, -1.0).argmax(1), -1)
    joint = np.zeros((classes, classes), np.int64)
    np.add.at(joint, (labels[likely >= 0], likely[likely >= 0]), 1)
    return likely, joint


def fit_temperature(scores: npt.NDArray[Any], labels: Ints) -> float:
    """Returns the temperature by which dividing the scores, [N, K], makes the mean log loss smallest."""
    if not len(labels):
        return 1.0
    own = np.arange(len(labels)), labels

    def loss(slope: float) -> float:
        return float((_log_sum(slope * scores) - slope * scores[own]).mean())

    low, high = _INTERVAL
    for _ in range(_CUTS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if loss(np.exp(left)) <= loss(np.exp(right)) else (left, high)
    return float(np.exp(-(low + high) / 2))


def _order(confidence: Floats, suspected: npt.NDArray[np.bool_]) -> Ints:
    return np.lexsort((confidence, ~suspected)).astype(np.int64)


def _log_sum(scores: Floats) -> Floats:
    most = scores.max(-1)
    return np.asarray(most + np.log(np.exp(scores - most[..., None]).sum(-1)))


def _softmax(scores: Floats) -> Floats:
    return np.asarray(np.exp(scores - _log_sum(scores)[..., None]))
