"""Boxes in lists, as Hugging Face's `datasets` holds them: a structure `objects` with the lists `bbox` and `category`.

Its documentation has [x, y, width, height] in pixels. Many data sets on the Hub hold the four edges under the same
names. The numbers of all boxes decide: edges only grow to the right and down, and sizes end within their image.
Sources: huggingface.co/docs/datasets/object_detection; the data sets cppe-5 (sizes), detection-datasets/coco and
detection-datasets/fashionpedia (edges).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shardwright.formats.object_values import (
    AREA,
    BoxUnit,
    ObjectError,
    read_list,
    read_mapping,
    read_name,
    read_number,
)
from shardwright.images.boxes import Box

OBJECTS, BOXES = "objects", "bbox"
CATEGORIES = ("categories", "category", "label", "labels", "category_id")
# A reading counts where ten times as many boxes speak for it: some boxes of every large data set are wrong.
_CLEARLY = 10
# Sizes are rounded.
_BEYOND = 1
# What four numbers may mean, and the share of boxes that must fit their image as that.
SIZES, _EDGES, CENTERS = "corners and sizes", "edges [xmin, ymin, xmax, ymax]", "centers and sizes"
_LEAST_FITTING, _SEVERAL = 0.95, 3


class ListedBox(NamedTuple):
    """A box as it is written.

    Attributes:
        label: its class.
        numbers: four numbers.
        area: what is stated as its area, or `None`.
    """

    label: str
    numbers: tuple[float, float, float, float]
    area: Any = None


def read_boxes(objects: Any, only: str = "") -> list[ListedBox]:
    """Returns the boxes of a structure; newer versions of `datasets` write a structure for each box.

    Args:
        objects: the structure.
        only: the class of all boxes, where no member has their classes.

    Raises:
        ObjectError: it is something else, or has not as many classes as boxes.
    """
    if isinstance(objects, list) and all(isinstance(one, dict) for one in objects):
        names = list(objects[0]) if objects else [BOXES, CATEGORIES[0]]
        objects = {name: [one.get(name) for one in objects] for name in names}
    found = read_mapping(objects, OBJECTS)
    named = category_of(found) or CATEGORIES[0]
    boxes = read_list(found.get(BOXES), BOXES)
    labels = [only] * len(boxes) if only and named not in found else read_list(found.get(named), named)
    if len(boxes) != len(labels):
        raise ObjectError(f"objects: has {len(boxes)} bbox and {len(labels)} {named}")
    areas = found.get(AREA)
    areas = areas if isinstance(areas, list) and len(areas) == len(boxes) else [None] * len(boxes)
    listed = []
    for i, (box, label, area) in enumerate(zip(boxes, labels, areas, strict=True)):
        numbers = [read_number(side, f"bbox {i + 1}") for side in read_list(box, f"bbox {i + 1}")]
        if len(numbers) != 4:
            raise ObjectError(f"bbox {i + 1}: has {len(numbers)} numbers, not [x, y, width, height]")
        listed.append(ListedBox(read_class(label), (numbers[0], numbers[1], numbers[2], numbers[3]), area))
    return listed


def category_of(members: Mapping[str, Any]) -> str:
    """Returns the name of the member that has the classes of boxes; empty where there is none."""
    return next((name for name in CATEGORIES if name in members), "")


def read_class(value: object) -> str:
    """Returns a class as text: numbers are classes, too."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return read_name(value, "the class")


@dataclass
class BoxForm(BoxUnit):
    """The meaning of four numbers, by all boxes of a set.

    Attributes:
        boxes: how many boxes were added.
        shrinking: how many cannot be edges: one of the last two numbers is below the one of the first two.
        beyond: how many would end beyond their image if the last two numbers were a size.
    """

    boxes: int = 0
    shrinking: int = 0
    beyond: int = 0

    def add(self, numbers: Sequence[float]) -> None:
        """Counts a box."""
        self.boxes += 1
        self.shrinking += numbers[2] < numbers[0] or numbers[3] < numbers[1]
        super().add(numbers)

    def compare(self, numbers: tuple[float, float, float, float], *, height: int, width: int) -> None:
        """Compares a box with the size of its image."""
        left, top, right, bottom = numbers
        self.beyond += left + right > width + _BEYOND or top + bottom > height + _BEYOND

    @property
    def may_be_edges(self) -> bool:
        """Returns whether the sizes of the images decide."""
        return self.boxes > _CLEARLY * self.shrinking and not self.fractions

    @property
    def edges(self) -> bool:
        """Returns whether the numbers are left, top, right and bottom edge; else x, y, width and height."""
        return self.may_be_edges and self.beyond > _CLEARLY * self.shrinking

    def box(self, numbers: tuple[float, float, float, float]) -> Box:
        """Returns the edges of a box in pixels."""
        left, top, right, bottom = numbers
        return Box(left, top, right, bottom) if self.edges else Box(left, top, left + right, top + bottom)

    def note(self) -> str:
        """Returns what was detected, for the user."""
        if self.edges:
            return (
                f"bbox: left, top, right and bottom edge in pixels, since {self.beyond} of {self.boxes} boxes would "
                "end beyond their image if the last two numbers were sizes"
            )
        sure = "" if self.shrinking else "; edges would be possible, too, so check some boxes"
        return f"bbox: x, y, width and height in pixels{sure}"


def misread(boxes: Iterable[tuple[Box, tuple[int, int] | None]], read_as: str = SIZES) -> str:
    """Returns what the numbers of boxes mean where they are not what they were read as, although a tool says so.

    Args:
        boxes: as they were read, each with the height and width of its image, where these are known.
        read_as: `SIZES` or `CENTERS`.

    Returns:
        Their other meaning, which most fit, if as they were read several, and one of twenty, leave their images; or an
        empty text.
    """
    counts: Counter[str] = Counter()
    for box, size in boxes:
        if size is None:
            continue
        width, height = box.xmax - box.xmin, box.ymax - box.ymin
        # The first two numbers as they are written.
        x, y = (box.xmin, box.ymin) if read_as == SIZES else (box.xmin + width / 2, box.ymin + height / 2)
        meanings = {
            SIZES: Box(x, y, x + width, y + height),
            _EDGES: Box(x, y, width, height),
            CENTERS: Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2),
        }
        counts["all"] += 1
        counts.update(name for name, one in meanings.items() if _fits(one, *size))
    leaving = counts["all"] - counts[read_as]
    if leaving < _SEVERAL or _LEAST_FITTING * counts["all"] <= counts[read_as]:
        return ""
    others = (name for name in (_EDGES, CENTERS, SIZES) if name != read_as)
    return next((name for name in others if counts[name] > _LEAST_FITTING * counts["all"]), "")


def _fits(box: Box, height: int, width: int) -> bool:
    within = min(box.xmin, box.ymin) >= -_BEYOND and box.xmax <= width + _BEYOND and box.ymax <= height + _BEYOND
    return within and box.xmin < box.xmax and box.ymin < box.ymax
