"""How fast the loader is, beside nothing but decoding and beside what is used elsewhere.

Datasets to load from: photographs of the size that models learn from, with and without masks; many tiny records.

The ways of loading that it is compared with.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
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

from benchmarks.figures import AT_LEAST, AT_MOST, Figure
from benchmarks.photographs import Photographs, photographs, warm
from shardwright.config import parse_config
from shardwright.dataset.manifest import SINGLE
from shardwright.dataset.reader import ImageDataset
from shardwright.fingerprint import fingerprint
from shardwright.images import tf_ops
from shardwright.ingest import ingest
from shardwright.loader.error_context import calls_at_once, threads_of_decoding
from shardwright.loader.profile import (
    ROUNDS,
    Rate,
    ceiling,
    decoder,
    encoded_images,
    loading_memory,
    take_turns,
    training,
)
from shardwright.staging import commit, staging
from shardwright.tfrecords.encode import encode_example

HEIGHT, WIDTH = 350, 525
RECORDS = 100_000
_SHARDS = 16
# As the loader reads.
_READ_BUFFER, _BLOCK_LENGTH, _MIXED = 256 << 10, 16, 1024
_PREFETCHED = 2
_TINY = 32
_LABELS = ("even", "odd")


def loader_datasets(
    folder: Path, images: int, height: int = HEIGHT, width: int = WIDTH
) -> tuple[Photographs, str, str]:
    """The same photographs as two datasets of one split, or what an earlier call has made of them.

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
    labelled = _dataset(source, folder / f"labelled-{images}-{height}x{width}", "classification", str(table))
    masked = _dataset(source, folder / f"masked-{images}-{height}x{width}", "segmentation", source.masks)
    return source, labelled, masked


def _dataset(source: Photographs, out: Path, task: str, labels: str) -> str:
    raw = {
        "task": task,
        "input": {"images": source.images, "labels": {"path": labels}},
        "split": {"train": 1.0},
        "shards": {"count": _SHARDS},
        "evaluator": {"split": "train"},
    }
    # The output is left alone where it is finished and of the same images.
    ingest(parse_config(raw, base="/"), out, quiet=True)
    return str(out)


def many_records(folder: Path, records: int = RECORDS) -> str:
    """A dataset of so many tiny pictures in sixteen shards, or the one that an earlier call has made.

    Its pictures are four different ones: what is asked of it is how long it takes to find a place in it.
    """
    root = folder / f"records-{records}"
    if not (root / "manifest.json").exists():
        shutil.rmtree(root, ignore_errors=True)
        planned = [staging.PlannedShard("train", number, _SHARDS) for number in range(_SHARDS)]
        place = staging.Staging.open(folder / "staging", fingerprint(records))
        for shard in planned:
            place.write_shard(shard, list(_tiny_records(range(shard.number, records, _SHARDS))))
        features = {"image/encoded": "bytes", "image/key": "bytes"}
        features |= {f"image/{side}": "int64" for side in ("height", "width")} | {"image/class/label": "int64"}
        plan = commit.DatasetPlan(
            kind="ingest",
            task="classification",
            classes=_LABELS,
            labels=SINGLE,
            recipe={"tiny": records},
            parent=hashlib.sha256(b"tiny").hexdigest(),
            features=features,
            inputs=records,
            shards=tuple(planned),
        )
        commit.commit(place, plan, root, {})
        shutil.rmtree(folder / "staging", ignore_errors=True)
    return str(root)


def _tiny_records(numbers: range) -> Iterator[staging.RecordResult]:
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
        yield staging.RecordResult(key, encode_example(example))


def _tiny_picture(seed: int) -> bytes:
    cells = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(cells).resize((_TINY, _TINY)).save(out, "JPEG")
    return out.getvalue()


TRAIN = "train"
BATCH = 32
# Of an object store: what a request takes, and how much one brings of a shard.
_DELAY, _REQUEST = 0.02, 4 << 20
_AT_ONCE = 16
_FORMS = {"masks": "bytes of 0 and 1", "mask bits": "a bit a class, to be unpacked on the device"}


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
    source, labelled, masked = loader_datasets(folder, images, *size)
    files = [shard.file for shard in ImageDataset.open(labelled).shards(TRAIN)]
    warm([*source.paths, *files, *(shard.file for shard in ImageDataset.open(masked).shards(TRAIN))])
    encoded = encoded_images(ImageDataset.open(labelled), TRAIN)
    rates = take_turns(
        {
            "ours": lambda: training(labelled, batch),
            "float32": lambda: training(labelled, batch, normalize="unit", dtype="float32"),
            "notebook float32": partial(notebook, files, batch, floats=True),
            "notebook uint8": partial(notebook, files, batch, floats=False),
            "shortest": partial(shortest, files, "jpeg", batch),
            "labelled": partial(ceiling, encoded, "jpeg", batch, labelled=True),
            "masks": lambda: training(masked, batch),
            "mask bits": lambda: training(masked, batch, masks="bits"),
            "exact": lambda: training(labelled, batch, order="exact"),
            "files": partial(single_files, source.paths, batch),
        },
        batch,
        max(1, images // batch),
        ceiling=partial(ceiling, encoded, "jpeg", batch),
        rounds=rounds,
    )
    many = many_records(folder, records)
    return [
        *_ceiling_figures(rates, f"{images} images of {size[0]}x{size[1]}, {source.bytes / images / 1e3:.0f} KB"),
        *added(labelled, encoded, size, batch, rounds),
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
    """What the loader adds to each image, told without the scatter of decoding: filling takes its place on both sides.

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
            note=f"of processor, beside {median(rate.ceiling_work) * 1e6:.0f}; both sides fill images, and decode none",
        )
        for order, rate in rates.items()
    ]


def resuming(dataset: str, records: int, batch: int, rounds: int = ROUNDS) -> Figure:
    """The time from asking for the middle of an epoch to its first batch."""
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


def _ceiling_figures(rates: dict[str, Rate], note: str) -> list[Figure]:
    # The promise is made for whichever representation is the faster one.
    best, other = sorted(("masks", "mask bits"), key=lambda name: -rates[name].images)

    def figure(name: str, method: str, target: float | None, about: str = "") -> Figure:
        rate = rates[method]
        told = f"{rate.images:,.0f} images/s; processor {rate.work_share:.2f} x; {about}".rstrip("; ")
        return Figure(name, rate.share, "x", AT_LEAST if target else "", target, told)

    return [
        Figure("decoding alone", median(rates["ours"].ceiling), "1/s", note=note),
        figure("loader / decoding alone, no masks", "ours", 0.95, "uint8"),
        Figure(
            "loader / decoding alone, in pairs with a label",
            rates["ours"].share_of(rates["labelled"]),
            "x",
            note=f"{rates['labelled'].images:,.0f} images/s; batches of the loader's form",
        ),
        figure("tf.TensorFlow's shortest way to the same", "shortest", None, "uint8, no check"),
        figure("the loader as float32", "float32", None),
        figure("plain notebook loader, float32", "notebook float32", None),
        figure("plain notebook loader, uint8", "notebook uint8", None),
        figure("loader / decoding alone, masks of 4 classes", best, 0.6, f"as {_FORMS[best]}"),
        figure("the same, the other representation", other, None, f"as {_FORMS[other]}"),
    ]


def _single_files(
    paths: Sequence[str], rates: dict[str, Rate], batch: int, image_bytes: float, rounds: int
) -> list[Figure]:
    """Reading shards and reading files, both with a delay for every request; and both without."""
    slow = partial(single_files, paths, batch, delay=_DELAY)
    # One after the other: a loader that is not asked reads ahead, and what it then has ready would count as speed.
    one = take_turns({"one": slow}, batch, 1, rounds=rounds, ready=1)["one"]
    many = take_turns({"many": partial(slow, at_once=_AT_ONCE)}, batch, _AT_ONCE, rounds=rounds)["many"]
    # What is asked of a shard comes in large parts; here none of that waiting is hidden behind any work.
    ours = 1 / (1 / rates["ours"].images + _DELAY * image_bytes / _REQUEST)
    waiting = f"{_DELAY * 1000:.0f} ms a request"
    return [
        Figure(
            f"shards / single files, {waiting}",
            ours / one.images,
            "x",
            AT_LEAST,
            10,
            f"{ours:,.0f} images/s (requests of {_REQUEST >> 20} MB, none overlapped, by arithmetic) beside "
            f"{one.images:,.0f}",
        ),
        Figure(
            f"the same with {_AT_ONCE} reads of files in flight",
            ours / many.images,
            "x",
            note=f"beside {many.images:,.0f} images/s",
        ),
        Figure(
            "shards / single files, warm local disk",
            rates["ours"].share_of(rates["files"]),
            "x",
            note=f"beside {rates['files'].images:,.0f} images/s",
        ),
    ]


@contextmanager
def filling(height: int, width: int) -> Iterator[None]:
    """Whatever is started meanwhile, the loader and the ceiling alike, fills images with a number and decodes none."""

    def filled(encoded: tf.Tensor) -> tf.Tensor:
        # Not the same for all images, or tf.TensorFlow would make it once.
        return tf.fill([height, width, 3], tf.cast(tf.strings.length(encoded) % 256, tf.uint8))

    kept = {name: getattr(tf_ops, name) for name in ("decode", "decode_jpeg")}
    vars(tf_ops).update(dict.fromkeys(kept, filled))
    try:
        yield
    finally:
        vars(tf_ops).update(kept)


def notebook(files: Sequence[str], batch: int, *, floats: bool) -> Iterator[Any]:
    """What most notebooks do: TFRecordDataset, parse, decode, divide by 255, batch, prefetch."""

    def example(record: tf.Tensor) -> tf.Tensor:
        parsed = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string)})
        image = tf.io.decode_jpeg(parsed["image/encoded"], channels=3)
        return tf.cast(image, tf.float32) / 255.0 if floats else image

    records = tf.data.TFRecordDataset(list(files), num_parallel_reads=tf.data.AUTOTUNE).repeat()
    images = records.map(example, num_parallel_calls=tf.data.AUTOTUNE)
    return iter(images.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE))


def shortest(files: Sequence[str], encoding: str, batch: int) -> Iterator[Any]:
    """The least that loads as the loader does: shards in turns, shuffled, decoded as exactly, in the same batches.

    tf.TensorFlow's own steps and nothing else: no check, and nothing names a record that is wrong.
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
    """Images read one by one from files of their own.

    Args:
        paths: the files.
        batch: images in a batch.
        delay: seconds that every read takes longer, as on an object store.
        at_once: reads in flight.
    """

    def read(path: tf.Tensor) -> tf.Tensor:
        if not delay:
            return tf.io.read_file(path)
        # `sleep` holds no lock, so that reads in flight wait together.
        return tf.ensure_shape(tf.numpy_function(_slow_reader(delay), [path], tf.string), [])

    files = tf.data.Dataset.from_tensor_slices(list(paths)).repeat()
    read_ahead = files.map(read, num_parallel_calls=at_once)
    images = read_ahead.map(tf_ops.decode_jpeg, num_parallel_calls=tf.data.AUTOTUNE)
    options = tf.data.Options()
    # A read that waits keeps a thread; by default there is one a core, whatever `num_parallel_calls` says.
    options.threading.private_threadpool_size = at_once + len(os.sched_getaffinity(0))
    return iter(images.batch(batch, drop_remainder=True).prefetch(_PREFETCHED).with_options(options))


def _slow_reader(delay: float) -> Callable[[bytes], bytes]:
    def read(path: bytes) -> bytes:
        time.sleep(delay)
        with open(path, "rb") as file:
            return file.read()

    return read
