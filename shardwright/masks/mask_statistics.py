"""What the pixels of masks tell about the meaning of their values: counted file by file, and summed over a whole set.

A value is a class where it covers areas. Other values are edges: of a soft mask, of one that was resized by
interpolation or compressed with loss, the values rise or fall step by step from one area to the next (*ramps*). 255 is
a border, as Pascal VOC draws it, where it separates the classes from the background.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.images.colors import COLOR
from shardwright.masks.mask_pixels import MaskImage

WHITE = 255
# Fewer pixels may be an accident.
_LEAST_RAMPS, _LEAST_AREA = 16, 64
# Ramps for each edge: none of a drawn mask, up to several of one with soft edges.
_SOFT = 0.12
# Where 255 is drawn around classes: the share of their border that is 255, that of 255's which is 0, and its thickness.
_DRAWN_AROUND, _OUTSIDE, _THICKEST = 0.4, 0.1, 8
# Of the pixels of a class, the share that covers areas. What covers none is rare next to the classes.
_SOLID, _RARE = 0.35, 0.1
# Of the outermost pixels of a set, the share that an object does not have.
_FRAME = 0.9


@dataclass
class MaskTotals:
    """The pixels of a whole set of masks.

    Attributes:
        files: how many masks there are.
        pixels: value -> pixels.
        areas: value -> see `MaskPixels.areas`.
        holding: value -> masks that have it.
        first: value -> the first mask with it.
        soft: masks with soft edges; the first ones by name.
        mixed: masks with 255 and a class below it.
        framed: masks in which most of the outermost pixels are not 0.
    """

    files: int = 0
    pixels: Counter[int] = field(default_factory=Counter)
    areas: Counter[int] = field(default_factory=Counter)
    holding: Counter[int] = field(default_factory=Counter)
    first: dict[int, str] = field(default_factory=dict)
    soft: list[str] = field(default_factory=list)
    mixed: int = 0
    framed: int = 0
    _near: int = 0
    _far: int = 0
    _rim: int = 0
    _outside: int = 0

    def add(self, place: str, mask: MaskPixels) -> None:
        """Adds a mask, which messages call `place`."""
        self.files += 1
        for value, pixels, areas in zip(mask.values.tolist(), mask.pixels.tolist(), mask.areas.tolist(), strict=True):
            self.pixels[value] += pixels
            self.areas[value] += areas
            self.holding[value] += 1
            self.first.setdefault(value, place)
        if mask.soft:
            self.soft.append(place)
        self.mixed += mask.rim[0] > 0
        self.framed += mask.frame[0] >= _FRAME * mask.frame[1]
        self._near, self._far = self._near + mask.near, self._far + mask.far
        self._rim, self._outside = self._rim + mask.rim[0], self._outside + mask.rim[1]

    def rename(self, value: int, other: int) -> None:
        """Counts a value as another one."""
        for counts in (self.pixels, self.areas, self.holding):
            counts[other] += counts.pop(value, 0)
        self.first.setdefault(other, self.first.pop(value, ""))

    @property
    def values(self) -> list[int]:
        """Returns the values other than 0 or black, ascending."""
        return sorted(value for value in self.pixels if value % COLOR)

    def share(self, values: Iterable[int]) -> str:
        """Returns the share of all pixels that have one of some values, for people to read."""
        part = 100 * sum(self.pixels[value] for value in values) / max(1, self.pixels.total())
        return f"{part:{'.0f' if part >= 9.95 else '.2g'}} % of all pixels"

    def solid(self) -> list[int]:
        """Returns the values other than 0 that cover areas, ascending."""
        return [value for value in self.values if self.areas[value] >= _SOLID * self.pixels[value]]

    def stray(self) -> list[int]:
        """Returns the values of few pixels that cover no area, next to values that do."""
        solid = self.solid()
        if not solid:
            return []
        most = max(_LEAST_RAMPS, _RARE * max(self.pixels[value] for value in solid))
        return [value for value in self.values if value not in solid and self.pixels[value] <= most]

    @property
    def white_is_border(self) -> bool:
        """Returns whether 255 is drawn around the classes below it."""
        classes = [value for value in self.solid() if value < WHITE]
        return (
            self._near >= _DRAWN_AROUND * max(1, self._near + self._far)
            and self._outside >= _OUTSIDE * self._rim
            and self.pixels[WHITE] <= _THICKEST * self._rim
            and self.pixels[WHITE] <= sum(self.pixels[value] for value in classes)
        )


def measure(mask: MaskImage) -> MaskPixels:
    """Measures the values of a mask as they are; what needs three values is skipped where there are fewer."""
    values, places = _indexed(mask.values)
    pixels = np.bincount(places.reshape(-1), minlength=len(values)).astype(np.int64)
    present = pixels > 0
    areas = pixels
    shown = values[present]
    soft, near, far, rim = False, 0, 0, (0, 0)
    if len(shown) > 2 or (pixels[present & (values % COLOR != 0)] < _LEAST_AREA).any():
        across, down = places[:, 1:] != places[:, :-1], places[1:] != places[:-1]
        border = across[:-1] | across[1:] | down[:, :-1]
        # Few pixels are at a border.
        others = np.concatenate([places[:-1, :-1][border], places[-1], places[:-1, -1]])
        areas = pixels - np.bincount(others, minlength=len(values))
    if len(shown) > 2:
        levels = mask.values
        if mask.colored:  # How light each pixel is.
            light = (values >> 16 & 0xFF) + (values >> 8 & 0xFF) + (values & 0xFF)
            levels = light.astype(np.uint16)[places]
        soft = _is_soft(levels)
    if WHITE in shown and len(shown[(shown > 0) & (shown < WHITE)]):
        near, far, rim = _around_white(mask.values)
    edge = np.concatenate([mask.values[0], mask.values[-1], mask.values[:, 0], mask.values[:, -1]])
    frame = (int(np.count_nonzero(edge.astype(np.int64) % COLOR)), edge.size)
    return MaskPixels(shown.astype(np.int64), pixels[present], areas[present], soft, near, far, rim, frame)


class MaskPixels(NamedTuple):
    """The pixels of one mask.

    Attributes:
        values: different values, ascending; colors as in `MaskImage.values`.
        pixels: of each value.
        areas: of each value, the pixels that begin a square of 2x2 of it; all of them where that was not needed.
        soft: whether its edges are ramps.
        near: neighbors of which one is 255, and the other a class below it.
        far: neighbors of which one is a class below 255, and the other 0.
        rim: neighbors of which one is 255, and those of them of which the other is 0.
        frame: outermost pixels that are not 0, and all of them.
    """

    values: npt.NDArray[np.int64]
    pixels: npt.NDArray[np.int64]
    areas: npt.NDArray[np.int64]
    soft: bool
    near: int
    far: int
    rim: tuple[int, int]
    frame: tuple[int, int]


def measure_palette(indices: MaskPixels, mask: MaskImage) -> MaskPixels:
    """Returns the same pixels of a mask with a palette of colors, by their colors."""
    colors = np.array([*mask.palette, *[COLOR] * 256], np.int64)[indices.values]
    values, places = np.unique(colors, return_inverse=True)
    pixels = np.bincount(places.reshape(-1), weights=indices.pixels).astype(np.int64)
    areas = np.bincount(places.reshape(-1), weights=indices.areas).astype(np.int64)
    return indices._replace(values=values, pixels=pixels, areas=areas)


def _indexed(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Returns different values, and for each pixel the place of its value."""
    if values.dtype != np.uint32:
        return np.arange(int(values.max()) + 1, dtype=np.int64), values
    # Sorting the runs of equal colors takes a tenth of sorting the pixels.
    flat = values.reshape(-1)
    begins = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    colors, color_of_run = np.unique(flat[begins], return_inverse=True)
    places = np.repeat(color_of_run.reshape(-1), np.diff(begins, append=flat.size))
    return colors.astype(np.int64), places.reshape(values.shape)


def _is_soft(levels: npt.NDArray[Any]) -> bool:
    """Returns whether edges are ramps: pixels between a lower and a higher neighbor."""
    ramps = edges = 0
    for first, second, inner, outer in (
        (levels[:, :-1], levels[:, 1:], np.s_[:, :-1], np.s_[:, 1:]),
        (levels[:-1], levels[1:], np.s_[:-1], np.s_[1:]),
    ):
        for steps in (first < second, first > second):
            edges += int(np.count_nonzero(steps))
            ramps += int(np.count_nonzero(steps[inner] & steps[outer]))
    return ramps >= _LEAST_RAMPS and ramps >= _SOFT * (edges - ramps)


def _around_white(values: npt.NDArray[Any]) -> tuple[int, int, tuple[int, int]]:
    near = far = rim = outside = 0
    white, none = values == WHITE, values == 0
    classes = ~(white | none) & (values < WHITE)
    for first, second in (((slice(None), slice(1, None)), (slice(None), slice(-1))), ((slice(1, None),), (slice(-1),))):
        near += int(np.count_nonzero(classes[first] & white[second]) + np.count_nonzero(white[first] & classes[second]))
        far += int(np.count_nonzero(classes[first] & none[second]) + np.count_nonzero(none[first] & classes[second]))
        rim += int(np.count_nonzero(white[first] != white[second]))
        outside += int(np.count_nonzero(white[first] & none[second]) + np.count_nonzero(none[first] & white[second]))
    return near, far, (rim, outside)
