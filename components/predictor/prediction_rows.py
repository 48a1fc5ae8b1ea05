"""The forms of a prediction: rows of a table of masks or labels, and examples of TFRecord files."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shardwright.components.predictor.exported_model import ExportedModel
from shardwright.errors import UsageError
from shardwright.evaluation.submission import DEFAULT, choose_layout, mask_rows
from shardwright.masks.coordinate_frame import CoordinateFrame, restore_to_file
from shardwright.masks.rle import Runs, area
from shardwright.tfrecords.encode import FeatureValue, encode_example, floats, ints
from shardwright.tfrecords.records import RecordWriter

CSV, TFRECORD = "csv", "tfrecord"
_DIGITS = 6


class Predicted(NamedTuple):
    """An image that was predicted: its key, and the steps from the pixels of its file to those that were ingested."""

    key: str
    frames: CoordinateFrame


class Rows(ABC):
    """A form of a prediction: what an image becomes, and how that is written.

    Attributes:
        name: layout of the table of masks; empty for all else.
        header: the first row of a table.
    """

    name = ""
    header: Sequence[str] = ()

    def __init__(self, model: ExportedModel) -> None:
        self._model = model

    @abstractmethod
    def rows(self, image: Predicted, answer: Mapping[str, Any]) -> Iterator[Any]:
        """Yields the rows of an image."""

    def packed(self, rows: Iterable[Any]) -> bytes:
        """Returns rows as the bytes of a file."""
        file = io.StringIO(newline="")
        csv.writer(file, lineterminator="\n").writerows(rows)
        return file.getvalue().encode("utf-8")


def rows_of(model: ExportedModel, form: str, dialect: str | None) -> Rows:
    """Returns the rows of a prediction.

    Args:
        model: the model.
        form: `csv` or `tfrecord`.
        dialect: a layout of `shardwright.evaluation.submission`, for masks; by default that of the model's own table.

    Raises:
        UsageError: the layout does not exist, or the model predicts labels.
    """
    if form == TFRECORD:
        return ExampleRows(model)
    if model.task == "segmentation":
        return MaskRows(model, dialect or model.submission or DEFAULT)
    if dialect is not None:
        raise UsageError(f"--dialect {dialect}: this model predicts labels, not masks. Leave it out.")
    return LabelRows(model)


class MaskRows(Rows):
    """Rows of masks."""

    def __init__(self, model: ExportedModel, name: str) -> None:
        super().__init__(model)
        self.name, self._layout = name, choose_layout(name, model.classes)
        self.header = self._layout.header

    def rows(self, image: Predicted, answer: Mapping[str, Any]) -> Iterator[list[str]]:
        runs = file_masks(self._model, image, answer["masks"])
        return mask_rows(self._layout, image.key, runs, self._model.classes, (image.frames.height, image.frames.width))


class LabelRows(Rows):
    """A row of labels and probabilities per image."""

    def __init__(self, model: ExportedModel) -> None:
        super().__init__(model)
        self.header = ("image", "labels" if model.multi else "label", *model.classes)

    def rows(self, image: Predicted, answer: Mapping[str, Any]) -> Iterator[list[str]]:
        if self._model.multi:
            label = " ".join(self._model.classes[i] for i in np.flatnonzero(answer["classes"]))
        else:
            label = answer["labels"].decode("utf-8")
        yield [image.key, label, *(f"{value:.{_DIGITS}f}" for value in answer["probabilities"].tolist())]


class ExampleRows(Rows):
    """A serialized `tf.train.Example` per image.

    It has `image/key`, `image/height` and `image/width`. Masks are `prediction/<class>/rle`, as in a dataset, and
    `prediction/<class>/area`; classes are `prediction/label`, `prediction/text` and `prediction/probabilities`.
    """

    def rows(self, image: Predicted, answer: Mapping[str, Any]) -> Iterator[bytes]:
        model = self._model
        features: dict[str, FeatureValue] = {
            "image/key": image.key.encode("utf-8"),
            "image/height": image.frames.height,
            "image/width": image.frames.width,
        }
        if model.task == "segmentation":
            for name, runs in zip(model.classes, file_masks(model, image, answer["masks"]), strict=True):
                features[f"prediction/{name}/rle"] = ints(runs.reshape(-1))
                features[f"prediction/{name}/area"] = area(runs)
        else:
            label = (
                np.flatnonzero(answer["classes"]) if model.multi else [model.classes.index(answer["labels"].decode())]
            )
            features["prediction/label"] = ints(label)
            features["prediction/probabilities"] = floats(answer["probabilities"])
        yield encode_example(features)

    def packed(self, rows: Iterable[bytes]) -> bytes:
        with io.BytesIO() as file:
            writer = RecordWriter(file)
            for row in rows:
                writer.write(row)
            return file.getvalue()


def file_masks(model: ExportedModel, image: Predicted, masks: Any) -> list[Runs]:
    """Returns the mask of each class in the pixels of the file."""
    return [restore_to_file(masks[..., c], model.resize, image.frames) for c in range(len(model.classes))]
