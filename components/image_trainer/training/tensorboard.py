"""TensorBoard's scalars and images without TensorBoard: TensorFlow 2.21 writes none unless TensorBoard is installed.

An event file is a TFRecord of `tensorflow.Event` (tensorflow/core/util/event.proto); the first one names the version.

What a trained model makes of held-out images, for TensorBoard.

Masks beside the truth; of one class an image the confusion matrix; of several what was found, missed and false of every
class, and images with their classes.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from tensorflow.core.framework import summary_pb2
from tensorflow.core.util import event_pb2

from shardwright import loader
from shardwright.components.image_trainer.models.text_inputs import pixels_of, with_pixels
from shardwright.components.image_trainer.spec import LOG_FOLDER, TrainSpec
from shardwright.components.image_trainer.training.history import read_history
from shardwright.dataset.reader import ImageDataset
from shardwright.display.overlays import captioned, class_bars, confusion_picture, overlay, side_by_side
from shardwright.evaluation.metrics import ClassSums, LabelCounts
from shardwright.evaluation.thresholds import Thresholds, decided_masks
from shardwright.images import tf_ops
from shardwright.tfrecords.records import RecordWriter

_VERSION = "brain.Event:2"


class EventLog:
    """Appends scalars and images to one event file.

    Args:
        folder: becomes a run in TensorBoard, named after the folder.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard looks for `tfevents` in the name and reads the files of a folder in the order of their names.
        self._file: IO[bytes] = (folder / f"events.out.tfevents.{int(time.time()):010d}").open("wb")
        self._writer = RecordWriter(self._file)
        self._write(event_pb2.Event(wall_time=time.time(), file_version=_VERSION))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes the values of a step; they are on disk when this returns."""
        summary = summary_pb2.Summary(
            value=[summary_pb2.Summary.Value(tag=name, simple_value=value) for name, value in sorted(values.items())]
        )
        self._write(event_pb2.Event(wall_time=time.time(), step=step, summary=summary))

    def write_image(self, step: int, name: str, image: npt.NDArray[np.uint8]) -> None:
        """Writes a picture, uint8 [H, W, 3], at a step."""
        data = io.BytesIO()
        Image.fromarray(image).save(data, "png")
        height, width = image.shape[:2]
        picture = summary_pb2.Summary.Image(
            height=height, width=width, colorspace=3, encoded_image_string=data.getvalue()
        )
        summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=name, image=picture)])
        self._write(event_pb2.Event(wall_time=time.time(), step=step, summary=summary))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _write(self, event: event_pb2.Event) -> None:
        self._writer.write(event.SerializeToString())
        self._file.flush()


_RUN = "pictures"
_SHOWN = 8


def log_images(model: Any, spec: TrainSpec, decision: Thresholds) -> None:
    """Writes pictures of the split that chose the best epoch to the TensorBoard run `pictures`; none without a split.

    Args:
        model: Keras model, images to probabilities.
        spec: what it was trained with.
        decision: what of its probabilities counts as predicted.
    """
    split = spec.recipe.eval_split
    if not split or not ImageDataset.open(spec.dataset).num_records(split):
        return
    step = read_history(spec.output).best_epoch
    log = EventLog(Path(spec.output, LOG_FOLDER, _RUN))
    if spec.task == "segmentation":
        images, truth = next(iter(loader.load(spec.dataset, split, _SHOWN, normalize="none", texts=spec.recipe.text)))
        masks = decided_masks(_probabilities(model, spec, images), decision)
        for i, (image, true, predicted) in enumerate(
            zip(np.asarray(pixels_of(images)), np.asarray(truth), masks, strict=True)
        ):
            plain = image.astype(np.uint8)
            log.write_image(
                step, f"truth_and_prediction/{i}", side_by_side([overlay(plain, true == 1), overlay(plain, predicted)])
            )
    elif spec.multi:
        _log_classes(model, spec, decision, log, step)
    else:
        counts = LabelCounts.zero(len(spec.classes))
        batches = loader.load(spec.dataset, split, spec.recipe.batch_size, normalize="none", texts=spec.recipe.text)
        for images, labels in batches:
            predicted = _probabilities(model, spec, images).argmax(-1)
            counts += LabelCounts.of_labels(predicted, np.asarray(labels), len(spec.classes))
        log.write_image(step, "confusion", confusion_picture(counts.confusion, spec.classes))
    log.close()


def _log_classes(model: Any, spec: TrainSpec, decision: Thresholds, log: EventLog, step: int) -> None:
    """Of images that may have several classes."""
    sums, shown = ClassSums.zero(len(spec.classes)), 0
    batches = loader.load(
        spec.dataset, spec.recipe.eval_split, spec.recipe.batch_size, normalize="none", texts=spec.recipe.text
    )
    for images, targets in batches:
        true = np.asarray(targets) > 0
        predicted = _probabilities(model, spec, images) >= np.array(decision.thresholds, np.float32)
        sums += ClassSums.of_labels(predicted, true)
        for image, mine, theirs in zip(np.asarray(pixels_of(images)), true, predicted, strict=True):
            if shown == _SHOWN:
                break
            lines = [f"truth: {_names(mine, spec)}", f"predicted: {_names(theirs, spec)}"]
            log.write_image(step, f"truth_and_prediction/{shown}", captioned(image.astype(np.uint8), lines))
            shown += 1
    bars = class_bars(sums.hits, sums.truth - sums.hits, sums.prediction - sums.hits, spec.classes)
    log.write_image(step, "classes", bars)


def _names(chosen: Any, spec: TrainSpec) -> str:
    return ", ".join(spec.classes[c] for c in np.flatnonzero(chosen)) or "none"


def _probabilities(model: Any, spec: TrainSpec, images: Any) -> Any:
    prepared = tf_ops.normalize(pixels_of(images), spec.recipe.normalize, spec.mean, spec.std)
    return np.asarray(model.predict_on_batch(with_pixels(images, prepared)))
