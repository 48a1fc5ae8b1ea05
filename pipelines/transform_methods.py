"""The ways of making images smaller that `shardwright bench transform` compares."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tensorflow as tf

from shardwright import pixels
from shardwright.config import Config
from shardwright.dataset import Dataset
from shardwright_components.image_transform import executor
from shardwright_components.image_transform.recipe import read_recipe, transform_recipe
from shardwright_components.image_transform.rewrite import write_shard
from shardwright_pipelines.transforming import transform_dataset

_QUALITY = 90


def notebook() -> tuple[Callable[[Sequence[str], tuple[int, int]], None], str]:
    """OpenCV's read, resize and encode, which is what most notebooks do; TensorFlow's of the same where it is missing.

    Returns:
        The method, on one thread, and what to call it.
    """
    if importlib.util.find_spec("cv2") is not None:
        return _with_opencv, "cv2, one thread"
    return _with_tensorflow, "TensorFlow's ops of cv2's work, one thread"


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
    plan = executor.plan_transform(source, *read_recipe(transform_recipe(config)))
    staging = executor.open_staging(out, plan.dataset)
    return sum(write_shard(job) for job in executor.shard_jobs(source, plan, staging, {}))


def transform(config: Config, dataset: str, out: str) -> None:
    """Runs the component as TFX runs it."""
    transform_dataset(dataset, transform_recipe(config), Path(out, "transform"))
