"""The ways of making images smaller that `shardwright bench transform` compares."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from shardwright import pixels
from shardwright.components.image_transform import plan as planning
from shardwright.components.image_transform.recipe import read_recipe, transform_recipe
from shardwright.config import Config
from shardwright.dataset import Dataset
from shardwright.errors import DatasetError, UsageError
from shardwright.pipelines.transforming import transform_dataset

_QUALITY = 90
Notebook = Callable[[Sequence[str], tuple[int, int]], None]
# What another Python runs: it answers every line of paths and size when it has done them.
_WORKER = f"""
import json, sys
import cv2
cv2.setNumThreads(1)
print(cv2.__version__, flush=True)
for line in sys.stdin:
    paths, size = json.loads(line)
    for path in paths:
        image = cv2.resize(cv2.imread(path), tuple(size[::-1]))
        cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, {_QUALITY}])
    print("done", flush=True)
"""


@contextmanager
def notebook(python: str | None) -> Iterator[tuple[Notebook, str]]:
    """OpenCV's read, resize and encode, which is what most notebooks do; TensorFlow's of the same where it is missing.

    Args:
        python: a Python that can import cv2, in whose process it runs; `None`: this one, if it can.

    Yields:
        The method, on one thread, and what to call it.

    Raises:
        UsageError: that Python has no cv2.
    """
    if python is None:
        if importlib.util.find_spec("cv2") is not None:
            yield _with_opencv, "cv2, one thread"
        else:
            yield _with_tensorflow, "TensorFlow's ops of cv2's work, one thread"
        return
    try:
        worker = subprocess.Popen(
            [python, "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except OSError as error:
        raise UsageError(f"--python {python}: cannot be run ({error.strerror}). Give a Python that has cv2.") from None
    with worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        version = worker.stdout.readline().strip()
        if not version:
            raise UsageError(f"--python {python}: it cannot import cv2. Install opencv-python-headless there.")

        def ask(paths: Sequence[str], size: tuple[int, int]) -> None:
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(json.dumps([list(paths), list(size)]) + "\n")
            worker.stdin.flush()
            if worker.stdout.readline() != "done\n":
                raise DatasetError(f"{python}: cv2 could not read the photographs, e.g. {paths[0]}")

        # Leaving the block closes its input, and it ends.
        yield ask, f"cv2 {version}, one thread"


def _with_opencv(paths: Sequence[str], size: tuple[int, int]) -> None:
    cv2: Any = importlib.import_module("cv2")
    cv2.setNumThreads(1)
    for path in paths:
        image = cv2.resize(cv2.imread(path), size[::-1])
        cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])


def _with_tensorflow(paths: Sequence[str], size: tuple[int, int]) -> None:
    """Whole decode, four neighbours a pixel without a filter (OpenCV's INTER_LINEAR), encode."""
    for path in paths:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        small = tf.raw_ops.ResizeBilinear(images=image[tf.newaxis], size=size, half_pixel_centers=True)[0]
        tf.io.encode_jpeg(tf.cast(small, tf.uint8), format="rgb", quality=_QUALITY)


def pixels_only(encoded: Sequence[bytes], ratio: int, threads: int) -> None:
    """Decodes at a ratio and encodes; the bytes are in memory and what comes out is thrown away."""

    def work(data: bytes) -> None:
        tf.io.encode_jpeg(pixels.decode_jpeg(data, ratio), format="rgb", quality=_QUALITY)

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, encoded):
            pass


def shards(config: Config, dataset: str, out: str) -> int:
    """Writes the transformed shards, as a worker of Beam does; returns the number of records."""
    source = Dataset.open(dataset)
    plan = planning.plan_transform(source, *read_recipe(transform_recipe(config)))
    staging = planning.open_staging(out, plan.dataset)
    work = planning.TransformWork.of(source, plan, staging, {})
    return sum(planning.write_numbered(number, work) for number in range(len(work.shards)))


def transform(config: Config, dataset: str, out: str) -> None:
    """Runs the component as TFX runs it."""
    transform_dataset(dataset, transform_recipe(config), Path(out, "transform"))
