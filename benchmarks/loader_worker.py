"""Runs one loader in a separate process. For a line with the number N it takes 2 N batches and times the last N.

Its first answer is the shape and type of a batch; each later one is the seconds and the processor seconds, as a line of
JSON. `loaders.py` runs it, in part in another environment: only NumPy and the standard library are imported at the top.
"""

from __future__ import annotations

import glob
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

_SHARDS_AT_ONCE = 16


def ours(data: dict[str, Any], batch: int) -> Iterator[Any]:
    """Runs Shardwright as a training calls it; uint8."""
    from shardwright.loader.profile import training

    return (image for image, *_ in training(data["dataset"], batch))


def ours_float32(data: dict[str, Any], batch: int) -> Iterator[Any]:
    """Runs Shardwright as a training calls it; float32 between 0 and 1."""
    from shardwright.loader.profile import training

    return (image for image, *_ in training(data["dataset"], batch, normalize="unit", dtype="float32"))


def tfds_style(data: dict[str, Any], batch: int) -> Iterator[Any]:
    """Reads the same shards as TFDS does: sixteen files concurrently, sixteen records of each in turn."""
    import tensorflow as tf

    def image(record: Any) -> Any:
        spec = {"image/encoded": tf.io.FixedLenFeature([], tf.string)}
        decoded = tf.io.decode_image(tf.io.parse_single_example(record, spec)["image/encoded"], channels=3)
        return tf.ensure_shape(decoded, [data["height"], data["width"], 3])

    files = tf.data.Dataset.from_tensor_slices(sorted(glob.glob(os.path.join(data["dataset"], "Split-train", "*"))))
    records = files.shuffle(_SHARDS_AT_ONCE).interleave(
        lambda file: tf.data.TFRecordDataset(file, buffer_size=8 << 20),
        cycle_length=_SHARDS_AT_ONCE,
        block_length=_SHARDS_AT_ONCE,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=False,
    )
    images = records.repeat().shuffle(1024).map(image, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    return iter(images.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE))


def image_dataset_from_directory(data: dict[str, Any], batch: int) -> Iterator[Any]:
    """Keras' own loader over the files, with its defaults; float32."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras

    size = (data["height"], data["width"])
    images = keras.utils.image_dataset_from_directory(
        data["images"], labels=None, image_size=size, batch_size=None, shuffle=True, seed=0, verbose=False
    )
    return iter(images.repeat().batch(batch, drop_remainder=True).prefetch(2))


def _decoded(encoded: bytes) -> Any:
    import cv2

    return cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR_RGB)


def _grain(data: dict[str, Any]) -> Any:
    import grain

    source = grain.sources.ArrayRecordDataSource(sorted(glob.glob(os.path.join(data["array_record"], "*"))))
    return grain.MapDataset.source(source).seed(0).shuffle().repeat().map(_decoded)


def grain_threads(data: dict[str, Any], batch: int) -> Iterator[Any]:
    """Runs grain over ArrayRecord, sixteen threads, decoding by OpenCV."""
    import grain

    options = grain.ReadOptions(num_threads=16, prefetch_buffer_size=256)
    return iter(_grain(data).to_iter_dataset(options).batch(batch, drop_remainder=True))


def grain_processes(data: dict[str, Any], batch: int) -> Iterator[Any]:
    """Runs grain over ArrayRecord, one process a core, batches made in them."""
    import grain

    # By default every process keeps 500 elements ready, which are batches here: nine gigabytes.
    few = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    options = grain.MultiprocessingOptions(num_workers=len(os.sched_getaffinity(0)), per_worker_buffer_size=2)
    return iter(_grain(data).batch(batch, drop_remainder=True).to_iter_dataset(few).mp_prefetch(options))


def webdataset(data: dict[str, Any], batch: int) -> Iterator[Any]:
    """Runs WebDataset over tar files, decoding by OpenCV, in this process alone."""
    import webdataset as wds

    files = sorted(glob.glob(os.path.join(data["tar"], "*.tar")))
    samples = wds.WebDataset(files, shardshuffle=len(files), empty_check=False, seed=0).shuffle(1024).repeat()
    endless = iter(samples)
    while True:
        yield np.stack([_decoded(sample["jpg"]) for sample in islice(endless, batch)])


def webdataset_processes(data: dict[str, Any], batch: int) -> Iterator[Any]:
    """Runs one WebDataset process a core, which pass nothing on: an upper bound for every loader made of them."""
    cores = len(os.sched_getaffinity(0))
    queue: Any = multiprocessing.Queue(maxsize=2 * cores)
    workers = [multiprocessing.Process(target=_count, args=(data, batch, queue), daemon=True) for _ in range(cores)]
    for worker in workers:
        worker.start()
    while True:
        shape, kind = queue.get()
        yield np.empty(shape, kind)


def _count(data: dict[str, Any], batch: int, queue: Any) -> None:
    for images in webdataset(data, batch):
        queue.put((images.shape, images.dtype.name))


METHODS: dict[str, Callable[[dict[str, Any], int], Iterator[Any]]] = {
    method.__name__: method
    for method in (
        ours,
        ours_float32,
        tfds_style,
        image_dataset_from_directory,
        grain_threads,
        grain_processes,
        webdataset,
        webdataset_processes,
    )
}


def write_peers(data: dict[str, Any]) -> None:
    """Writes the photographs as ArrayRecord files and as tar files; needs their environment."""
    import webdataset as wds
    from array_record.python.array_record_module import ArrayRecordWriter

    names = sorted(os.listdir(data["images"]))
    for folder in (data["array_record"], data["tar"]):
        os.makedirs(folder, exist_ok=True)
    for shard in range(_SHARDS_AT_ONCE):
        # JPEGs cannot be compressed further, and random access reads single records.
        records = ArrayRecordWriter(f"{data['array_record']}/{shard:02d}.array_record", "group_size:1,uncompressed")
        with wds.TarWriter(f"{data['tar']}/{shard:02d}.tar") as tar:
            for name in names[shard::_SHARDS_AT_ONCE]:
                with open(os.path.join(data["images"], name), "rb") as file:
                    encoded = file.read()
                records.write(encoded)
                tar.write({"__key__": name.removesuffix(".jpg"), "jpg": encoded})
        records.close()


def _main(name: str, data_file: str, batch: int) -> None:
    with open(data_file, encoding="utf-8") as file:
        data = json.load(file)
    if name == "write":
        write_peers(data)
        return
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # Libraries that print do not mix with the answers.
    os.dup2(2, 1)
    batches = METHODS[name](data, batch)
    first = next(batches)
    answers.write(json.dumps({"shape": list(first.shape), "dtype": str(np.asarray(first).dtype)}) + "\n")
    for line in sys.stdin:
        # Batches that were prepared during the other loaders' turns must not count as speed.
        for _ in range(int(line)):
            next(batches)
        started, worked = time.perf_counter(), time.process_time()
        for _ in range(int(line)):
            next(batches)
        taken = time.perf_counter() - started
        answers.write(json.dumps({"seconds": taken, "processor": time.process_time() - worked}) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
