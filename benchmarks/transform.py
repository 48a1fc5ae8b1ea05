"""Measures how fast photographs are transformed, compared with a usual notebook and with decoding and encoding alone.

`write_records` makes TFRecords as most notebooks do; `python -m benchmarks ingest` compares with it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from benchmarks.figures import AT_LEAST, Figure, seconds
from benchmarks.photographs import HEIGHT, WIDTH, Photographs, photographs, warm
from shardwright.components.image_transform import transform_plan as planning
from shardwright.components.image_transform.transform_recipe import read_recipe, transform_recipe
from shardwright.config import Config, parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.images import tf_ops
from shardwright.ingest import ingest
from shardwright.pipelines.standalone_transform import transform_dataset

RATIO = 4
_THREADS = 2
_REPEATS = 5


@dataclass(frozen=True)
class Methods:
    """The methods to measure.

    Attributes:
        notebook: reads, decodes, resizes and encodes files on one thread; takes height and width of the output.
        notebook_name: its name.
        pixels_only: decodes at a ratio and encodes images that are in memory, on a number of threads.
        shards: writes the transformed shards of a dataset, with a configuration, into a folder.
        transform: runs the whole component, with analyzers and graph.
    """

    notebook: Callable[[Sequence[str], tuple[int, int]], None]
    notebook_name: str
    pixels_only: Callable[[Sequence[bytes], int, int], None]
    shards: Callable[[Config, str, str], int]
    transform: Callable[[Config, str, str], None]


def transform_figures(
    folder: Path, images: int, methods: Methods, size: tuple[int, int] = (HEIGHT, WIDTH), repeats: int = _REPEATS
) -> list[Figure]:
    """Measures the transform of photographs with four masks each to a quarter of their size.

    All methods take turns, so that other work on the machine affects all alike; the fastest turn of each counts.

    Args:
        folder: where images are kept between calls and outputs are written.
        images: number of photographs.
        methods: the methods to measure.
        size: height and width of the photographs.
        repeats: turns of each.
    """
    height, width = size
    source = photographs(folder, images, height=height, width=width)
    warm(source.paths)
    small = (height // RATIO, width // RATIO)
    config = _config(source, small)
    dataset = folder / f"ingested-{images}-{height}x{width}"
    ingest(config, dataset, quiet=True)
    encoded = [Path(path).read_bytes() for path in source.paths]
    out = folder / "transformed"
    works: Sequence[Callable[[], object]] = (
        lambda: methods.shards(config, str(dataset), str(out)),
        lambda: methods.notebook(source.paths, small),
        lambda: methods.pixels_only(encoded, RATIO, _THREADS),
    )
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for number, work in enumerate(works):
            shutil.rmtree(out, ignore_errors=True)
            best[number] = min(best[number], seconds(work))
    shutil.rmtree(out, ignore_errors=True)
    whole = seconds(lambda: methods.transform(config, str(dataset), str(out)))
    shutil.rmtree(out, ignore_errors=True)
    ours, theirs, pixels = (images / taken for taken in best)
    records = sum(shard.records for shard in ImageDataset.open(dataset).manifest.shards)
    return [
        Figure(
            "transform: notebook", ours / theirs, "x", AT_LEAST, 2.8, f"{methods.notebook_name}, {theirs:.0f} images/s"
        ),
        Figure(
            "transform: decode and encode",
            ours / pixels,
            "x",
            AT_LEAST,
            0.75,
            f"{_THREADS} threads, {pixels:.0f} images/s",
        ),
        Figure("transform: shards", ours, "1/s", note=f"{records} photographs of {height}x{width}, four masks each"),
        Figure("transform: graph and statistics", whole - best[0], "s", note="once a run, start of Beam included"),
    ]


def _config(source: Photographs, size: tuple[int, int]) -> Config:
    raw = {
        "input": {"images": source.images, "labels": {"path": source.masks}},
        "split": {"ratios": {"train": 1.0}},
        "evaluator": {"split": "train"},
        "transform": {"size": list(size)},
    }
    return parse_config(raw, base="/")


def write_records(paths: Sequence[str], texts: dict[str, list[str]], target: str) -> None:
    """Reads images, decodes them for their shape, and writes examples, on one thread.

    Args:
        paths: images.
        texts: file name -> the table's texts of it, stored unchanged: its class.
        target: file to write.
    """
    with tf.io.TFRecordWriter(target) as writer:
        for path in paths:
            data = tf.io.read_file(path)
            height, width, channels = tf.io.decode_jpeg(data).shape
            name = os.path.basename(path)
            features = {
                "image": _bytes([data.numpy()]),
                "name": _bytes([name.encode()]),
                "height": _ints([height]),
                "width": _ints([width]),
                "channels": _ints([channels]),
                "label": _bytes([text.encode() for text in texts.get(name, ())]),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def _bytes(values: list[bytes]) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _ints(values: list[int]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


_QUALITY = 90
Notebook = Callable[[Sequence[str], tuple[int, int]], None]
# The program of another Python: it answers each line of paths and size when it has done them.
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
    """Yields OpenCV's read, resize and encode, which most notebooks use; without OpenCV, TensorFlow's.

    Args:
        python: a Python that can import cv2, which runs it; `None`: this one, if it can.

    Yields:
        The method, on one thread, and its name.

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
    """Decodes fully, resizes with four neighbors per pixel without a filter (OpenCV's INTER_LINEAR), encodes."""
    for path in paths:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        small = tf.raw_ops.ResizeBilinear(images=image[tf.newaxis], size=size, half_pixel_centers=True)[0]
        tf.io.encode_jpeg(tf.cast(small, tf.uint8), format="rgb", quality=_QUALITY)


def pixels_only(encoded: Sequence[bytes], ratio: int, threads: int) -> None:
    """Decodes at a ratio and encodes; the bytes are in memory, and the output is discarded."""

    def work(data: bytes) -> None:
        tf.io.encode_jpeg(tf_ops.decode_jpeg(data, ratio), format="rgb", quality=_QUALITY)

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, encoded):
            pass


def shards(config: Config, dataset: str, out: str) -> int:
    """Writes the transformed shards, as a worker of Beam does; returns the number of records."""
    source = ImageDataset.open(dataset)
    plan = planning.plan_transform(source, *read_recipe(transform_recipe(config)))
    staging = planning.open_staging(out, plan.dataset)
    work = planning.TransformWork.of(source, plan, staging, {})
    return sum(planning.write_numbered(number, work) for number in range(len(work.shards)))


def transform(config: Config, dataset: str, out: str) -> None:
    """Runs the component as TFX runs it."""
    transform_dataset(dataset, transform_recipe(config), Path(out, "transform"))
