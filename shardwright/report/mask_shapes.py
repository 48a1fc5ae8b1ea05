"""Measures the shapes of masks: regions, overlap, position. All is counted in run space; no mask is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from shardwright.images.geometry import plan_geometry
from shardwright.images.orientation import displayed_size
from shardwright.masks.coordinate_frame import orient_runs
from shardwright.masks.regions import find_regions
from shardwright.masks.rle import Runs, area, draw, resample, union

HEAT_SIDE = 24


def regions(runs: Runs, height: int) -> int:
    """Returns the number of connected regions of a mask: pixels that share an edge belong to one region.

    Args:
        runs: int64 (n, 2), column by column.
        height: rows of the mask.
    """
    return len(find_regions(runs, height, corners=False).areas)


def heat(runs: Runs, height: int, width: int, orientation: int) -> npt.NDArray[np.int64]:
    """Samples the displayed mask at 24 x 24 points: int64 of 0 and 1."""
    shape = displayed_size(height, width, orientation)
    turned = orient_runs(runs, height, width, orientation)
    plan = plan_geometry("stretch", *shape, HEAT_SIDE, HEAT_SIDE)
    return draw(resample(turned, plan), HEAT_SIDE, HEAT_SIDE).astype(np.int64)


@dataclass
class MaskShapes:
    """Shapes of the masks of a sample of images, added up.

    Attributes:
        classes: number of classes.
        images: number of images in the sample.
        masks: for each class, the number of masks that are not empty.
        regions: for each class, counts of masks by number of regions; the last entry counts those with more.
        heat: for each class, how many masks cover each of 24 x 24 points.
        shared: pixels that belong to two classes; on the diagonal the pixels of each class.
    """

    classes: int
    images: int = 0
    masks: list[int] = field(default_factory=list)
    regions: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    heat: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))
    shared: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    MOST_REGIONS = 12

    def __post_init__(self) -> None:
        self.masks = [0] * self.classes
        self.regions = np.zeros((self.classes, self.MOST_REGIONS + 1), np.int64)
        self.heat = np.zeros((self.classes, HEAT_SIDE, HEAT_SIDE), np.int64)
        self.shared = np.zeros((self.classes, self.classes), np.int64)

    def add(self, masks: Sequence[Runs], height: int, width: int, orientation: int) -> None:
        """Adds the masks of one image, one for each class, in its stored frame."""
        self.images += 1
        present = [label for label, runs in enumerate(masks) if len(runs)]
        for label in present:
            runs = masks[label]
            self.masks[label] += 1
            self.regions[label, min(regions(runs, height), self.MOST_REGIONS + 1) - 1] += 1
            self.heat[label] += heat(runs, height, width, orientation)
            self.shared[label, label] += area(runs)
        for place, label in enumerate(present):
            for other in present[place + 1 :]:
                pair = [masks[label], masks[other]]
                both = area(pair[0]) + area(pair[1]) - area(union(pair))
                self.shared[label, other] += both
                self.shared[other, label] += both
