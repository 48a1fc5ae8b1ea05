"""The forms of a prediction: rows of a table of masks or labels, and examples of TFRecord files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shardwright.components.predictor.exported_model import ExportedModel
from shardwright.errors import UsageError
from shardwright.evaluation.submission import DEFAULT, Layout, choose_layout, mask_rows
from shardwright.masks.coordinate_frame import CoordinateFrame, restore_to_file
from shardwright.masks.rle import Runs, area
from shardwright.tfrecords.encode import FeatureValue, encode_example, floats, ints

_DIGITS = 6


class Predicted(NamedTuple):
    """An image that was predicted: its key, and the steps from the pixels of its file to those that were ingested."""

    key: str
    frames: CoordinateFrame


def file_masks(model: ExportedModel, image: Predicted, masks: Any) -> list[Runs]:
    """Returns the mask of each class in the pixels of the file."""
    return [restore_to_file(masks[..., c], model.resize, image.frames) for c in range(len(model.classes))]


class MaskRows:
    """Rows of masks."""

    def __init__(self, model: ExportedModel, name: str) -> None:
        self.name = name
        self._model = model
        self._layout: Layout = choose_layout(name, model.classes)
        self.header: Sequence[str] = self._layout.header

    def rows(self, image: Predicted, answer: Mapping[str, Any]) -> Iterator[list[str]]:
        """Yields the rows of an image."""
        runs = file_masks(self._model, image, answer["masks"])
        return mask_rows(self._layout, image.key, runs, self._model.classes, (image.frames.height, image.frames.width))


class LabelRows:
    """A row of labels and probabilities per image."""

    name = ""

    def __init__(self, model: ExportedModel) -> None:
        self._model = model
        self.header: Sequence[str] = ("image", "labels" if model.multi else "label", *model.classes)

    def rows(self, image: Predicted, answer: Mapping[str, Any]) -> Iterator[list[str]]:
        """Yields the row of an image."""
        if self._model.multi:
            label = " ".join(self._model.classes[i] for i in np.flatnonzero(answer["classes"]))
        else:
            label = answer["labels"].decode("utf-8")
        yield [image.key, label, *(f"{value:.{_DIGITS}f}" for value in answer["probabilities"].tolist())]


def table_rows(model: ExportedModel, dialect: str | None) -> MaskRows | LabelRows:
    """Returns the form of a table.

    Args:
        model: the model.
        dialect: a layout of `shardwright.evaluation.submission`, for masks; by default that of the model's own table.

    Raises:
        UsageError: the layout does not exist, or the model predicts labels.
    """
    if model.task == "segmentation":
        return MaskRows(model, dialect or model.submission or DEFAULT)
    if dialect is not None:
        raise UsageError(f"--dialect {dialect}: this model predicts labels, not masks. Leave it out.")
    return LabelRows(model)


def encode_prediction(model: ExportedModel, image: Predicted, answer: Mapping[str, Any]) -> bytes:
    """Serializes the prediction of an image as a `tf.train.Example`.

    It has `image/key`, `image/height` and `image/width`. Masks are `prediction/<class>/rle`, as in a dataset, and
    `prediction/<class>/area`; classes are `prediction/label`, `prediction/text` and `prediction/probabilities`.
    """
    features: dict[str, FeatureValue] = {
        "image/key": image.key.encode("utf-8"),
        "image/height": image.frames.height,
        "image/width": image.frames.width,
    }
    if model.task == "segmentation":
        for name, runs in zip(model.classes, file_masks(model, image, answer["masks"]), strict=True):
            features[f"prediction/{name}/rle"] = ints(runs.reshape(-1))
            features[f"prediction/{name}/area"] = area(runs)
        return encode_example(features)
    labels = np.flatnonzero(answer["classes"]) if model.multi else [model.classes.index(answer["labels"].decode())]
    features["prediction/label"] = ints(labels)
    features["prediction/probabilities"] = floats(answer["probabilities"])
    return encode_example(features)
