"""Leaves out of an evaluation what cannot be decoded: one such image would end TFMA's run, and with it the pipeline.

ImageExampleGen checks headers; entropy data that is damaged behind a sound header is met when pixels are made.
ImageTransform rejects such images with a row in its ledger, but the Evaluator reads what came before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from shardwright import pixels
from shardwright.dataset import Dataset
from shardwright.records import RecordWriter, decode_example
from shardwright.storage import in_parallel

# Damage shows while the entropy coding is undone, which every ratio does whole; the smallest one costs least.
_RATIO = 8


def can_be_decoded(encoded: bytes) -> bool:
    """Whether TensorFlow makes pixels of a JPEG or PNG."""
    try:
        if pixels.is_jpeg(encoded):
            pixels.decode_jpeg(encoded, _RATIO)
        else:
            pixels.decode(encoded)
    except tf.errors.InvalidArgumentError:
        return False
    return True


def undecodable(examples: Dataset, splits: Sequence[str]) -> list[str]:
    """Keys of the images of some splits that cannot be decoded, in the order of the records."""
    records = (record for split in splits for record in examples.records(split))
    return [key for key, good in in_parallel(_judged, records) if not good]


def write_without(examples: Dataset, splits: Sequence[str], keys: Sequence[str], folder: Path) -> None:
    """Writes the examples of some splits, but for those of the given keys, as TFX reads them: `Split-<name>/*`."""
    left_out = frozenset(keys)
    for split in splits:
        target = folder / f"Split-{split}"
        target.mkdir(parents=True)
        with open(target / "data-00000-of-00001.tfrecord", "wb") as file:
            writer = RecordWriter(file)
            for key, record in examples.records(split):
                if key not in left_out:
                    writer.write(record)


def _judged(record: tuple[str, bytes]) -> tuple[str, bool]:
    key, serialized = record
    encoded: Any = decode_example(serialized)["image/encoded"]
    return key, can_be_decoded(encoded[0])
