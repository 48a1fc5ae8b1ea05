"""Measures how fast the loader is, compared with decoding alone and with other ways of loading.

It loads photographs of the size that models train on, with and without masks, and many tiny records.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image

from benchmarks.figures import AT_LEAST, AT_MOST, Figure, seconds
from benchmarks.photographs import Photographs, photographs, warm
from benchmarks.report import write_dataset
from shardwright.config import parse_config
from shardwright.dataset.manifest import SINGLE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.images import tf_ops
from shardwright.images.encode_picture import encode_picture
from shardwright.ingest import ingest
from shardwright.loader.error_context import calls_at_once, threads_of_decoding
from shardwright.loader.parse_example import decoder
from shardwright.loader.profile import (
    ROUNDS,
    Rate,
    ceiling,
    encoded_images,
    loading_memory,
    take_turns,
    training,
)
from shardwright.staging.commit import DatasetPlan
from shardwright.staging.staging import PlannedShard, RecordResult
from shardwright.storage.checksum import checksum_of
from shardwright.tfrecords.encode import encode_example

HEIGHT, WIDTH = 350, 525
RECORDS = 100_000
_SHARDS = 16
# As the loader reads.
_READ_BUFFER, _BLOCK_LENGTH, _MIXED = 256 << 10, 16, 1024
_PREFETCHED = 2
_TINY = 32
_LABELS = ("even", "odd")
TRAIN = "train"
BATCH = 32
# On an object store: seconds per request, and bytes of a shard that a request reads.
_DELAY, _REQUEST = 0.02, 4 << 20
_AT_ONCE = 16
_FORMS = {"masks": "bytes of 0 and 1", "mask bits": "a bit a class, to be unpacked on the device"}


def loader_datasets(
    folder: Path, images: int, height: int = HEIGHT, width: int = WIDTH
) -> tuple[Photographs, str, str]:
    """Returns the same photographs as two datasets of one split, or what an earlier call has made of them.

    Args:
        folder: where to; made when it is missing.
        images: how many.
        height: rows of each.
        width: columns of each.

    Returns:
        The photographs; the folder of the dataset with a label each; that of the one with masks of four classes.
    """
    source = photographs(folder, images, height=height, width=width)
    table = folder / f"labels-{images}.csv"
    with table.open("w", encoding="utf-8", newline="") as out:
        rows = [(name, _LABELS[number % 2]) for number, name in enumerate(source.names)]
        csv.writer(out, lineterminator="\n").writerows([("image", "label"), *rows])
    labeled = _dataset(source, folder / f"labeled-{images}-{height}x{width}", "classification", str(table))
    masked = _dataset(source, folder / f"masked-{images}-{height}x{width}", "segmentation", source.masks)
    return source, labeled, masked


def _dataset(source: Photographs, out: Path, task: str, labels: str) -> str:
    raw = {
        "task": task,
        "input": {"images": source.images, "labels": {"path": labels}},
        "split": {"ratios": {"train": 1.0}},
        "shards": {"count": _SHARDS},
        "evaluator": {"split": "train"},
    }
    # The output is left alone where it is finished and of the same images.
    ingest(parse_config(raw, base="/"), out, quiet=True)
    return str(out)


def many_records(folder: Path, records: int = RECORDS) -> str:
    """Returns a dataset of so many tiny pictures in sixteen shards, or the one that an earlier call has made.

    Its pictures are four different ones: what is asked of it is how long it takes to find a place in it.
    """
    shards = tuple(PlannedShard(TRAIN, number, _SHARDS) for number in range(_SHARDS))
    features = {"image/encoded": "bytes", "image/key": "bytes"}
    features |= {f"image/{side}": "int64" for side in ("height", "width")} | {"image/class/label": "int64"}
    plan = DatasetPlan(
        kind="ingest",
        task="classification",
        classes=_LABELS,
        labels=SINGLE,
        recipe={"tiny": records},
        parent=checksum_of(b"tiny"),
        features=features,
        inputs=records,
        shards=shards,
    )
    out = folder / f"records-{records}"
    return str(write_dataset(out, plan, lambda shard: _tiny_records(range(shard.number, records, _SHARDS))))


def _tiny_records(numbers: range) -> Iterator[RecordResult]:
    pictures = [_tiny_picture(seed) for seed in range(4)]
    for number in numbers:
        key = f"{number:07d}"
        example: dict[str, bytes | int] = {
            "image/class/label": number % 2,
            "image/encoded": pictures[number % 4],
            "image/height": _TINY,
            "image/key": key.encode(),
            "image/width": _TINY,
        }
        yield RecordResult(key, encode_example(example))


def _tiny_picture(seed: int) -> bytes:
    cells = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return encode_picture(Image.fromarray(cells).resize((_TINY, _TINY)), "jpeg")


def loader_figures(
    folder: Path,
    images: int,
    *,
    size: tuple[int, int] = (HEIGHT, WIDTH),
    records: int = RECORDS,
    batch: int = BATCH,
    rounds: int = ROUNDS,
) -> list[Figure]:
    """Measures the promised figures on drawn photographs.

    Args:
        folder: where images and datasets are kept between calls.
        images: number of photographs.
        size: height and width of the photographs.
        records: records of the epoch that is resumed.
        batch: images in a batch.
        rounds: how often everything is measured.
    """
    if images < batch:
        raise UsageError(f"--images: {images} do not fill a batch of {batch}. Give more.")
    source, labeled, masked = loader_datasets(folder, images, *size)
    files = [shard.file for shard in ImageDataset.open(labeled).shards(TRAIN)]
    warm([*source.paths, *files, *(shard.file for shard in ImageDataset.open(masked).shards(TRAIN))])
    encoded = encoded_images(ImageDataset.open(labeled), TRAIN)
    rates = take_turns(
        {
            "ours": lambda: training(labeled, batch),
            "float32": lambda: training(labeled, batch, normalize="unit", dtype="float32"),
            "notebook float32": partial(notebook, files, batch, floats=True),
            "notebook uint8": partial(notebook, files, batch, floats=False),
            "shortest": partial(shortest, files, "jpeg", batch),
            "labeled": partial(ceiling, encoded, "jpeg", batch, labeled=True),
            "masks": lambda: training(masked, batch),
            "mask bits": lambda: training(masked, batch, masks="bits"),
            "exact": lambda: training(labeled, batch, order="exact"),
            "files": partial(single_files, source.paths, batch),
        },
        batch,
        max(1, images // batch),
        ceiling=partial(ceiling, encoded, "jpeg", batch),
        rounds=rounds,
    )
    many = many_records(folder, records)
    return [
        *_ceiling_figures(
            rates,
            _conversion((batch, *size, 3)),
            f"{images} images of {size[0]}x{size[1]}, {source.bytes / images / 1e3:.0f} KB",
        ),
        *added(labeled, encoded, size, batch, rounds),
        *_single_files(source.paths, rates, batch, sum(map(len, encoded)) / len(encoded), rounds),
        Figure(
            "loader: exact / fast",
            rates["exact"].share_of(rates["ours"]),
            "x",
            note=f"{rates['exact'].images:,.0f} images/s, shuffled both",
        ),
        resuming(many, records, batch, rounds),
        *(
            Figure(f"memory: {name}", loading_memory(path, TRAIN, batch) / 1e9, "GB", AT_MOST, 1.5, "one epoch, VmHWM")
            for name, path in ((f"{images} images with masks", masked), (f"{records:,} tiny records", many))
        ),
    ]


def added(
    dataset: str, encoded: Sequence[bytes], size: tuple[int, int], batch: int, rounds: int = ROUNDS
) -> list[Figure]:
    """Measures the loader's own work for an image: both sides fill images instead of decoding, whose time varies.

    Args:
        dataset: its folder.
        encoded: its images.
        size: height and width of the images.
        batch: images in a batch.
        rounds: how often each is measured.
    """
    with filling(*size):
        rates = take_turns(
            {order: partial(training, dataset, batch, order=order) for order in ("fast", "exact")},
            batch,
            max(1, len(encoded) // batch),
            ceiling=partial(ceiling, encoded, "jpeg", batch),
            rounds=rounds,
        )
    return [
        Figure(
            f"what the loader adds to an image, {order}",
            rate.added * 1e6,
            "us",
            note=f"of processor, on top of {median(rate.ceiling_work) * 1e6:.0f}; both sides fill images",
        )
        for order, rate in rates.items()
    ]


def resuming(dataset: str, records: int, batch: int, rounds: int = ROUNDS) -> Figure:
    """Measures the time until the first batch, when starting in the middle of an epoch."""
    from shardwright.loader import load

    middle = records // batch // 2
    taken, worked = [], []
    for _ in range(rounds):
        started = time.perf_counter(), time.process_time()
        batches = load(dataset, TRAIN, batch, shuffle=True, seed=0, repeat=True, order="exact", start_step=middle)
        next(iter(batches))
        taken.append(time.perf_counter() - started[0])
        worked.append(time.process_time() - started[1])
    return Figure(
        f"resuming exact in the middle of {records:,} records",
        median(taken),
        "s",
        AT_MOST,
        2,
        f"from load() to the first batch, median of {rounds}; {median(worked):.2g} s of processor",
    )


def _conversion(shape: tuple[int, ...]) -> float:
    """Returns the seconds of processor that this CPU, as the device, takes to make float32 of an image."""
    pixels = tf.zeros(shape, tf.uint8)
    convert = tf.function(partial(tf_ops.normalize, method="unit"))
    convert(pixels)
    return seconds(lambda: convert(pixels), 9, time.process_time) / shape[0]


def _ceiling_figures(rates: dict[str, Rate], conversion: float, note: str) -> list[Figure]:
    # The target is that of the faster representation.
    best, other = sorted(("masks", "mask bits"), key=lambda name: -rates[name].images)

    def figure(name: str, method: str, target: float | None, about: str = "") -> Figure:
        rate = rates[method]
        note = f"{rate.images:,.0f} images/s; processor {rate.work_share:.2f} x; {about}".rstrip("; ")
        return Figure(name, rate.share, "x", AT_LEAST if target else "", target, note)

    return [
        Figure("decoding alone", median(rates["ours"].ceiling), "1/s", note=note),
        figure("loader / decoding alone, no masks", "ours", 0.95, "uint8"),
        Figure(
            "loader / decoding alone, in pairs with a label",
            rates["ours"].share_of(rates["labeled"]),
            "x",
            note=f"{rates['labeled'].images:,.0f} images/s; batches of the loader's form",
        ),
        figure("TensorFlow's shortest way to the same", "shortest", None, "uint8, no check"),
        figure("loader / decoding alone, float32", "float32", 0.85, "made on the host"),
        # As the Trainer loads.
        figure(
            "loader / decoding alone, float32 made on the device",
            "ours",
            0.85,
            f"the device is not counted; if it is this CPU, it takes {conversion * 1e6:.0f} us of processor an image",
        ),
        figure("plain notebook loader, float32", "notebook float32", None),
        figure("plain notebook loader, uint8", "notebook uint8", None),
        figure("loader / decoding alone, masks of 4 classes", best, 0.8, f"as {_FORMS[best]}"),
        figure("the same, the other representation", other, None, f"as {_FORMS[other]}"),
    ]


def _single_files(
    paths: Sequence[str], rates: dict[str, Rate], batch: int, image_bytes: float, rounds: int
) -> list[Figure]:
    """Compares reading shards with reading files, both with a delay for every request and without."""
    slow = partial(single_files, paths, batch, delay=_DELAY)
    # Not in turns: a waiting loader reads ahead, and batches that are ready then would count as speed.
    reader = take_turns({"one": slow}, batch, 1, rounds=rounds, ready=1)["one"]
    many = take_turns({"many": partial(slow, at_once=_AT_ONCE)}, batch, _AT_ONCE, rounds=rounds)["many"]
    # Shards are read in large requests; this counts all of their delay, as if none overlapped with work.
    ours = 1 / (1 / rates["ours"].images + _DELAY * image_bytes / _REQUEST)
    waiting = f"{_DELAY * 1000:.0f} ms a request"
    return [
        Figure(
            f"shards / single files, {waiting}",
            ours / reader.images,
            "x",
            AT_LEAST,
            10,
            f"{ours:,.0f} images/s (requests of {_REQUEST >> 20} MB, none overlapped, by arithmetic) and "
            f"{reader.images:,.0f}",
        ),
        Figure(
            f"the same with {_AT_ONCE} reads of files in flight",
            ours / many.images,
            "x",
            note=f"files: {many.images:,.0f} images/s",
        ),
        Figure(
            "shards / single files, warm local disk",
            rates["ours"].share_of(rates["files"]),
            "x",
            note=f"files: {rates['files'].images:,.0f} images/s",
        ),
    ]


@contextmanager
def filling(height: int, width: int) -> Iterator[None]:
    """Makes the loader and the ceiling fill images with a number instead of decoding them, while the block runs."""

    def filled(encoded: tf.Tensor) -> tf.Tensor:
        # Different numbers, or TensorFlow would compute the image only once.
        return tf.fill([height, width, 3], tf.cast(tf.strings.length(encoded) % 256, tf.uint8))

    kept = {name: getattr(tf_ops, name) for name in ("decode", "decode_jpeg")}
    vars(tf_ops).update(dict.fromkeys(kept, filled))
    try:
        yield
    finally:
        vars(tf_ops).update(kept)


def notebook(files: Sequence[str], batch: int, *, floats: bool) -> Iterator[Any]:
    """Loads as most notebooks do: TFRecordDataset, parse, decode, divide by 255, batch, prefetch."""

    def example(record: tf.Tensor) -> tf.Tensor:
        parsed = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string)})
        image = tf.io.decode_jpeg(parsed["image/encoded"], channels=3)
        return tf.cast(image, tf.float32) / 255.0 if floats else image

    records = tf.data.TFRecordDataset(list(files), num_parallel_reads=tf.data.AUTOTUNE).repeat()
    images = records.map(example, num_parallel_calls=tf.data.AUTOTUNE)
    return iter(images.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE))


def shortest(files: Sequence[str], encoding: str, batch: int) -> Iterator[Any]:
    """Loads the loader's batches with TensorFlow's steps alone: shards in turns, shuffled, decoded as exactly.

    It checks nothing and names no bad record.
    """
    spec = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    decode = decoder(encoding)

    def example(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        parsed = tf.io.parse_single_example(record, spec)
        return decode(parsed["image/encoded"]), parsed["image/class/label"]

    def records(file: tf.Tensor) -> Any:
        return tf.data.TFRecordDataset(file, buffer_size=_READ_BUFFER)

    read = tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        records, cycle_length=len(files), block_length=_BLOCK_LENGTH
    )
    calls = calls_at_once(batch, threads_of_decoding())
    images = read.shuffle(_MIXED, seed=0).repeat().map(example, num_parallel_calls=calls, deterministic=False)
    return iter(images.batch(batch, drop_remainder=True).prefetch(_PREFETCHED))


def single_files(paths: Sequence[str], batch: int, *, delay: float = 0.0, at_once: int = 1) -> Iterator[Any]:
    """Loads images from separate files.

    Args:
        paths: the files.
        batch: images in a batch.
        delay: seconds that every read takes longer, as on an object store.
        at_once: reads in flight.
    """

    def read(path: tf.Tensor) -> tf.Tensor:
        if not delay:
            return tf.io.read_file(path)
        # `sleep` releases Python's lock, so that concurrent reads wait together.
        return tf.ensure_shape(tf.numpy_function(_slow_reader(delay), [path], tf.string), [])

    files = tf.data.Dataset.from_tensor_slices(list(paths)).repeat()
    read_ahead = files.map(read, num_parallel_calls=at_once)
    images = read_ahead.map(tf_ops.decode_jpeg, num_parallel_calls=tf.data.AUTOTUNE)
    options = tf.data.Options()
    # A waiting read occupies a thread; by default there is one per core, also with a larger `num_parallel_calls`.
    options.threading.private_threadpool_size = at_once + len(os.sched_getaffinity(0))
    return iter(images.batch(batch, drop_remainder=True).prefetch(_PREFETCHED).with_options(options))


def _slow_reader(delay: float) -> Callable[[bytes], bytes]:
    def read(path: bytes) -> bytes:
        time.sleep(delay)
        with open(path, "rb") as file:
            return file.read()

    return read
