"""Whether the coordinates of objects are those of the images that are there, by some of them, evenly spaced.

People and tools draw on whole pixels, which fractions of the image show: times its width and height they are whole
numbers. Where they are so times height and width instead, x and y are exchanged, or the picture was annotated lying on
its side. And where nothing of many objects is in the right half of the images nor in the lower one, they were drawn on
smaller pictures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config.input import THIS_FRAME, LabelsConfig
from shardwright.errors import UsageError
from shardwright.formats.object_content import Content, Thing, corners

# Fewer objects prove nothing; of smaller pictures more are needed, at several places of several images.
_SEVERAL, _MANY, _IMAGES, _PLACES = 6, 12, 6, 8
# Digits of fractions, in pixels; how many objects must be on whole or half pixels in one frame, and may in the other.
_ROUNDED, _NEARLY_ALL, _HALF = 0.02, 0.9, 0.5
# Where objects end, as a share of the width and of the height, if they are those of smaller pictures: by one scale.
_SMALLER, _SCALE = 0.6, 0.15


class Placed(NamedTuple):
    """The objects of an image, and its height and width."""

    content: Content
    size: tuple[int, int]


def check_frame(images: Iterable[Placed], where: str, options: LabelsConfig) -> None:
    """Checks that coordinates are of the images that are there.

    Args:
        images: some of a set, evenly spaced.
        where: the annotations, for messages.
        options: `input.labels`.

    Raises:
        UsageError: they are not, and `input.labels.confirmed` does not have it.
    """
    here = exchanged = fractions = seen = 0
    ends: list[tuple[float, float]] = []
    for content, (height, width) in images:
        points = [_points(thing) for thing in content.things]
        points = [one for one in points if len(one)]
        if content.boxes_in is not None and height != width:
            fractions += len(points)
            here += sum(_on_pixels(one, width, height) for one in points)
            exchanged += sum(_on_pixels(one, height, width) for one in points)
        elif content.boxes_in is None and content.size is None and points:
            seen += 1
            ends += [(one[:, 0].max() / width, one[:, 1].max() / height) for one in points]
    reading = options.confirming(THIS_FRAME, "coordinates are of these images, as they are displayed")
    if fractions >= _SEVERAL and exchanged >= _NEARLY_ALL * fractions and here <= _HALF * fractions:
        raise UsageError(
            f"{where}: the coordinates of {exchanged} of {fractions} objects are whole pixels if x is a fraction of "
            f"the height and y of the width, and of {here} as they are. Are x and y exchanged, or were photographs "
            "annotated before they were turned? Correct the coordinates. If they are right, set "
            f"input.labels.confirmed: [{THIS_FRAME}]."
        ).with_readings(reading)
    apart = len(ends) >= _MANY and seen >= _IMAGES and len(set(ends)) >= _PLACES
    across, down = np.max(ends, axis=0) if apart else (1.0, 1.0)
    if max(across, down) <= _SMALLER and abs(across - down) <= _SCALE:
        raise UsageError(
            f"{where}: no object of {len(ends)} in {seen} images reaches beyond {across:.0%} of the width and "
            f"{down:.0%} of the height. Were they drawn on smaller images? Give those, or scale the coordinates. If "
            f"they are right, set input.labels.confirmed: [{THIS_FRAME}]."
        ).with_readings(reading)


def _points(thing: Thing) -> npt.NDArray[np.float64]:
    """Returns the corners of an object, float64 (n, 2); none of a mask that is no polygon."""
    drawn = json.loads(thing.shape or "{}")
    rings = drawn.get("fractions", ()) if isinstance(drawn, dict) else drawn
    if not rings:
        return np.array(corners(thing.box) if thing.box else [], np.float64).reshape(-1, 2)
    return np.array([number for ring in rings for number in ring], np.float64).reshape(-1, 2)


def _on_pixels(points: npt.NDArray[np.float64], width: int, height: int) -> bool:
    """Returns whether fractions of an image are its whole or half pixels."""
    places = 2 * points * (width, height)
    return bool((np.abs(places - np.round(places)) <= 2 * _ROUNDED).all())
