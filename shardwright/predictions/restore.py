"""Masks of the model's size, brought back to the size of the image they are of, in run space."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from shardwright.frames import Frames
from shardwright.geometry import Geometry, plan_geometry
from shardwright.masks.rle import Runs, encode, resample
from shardwright.orientation import UPRIGHT, displayed_size, turn_runs
from shardwright.orientation import inverse as inverse_turn


def inverse(plan: Geometry) -> Geometry:
    """The way back: borders are cut off, the rest is resized and put where it was taken from."""
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


def restore(mask: npt.NDArray[Any], policy: str, height: int, width: int) -> Runs:
    """Brings a mask back.

    Args:
        mask: [H, W] of the model's size, 0 or 1.
        policy: how images were brought to that size, see `plan_geometry`.
        height: rows of the image.
        width: columns of the image.

    Returns:
        Runs of a mask of `height` x `width` (nearest, half-pixel centres); nothing where `fill_crop` cut the image off.
    """
    plan = plan_geometry(policy, height, width, *mask.shape)
    return resample(encode(mask), inverse(plan))


def restore_to_file(mask: npt.NDArray[Any], policy: str, frames: Frames) -> Runs:
    """Brings a mask back to the pixels of the file, past what the ingest did to them.

    Args:
        mask: [H, W] of the model's size, 0 or 1.
        policy: how stored images were brought to that size.
        frames: how the ingest got from the file's pixels to the stored ones.

    Returns:
        Runs of a mask of `frames.height` x `frames.width`.
    """
    turn = frames.orientation if frames.turned else UPRIGHT
    displayed = displayed_size(frames.height, frames.width, turn)
    geometry = frames.geometry
    runs = restore(mask, policy, *(displayed if geometry is None else (geometry.height, geometry.width)))
    if geometry is not None:
        runs = resample(runs, inverse(geometry))
    return turn_runs(runs, *displayed, inverse_turn(turn))
