"""Whether what stands beside an outline agrees with it: the box and the area that a tool states for the same object.

Images are resized, and one of the descriptions is forgotten; a converter writes edges where sizes are meant, or counts
from another corner. Then each is plausible alone. All objects of a set are counted, since a few differ in every large
one: boxes are around hidden parts, too, and areas are those of the outline or of its box.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.config.input import OWN_BOXES, LabelsConfig
from shardwright.errors import UsageError
from shardwright.formats.object_values import AREA
from shardwright.images.boxes import Box
from shardwright.masks.dialects import COCO
from shardwright.masks.rle import RleError, Runs

# Edges differ by rounding: so many pixels, and this share of the side. So much may an area differ.
_PIXELS, _SHARE, _AREA = 1.5, 0.05, 0.2
# Fewer objects prove nothing. Of these, so many may be outside of their boxes, and so many must fill them.
_SEVERAL, _OUTSIDE, _FILLING = 6, 0.05, 0.5
# Where one factor is between nearly all of two descriptions, one of both was scaled.
_NEARLY_ALL, _STEADY = 0.9, 0.1
# So many objects are compared, and of further ones one of so many, which takes a hundredth of the time of reading them;
# fewer of run lengths, which have to be decoded.
_ALL, _ONE_OF = 4096, 8
_BOXES = ("bbox", "bounding_box")
_NONE = float("nan")


def stated_beside(members: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """Returns the box and the area that an object of a tool states beside its outline; `None` without either."""
    box = next((members[name] for name in _BOXES if name in members), None)
    found = box, members.get(AREA)
    return None if found == (None, None) else found


def box_around(runs: Runs, height: int) -> Box:
    """Returns the box around a mask, int64 (n, 2) with n > 0, of an image of so many rows."""
    begins, ends = runs[:, 0], runs.sum(axis=1) - 1
    columns = begins // height, ends // height
    whole = bool(np.any(columns[0] != columns[1]))
    top, bottom = (0, height) if whole else (int((begins % height).min()), int((ends % height).max()) + 1)
    return Box(int(columns[0].min()), top, int(columns[1].max()) + 1, bottom)


def is_box(sides: Any) -> bool:
    """Returns whether a value is four numbers."""
    return isinstance(sides, list) and len(sides) == 4 and all(type(side) in (int, float) for side in sides)


@dataclass
class ObjectAgreement:
    """The descriptions of the objects of a set, in columns; NaN where one is not there.

    Attributes:
        seen: how many objects there are.
    """

    seen: int = 0
    _drawn: tuple[array[float], ...] = field(default_factory=lambda: tuple(array("d") for _ in Box._fields))
    _beside: tuple[array[float], ...] = field(default_factory=lambda: tuple(array("d") for _ in Box._fields))
    _area_drawn: array[float] = field(default_factory=lambda: array("d"))
    _area_beside: array[float] = field(default_factory=lambda: array("d"))

    def look(self, outline: Any, box: Any, area: Any) -> None:
        """Compares the descriptions of an object.

        Args:
            outline: polygons, lists of x, y, x, y, ..., or COCO's run lengths; `None` without either.
            box: the stated [x, y, width, height].
            area: the stated area.
        """
        self.seen += 1
        if self.seen > _ALL and self.seen % _ONE_OF:
            return
        if isinstance(outline, dict) and self.seen > _ALL // _ONE_OF and self.seen % _ONE_OF**2:
            return
        # Whoever is not what it should be is reported where it is read.
        area = float(area) if type(area) in (int, float) and area > 0 else _NONE
        box = box if is_box(box) else None
        if box is None and (area != area or outline is None):
            return
        try:
            drawn, inside = _measure(outline)
            beside = Box(box[0], box[1], box[0] + box[2], box[1] + box[3]) if box else None
            self.add(drawn, inside, beside and Box(*map(float, beside)), area)
        except (TypeError, ValueError, KeyError, OverflowError, RleError):
            return

    def add(self, drawn: Box | None, inside: float, beside: Box | None, area: float = _NONE) -> None:
        """Compares an outline's box and area with the box and the area beside it."""
        for columns, edges in ((self._drawn, drawn and Box(*map(float, drawn))), (self._beside, beside)):
            for column, edge in zip(columns, edges or [_NONE] * len(columns), strict=True):
                column.append(edge)
        self._area_drawn.append(inside)
        self._area_beside.append(area)

    def check(self, where: str, options: LabelsConfig, *, masks: bool) -> None:
        """Checks that the descriptions agree.

        Args:
            where: the annotations, for messages.
            options: `input.labels`.
            masks: whether outlines are read, and not the boxes.

        Raises:
            UsageError: they do not, and `input.labels.confirmed` does not have it.
        """
        if OWN_BOXES in options.confirmed or not self._area_drawn:
            return
        drawn, beside = (np.array(columns, np.float64).T for columns in (self._drawn, self._beside))
        problem = _outlines_and_boxes(drawn, beside)
        problem = problem or _areas(np.array(self._area_beside), np.array(self._area_drawn), beside)
        if problem:
            kept = "outlines" if masks else "boxes"
            raise UsageError(
                f"{where}: {problem}. Were images resized, or are they written by another rule? Correct the one that "
                f"does not fit the images. If the {kept} are right, set input.labels.confirmed: [{OWN_BOXES}]."
            ).with_readings(options.confirming(OWN_BOXES, f"the {kept} are right; what is beside them is not read"))


def _measure(outline: Any) -> tuple[Box | None, float]:
    """Returns the box and the area of polygons or of run lengths; NaN for that of several polygons."""
    if not outline:
        return None, _NONE
    if isinstance(outline, dict):
        height, width = outline["size"]
        counts = outline["counts"]
        text = json.dumps(counts) if isinstance(counts, list) else counts
        runs = COCO.parse(text, height=height, width=width)
        return (box_around(runs, height) if len(runs) else None), float(runs[:, 1].sum())
    across = [ring[::2] for ring in outline]
    down = [ring[1::2] for ring in outline]
    left, right = min(map(min, across)), max(map(max, across))
    top, bottom = min(map(min, down)), max(map(max, down))
    inside = _NONE
    if len(outline) == 1:
        (x,), (y,) = across, down
        inside = abs(sum(a * d - b * c for a, b, c, d in zip(x, y, [*x[1:], x[0]], [*y[1:], y[0]], strict=True))) / 2
    return Box(left, top, right, bottom), inside


def _sizes(boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return boxes[:, 2:] - boxes[:, :2]


def _outlines_and_boxes(drawn: npt.NDArray[np.float64], beside: npt.NDArray[np.float64]) -> str:
    """Returns how outlines contradict the boxes beside them, both (n, 4); empty where they do not."""
    both = ~np.isnan(drawn[:, 0]) & ~np.isnan(beside[:, 0])
    drawn, beside = drawn[both], beside[both]
    if len(drawn) < _SEVERAL:
        return ""
    room = np.maximum(_PIXELS, _SHARE * np.tile(np.maximum(_sizes(drawn), _sizes(beside)), 2))
    outside = ((beside - drawn)[:, :2] > room[:, :2]).any(1) | ((drawn - beside)[:, 2:] > room[:, 2:]).any(1)
    filling = (np.abs(drawn - beside) <= room).all(1)
    if outside.mean() <= _OUTSIDE and filling.mean() >= _FILLING:
        return ""
    first = int(np.flatnonzero(~filling)[0])
    factors = np.median(_sizes(drawn) / np.maximum(_sizes(beside), 1e-9), axis=0)
    shown = "from x {:g} to {:g} and y {:g} to {:g}"
    one, box = (shown.format(*edges[[0, 2, 1, 3]]) for edges in (drawn[first], beside[first]))
    return (
        f"{int((~filling).sum()):,} of {len(drawn):,} objects have another outline than the box beside it: the first "
        f"is drawn {one}, and its box is {box}. The outlines are {factors[0]:.3g} times as wide and "
        f"{factors[1]:.3g} times as high as the boxes"
    )


def _areas(stated: npt.NDArray[np.float64], drawn: npt.NDArray[np.float64], beside: npt.NDArray[np.float64]) -> str:
    """Returns how stated areas (n,) contradict those of outlines (n,) and of boxes (n, 4); empty where they do not."""
    sizes = _sizes(beside)
    boxes = sizes.prod(1)
    there = ~np.isnan(stated) & ~(np.isnan(drawn) & np.isnan(boxes))
    stated, drawn, boxes, sizes, beside = stated[there], drawn[there], boxes[there], sizes[there], beside[there]
    # One number for all objects is no area.
    if len(stated) < _SEVERAL or np.ptp(stated) == 0 < np.ptp(np.where(np.isnan(drawn), boxes, drawn)):
        return ""
    room = np.nan_to_num(sizes.sum(1), nan=0) + 2
    fits = np.zeros(len(stated), np.bool_)
    for area in (drawn, boxes):
        fits |= np.abs(stated - area) <= np.maximum(_AREA * area, room)
    larger = stated > np.fmax(boxes, drawn) * (1 + _AREA) + room
    ratios = stated / np.where(np.isnan(drawn), boxes, drawn)
    middle = float(np.median(ratios))
    steady = np.mean(np.abs(ratios - middle) <= _STEADY * middle) >= _NEARLY_ALL and fits.mean() < _FILLING
    # As the edges that the numbers would be.
    edges = (sizes - beside[:, :2]).prod(1)
    as_edges = np.mean(np.abs(stated - edges) <= np.maximum(_AREA * np.abs(edges), 2)) >= _NEARLY_ALL
    if larger.mean() <= _OUTSIDE and not steady and not (as_edges and fits.mean() < _FILLING):
        return ""
    first = int(np.flatnonzero(~fits)[0])
    text = (
        f"the areas of {int((~fits).sum()):,} of {len(stated):,} objects are not those of their outlines or boxes: the "
        f"first has {stated[first]:g}, and {np.fmin(drawn[first], boxes[first]):g} pixels. The areas are {middle:.3g} "
        "times as large"
    )
    return f"{text}; they fit if the boxes are edges [xmin, ymin, xmax, ymax]" if as_edges else text
