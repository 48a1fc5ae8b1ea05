"""Measures how fast photographs are transformed, compared with a usual notebook and with decoding and encoding alone.

`write_records` makes TFRecords as most notebooks do; `python -m benchmarks ingest` compares with it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from benchmarks.environments import environment
from benchmarks.figures import AT_LEAST, Figure, seconds
from benchmarks.photographs import HEIGHT, WIDTH, Photographs, photographs, warm
from shardwright.components.image_transform import transform_plan
from shardwright.components.image_transform.transform_recipe import read_recipe, transform_recipe
from shardwright.config import Config, parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.images import tf_ops
from shardwright.ingest import ingest

RATIO = 4
_THREADS = 2
_REPEATS = 5
_QUALITY = 90
# The program of OpenCV's Python: it answers each line of paths and size when it has done them.
_WORKER = f"""
import json, sys
import cv2
cv2.setNumThreads(1)
for line in sys.stdin:
    paths, size = json.loads(line)
    for path in paths:
        image = cv2.resize(cv2.imread(path), tuple(size[::-1]))
        cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, {_QUALITY}])
    print("done", flush=True)
"""
Notebook = Callable[[Sequence[str], tuple[int, int]], None]


def transform_figures(
    folder: Path, images: int, size: tuple[int, int] = (HEIGHT, WIDTH), repeats: int = _REPEATS
) -> list[Figure]:
    """Measures the transform of photographs with four masks each to a quarter of their size.

    All methods take turns, so that other work on the machine affects all alike; the fastest turn of each counts.

    Args:
        folder: where images are kept between calls and outputs are written.
        images: number of photographs.
        size: height and width of the photographs.
        repeats: turns of each.
    """
    source = photographs(folder, images, height=size[0], width=size[1])
    warm(source.paths)
    small = (size[0] // RATIO, size[1] // RATIO)
    config = _config(source, small)
    # The output is left alone where an earlier call has finished it.
    ingest(config, folder / f"ingested-{images}-{size[0]}x{size[1]}", quiet=True)
    dataset = ImageDataset.open(folder / f"ingested-{images}-{size[0]}x{size[1]}")
    encoded = [Path(path).read_bytes() for path in source.paths]
    out = folder / "transformed"
    with notebook(folder / "peers") as resize:
        works: Sequence[Callable[[], object]] = (
            lambda: shards(config, dataset, out),
            lambda: pixels_only(encoded, RATIO, _THREADS),
            *([lambda: resize(source.paths, small)] if resize else []),
        )
        best = [float("inf")] * len(works)
        for _ in range(repeats):
            for number, work in enumerate(works):
                shutil.rmtree(out, ignore_errors=True)
                best[number] = min(best[number], seconds(work))
    ours, pixels, *theirs = (images / taken for taken in best)
    rate = f"one thread, {theirs[0]:.0f} images/s" if theirs else "OpenCV cannot be installed here"
    alone = f"{_THREADS} threads, {pixels:.0f} images/s"
    records = f"{dataset.num_records('train')} photographs of {size[0]}x{size[1]}, four masks each"
    return [
        Figure("transform: notebook", ours / theirs[0] if theirs else None, "x", AT_LEAST, 2.8, rate),
        Figure("transform: decode and encode", ours / pixels, "x", AT_LEAST, 0.75, alone),
        Figure("transform: shards", ours, "1/s", note=records),
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


@contextmanager
def notebook(folder: Path) -> Iterator[Notebook | None]:
    """Yields OpenCV's read, resize and encode on one thread, which most notebooks use, in an environment of its own.

    Args:
        folder: of the environment.

    Yields:
        The method; `None` where OpenCV cannot be installed.

    Raises:
        DatasetError: it could not read the photographs.
    """
    python, _ = environment(folder, ["-r", str(Path(__file__).with_name("peers.txt"))])
    if not python:
        yield None
        return
    with subprocess.Popen([python, "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:

        def ask(paths: Sequence[str], size: tuple[int, int]) -> None:
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(json.dumps([list(paths), list(size)]) + "\n")
            worker.stdin.flush()
            if worker.stdout.readline() != "done\n":
                raise DatasetError(f"cv2 could not read the photographs, e.g. {paths[0]}")

        # Leaving the block closes its input, and it ends.
        yield ask


def pixels_only(encoded: Sequence[bytes], ratio: int, threads: int) -> None:
    """Decodes at a ratio and encodes; the bytes are in memory, and the output is discarded."""

    def work(data: bytes) -> None:
        tf.io.encode_jpeg(tf_ops.decode_jpeg(data, ratio), format="rgb", quality=_QUALITY)

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, encoded):
            pass


def shards(config: Config, source: ImageDataset, out: Path) -> None:
    """Writes the transformed shards, as a worker of Beam does."""
    plan = transform_plan.plan_transform(source, *read_recipe(transform_recipe(config)))
    staging = transform_plan.open_staging(str(out), plan.dataset)
    work = transform_plan.TransformWork.of(source, plan, staging, {})
    for number in range(len(work.shards)):
        transform_plan.write_numbered(number, work)
