"""Moves annotations from the frame in which an image was annotated to that of the stored pixels, and masks back.

A file's pixels are in the *stored* frame. Viewers (and most labeling tools) show the *displayed* one, turned by the
Exif orientation. The ingest may turn and resize the pixels (`images.orientation`, `images.resize`): masks and boxes
follow, masks in run space, by the same geometry.

`input.labels.orientation` is the frame that masks and boxes are in. `auto` selects the frame whose size the annotations
state (COCO, mask images) if only one has it; otherwise the displayed one. For an upright image both are the same.

`to_image_size` and `restore_to_file` bring masks of the model's size back to the size of the image or of its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.images.boxes import XMIN, move_boxes
from shardwright.images.geometry import Geometry, plan_geometry
from shardwright.images.orientation import (
    MIRRORS_COLUMNS,
    MIRRORS_ROWS,
    UPRIGHT,
    displayed_size,
    inverse,
    orient_boxes,
    transposes,
)
from shardwright.masks.rle import Runs, column_pieces, encode, normalize, resample, transpose


def orient_runs(runs: Runs, height: int, width: int, orientation: int) -> Runs:
    """Turns a mask from the stored to the displayed frame, in run space.

    The way back: `orient_runs(runs, *displayed_size(height, width, orientation), inverse(orientation))`.

    Args:
        runs: int64 (n, 2), in the stored frame.
        height: rows of the stored frame, at least 1.
        width: columns of the stored frame, at least 1.
        orientation: 1-8.

    Returns:
        The runs in the displayed frame, int64 (m, 2); those given for orientation 1.
    """
    if transposes(orientation):
        runs = transpose(runs, height, width)
        height, width = width, height
    columns, rows = orientation in MIRRORS_COLUMNS, orientation in MIRRORS_ROWS
    if columns:  # Both: the last position comes first.
        runs = np.stack([height * width - runs[::-1].sum(axis=1), runs[::-1, 1]], axis=1)
    if columns == rows:
        return runs
    # Every column upside down.
    column, begin, end = column_pieces(runs, height)
    return normalize(np.stack([column * height + height - end, end - begin], axis=1))


@dataclass(frozen=True)
class CoordinateFrame:
    """The steps between an image's file and its stored pixels.

    Attributes:
        height: rows of the file's pixels.
        width: columns of the file's pixels.
        orientation: the file's Exif orientation, 1-8.
        turned: whether the stored pixels are turned by it.
        geometry: how they were resized after that; `None`: not at all.
    """

    height: int
    width: int
    orientation: int
    turned: bool = False
    geometry: Geometry | None = None

    def is_displayed(self, frame: str, size: tuple[int, int] | None) -> bool:
        """Returns whether annotations are in the displayed frame, not in the stored one.

        Args:
            frame: `auto`, `stored` or `displayed`.
            size: height and width of the frame if the annotation states them.
        """
        if self.orientation == UPRIGHT or frame == "stored":
            return False
        stored = (self.height, self.width)
        return not (frame == "auto" and size == stored and stored != displayed_size(*stored, self.orientation))

    @property
    def moves_boxes(self) -> bool:
        """True if boxes, whose coordinates are fractions of the image, may move."""
        return self.orientation != UPRIGHT or self.geometry is not None

    def size(self, displayed: bool) -> tuple[int, int]:
        """Returns height and width of a frame that annotations may be in."""
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
            runs = orient_runs(runs, *self.size(displayed), turn)
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
            moved = orient_boxes(moved, turn)
        return moved if self.geometry is None else move_boxes(moved, self.geometry)

    def _turn(self, displayed: bool) -> int:
        """Returns the turn from a frame of annotations to that of the pixels before they were resized."""
        if displayed == self.turned:
            return UPRIGHT
        return self.orientation if self.turned else inverse(self.orientation)


def inverse_geometry(plan: Geometry) -> Geometry:
    """Returns the inverse: borders are cut off, the rest is resized and put at its place in the source."""
    return Geometry(
        source_height=plan.height,
        source_width=plan.width,
        crop_top=plan.pad_top,
        crop_left=plan.pad_left,
        crop_height=plan.resized_height,
        crop_width=plan.resized_width,
        resized_height=plan.crop_height,
        resized_width=plan.crop_width,
        pad_top=plan.crop_top,
        pad_left=plan.crop_left,
        height=plan.source_height,
        width=plan.source_width,
    )


def to_image_size(mask: npt.NDArray[Any], policy: str, height: int, width: int) -> Runs:
    """Resizes a mask back to the size of its image.

    Args:
        mask: [H, W] of the model's size, 0 or 1.
        policy: how images were brought to that size, see `plan_geometry`.
        height: rows of the image.
        width: columns of the image.

    Returns:
        Runs of a mask of `height` x `width` (nearest, half-pixel centers); nothing where `fill_crop` cut the image off.
    """
    plan = plan_geometry(policy, height, width, *mask.shape)
    return resample(encode(mask), inverse_geometry(plan))


def restore_to_file(mask: npt.NDArray[Any], policy: str, frames: CoordinateFrame) -> Runs:
    """Moves a mask back to the pixels of the file, and so undoes the changes of the ingest.

    Args:
        mask: [H, W] of the model's size, 0 or 1.
        policy: how stored images were brought to that size.
        frames: the steps from the file's pixels to the stored ones.

    Returns:
        Runs of a mask of `frames.height` x `frames.width`.
    """
    turn = frames.orientation if frames.turned else UPRIGHT
    displayed = displayed_size(frames.height, frames.width, turn)
    geometry = frames.geometry
    runs = to_image_size(mask, policy, *(displayed if geometry is None else (geometry.height, geometry.width)))
    if geometry is not None:
        runs = resample(runs, inverse_geometry(geometry))
    return orient_runs(runs, *displayed, inverse(turn))
