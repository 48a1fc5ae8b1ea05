"""The examples of an evaluation: with the features of slices, and without images that cannot be decoded.

ImageExampleGen checks headers only. Damaged data behind a sound header fails when pixels are decoded, and one such
image would end TFMA's run. ImageTransform rejects these images, but the Evaluator reads the examples before the
transform. So every image is decoded here at an eighth of its size, which also gives its brightness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright.dataset.reader import ImageDataset
from shardwright.images import tf_ops
from shardwright.storage import map_threads
from shardwright.tfrecords.encode import byte_strings, encode_example
from shardwright.tfrecords.records import RecordWriter, decode_example

# Features added for the slices of TFMA: the classes of an image, its folder, and its brightness.
CLASS, FOLDER, BRIGHTNESS = "slice/class", "slice/folder", "slice/brightness"
SLICES = (CLASS, FOLDER, BRIGHTNESS)

NO_CLASS = "(none)"
TOP, OTHERS = "(top)", "(others)"
# By the mean of all values, 0..255.
_BRIGHTNESSES = ((85.0, "dark"), (170.0, "medium"), (256.0, "bright"))
_MOST_FOLDERS = 20
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


def write_sliced(examples: ImageDataset, splits: Sequence[str], folder: Path) -> list[str]:
    """Writes the examples of some splits with the features of `SLICES`, in TFX's layout: `Split-<name>/*`.

    Returns:
        Keys of the images that cannot be decoded and were left out, in the order of the records.
    """
    left_out = []
    folders = _folders(key for split in splits for key in examples.keys(split))
    classes = examples.manifest.classes

    def sliced(record: tuple[str, bytes]) -> tuple[str, bytes | None]:
        key, serialized = record
        example = decode_example(serialized)
        encoded: Any = example["image/encoded"]
        bright = brightness(encoded[0])
        if bright is None:
            return key, None
        values = {CLASS: _classes(example, classes), FOLDER: [folders[_folder(key)]], BRIGHTNESS: [bright]}
        added = {name: byte_strings([text.encode() for text in texts]) for name, texts in values.items()}
        # Two concatenated protobuf messages are one message with the fields of both.
        return key, serialized + encode_example(added)

    for split in splits:
        target = folder / f"Split-{split}"
        target.mkdir(parents=True)
        with open(target / "data-00000-of-00001.tfrecord", "wb") as file:
            writer = RecordWriter(file)
            for key, record in map_threads(sliced, examples.records(split)):
                if record is None:
                    left_out.append(key)
                else:
                    writer.write(record)
    return left_out


def _classes(example: Any, classes: Sequence[str]) -> list[str]:
    if any(name.startswith("image/segmentation/") for name in example):
        areas = {name: example.get(f"image/segmentation/{name}/area") for name in classes}
        shown = [name for name, area in areas.items() if area is not None and len(area) and area[0]]
    else:
        shown = [classes[label] for label in dict.fromkeys(example.get("image/class/label", []))]
    return shown or [NO_CLASS]


def _folder(key: str) -> str:
    parent = str(PurePosixPath(key).parent)
    return TOP if parent == "." else parent


def _folders(keys: Iterator[str]) -> dict[str, str]:
    """Returns folder -> name of its slice: its own name for the largest folders, one name for all others."""
    counts = Counter(_folder(key) for key in keys)
    kept = {name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_FOLDERS]}
    return {name: name if name in kept else OTHERS for name in counts}
