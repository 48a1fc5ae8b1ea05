"""From the frame in which an image is annotated to that of the pixels that are stored.

A file's pixels are in the *stored* frame; what viewers (and most labelling tools) show is the *displayed* one, turned
by the Exif orientation. Then the pixels may be turned for good and resized (`images.orientation`, `images.resize`):
masks and boxes go the same way, in run space, by the same geometry.

Which frame masks are in, `input.labels.frame` says. `auto`: the one that has the mask's own size, where the mask says
one (COCO, mask images) and only one has it; else the displayed one. Of an upright image they are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shardwright.boxes import XMIN, move_boxes
from shardwright.geometry import Geometry
from shardwright.masks.rle import Runs, resample
from shardwright.orientation import UPRIGHT, displayed_size, inverse, turn_boxes, turn_runs


@dataclass(frozen=True)
class Frames:
    """What lies between an image's file and its stored pixels.

    Attributes:
        height: rows of the file's pixels.
        width: columns of the file's pixels.
        orientation: how the file says they are to be turned, 1-8.
        turned: whether they were.
        geometry: how they were resized then; `None`: not at all.
    """

    height: int
    width: int
    orientation: int
    turned: bool = False
    geometry: Geometry | None = None

    def are_displayed(self, said: str, size: tuple[int, int] | None) -> bool:
        """Tells whether annotations are in the displayed frame, not in the stored one.

        Args:
            said: `auto`, `stored` or `displayed`.
            size: height and width of the frame as the annotation itself tells them, if it does.
        """
        if self.orientation == UPRIGHT or said == "stored":
            return False
        stored = (self.height, self.width)
        told = said == "auto" and size == stored and stored != displayed_size(*stored, self.orientation)
        return not told

    @property
    def moves_boxes(self) -> bool:
        """Whether boxes, told in shares of the image, may come to lie elsewhere."""
        return self.orientation != UPRIGHT or self.geometry is not None

    def size(self, displayed: bool) -> tuple[int, int]:
        """Height and width of a frame that annotations may be in."""
        stored = (self.height, self.width)
        return displayed_size(*stored, self.orientation) if displayed else stored

    def move_runs(self, runs: Runs, displayed: bool) -> Runs:
        """Moves a mask to the stored pixels.

        Args:
            runs: int64 (n, 2).
            displayed: the frame they are in.

        Returns:
            The runs, int64 (m, 2); those given where nothing is between.
        """
        turn = self._turn(displayed)
        if turn != UPRIGHT:
            runs = turn_runs(runs, *self.size(displayed), turn)
        return runs if self.geometry is None else resample(runs, self.geometry)

    def move_boxes(self, lists: Mapping[str, Any], displayed: bool) -> dict[str, Any]:
        """Moves boxes to the stored pixels; those that are cut off altogether are left out.

        Args:
            lists: the features of the image that begin with `boxes.PREFIX`.
            displayed: the frame they are in.
        """
        moved = dict(lists)
        if XMIN not in moved:
            return moved
        turn = self._turn(displayed)
        if turn != UPRIGHT:
            moved = turn_boxes(moved, turn)
        return moved if self.geometry is None else move_boxes(moved, self.geometry)

    def _turn(self, displayed: bool) -> int:
        """The turn from a frame of annotations to that of the pixels before they were resized."""
        if displayed == self.turned:
            return UPRIGHT
        return self.orientation if self.turned else inverse(self.orientation)
