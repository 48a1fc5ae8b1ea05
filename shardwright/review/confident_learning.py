"""Finds wrong classes by the probabilities of a model that did not learn from these images.

Confident learning (Northcutt, Jiang, Chuang: "Confident Learning: Estimating Uncertainty in Dataset Labels", 2021). The
probabilities are calibrated by a temperature (Guo et al., 2017). The threshold of a class is the mean probability of
the class over the images that have it. An image that reaches the threshold of another class, and not of its own, is off
the diagonal of the confident joint: suspected.

Images are ranked by their self-confidence, the probability of their own class, as a share of the threshold of that
class, so that a class of which the model is never sure is not blamed for that. Those off the diagonal are not put
first: a model that is right about 60 % of the images is seldom sure of another class, and where it is sure only that
the annotated class is wrong, that is an error as often.
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
        confidence: calibrated probability that the annotation is right, float64 [N]; of several classes that of the
            class that is doubted most.
        shares: that probability as a share of what is usual for the class, float64 [N], by which they are ranked.
        suspected: whether it is off the diagonal of the confident joint, bool [N].
        temperature: of the calibration; above 1 the model was too sure.
        joint: the confident joint, int64 [K, K]: annotation by row, likely class by column. Of several classes an image
            [K, 2, 2]: absent and present.
    """

    order: Ints
    confidence: Floats
    shares: Floats
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
    shares = _shares(calibrated, own)
    return LabelDoubts(_order(shares), confidence, shares, suspected, temperature, joint)


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
    questions = range(own.shape[1])
    found = [confident_joint(calibrated[:, c], own[:, c]) for c in questions]
    likely, joint = np.stack([one for one, _ in found], 1), np.stack([one for _, one in found])
    suspected = ((likely >= 0) & (likely != own)).any(1)
    shares = np.stack([_shares(calibrated[:, c], own[:, c]) for c in questions], 1)
    most = shares.argmin(1)[:, None]
    lowest, share = (np.take_along_axis(one, most, 1)[:, 0] for one in (confidence, shares))
    return LabelDoubts(_order(share), lowest, share, suspected, temperature, joint)


def confident_joint(probabilities: Floats, labels: Ints) -> tuple[Ints, Ints]:
    """Counts images by their annotated and their confidently predicted class.

    Args:
        probabilities: calibrated, float64 [N, K].
        labels: annotated classes, int64 [N].

    Returns:
        The likeliest class of those whose threshold the image reaches, int64 [N], -1 where it reaches none; and the
        counts, int64 [K, K]. A class that no image has is never likely.
    """
    classes, thresholds = probabilities.shape[1], _thresholds(probabilities, labels)
    # The mean of equal numbers may be a bit above them.
    reached = probabilities >= thresholds - _LEAST
    likely = np.where(reached.any(1), np.where(reached, probabilities, -1.0).argmax(1), -1)
    joint = np.zeros((classes, classes), np.int64)
    np.add.at(joint, (labels[likely >= 0], likely[likely >= 0]), 1)
    return likely, joint


def _thresholds(probabilities: Floats, labels: Ints) -> Floats:
    of_class = (probabilities[labels == k, k] for k in range(probabilities.shape[1]))
    return np.array([own.mean() if len(own) else np.inf for own in of_class])


def _shares(probabilities: Floats, labels: Ints) -> Floats:
    """Returns the probability of the annotated class as a share of the threshold of the class."""
    usual = np.maximum(_thresholds(probabilities, labels), _LEAST)
    return np.asarray(probabilities[np.arange(len(labels)), labels] / usual[labels])


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


def _order(shares: Floats) -> Ints:
    return shares.argsort(kind="stable").astype(np.int64)


def _log_sum(scores: Floats) -> Floats:
    most = scores.max(-1)
    return np.asarray(most + np.log(np.exp(scores - most[..., None]).sum(-1)))


def _softmax(scores: Floats) -> Floats:
    return np.asarray(np.exp(scores - _log_sum(scores)[..., None]))
