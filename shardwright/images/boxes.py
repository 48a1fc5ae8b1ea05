"""Boxes around objects as features, in the names and units of the TensorFlow Object Detection API.

An image has lists of one length, one entry per box. `image/object/bbox/xmin`, `ymin`, `xmax` and `ymax` are float32:
the edges divided by the image's width and height, so 0 and 1 are its borders. `image/object/class/label` is int64: the
index of the class plus 1, since label maps of that API keep 0 for the background. `image/object/class/text` is its
name, and there are flags such as `image/object/difficult`. Source: tensorflow/models, research/object_detection,
g3doc/using_your_own_dataset.md and dataset_tools. Shardwright does not train on boxes; it checks, stores and moves them
with the pixels.

Here a box is its edges in pixels, as in COCO: the first column of the image is between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.errors import AnnotationError
from shardwright.images.geometry import Geometry

PREFIX = "image/object/"
XMIN, YMIN, XMAX, YMAX = (f"{PREFIX}bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax"))
LABEL, TEXT = f"{PREFIX}class/label", f"{PREFIX}class/text"

# No image has a side this long; products of numbers below it are far from overflow.
_LARGEST = 2**31
# Tools round, and people draw along the border: by so many pixels, or by this share of the side, an object may be
# beyond it. More contradicts the image's size or its orientation.
_BEYOND_PIXELS, _BEYOND_SHARE = 1.0, 0.005
# What the ledger calls a box that cannot be one, and an object that reaches further beyond its image than rounding
# explains.
BAD_BOX, BEYOND_IMAGE = "bad_box", "beyond_image"
_CLIP = "; is it the right size? input.labels.beyond_image: clip cuts objects off at the border"


class Box(NamedTuple):
    """Edges in pixels from the left and the top border: it begins at `xmin`, `ymin` and ends at `xmax`, `ymax`.

    A box of the whole image is (0, 0, width, height).
    """

    xmin: float
    ymin: float
    xmax: float
    ymax: float

    def scaled(self, height: float, width: float) -> Box:
        """Returns a box in fractions of an image in pixels of an image of that size."""
        return Box(self.xmin * width, self.ymin * height, self.xmax * width, self.ymax * height)


def box_features(flags: Sequence[str] = ()) -> dict[str, str]:
    """Returns name and type (`float32`, `int64`, `bytes`) of the features of boxes.

    Args:
        flags: names of flags, 0 or 1 for every box, e.g. `difficult`, `truncated`, `is_crowd`.
    """
    kinds = {**dict.fromkeys((XMIN, YMIN, XMAX, YMAX), "float32"), LABEL: "int64", TEXT: "bytes"}
    return kinds | {PREFIX + flag: "int64" for flag in flags}


def check_within(what: str, box: Box, *, height: int, width: int, fix: str = _CLIP) -> None:
    """Checks that an object does not reach beyond its image by more than 1 pixel and 0.5 % of the side.

    Args:
        what: the object, for the message.
        box: its edges in pixels.
        height: rows of the image.
        width: columns of the image.
        fix: what to do if it may be cut off at the border.

    Raises:
        AnnotationError: it does (code `beyond_image`); the message says whether it fits the turned image.
    """
    if _fits(box, height, width):
        return
    if height != width and _fits(box, width, height):
        fix = "; it fits the image turned by 90 degrees (input.labels.orientation)"
    raise AnnotationError(
        f"{what} reaches from x {box.xmin:g} to {box.xmax:g} and from y {box.ymin:g} to {box.ymax:g}, beyond the image "
        f"of {height}x{width} (height x width){fix}",
        BEYOND_IMAGE,
    )


def _fits(box: Box, height: int, width: int) -> bool:
    across = max(_BEYOND_PIXELS, _BEYOND_SHARE * width)
    down = max(_BEYOND_PIXELS, _BEYOND_SHARE * height)
    return min(box.xmin + across, box.ymin + down, width + across - box.xmax, height + down - box.ymax) >= 0


def box_values(
    box: Box,
    *,
    height: int,
    width: int,
    label: int,
    text: str,
    flags: Mapping[str, int] | None = None,
    clip: bool | None = False,
) -> dict[str, list[Any]]:
    """Returns the features of one box: a list of one value per name of `box_features`.

    A box that reaches a little over the border (see `check_within`) is cut off there.

    Args:
        box: its edges.
        height: rows of the image.
        width: columns of the image.
        label: index of its class, from 0.
        text: name of its class.
        flags: 0 or 1 per flag.
        clip: whether a box that reaches further over the border is cut off, too; `None` where no option decides.

    Raises:
        AnnotationError: an edge is not a finite number, the box has no area, or none within the image (code `bad_box`);
            or it reaches beyond the image (code `beyond_image`), and `clip` is not set.
    """
    if height < 1 or width < 1:
        raise AnnotationError(
            f"the image has {height}x{width} (height x width) there; a box needs an image of 1 pixel or more",
            BAD_BOX,
        )
    for name, edge in zip(Box._fields, box, strict=True):
        # True and false are integers to Python, but no coordinates. NaN is not below anything.
        if isinstance(edge, bool) or not isinstance(edge, (int, float)) or not abs(edge) <= _LARGEST:
            raise AnnotationError(
                f"the box's {name} is {str(edge)[:40]!r}, not a number from {-_LARGEST} to {_LARGEST}", BAD_BOX
            )
    xmin, ymin, xmax, ymax = box
    shown = f"the box from x {xmin:g} to {xmax:g} and y {ymin:g} to {ymax:g}"
    if xmax <= xmin or ymax <= ymin:
        raise AnnotationError(f"{shown} has no area", BAD_BOX)
    if not clip:
        check_within("the box", box, height=height, width=width, fix="" if clip is None else _CLIP)
    left, right = max(xmin, 0) / width, min(xmax, width) / width
    top, bottom = max(ymin, 0) / height, min(ymax, height) / height
    if right <= left or bottom <= top:
        raise AnnotationError(f"{shown} is outside of the image, {height}x{width} (height x width)", BAD_BOX)
    values: dict[str, list[Any]] = {XMIN: [left], YMIN: [top], XMAX: [right], YMAX: [bottom], LABEL: [label + 1]}
    return values | {TEXT: [text]} | {PREFIX + flag: [value] for flag, value in (flags or {}).items()}


def move_boxes(lists: Mapping[str, Any], geometry: Geometry) -> dict[str, Any]:
    """Moves the boxes of an image as its pixels are moved; those that a crop cuts off are left out of every list.

    Args:
        lists: the features of the image that begin with `PREFIX`: float32 or int64 arrays or lists of bytes, all of one
            length.
        geometry: how the pixels are moved.

    Returns:
        The same names, lists of one length.
    """
    g = geometry
    if (g.crop_height, g.crop_width, g.resized_height, g.resized_width) == (
        g.source_height,
        g.source_width,
        g.height,
        g.width,
    ):
        return dict(lists)  # Coordinates are fractions of the image, so that its size makes no difference.

    def along(name: str, source: int, begin: int, crop: int, resized: int, pad: int, size: int) -> npt.NDArray[Any]:
        place = (np.asarray(lists[name], np.float64) * source - begin).clip(0, crop)
        return ((place * resized / crop + pad) / size).astype(np.float32)

    x = (g.source_width, g.crop_left, g.crop_width, g.resized_width, g.pad_left, g.width)
    y = (g.source_height, g.crop_top, g.crop_height, g.resized_height, g.pad_top, g.height)
    moved = {name: along(name, *x) for name in (XMIN, XMAX)} | {name: along(name, *y) for name in (YMIN, YMAX)}
    kept = np.flatnonzero((moved[XMAX] > moved[XMIN]) & (moved[YMAX] > moved[YMIN]))
    whole = {**lists, **moved}
    return {
        name: [values[i] for i in kept.tolist()] if isinstance(values, list) else np.asarray(values)[kept]
        for name, values in whole.items()
    }
