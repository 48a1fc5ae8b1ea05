"""What is said about an image after its pixels have moved: masks, boxes and labels in the new frame.

Pure arithmetic on the features of an ingested example. Masks go through `rle.resample`, boxes through
`boxes.move_boxes`, by the very plan that the pixels followed; whatever else an example says is carried along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from shardwright import records, rle
from shardwright.boxes import PREFIX as BOXES
from shardwright.boxes import move_boxes
from shardwright.config.transform import INDEX, MULTI_HOT, ONE_HOT
from shardwright.errors import ConfigError
from shardwright.geometry import Geometry
from shardwright.image_header import ImageHeader
from shardwright.manifest import IGNORED, NONE, SINGLE

ADDED_FEATURES = {"image/original/height": "int64", "image/original/width": "int64"}
CLASSES = "image/class/text"
_LABEL = "image/class/label"


class Annotated(NamedTuple):
    """The features of a transformed example, but for its encoded pixels.

    Attributes:
        features: by our own names.
        present: per class 1 where the image shows it, else 0.
        area: per class the pixels its mask covers; zeros without masks.
    """

    features: dict[str, records.FeatureValue]
    present: list[int]
    area: list[int]


def annotated(
    example: Mapping[str, records.DecodedFeature],
    plan: Geometry,
    header: ImageHeader,
    *,
    task: str,
    classes: Sequence[str],
    labels: str = INDEX,
) -> Annotated:
    """Moves what an example says as its pixels are moved.

    Args:
        example: as ingested, by our own names.
        plan: what happens to the pixels.
        header: of the bytes that will be stored.
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.
        labels: `one_hot` and `multi_hot` add `image/class/<labels>`, a number for each class.
    """
    features: dict[str, records.FeatureValue] = {
        name: typed(values) for name, values in example.items() if name != "image/encoded"
    }
    features |= {
        "image/format": header.format.encode(),
        "image/height": header.height,
        "image/width": header.width,
        "image/channels": header.channels,
        "image/original/height": plan.source_height,
        "image/original/width": plan.source_width,
    }
    boxes = {name: values for name, values in example.items() if name.startswith(BOXES)}
    if boxes:
        features |= {name: typed(values) for name, values in move_boxes(boxes, plan).items()}
    if task == "segmentation":
        area = _move_masks(example, features, classes, plan)
        shown = [index for index, pixels in enumerate(area) if pixels]
        # A crop may cut a class off.
        features[_LABEL] = records.ints(shown)
        features[CLASSES] = records.byte_strings([classes[index].encode("utf-8") for index in shown])
    else:
        area = [0] * len(classes)
        shown = np.asarray(example.get(_LABEL, np.empty(0, np.int64))).tolist()
    present = [int(index in shown) for index in range(len(classes))]
    if labels != INDEX:
        features[f"image/class/{labels}"] = records.floats(present)
    return Annotated(features, present, area)


def label_features(labels: str, kind: str) -> dict[str, str]:
    """Name and kind of the feature that `transform.labels` adds.

    Args:
        labels: `index`, `one_hot` or `multi_hot`.
        kind: what an image is given, as `Manifest.labels` has it.

    Raises:
        ConfigError: images are not given what is asked for.
    """
    if labels == INDEX:
        return {}
    if kind == NONE:
        raise ConfigError("transform.labels", f"{labels}, and the images have no classes", f"Use {INDEX}.")
    if labels == ONE_HOT and kind != SINGLE:
        raise ConfigError("transform.labels", f"{labels}, and an image may have several classes", f"Use {MULTI_HOT}.")
    return {f"image/class/{labels}": "float32"}


def typed(values: records.DecodedFeature) -> records.FeatureValue:
    """A decoded feature, ready to be written again: an empty one keeps its kind, a single value is quickest alone."""
    if isinstance(values, list):
        return values[0] if len(values) == 1 else records.byte_strings(values)
    if values.dtype == np.int64:
        return int(values[0]) if len(values) == 1 else records.ints(values)
    return records.floats(values)


def _move_masks(
    example: Mapping[str, records.DecodedFeature],
    features: dict[str, records.FeatureValue],
    classes: Sequence[str],
    plan: Geometry,
) -> list[int]:
    """Puts the masks into the new frame; returns the area of each class."""
    areas = []
    ignored = [IGNORED] if IGNORED not in classes and f"image/segmentation/{IGNORED}/rle" in example else []
    for name in (*classes, *ignored):
        feature = f"image/segmentation/{name}"
        runs = rle.resample(rle.from_flat(np.asarray(example[f"{feature}/rle"])), plan)
        areas.append(rle.area(runs))
        features[f"{feature}/rle"] = records.ints(runs.reshape(-1))
        features[f"{feature}/area"] = areas[-1]
    return areas[: len(classes)]
