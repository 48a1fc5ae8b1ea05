"""TensorBoard logs of a training: its curves, and pictures of what the trained model predicts for held-out images.

TensorBoard's own writer writes the events, without a TensorFlow graph. The pictures depend on the task: masks next to
the truth; for one class per image the confusion matrix; for several classes the hits, misses and false alarms of each
class, and images with their classes.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from shardwright import loader
from shardwright.components.image_trainer.models.text_inputs import pixels_of, with_pixels
from shardwright.components.image_trainer.spec import LOG_FOLDER, TrainSpec
from shardwright.components.image_trainer.training.history import read_history
from shardwright.display.overlays import captioned, class_bars, confusion_picture, overlay, side_by_side
from shardwright.evaluation.metrics import ClassSums, LabelCounts
from shardwright.evaluation.thresholds import Thresholds, threshold_masks
from shardwright.images import tf_ops

_TRAIN, _EVAL, _PICTURES = "train", "eval", "pictures"
# The values of an epoch that TensorBoard shows, besides the metrics.
_SCALARS = ("loss", "images_per_second", "input_bound", "idle")
# Before the values of steps, whose numbers are not those of epochs.
_STEP = "step/"
_SHOWN = 8


class CurveLog:
    """Writes the numbers of every epoch. Two runs in TensorBoard, so that both losses share a chart.

    Args:
        output: folder of the training.
    """

    def __init__(self, output: str) -> None:
        self._runs = {run: _open_run(output, run) for run in (_TRAIN, _EVAL)}

    def __enter__(self) -> CurveLog:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._runs.values():
            writer.close()

    def write_epoch(self, message: Mapping[str, Any]) -> None:
        """Writes the numbers in a message of `loop.Loop`; they are on disk when this returns."""
        _write_scalars(self._runs[_TRAIN], message["epoch"], {n: message[n] for n in _SCALARS if n in message})
        if "eval" in message:
            _write_scalars(self._runs[_EVAL], message["epoch"], message["eval"])

    def write_step(self, message: Mapping[str, Any]) -> None:
        """Writes the numbers in a message of `step_log.StepLog`."""
        values = {f"{_STEP}{name}": value for name, value in message.items() if name not in ("step", "steps")}
        _write_scalars(self._runs[_TRAIN], message["step"], values)


def log_images(model: Any, spec: TrainSpec, chosen: Thresholds) -> None:
    """Writes pictures of the split that chose the best epoch to the TensorBoard run `pictures`; none without a split.

    Args:
        model: images to probabilities.
        spec: the training.
        chosen: the thresholds of its probabilities.
    """
    if not spec.held_out:
        return
    step = read_history(spec.output).best_epoch
    writer = _open_run(spec.output, _PICTURES)
    if spec.task == "segmentation":
        _log_masks(model, spec, chosen, writer, step)
    elif spec.multi:
        _log_classes(model, spec, chosen, writer, step)
    else:
        counts = LabelCounts.zero(len(spec.classes))
        for images, labels in _batches(spec, spec.recipe.trainer.batch_size):
            predicted = _probabilities(model, spec, images).argmax(-1)
            counts += LabelCounts.of_labels(predicted, np.asarray(labels), len(spec.classes))
        _write_image(writer, step, "confusion", confusion_picture(counts.confusion, spec.classes))
    writer.close()


def _log_masks(model: Any, spec: TrainSpec, chosen: Thresholds, writer: EventFileWriter, step: int) -> None:
    images, truth = next(iter(_batches(spec, _SHOWN)))
    masks = threshold_masks(_probabilities(model, spec, images), chosen)
    pixels = np.asarray(pixels_of(images))
    for i, (image, true, predicted) in enumerate(zip(pixels, np.asarray(truth), masks, strict=True)):
        plain = image.astype(np.uint8)
        pair = side_by_side([overlay(plain, true == 1), overlay(plain, predicted)])
        _write_image(writer, step, f"truth_and_prediction/{i}", pair)


def _log_classes(model: Any, spec: TrainSpec, chosen: Thresholds, writer: EventFileWriter, step: int) -> None:
    """Writes pictures of images that may have several classes."""
    sums, shown = ClassSums.zero(len(spec.classes)), 0
    for images, targets in _batches(spec, spec.recipe.trainer.batch_size):
        true = np.asarray(targets) > 0
        predicted = _probabilities(model, spec, images) >= np.array(chosen.thresholds, np.float32)
        sums += ClassSums.of_labels(predicted, true)
        for image, mine, theirs in zip(np.asarray(pixels_of(images)), true, predicted, strict=True):
            if shown == _SHOWN:
                break
            lines = [f"truth: {_names(mine, spec)}", f"predicted: {_names(theirs, spec)}"]
            _write_image(writer, step, f"truth_and_prediction/{shown}", captioned(image.astype(np.uint8), lines))
            shown += 1
    bars = class_bars(sums.hits, sums.truth - sums.hits, sums.prediction - sums.hits, spec.classes)
    _write_image(writer, step, "classes", bars)


def _batches(spec: TrainSpec, batch_size: int) -> Any:
    return loader.load(
        spec.dataset, spec.recipe.eval_split, batch_size, normalize="none", texts=spec.recipe.trainer.text
    )


def _names(chosen: Any, spec: TrainSpec) -> str:
    return ", ".join(spec.classes[c] for c in np.flatnonzero(chosen)) or "none"


def _probabilities(model: Any, spec: TrainSpec, images: Any) -> Any:
    prepared = tf_ops.normalize(pixels_of(images), spec.recipe.loader.normalize, spec.mean, spec.std)
    return np.asarray(model(with_pixels(images, prepared)))


def _open_run(output: str, run: str) -> EventFileWriter:
    return EventFileWriter(str(Path(output, LOG_FOLDER, run)))


def _write_scalars(writer: EventFileWriter, step: int, values: Mapping[str, float]) -> None:
    _write(writer, step, [summary_pb2.Summary.Value(tag=tag, simple_value=v) for tag, v in sorted(values.items())])


def _write_image(writer: EventFileWriter, step: int, tag: str, image: npt.NDArray[np.uint8]) -> None:
    """Writes a picture, uint8 [H, W, 3]."""
    data = io.BytesIO()
    Image.fromarray(image).save(data, "png")
    height, width = image.shape[:2]
    picture = summary_pb2.Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=data.getvalue())
    _write(writer, step, [summary_pb2.Summary.Value(tag=tag, image=picture)])


def _write(writer: EventFileWriter, step: int, values: list[summary_pb2.Summary.Value]) -> None:
    writer.add_event(event_pb2.Event(wall_time=time.time(), step=step, summary=summary_pb2.Summary(value=values)))
    writer.flush()
