"""COCO's segmentations as text, and polygons as masks.

A segmentation is a list of polygons `[[x, y, ...], ...]`, all of which belong to the object, or run lengths
`{"size": [height, width], "counts": ...}` with counts as a list or compressed. Source: the COCO data format
(cocodataset.org) and its API (cocodataset/cocoapi, PythonAPI/pycocotools/coco.py, `annToRLE`). The text of a mask is
JSON: `[height, width, segmentation]`, with the image's size as the file states it, or null.

Polygons become masks by the rules of `shardwright.masks.polygons`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardwright.images.boxes import Box, check_within
from shardwright.masks.dialects import COCO
from shardwright.masks.polygons import PolygonError, rasterize_centers, rasterize_fifths, read_polygon
from shardwright.masks.rle import RleError, Runs, check_stated_size, union

_SHOWN = 40


class SegmentationError(RleError):
    """A segmentation is neither polygons nor run lengths."""

    code = "bad_segmentation"


def mask_text(size: tuple[int, int] | None, segmentation: str) -> str:
    """Returns the text of a mask.

    Args:
        size: height and width of the image if the file states them.
        segmentation: JSON.
    """
    height, width = ("null", "null") if size is None else size
    return f"[{height},{width},{segmentation}]"


@dataclass(frozen=True)
class CocoMasks:
    """Reads texts of masks; see `shardwright.formats.base.MaskCode`.

    Attributes:
        centers: whether the pixels of a polygon are those whose center is in it, and not those of the COCO API.
        clip: whether an outline that reaches beyond the image is cut off there; see `boxes.check_within`.
        either_frame: whether the stated size of the image may be that of its other frame: set where the image is turned
            by 90 degrees and the configuration says which frame coordinates are in.
    """

    centers: bool = False
    clip: bool = False
    either_frame: bool = False

    def size(self, text: str) -> tuple[int, int] | None:
        """Returns height and width as the run lengths, or the file, state them; `None` where neither does."""
        height, width, segmentation = json.loads(text)
        size = segmentation.get("size") if isinstance(segmentation, dict) else [height, width]
        if not isinstance(size, list) or len(size) != 2 or not all(type(side) is int for side in size):
            return None
        return size[0], size[1]

    def masks(self, label: int, text: str, *, height: int, width: int) -> list[tuple[int, Runs]]:
        """Returns the one mask of a segmentation; see `parse`."""
        return [(label, self.parse(text, height=height, width=width))]

    def parse(self, text: str, *, height: int, width: int) -> Runs:
        """Reads the text of a mask.

        Args:
            text: the text.
            height: rows of the image, at least 1.
            width: columns of the image, at least 1.

        Returns:
            The runs, column by column, int64 (n, 2).

        Raises:
            RleError: the segmentation is broken, or belongs to an image of another size; `code` distinguishes the two.
        """
        segmentation = self._stated(text, height, width)
        if isinstance(segmentation, dict):
            size, counts = segmentation.get("size"), segmentation.get("counts")
            if not isinstance(size, list) or len(size) != 2 or not isinstance(counts, (list, str)):
                keys = ", ".join(map(repr, segmentation)) or "nothing"
                raise SegmentationError(
                    f'run lengths need {{"size": [height, width], "counts": list or text}}; it contains {keys}'
                )
            check_stated_size("the mask", tuple(size), height, width)
            return COCO.parse(json.dumps(counts) if isinstance(counts, list) else counts, height=height, width=width)
        if not isinstance(segmentation, list) or not segmentation:
            shown = json.dumps(segmentation)[:_SHOWN]
            raise SegmentationError(f"the segmentation is {shown}; write polygons [[x, y, ...]] or run lengths")
        return self._draw(segmentation, height, width)

    def _stated(self, text: str, height: int, width: int) -> Any:
        """Returns the segmentation, or the shape, in a text that states the size of the image, or none."""
        *stated, segmentation = json.loads(text)
        if stated[0] is not None and not (self.either_frame and stated == [width, height]):
            check_stated_size("the image", tuple(stated), height, width)
        return segmentation

    def _draw(self, polygons: Sequence[object], height: int, width: int) -> Runs:
        rasterize = rasterize_centers if self.centers else rasterize_fifths
        parts = []
        for i, polygon in enumerate(polygons):
            where = f"polygon {i + 1} of {len(polygons)}"
            if not isinstance(polygon, list):
                raise PolygonError(
                    f"{where} is {json.dumps(polygon)[:_SHOWN]}, not a list; write polygons [[x, y, ...]]"
                )
            try:
                corners = read_polygon(polygon)
            except PolygonError as error:
                raise PolygonError(f"{where} {error}") from None
            if not self.clip:
                check_within(where, Box(*corners.min(axis=0), *corners.max(axis=0)), height=height, width=width)
            parts.append(rasterize(corners, height, width))
        return union(parts)
