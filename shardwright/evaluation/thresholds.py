"""Converts probabilities to masks: a threshold and a smallest region for every class, chosen on a split.

The threshold has the best Dice over the whole split, of 99 candidates (0.01 to 0.99). Then regions below an area are
dropped. The area has the best sum of that Dice and of the mean Dice of the images (Kaggle's, which counts empty against
empty as 1). A few false pixels in an empty image lower the latter by much.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.errors import DatasetError
from shardwright.evaluation.metrics import KAGGLE_UNITS, MaskSums
from shardwright.masks.regions import IGNORE_VALUE, areas_and_hits, remove_small
from shardwright.masks.rle import draw, encode
from shardwright.storage.durable import write_file
from shardwright.untrusted.json_text import parse_untrusted_json

THRESHOLDS_FILE = "thresholds.json"
DEFAULT_THRESHOLD = 0.5
_STEPS = 100
# In float32, as in the model.
LEVELS = (np.arange(1, _STEPS) / _STEPS).astype(np.float32)
_CANDIDATES = 64

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Thresholds:
    """Thresholds and smallest regions, one for each class.

    Attributes:
        thresholds: a pixel, or an image, belongs to a class from this probability on.
        min_areas: a region of fewer pixels, in the model's size, is dropped.
    """

    thresholds: tuple[float, ...]
    min_areas: tuple[int, ...]

    @classmethod
    def fixed(cls, classes: int, threshold: float = DEFAULT_THRESHOLD, min_area: int = 0) -> Thresholds:
        """Returns the same values for all classes."""
        return cls((threshold,) * classes, (min_area,) * classes)


def write_thresholds(file: Path, chosen: Thresholds, classes: Sequence[str]) -> None:
    """Writes thresholds as JSON, by class name."""
    value = {
        name: {"threshold": threshold, "min_area": area}
        for name, threshold, area in zip(classes, chosen.thresholds, chosen.min_areas, strict=True)
    }
    write_file(file, json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n")


def read_thresholds(file: str | os.PathLike[str], classes: Sequence[str]) -> Thresholds:
    """Reads thresholds.

    Raises:
        DatasetError: the file is missing, or has other classes.
    """
    try:
        raw: Mapping[str, Any] = parse_untrusted_json(Path(file).read_text(encoding="utf-8"))
        rows = [raw[name] for name in classes]
        return Thresholds(tuple(float(r["threshold"]) for r in rows), tuple(int(r["min_area"]) for r in rows))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{file}: the thresholds cannot be read ({error!r}). Export the model again.") from None


def threshold_masks(probabilities: npt.NDArray[Any], chosen: Thresholds) -> npt.NDArray[np.uint8]:
    """Converts a batch of probabilities, float32 [N, H, W, C], to masks of 0 and 1 of the same shape."""
    masks = np.asarray(probabilities >= np.array(chosen.thresholds, np.float32), np.uint8)
    height, width = masks.shape[1:3]
    for image, c in np.ndindex(len(masks), masks.shape[-1]):
        if chosen.min_areas[c] > 1:
            runs = remove_small(encode(masks[image, ..., c]), height, chosen.min_areas[c])
            masks[image, ..., c] = draw(runs, height, width)
    return masks


class ThresholdCounts:
    """Counts predicted and correct pixels for every class and threshold.

    Args:
        classes: number of classes.
    """

    def __init__(self, classes: int) -> None:
        self._predicted = np.zeros((classes, _STEPS), np.int64)
        self._hits = np.zeros((classes, _STEPS), np.int64)

    def add(self, probabilities: npt.NDArray[Any], true: npt.NDArray[Any]) -> None:
        """Adds a batch: float32 [..., C], and 0, 1 or `IGNORE_VALUE` of the same shape."""
        for c in range(len(self._predicted)):
            truth = true[..., c].reshape(-1)
            level = np.searchsorted(LEVELS, probabilities[..., c].reshape(-1), side="right")
            self._predicted[c] += np.bincount(level[truth != IGNORE_VALUE], minlength=_STEPS)
            self._hits[c] += np.bincount(level[truth == 1], minlength=_STEPS)

    def best(self) -> tuple[float, ...]:
        """Returns the threshold with the best Dice (which equals F1) per class; of equal ones, that nearest to 0.5."""
        # A pixel of level k or more reaches threshold k.
        hits, predicted = (np.cumsum(part[:, ::-1], axis=1)[:, ::-1] for part in (self._hits, self._predicted))
        truth = hits[:, :1]
        below = predicted[:, 1:] + truth
        dice = np.where(below > 0, 2 * hits[:, 1:] / np.maximum(below, 1), 0.0)
        chosen = []
        for row in dice:
            best = np.flatnonzero(row >= row.max())
            nearest = best[np.argmin(np.abs(LEVELS[best] - DEFAULT_THRESHOLD))]
            chosen.append(float(LEVELS[nearest]) if row.max() > 0 else DEFAULT_THRESHOLD)
        return tuple(round(value, 2) for value in chosen)


class RegionCounts:
    """Counts the regions of predicted masks, for every class.

    Args:
        thresholds: thresholds of the classes.
    """

    def __init__(self, thresholds: Sequence[float]) -> None:
        self._thresholds = np.array(thresholds, np.float32)
        self._images = 0
        # For each class: image, pixels, counted pixels and correct pixels of every region; true pixels of every image.
        self._regions: list[list[npt.NDArray[np.int64]]] = [[] for _ in thresholds]
        self._truth: list[list[int]] = [[] for _ in thresholds]

    def add(self, probabilities: npt.NDArray[Any], true: npt.NDArray[Any]) -> None:
        """Adds a batch: float32 [N, H, W, C], and 0, 1 or `IGNORE_VALUE` of the same shape."""
        # As in the exported model: regions are found before ignored pixels are left out.
        predicted, counted = probabilities >= self._thresholds, true != IGNORE_VALUE
        for image in range(len(true)):
            for c, (regions, truths) in enumerate(zip(self._regions, self._truth, strict=True)):
                truth = true[image, ..., c] == 1
                counts = areas_and_hits(predicted[image, ..., c], counted[image, ..., c], truth)
                regions.append(np.stack([np.full_like(counts[0], self._images), *counts]))
                truths.append(int(truth.sum()))
            self._images += 1

    def sums(self, min_areas: Sequence[int]) -> MaskSums:
        """Returns the sums over all images with smaller regions dropped."""
        kept = [self._images_of(c, area) for c, area in enumerate(min_areas)]
        hits, predicted = (np.stack([row[i] for row in kept], axis=-1) for i in (0, 1))
        return MaskSums.of_images(hits, predicted, np.array(self._truth).T)

    def best(self) -> tuple[int, ...]:
        """Returns the smallest area with the best sum of both kinds of Dice, per class."""
        return tuple(self._best_of(c) for c in range(len(self._regions)))

    def _best_of(self, c: int) -> int:
        areas = np.unique(np.concatenate([part[1] for part in self._regions[c]])) if self._regions[c] else np.zeros(0)
        if not areas.size:
            return 0
        # The largest region of a class is never dropped.
        picked = areas[np.unique(np.linspace(0, len(areas) - 1, _CANDIDATES).round().astype(int))]
        best, best_score = 0, -1.0
        for area in (0, *picked.tolist()):
            hits, predicted = self._images_of(c, area)
            truth = np.array(self._truth[c], np.int64)
            one = MaskSums.of_images(hits[:, None], predicted[:, None], truth[:, None])
            score = float(np.nan_to_num(one.dice()[0]) + one.kaggle[0] / (KAGGLE_UNITS * max(one.images, 1)))
            if score > best_score + 1e-9:
                best, best_score = int(area), score
        return best

    def _images_of(self, c: int, area: int) -> tuple[Floats, Floats]:
        found = np.concatenate(self._regions[c], axis=1) if self._regions[c] else np.zeros((4, 0), int)
        image, areas, predicted, hits = found
        kept = areas >= area
        count = self._images
        summed = (np.bincount(image[kept], weights=part[kept], minlength=count) for part in (hits, predicted))
        first, second = (np.asarray(part, np.float64) for part in summed)
        return first, second
