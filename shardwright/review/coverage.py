"""Chooses which new images to label: those of which a model is unsure, and that are far from what the dataset has.

K-center greedy (Sener, Savarese: "Active Learning for Convolutional Neural Networks: A Core-Set Approach", 2018): the
next image is the one that is farthest from all images that are labeled or chosen already, so that no two alike are
chosen. The distance counts up to twice as much for an image of which the model is unsure.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shardwright.review.confident_learning import Floats, Ints

# Rows of new images whose distances to the dataset are in memory at once.
_ROWS = 256


def k_center(new: npt.ArrayLike, known: npt.ArrayLike, count: int, weights: npt.ArrayLike | None = None) -> Ints:
    """Chooses images that are far from the known ones and from each other.

    Args:
        new: embeddings of the images to choose from, [N, D].
        known: those of the dataset, [M, D]; M may be 0.
        count: how many to choose; all if there are fewer.
        weights: by which the distance of each is multiplied, at least 0, [N]; by default 1.

    Returns:
        Their positions in the order of choice, int64. Ties go to the first image.
    """
    points, labeled = np.asarray(new, np.float64), np.asarray(known, np.float64)
    factors = np.ones(len(points)) if weights is None else np.asarray(weights, np.float64)
    nearest = nearest_distances(points, labeled) if len(labeled) else np.ones(len(points))
    chosen: list[int] = []
    left = np.ones(len(points), np.bool_)
    for _ in range(min(count, len(points))):
        best = int(np.where(left, nearest * factors, -1.0).argmax())
        chosen.append(best)
        left[best] = False
        apart = np.sqrt(((points - points[best]) ** 2).sum(1))
        nearest = np.minimum(nearest, apart) if len(labeled) or len(chosen) > 1 else apart
    return np.array(chosen, np.int64)


def nearest_distances(points: Floats, others: Floats) -> Floats:
    """Returns the distance of each point to the nearest of the others, float64 [N]."""
    squares = (others**2).sum(1)
    parts = [
        ((rows**2).sum(1)[:, None] + squares - 2 * rows @ others.T).min(1)
        for rows in (points[first : first + _ROWS] for first in range(0, len(points), _ROWS))
    ]
    return np.sqrt(np.maximum(np.concatenate(parts), 0.0)) if parts else np.zeros(0)


def uncertainty(probabilities: npt.ArrayLike, *, exclusive: bool) -> Floats:
    """Returns how unsure a model is of each image, from 0 to 1: the entropy of its answer.

    Args:
        probabilities: [N, K] of classes, or [N, H, W, C] of masks, whose mean over the pixels is taken.
        exclusive: whether exactly one of the classes is true.
    """
    given = np.asarray(probabilities, np.float64)
    if exclusive:
        terms = _times_log(given).sum(-1)
        return np.asarray(-terms / np.log(max(given.shape[-1], 2)))
    terms = (_times_log(given) + _times_log(1 - given)) / np.log(2)
    return np.asarray(-terms.reshape(len(given), -1).mean(-1))


def _times_log(values: Floats) -> Floats:
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))
