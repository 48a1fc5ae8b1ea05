"""What a drawing tool says about an image: objects with an outline or a box, and tags; see `objects`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from shardwright.formats.base import NO_ROW
from shardwright.images.boxes import Box
from shardwright.masks.drawn import ellipse_box

# What boxes in fractions of their image are in.
FRACTIONS = (1, 1)
# One encoder for all: `json.dumps` makes one for each call.
to_json = json.JSONEncoder(separators=(",", ":")).encode


class Entry(NamedTuple):
    """The annotations of one image, not read yet.

    Attributes:
        names: what may be the name of its image; the first that is one counts.
        where: place in the annotations, for messages.
        raw: what `_content` takes, or what is wrong with the entry.
        other: the name of its image by another rule, such as the name of its own file; see `_Images`.
    """

    names: Sequence[str]
    where: str
    raw: Any
    other: str = ""


@dataclass(slots=True)
class Content:
    """The annotations of an image.

    Attributes:
        things: its objects.
        tags: its own classes.
        size: height and width that the tool states.
        boxes_in: height and width that boxes are in; by default those of the image, in pixels.
        split: the split that the tool states, or empty.
        left_out: what else is there and is not read -> how many.
    """

    things: list[Thing] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    size: tuple[int, int] | None = None
    boxes_in: tuple[int, int] | None = None
    split: str = ""
    left_out: Counter[str] = field(default_factory=Counter)

    def drop_repeats(self) -> int:
        """Drops objects that are exactly another one; returns how many these are."""
        things: dict[tuple[Any, ...], Thing] = {}
        for thing in self.things:
            things.setdefault((thing.label, thing.shape, thing.box, thing.file, thing.row), thing)
        repeated, self.things = len(self.things) - len(things), list(things.values())
        return repeated

    def outline(self, thing: Thing) -> str:
        """Returns the outline of an object, or of its box, as a shape."""
        if thing.shape is not None:
            return thing.shape
        assert thing.box is not None, "an object has an outline or a box"
        return fractions(corners(thing.box)) if self.boxes_in == FRACTIONS else polygon(corners(thing.box))

    def sort_layers(self) -> Content:
        """Puts the objects into the order of their layers: a hole is a hole in what is below it."""
        self.things.sort(key=attrgetter("depth"))
        return self


class Thing(NamedTuple):
    """One object of an image.

    Attributes:
        label: its class, as the tool writes it.
        shape: its outline as JSON, see `shardwright.masks.drawn`; `None` where it is only a box.
        box: its box, in the units of `Content.boxes_in`; `None` to take the one around the outline.
        flags: name of a flag -> 0 or 1.
        file: name of a file of its mask, from the root of the attachments on, or empty.
        row: its position in the list of all objects of the file; `NO_ROW` where there is none.
        depth: the layer that the tool draws it on, from below.
        beside: the box and the area that the tool states beside its outline; see `ObjectAgreement.look`.
    """

    label: str
    shape: str | None
    box: Box | None = None
    flags: Mapping[str, int] = MappingProxyType({})
    file: str = ""
    row: int = NO_ROW
    depth: float = 0
    beside: tuple[Any, Any] | None = None


def polygon(points: Iterable[tuple[float, float]]) -> str:
    """Returns one polygon in pixels as a shape."""
    return to_json([[number for point in points for number in point]])


def fractions(points: Iterable[tuple[float, float]]) -> str:
    """Returns one polygon in fractions of the image as a shape."""
    return shape(fractions=[[number for point in points for number in point]])


def shape(**parts: Any) -> str:
    """Returns a shape of other parts; see `shardwright.masks.drawn`."""
    return to_json(parts)


def ellipse(label: str, x: float, y: float, rx: float, ry: float, degrees: float = 0) -> Thing:
    """Returns an object that is an ellipse in pixels, turned clockwise around its center."""
    return Thing(label, shape(ellipse=[x, y, rx, ry, degrees]), ellipse_box(x, y, rx, ry, degrees))


def rectangle(label: str, box: Box, degrees: float = 0, around: tuple[float, float] | None = None) -> Thing:
    """Returns an object that is a box in pixels; turned clockwise, by default around its middle, it is a polygon."""
    if degrees % 360 == 0:
        return Thing(label, None, box)
    left, top = around or ((box.xmin + box.xmax) / 2, (box.ymin + box.ymax) / 2)
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    moved = [(x - left, y - top) for x, y in corners(box)]
    return Thing(label, polygon((left + x * cos - y * sin, top + x * sin + y * cos) for x, y in moved))


def corner_box(x: float, y: float, width: float, height: float) -> Box:
    """Returns the box of a first corner and a size."""
    return Box(x, y, x + width, y + height)


def corners(box: Box) -> list[tuple[float, float]]:
    """Returns the corners of a box, clockwise."""
    return [(box.xmin, box.ymin), (box.xmax, box.ymin), (box.xmax, box.ymax), (box.xmin, box.ymax)]
