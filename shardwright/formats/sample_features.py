"""Features of a sample that a container holds (WebDataset's tar files, Parquet), as `record_roles` knows them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from shardwright.images.boxes import LABEL, TEXT, XMAX, XMIN, YMAX, YMIN
from shardwright.images.header import ImageError
from shardwright.images.read_header import read_header
from shardwright.tfrecords.encode import FeatureValue, byte_strings, floats, ints

MASK_FOLDER = "segmentation_mask/"
CLASS_TEXT = "image/class/text"
# Code and reason of a sample that cannot be used; no file of anybody has this name of a feature.
REFUSED = "\0refused"

# The ingest itself limits the pixels.
ANY_SIZE = 1 << 62
_EDGES = (XMIN, YMIN, XMAX, YMAX)


class SampleError(ValueError):
    """A sample cannot be understood; the message has the fix."""


def mask_name(name: str) -> str:
    """Returns the name of the feature that is the mask of a class; see `manifest.mask_class`."""
    return MASK_FOLDER + name.replace("%", "%25").replace("/", "%2F")


def texts(values: Sequence[str]) -> FeatureValue:
    """Returns texts as a feature."""
    return byte_strings([value.encode("utf-8", "replace") for value in values])


def are_texts(values: Any) -> bool:
    """Returns whether a value is a list of texts."""
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def are_boxes(values: Any) -> bool:
    """Returns whether a value is a list of boxes: four edges each."""
    boxes = isinstance(values, list) and all(isinstance(box, list) and len(box) == len(_EDGES) for box in values)
    return boxes and all(isinstance(edge, int | float) and abs(edge) < 2**31 for box in values for edge in box)


def box_features(
    image: bytes, boxes: Sequence[Sequence[float]], names: Sequence[str], classes: Sequence[str], source: str
) -> dict[str, FeatureValue]:
    """Returns the features of boxes; none where there are none.

    Args:
        image: the file of the image, which has its size.
        boxes: left, top, right and bottom edge of each, in pixels.
        names: the class of each.
        classes: all of them, in order.
        source: what lists them, for messages.

    Raises:
        SampleError: a box has no class, or one that is not in `classes`.
    """
    if not boxes and not names:
        return {}
    if len(boxes) != len(names):
        raise SampleError(f"there are {len(boxes)} boxes and {len(names)} classes of boxes. Export the dataset again.")
    if unknown := [name for name in names if name not in classes]:
        raise SampleError(f"the class {unknown[0]!r} of a box is not in {source}. Copy the whole export.")
    found: dict[str, FeatureValue] = {}
    with suppress(ImageError):  # The ingest rejects such an image.
        header = read_header(image, max_pixels=ANY_SIZE)
        sides = (header.width, header.height) * 2
        for name, side, edges in zip(_EDGES, sides, zip(*boxes, strict=True), strict=True):
            found[name] = floats([edge / side for edge in edges])
        found[LABEL] = ints([classes.index(name) + 1 for name in names])
        found[TEXT] = texts(names)
    return found


def value_feature(value: Any) -> FeatureValue | None:
    """Returns a value of JSON, or of a table, as a feature; `None` where it cannot be one."""
    listed = value if isinstance(value, list) else [value]
    if listed and are_texts(listed):
        return texts(listed)
    if not listed or not all(isinstance(one, int | float) for one in listed):
        return None
    if all(isinstance(one, int) for one in listed):
        return ints([int(one) for one in listed]) if all(-(2**63) <= one < 2**63 for one in listed) else None
    return floats([float(one) for one in listed])
