"""Compares the ways to store images: bytes on the disk, images a second, and the rate of reading from which each pays.

A sample of the images of a dataset is encoded in each way and decoded again by all threads. Ways take turns, so that
other work on the machine affects all of them alike. An image that is stored as plain values needs no decoding, but so
many more bytes that slow storage cannot deliver them.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image

from shardwright.dataset.stored_image import encode_image
from shardwright.images import tf_ops
from shardwright.loader.error_context import threads_of_decoding

STORED = "as stored"
# Images of the sample, and decodings of each in a turn, so that a turn takes long enough to be measured.
_SAMPLE, _TIMES = 48, 4
# These keep all values of the pixels; a JPEG of a JPEG loses some.
_LOSSLESS = ("raw", "png", "png, optimize", "webp, lossless")


@dataclass(frozen=True)
class EncodingRow:
    """One way to store the images.

    Attributes:
        name: `as stored`, `raw`, `png`, `jpeg, quality 90, chroma 420`, …
        bytes: bytes of an image, on average.
        images: images a second that all threads decode; `None` where the loader has no decoder.
        lossless: whether pixels stay as they are stored now.
        pays: bytes a second of reading from which it gives more images a second than the images as they are stored; 0:
            always; infinite: never.
        pays_below: bytes a second up to which it does; infinite where there is no such limit.
    """

    name: str
    bytes: float
    images: float | None
    lossless: bool
    pays: float
    pays_below: float = math.inf


def compare_encodings(encoded: Sequence[bytes], decode: Callable[[Any], Any], *, rounds: int) -> list[EncodingRow]:
    """Measures the ways to store some images.

    Args:
        encoded: the images as they are stored, of one size.
        decode: the op that decodes them.
        rounds: how often each way is measured.

    Returns:
        A row for each way, `as stored` first.
    """
    sample = list(encoded[:_SAMPLE])
    pictures = [Image.fromarray(decode(tf.constant(data)).numpy()) for data in sample]
    height, width = pictures[0].height, pictures[0].width
    ways: dict[str, tuple[list[bytes], Callable[[Any], Any] | None]] = {
        STORED: (sample, decode),
        "raw": (_all(pictures, "raw"), lambda data: tf_ops.decode_raw(data, height, width)),
        "png": (_all(pictures, "png"), tf_ops.decode),
        "png, optimize": (_all(pictures, "png", optimize=True), tf_ops.decode),
        "webp, lossless": ([_webp(picture) for picture in pictures], None),
    }
    for quality, chroma in ((95, 444), (90, 444), (90, 420), (75, 420), (60, 420)):
        made = _all(pictures, "jpeg", quality=quality, chroma=chroma)
        ways[f"jpeg, quality {quality}, chroma {chroma}"] = made, tf_ops.decode_jpeg
    rates: dict[str, list[float]] = {name: [] for name in ways}
    turns = {name: partial(_decode_all, data, op) for name, (data, op) in ways.items() if op is not None}
    for turn in turns.values():
        turn()  # Traced and warm before the clock starts.
    for _ in range(rounds):
        for name, turn in turns.items():
            started = time.perf_counter()
            count = turn()
            rates[name].append(count / (time.perf_counter() - started))
    measured = {
        name: (sum(map(len, data)) / len(data), median(rates[name]) if rates[name] else 0.0)
        for name, (data, _) in ways.items()
    }
    stored = measured[STORED]
    return [
        EncodingRow(name, row[0], row[1] or None, name in (*_LOSSLESS, STORED), *pays(row, stored))
        for name, row in measured.items()
    ]


def pays(row: tuple[float, float], stored: tuple[float, float]) -> tuple[float, float]:
    """Returns between which rates of reading a way gives more images a second than another.

    Images a second are the lower one of what is decoded and what is read.

    Args:
        row: bytes of an image and images a second that are decoded.
        stored: the same of the other way.

    Returns:
        Bytes a second from which and up to which; infinite from where it never does.
    """
    (size, rate), (stored_size, stored_rate) = row, stored
    if size <= stored_size:
        if rate >= stored_rate:
            return (0.0, math.inf) if row != stored else (math.inf, math.inf)
        return (0.0, rate * stored_size) if size < stored_size and rate else (math.inf, math.inf)
    return (stored_rate * size, math.inf) if rate > stored_rate else (math.inf, math.inf)


def choose_encoding(rows: Sequence[EncodingRow], reading: float) -> tuple[str, str]:
    """Returns the way that gives the most images a second without changing a pixel, and the reason.

    Args:
        rows: the result of `compare_encodings`.
        reading: bytes a second that storage delivers.
    """
    stored = rows[0]

    def given(row: EncodingRow) -> float:
        return min(row.images or 0.0, reading / row.bytes)

    best = max((row for row in rows if row.lossless), key=lambda row: (given(row), row is stored))
    amount = f"at {reading / 1e6:,.0f} MB/s of reading (--read-rate)"
    if best is stored:
        return STORED, f"{given(stored):,.0f} images/s {amount}; no lossless way gives more"
    more = f"{given(best):,.0f} instead of {given(stored):,.0f} images/s {amount}"
    return best.name, f"{more}, for {best.bytes / stored.bytes:.1f} x the bytes on the disk"


def _decode_all(encoded: Sequence[bytes], decode: Callable[[Any], Any]) -> int:
    held = tf.data.Dataset.from_tensor_slices(np.array(encoded, object)).repeat(_TIMES)
    decoded = held.map(decode, num_parallel_calls=threads_of_decoding(), deterministic=False)
    return int(decoded.reduce(np.int64(0), lambda count, *_: count + 1).numpy())


def _all(pictures: Sequence[Image.Image], encoding: str, **options: Any) -> list[bytes]:
    return [encode_image(picture, encoding, **options)[0] for picture in pictures]


def _webp(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "WEBP", lossless=True)
    return file.getvalue()
