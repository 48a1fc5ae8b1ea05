"""TensorBoard's scalars and images without TensorBoard: TensorFlow 2.21 writes none unless TensorBoard is installed.

An event file is a TFRecord of `tensorflow.Event` (tensorflow/core/util/event.proto); the first one names the version.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
from PIL import Image
from tensorflow.core.framework import summary_pb2
from tensorflow.core.util import event_pb2

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
