"""The examples of an evaluation: with the features of slices, and without images that cannot be decoded.

ImageExampleGen checks headers only. Damaged data behind a sound header fails when pixels are decoded, and one such
image would end TFMA's run. ImageTransform rejects these images, but the Evaluator reads the examples before the
transform. So every image is decoded here at an eighth of its size, which also gives its brightness.

Shards are read as streams where the evaluation runs, on Beam's workers: no split is copied.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import tensorflow as tf
import tensorflow_model_analysis as tfma

from shardwright.dataset.manifest import AREA, MASK_PREFIX, mask_feature
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.dataset.shard_names import index_path
from shardwright.images import tf_ops
from shardwright.storage import map_threads
from shardwright.tfrecords.records import decode_example

# Features added for the slices of TFMA: the classes of an image, its folder, and its brightness.
CLASS, FOLDER, BRIGHTNESS = "slice/class", "slice/folder", "slice/brightness"
SLICES = (CLASS, FOLDER, BRIGHTNESS)

NO_CLASS = "(none)"
TOP, OTHERS = "(top)", "(others)"
# By the mean of all values, 0..255.
_BRIGHTNESSES = ((85.0, "dark"), (170.0, "medium"), (256.0, "bright"))
_MOST_FOLDERS = 20
_BATCH = 16
# Entropy decoding finds damage at every ratio; the smallest image costs least.
_RATIO = 8


def brightness(encoded: bytes) -> str | None:
    """Returns `dark`, `medium` or `bright`; `None` for a JPEG or PNG that cannot be decoded."""
    try:
        image = tf_ops.decode_jpeg(encoded, _RATIO) if tf_ops.is_jpeg(encoded) else tf_ops.decode(encoded)
    except tf.errors.InvalidArgumentError:
        return None
    mean = float(np.asarray(image).mean())
    return next(name for limit, name in _BRIGHTNESSES if mean < limit)


class LeftOut(NamedTuple):
    """An image that cannot be decoded: number of its shard, number of its record, its key."""

    shard: int
    record: int
    key: str


@dataclass(frozen=True)
class SlicedShards:
    """The shards of an evaluation. Picklable, so that Beam's workers read them.

    Attributes:
        examples: the dataset, without other shards.
        folders: folders that have a separate slice.
    """

    examples: ImageDataset
    folders: frozenset[str]

    @staticmethod
    def of(examples: ImageDataset, splits: Sequence[str]) -> SlicedShards:
        """Returns the shards of some splits."""
        manifest = examples.manifest
        shards = tuple(shard for split in splits for shard in manifest.shards if shard.split == split)
        indexes = {index_path(shard.path) for shard in shards}
        parts = {name: value for name, value in manifest.parts.items() if name in indexes}
        counts = Counter(_folder(key) for split in splits for key in examples.keys(split))
        order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        kept = frozenset(name for name, _ in order[:_MOST_FOLDERS])
        return SlicedShards(ImageDataset(examples.root, replace(manifest, shards=shards, parts=parts)), kept)

    def __len__(self) -> int:
        return len(self.examples.manifest.shards)

    def batches(self, number: int) -> Iterator[pa.RecordBatch | LeftOut]:
        """Reads a shard: batches of examples with the features of `SLICES`, and images that cannot be decoded.

        A batch follows from the shard alone: a model may answer differently, in the last bit, in another batch.
        """
        info = self.examples.manifest.shards[number]
        shard = LocatedShard(**vars(info), file=os.path.join(self.examples.root, info.path))
        records = ((key, payload) for key, _, payload in self.examples.placed_records(shard))
        rows: list[_Row] = []
        for record, (key, row) in enumerate(map_threads(self._row, records)):
            if row is None:
                yield LeftOut(number, record, key)
                continue
            rows.append(row)
            if len(rows) == _BATCH:
                yield _batch(rows)
                rows = []
        if rows:
            yield _batch(rows)

    def _row(self, record: tuple[str, bytes]) -> tuple[str, _Row | None]:
        key, serialized = record
        example = decode_example(serialized)
        encoded: Any = example["image/encoded"]
        bright = brightness(encoded[0])
        if bright is None:
            return key, None
        folder = _folder(key)
        shown = folder if folder in self.folders else OTHERS
        classes = self.examples.manifest.classes
        if any(name.startswith(MASK_PREFIX) for name in example):
            areas = {name: example.get(mask_feature(name, AREA)) for name in classes}
            has = [name for name, area in areas.items() if area is not None and len(area) and area[0]]
        else:
            labels: Any = example.get("image/class/label", [])
            has = [classes[label] for label in dict.fromkeys(labels)]
        return key, _Row(serialized, has or [NO_CLASS], shown, bright)


class _Row(NamedTuple):
    serialized: bytes
    classes: list[str]
    folder: str
    brightness: str


def _batch(rows: Sequence[_Row]) -> pa.RecordBatch:
    """Returns examples as TFMA reads them: the serialized bytes for the model, features for slices."""
    columns = {
        CLASS: [[name.encode() for name in row.classes] for row in rows],
        FOLDER: [[row.folder.encode()] for row in rows],
        BRIGHTNESS: [[row.brightness.encode()] for row in rows],
        tfma.constants.ARROW_INPUT_COLUMN: [[row.serialized] for row in rows],
    }
    kind = pa.large_list(pa.large_binary())
    return pa.RecordBatch.from_arrays([pa.array(values, kind) for values in columns.values()], list(columns))


def _folder(key: str) -> str:
    parent = str(PurePosixPath(key).parent)
    return TOP if parent == "." else parent
