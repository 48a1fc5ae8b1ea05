"""Moves the annotations of an image into the frame of its transformed pixels: masks, boxes and labels.

Pure arithmetic on the features of an ingested example. Masks go through `rle.resample`, boxes through
`boxes.move_boxes`, by the same plan as the pixels. All other features stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config.transform import INDEX, MULTI_HOT, ONE_HOT
from shardwright.dataset.manifest import AREA, IGNORED, MASK_PREFIX, NONE, SINGLE, mask_feature
from shardwright.errors import ConfigError
from shardwright.images.boxes import PREFIX as BOXES
from shardwright.images.boxes import move_boxes
from shardwright.images.geometry import Geometry
from shardwright.images.header import ImageHeader
from shardwright.masks import rle
from shardwright.tfrecords import encode, records

ADDED_FEATURES = {"image/original/height": "int64", "image/original/width": "int64"}
CLASSES = "image/class/text"
_LABEL = "image/class/label"
Example = Mapping[str, records.DecodedFeature | encode.EncodedFeature]


class ResampledAnnotations(NamedTuple):
    """The features of a transformed example, but for its encoded pixels.

    Attributes:
        features: by our own names.
        present: per class 1 where the image shows it, else 0.
        area: per class the pixels its mask covers; zeros without masks.
    """

    features: dict[str, encode.FeatureValue]
    present: list[int]
    area: list[int]


def moves_pixels(name: str) -> bool:
    """Returns whether `resample_annotations` needs the values of a feature; all others may stay encoded."""
    return name == _LABEL or name.startswith(BOXES) or (name.startswith(MASK_PREFIX) and name.endswith("/rle"))


def resample_annotations(
    example: Example,
    plan: Geometry,
    header: ImageHeader,
    *,
    task: str,
    classes: Sequence[str],
    labels: str = INDEX,
) -> ResampledAnnotations:
    """Moves the annotations of an example with its pixels.

    Args:
        example: as ingested, by our own names; the features of `moves_pixels` are parsed.
        plan: the geometry of the pixels.
        header: of the bytes that will be stored.
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.
        labels: `one_hot` and `multi_hot` add `image/class/<labels>`, a number for each class.
    """
    features: dict[str, encode.FeatureValue] = {
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
    boxes = {name: parsed(example, name) for name in example if name.startswith(BOXES)}
    if boxes:
        features |= {name: typed(values) for name, values in move_boxes(boxes, plan).items()}
    if task == "segmentation":
        ignored = [IGNORED] if IGNORED not in classes and mask_feature(IGNORED) in example else []
        names = [*classes, *ignored]
        masks = stored_runs([np.asarray(parsed(example, mask_feature(name))) for name in names])
        areas = []
        for name, runs in zip(names, rle.resample_all(masks, plan), strict=True):
            areas.append(rle.area(runs))
            features[mask_feature(name)] = encode.ints(runs.reshape(-1))
            features[mask_feature(name, AREA)] = areas[-1]
        area = areas[: len(classes)]
        shown = [index for index, pixels in enumerate(area) if pixels]
        # A crop may cut a class off.
        features[_LABEL] = encode.ints(shown)
        features[CLASSES] = encode.byte_strings([classes[index].encode("utf-8") for index in shown])
    else:
        area = [0] * len(classes)
        shown = np.asarray(parsed(example, _LABEL) if _LABEL in example else []).tolist()
    present = [int(index in shown) for index in range(len(classes))]
    if labels != INDEX:
        features[f"image/class/{labels}"] = encode.floats(present)
    return ResampledAnnotations(features, present, area)


def label_features(labels: str, kind: str) -> dict[str, str]:
    """Returns the name and kind of the feature that `transform.labels` adds.

    Args:
        labels: `index`, `one_hot` or `multi_hot`.
        kind: the annotations of an image, as `Manifest.labels` has them.

    Raises:
        ConfigError: images have no such labels.
    """
    if labels == INDEX:
        return {}
    if kind == NONE:
        raise ConfigError("transform.labels", f"{labels}, and the images have no classes", f"Use {INDEX}.")
    if labels == ONE_HOT and kind != SINGLE:
        raise ConfigError("transform.labels", f"{labels}, and an image may have several classes", f"Use {MULTI_HOT}.")
    return {f"image/class/{labels}": "float32"}


def typed(values: records.DecodedFeature | encode.EncodedFeature) -> encode.FeatureValue:
    """Returns a decoded feature in the form to encode: an empty one keeps its kind, a single value is fastest alone."""
    if isinstance(values, encode.EncodedFeature):
        return values
    if isinstance(values, list):
        return values[0] if len(values) == 1 else encode.byte_strings(values)
    if values.dtype == np.int64:
        return int(values[0]) if len(values) == 1 else encode.ints(values)
    return encode.floats(values)


def parsed(example: Example, name: str) -> records.DecodedFeature:
    """Returns the values of a feature, which must not be encoded."""
    values = example[name]
    if isinstance(values, encode.EncodedFeature):
        raise TypeError(f"{name} is encoded, and must be parsed")
    return values


def stored_runs(masks: Sequence[Sequence[int] | npt.NDArray[Any]]) -> list[rle.Runs]:
    """Returns `rle.from_flat` of several masks; valid ones, nearly all, are checked in one pass."""
    arrays = [np.asarray(values) for values in masks]
    if any(array.dtype != np.int64 or len(array) % 2 for array in arrays):
        return [rle.from_flat(array) for array in arrays]
    runs = [array.reshape(-1, 2) for array in arrays]
    every = np.concatenate([*runs, np.empty((0, 2), np.int64)])
    starts, lengths = every[:, 0], every[:, 1]
    follows = starts[1:] - lengths[:-1] > starts[:-1]
    # The first run of a mask follows none.
    first = np.cumsum([0, *map(len, runs)])
    follows[first[(first > 0) & (first < len(every))] - 1] = True
    last = np.iinfo(np.int64).max - lengths
    if follows.all() and (starts >= 0).all() and (lengths >= 1).all() and (starts <= last).all():
        return runs
    return [rle.from_flat(array) for array in arrays]
