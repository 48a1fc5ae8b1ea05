"""The ways of loading that `shardwright bench loader` compares, and the loader's work in single steps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright import pixels
from shardwright.loader.naming import calls_at_once, threads_of_decoding

Tensor = Any
# What a damaged record ends in.
LoadingError = tf.errors.OpError
# As the loader reads.
_READ_BUFFER, _IN_A_ROW, _MIXED = 256 << 10, 16, 1024
_READY = 2


def decoder(encoding: str) -> Callable[[Tensor], Tensor]:
    """The op that decodes what is stored: `jpeg`, `tensor`, or anything that `pixels.decode` takes."""
    return {"jpeg": pixels.decode_jpeg, "tensor": pixels.parse_tensor}.get(encoding, pixels.decode)


def ceiling(encoded: Sequence[bytes], encoding: str, batch: int, *, labelled: bool = False) -> Iterator[Any]:
    """Nothing but decoding: the bytes are in memory, all threads decode, batches are made as the loader makes them.

    Args:
        encoded: the images.
        encoding: how they are stored.
        batch: images in a batch.
        labelled: put a number beside each image, so that batches have the form of the loader's.
    """
    decode = decoder(encoding)
    held: Any = np.array(encoded, object)
    images = tf.data.Dataset.from_tensor_slices((held, np.zeros(len(held), np.int32)) if labelled else held).repeat()
    # TensorFlow makes one op of `map` and `batch` here; so does the loader, with as many calls at a time.
    calls = calls_at_once(batch, threads_of_decoding())
    images = images.map(
        lambda data, *label: (decode(data), *label) if label else decode(data), calls, deterministic=False
    )
    return iter(images.batch(batch, drop_remainder=True).prefetch(_READY))


@contextmanager
def filling(height: int, width: int) -> Iterator[None]:
    """Whatever is started meanwhile, the loader and the ceiling alike, fills images with a number and decodes none."""

    def filled(encoded: Tensor) -> Tensor:
        # Not the same for all images, or TensorFlow would make it once.
        return tf.fill([height, width, 3], tf.cast(tf.strings.length(encoded) % 256, tf.uint8))

    kept = {name: getattr(pixels, name) for name in ("decode", "decode_jpeg")}
    vars(pixels).update(dict.fromkeys(kept, filled))
    try:
        yield
    finally:
        vars(pixels).update(kept)


def notebook(files: Sequence[str], batch: int, *, floats: bool) -> Iterator[Any]:
    """What most notebooks do: TFRecordDataset, parse, decode, divide by 255, batch, prefetch."""

    def example(record: Tensor) -> Tensor:
        parsed = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string)})
        image = tf.io.decode_jpeg(parsed["image/encoded"], channels=3)
        return tf.cast(image, tf.float32) / 255.0 if floats else image

    records = tf.data.TFRecordDataset(list(files), num_parallel_reads=tf.data.AUTOTUNE).repeat()
    images = records.map(example, num_parallel_calls=tf.data.AUTOTUNE)
    return iter(images.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE))


def shortest(files: Sequence[str], encoding: str, batch: int) -> Iterator[Any]:
    """The least that loads as the loader does: shards in turns, shuffled, decoded as exactly, in the same batches.

    TensorFlow's own steps and nothing else: no check, and nothing names a record that is wrong.
    """
    spec = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    decode = decoder(encoding)

    def example(record: Tensor) -> tuple[Tensor, Tensor]:
        parsed = tf.io.parse_single_example(record, spec)
        return decode(parsed["image/encoded"]), parsed["image/class/label"]

    def records(file: Tensor) -> Any:
        return tf.data.TFRecordDataset(file, buffer_size=_READ_BUFFER)

    read = tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        records, cycle_length=len(files), block_length=_IN_A_ROW
    )
    calls = calls_at_once(batch, threads_of_decoding())
    images = read.shuffle(_MIXED, seed=0).repeat().map(example, num_parallel_calls=calls, deterministic=False)
    return iter(images.batch(batch, drop_remainder=True).prefetch(_READY))


def single_files(paths: Sequence[str], batch: int, *, delay: float = 0.0, at_once: int = 1) -> Iterator[Any]:
    """Images read one by one from files of their own.

    Args:
        paths: the files.
        batch: images in a batch.
        delay: seconds that every read takes longer, as on an object store.
        at_once: reads in flight.
    """

    def read(path: Tensor) -> Tensor:
        if not delay:
            return tf.io.read_file(path)
        # `sleep` holds no lock, so that reads in flight wait together.
        return tf.ensure_shape(tf.numpy_function(_slow_reader(delay), [path], tf.string), [])

    files = tf.data.Dataset.from_tensor_slices(list(paths)).repeat()
    read_ahead = files.map(read, num_parallel_calls=at_once)
    images = read_ahead.map(pixels.decode_jpeg, num_parallel_calls=tf.data.AUTOTUNE)
    options = tf.data.Options()
    # A read that waits keeps a thread; by default there is one a core, whatever `num_parallel_calls` says.
    options.threading.private_threadpool_size = at_once + len(os.sched_getaffinity(0))
    return iter(images.batch(batch, drop_remainder=True).prefetch(_READY).with_options(options))


def _slow_reader(delay: float) -> Callable[[bytes], bytes]:
    def read(path: bytes) -> bytes:
        time.sleep(delay)
        with open(path, "rb") as file:
            return file.read()

    return read


def reading_work(files: Sequence[str]) -> Callable[[], object]:
    """Reads all records and does nothing with them."""

    def records(file: Tensor) -> Any:
        return tf.data.TFRecordDataset(file, buffer_size=_READ_BUFFER)

    return _all_of(tf.data.Dataset.from_tensor_slices(list(files)).interleave(records, cycle_length=len(files)))


def parsing_work(records: Sequence[bytes], features: dict[str, str]) -> Callable[[], object]:
    """Parses records that are in memory.

    Args:
        records: serialized examples.
        features: name -> `bytes`, of which there is one, or `int64`, of which there is any number.
    """
    spec = {
        name: tf.io.FixedLenFeature([], tf.string) if kind == "bytes" else tf.io.RaggedFeature(tf.int64)
        for name, kind in features.items()
    }
    held = tf.data.Dataset.from_tensor_slices(np.array(records, object))
    return _all_of(held.map(lambda record: tf.io.parse_single_example(record, spec)))


def decoding_work(encoded: Sequence[bytes], encoding: str) -> Callable[[], object]:
    """Decodes images that are in memory."""
    held = tf.data.Dataset.from_tensor_slices(np.array(encoded, object))
    return _all_of(held.map(decoder(encoding), num_parallel_calls=tf.data.AUTOTUNE, deterministic=False))


def _all_of(elements: Any) -> Callable[[], object]:
    """Takes all elements without handing any to Python."""
    return lambda: elements.reduce(np.int64(0), lambda count, *_: count + 1).numpy()
