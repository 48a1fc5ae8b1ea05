"""From a dataset on disk to batches: `tf.data`, interleaved over the shards of this host, in fixed shapes.

What is read is what the manifest names; sizes of the shard files are compared with it before the first record, so
that a cut shard is refused at once and by name. Records are shuffled while they are still encoded (a buffer of a
thousand JPEGs is tens of megabytes, of decoded images gigabytes), and normalized after batching, in one pass.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright import pixels
from shardwright.config.training import AUGMENTATIONS
from shardwright.dataset import Dataset, LocatedShard
from shardwright.errors import DatasetError, UsageError
from shardwright.manifest import IGNORED, MULTI, NONE
from shardwright.metrics import UNCOUNTED
from shardwright.records import decode_example

Tensor = Any

STATISTICS_FILE = "statistics.json"
# Fixed, not tuned: the order of the records depends on it, and it must be the same on every machine.
_SHARDS_AT_ONCE = 16
_READ_BUFFER = 1 << 20
_LABEL = "image/class/label"
# How far `brightness` moves a pixel at most, on the 0..255 scale.
_BRIGHTNESS = 51.0


def load(
    dataset_dir: str | os.PathLike[str],
    split: str,
    batch_size: int,
    *,
    normalize: str = "unit",
    augment: Sequence[str] = (),
    shuffle: bool = False,
    seed: int | None = None,
    repeat: bool = False,
    drop_remainder: bool = False,
    deterministic: bool = True,
    shuffle_buffer: int = 1024,
    host: int = 0,
    hosts: int = 1,
    statistics: Mapping[str, Any] | None = None,
) -> Any:
    """Reads a split as batches of images and targets.

    Args:
        dataset_dir: folder of a dataset whose images have one size: what the transform wrote, or an ingested set of
            equal images.
        split: name of the split.
        batch_size: images in a batch.
        normalize: what `pixels.normalize` does to the pixels: `unit`, `imagenet_torch`, `imagenet_caffe`, `dataset` or
            `none`.
        augment: any of `flip_left_right`, `flip_up_down`, `rotate90` (square images only), `brightness` (a shift of up
            to a fifth of the range). Masks follow. What happens to an image depends on `seed` and its position in
            the stream: with `repeat` every epoch differs.
        shuffle: mix the order, anew every epoch: the shards, then the records within a buffer.
        seed: the same seed gives the same order and the same augmentation; `None` draws one.
        repeat: never end. Batches then run across the end of an epoch and are all full.
        drop_remainder: leave out a last batch that is not full, so that the batch dimension is static.
        deterministic: keep the order fixed. `False` lets whatever is ready first go first.
        shuffle_buffer: records that are mixed at a time.
        host: number of this host, from 0. It reads shards `host`, `host + hosts`, ...
        hosts: number of hosts.
        statistics: mean and std for `normalize="dataset"`; by default those beside the dataset.

    Returns:
        A `tf.data.Dataset` of (image, target). The image is float32 [B, H, W, 3]. The target is uint8 [B, H, W, C] of 0
        and 1 for segmentation (masks may overlap) and int32 [B] for classification; where an image may have several
        classes, float32 [B, C] of 0 and 1. For images without labels it is int64 [B]: the position of the image in
        `Dataset.keys(split)`. Where the dataset marks pixels to be ignored (`Manifest.ignores`), they are
        `metrics.UNCOUNTED` (255) in all classes of the target.

    Raises:
        DatasetError: there is no dataset, a shard is missing or damaged, or there is no such split.
        UsageError: the options do not fit each other or the dataset.
        tf.errors.InvalidArgumentError: while iterating: a damaged record, an image of another size, or one without a
            label. The message names the shard, and the key where there is one.
    """
    dataset = Dataset.open(dataset_dir)
    shards = _host_shards(dataset, split, host, hosts)
    if batch_size < 1 or shuffle_buffer < 1:
        raise UsageError(f"batch_size {batch_size} and shuffle_buffer {shuffle_buffer} must be at least 1.")
    size = image_size(dataset)
    _check_augment(augment, size)
    if normalize == "dataset" and statistics is None:
        statistics = dataset_statistics(dataset_dir)
    mean, std = (statistics["mean"], statistics["std"]) if statistics else (None, None)
    seed = secrets.randbits(31) if seed is None else seed

    records = _read(dataset, shards, shuffle_seed=seed if shuffle else None, buffer=shuffle_buffer)
    if repeat:
        records = records.repeat()
    parse = _parser(dataset, size)
    if augment:

        def parse_and_augment(count: Tensor, record: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            image, target = parse(*record)
            return _augmented(image, target, augment, seed, count)

        examples = records.enumerate().map(parse_and_augment, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        examples = records.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    batches = examples.batch(batch_size, drop_remainder=drop_remainder).map(
        lambda image, target: (pixels.normalize(image, normalize, mean, std), target),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    options = tf.data.Options()
    options.deterministic = deterministic
    # Whole batches are handed on: two are enough to keep the reader busy, and the memory stays bounded.
    return batches.prefetch(2).with_options(options)


def steps_per_epoch(
    dataset_dir: str | os.PathLike[str], split: str, batch_size: int, *, drop_remainder: bool = False, hosts: int = 1
) -> int:
    """Batches that every host can take from one epoch, by the manifest's counts.

    Args:
        dataset_dir: folder of the dataset.
        split: name of the split.
        batch_size: images in a batch of one host.
        drop_remainder: do not count a last batch that is not full.
        hosts: number of hosts; the one with the fewest records decides.

    Raises:
        DatasetError: there is no such dataset or split.
        UsageError: there are fewer shards than hosts, or `batch_size` is less than 1.
    """
    if batch_size < 1:
        raise UsageError(f"batch_size is {batch_size}; it must be at least 1.")
    dataset = Dataset.open(dataset_dir)
    counts = [sum(shard.records for shard in _host_shards(dataset, split, host, hosts)) for host in range(hosts)]
    return min(counts) // batch_size if drop_remainder else -(-min(counts) // batch_size)


def dataset_statistics(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the figures that the transform measured over the train split.

    Args:
        directory: a transformed dataset, or the TransformGraph made with it.

    Returns:
        `mean` and `std` per channel (RGB, 0..255 scale), `class_frequency` and `pixel_frequency` by class name, `size`
        [height, width], `policy`.

    Raises:
        DatasetError: the figures are not there.
    """
    file = Path(directory, STATISTICS_FILE)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if len(found["mean"]) == len(found["std"]) == 3:
            return dict(found)
        problem = "mean and std are not three numbers each"
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = str(error)
    raise DatasetError(f"{file}: no readable statistics ({problem}). Give what ImageTransform wrote, or other figures.")


def image_size(dataset: Dataset) -> tuple[int, int]:
    """Height and width of a dataset's images: of its recipe, or of its first record where no recipe set a size.

    Raises:
        DatasetError: the dataset holds no record.
    """
    if dataset.manifest.kind == "transform":
        height, width = dataset.manifest.recipe["size"]
        return int(height), int(width)
    for split in dataset.splits:
        for _, record in dataset.records(split):
            example = decode_example(record)
            return int(example["image/height"][0]), int(example["image/width"][0])
    raise DatasetError(f"{dataset.root}: holds no record, so there is nothing to load.")


def _host_shards(dataset: Dataset, split: str, host: int, hosts: int) -> list[LocatedShard]:
    shards = dataset.shards(split)
    if not 0 <= host < hosts:
        raise UsageError(f"host {host} of {hosts}: count hosts from 0.")
    if len(shards) < hosts:
        raise UsageError(
            f"{dataset.root}: split {split!r} has {len(shards)} shards for {hosts} hosts. Write at least one shard a "
            "host (shards.count)."
        )
    return shards[host::hosts]


def _check_augment(augment: Sequence[str], size: tuple[int, int]) -> None:
    for name in augment:
        if name not in AUGMENTATIONS:
            raise UsageError(f"augment {name!r} is not known; use any of {', '.join(AUGMENTATIONS)}.")
    if "rotate90" in augment and size[0] != size[1]:
        raise UsageError(
            f"augment 'rotate90' needs square images, these are {size[0]} x {size[1]}. Leave it out, or set a square "
            "transform.size."
        )


def _read(dataset: Dataset, shards: list[LocatedShard], shuffle_seed: int | None, buffer: int) -> Any:
    """Records with the path of their shard and their position in the split, in a fixed order for a seed."""
    whole = dataset.shards(shards[0].split)
    first = dict(zip((shard.path for shard in whole), accumulate((s.records for s in whole), initial=0), strict=False))
    files = tf.data.Dataset.from_tensor_slices(
        (
            tf.constant([shard.file for shard in shards], tf.string),
            tf.constant([shard.path for shard in shards], tf.string),
            tf.constant([shard.records for shard in shards], tf.int64),
            tf.constant([first[shard.path] for shard in shards], tf.int64),
        )
    )

    def records_of(file: Tensor, path: Tensor, count: Tensor, position: Tensor) -> Any:
        # A reader's error does not say which file it read. It ends the shard early instead (and is logged); the empty
        # record in the place of what is missing is told apart, and named, by the parser.
        found = tf.data.TFRecordDataset(file, buffer_size=_READ_BUFFER).ignore_errors(log_warning=True)
        missing = tf.data.Dataset.from_tensors(b"").repeat()
        records = found.concatenate(missing).take(count)
        return records.enumerate(position).map(lambda place, record: (path, place, record))

    if shuffle_seed is not None:
        files = files.shuffle(len(shards), seed=shuffle_seed)
    cycle = min(len(shards), _SHARDS_AT_ONCE)
    records = files.interleave(records_of, cycle_length=cycle, num_parallel_calls=tf.data.AUTOTUNE)
    return records if shuffle_seed is None else records.shuffle(buffer, seed=shuffle_seed)


def _parser(dataset: Dataset, size: tuple[int, int]) -> Any:
    """A function from (shard, position in the split, serialized example) to (uint8 [H, W, 3], target)."""
    manifest = dataset.manifest
    stored = manifest.recipe.get("encoding") or manifest.recipe.get("images", {}).get("reencode")
    features: dict[str, Any] = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/key": tf.io.FixedLenFeature([], tf.string),
    }
    if stored == "raw":
        features |= {f"image/{side}": tf.io.FixedLenFeature([], tf.int64) for side in ("height", "width")}
    masks = [f"image/segmentation/{name}/rle" for name in manifest.classes]
    if manifest.task == "segmentation":
        drawn = [*masks, *([f"image/segmentation/{IGNORED}/rle"] if manifest.ignores else [])]
        features |= {name: tf.io.RaggedFeature(tf.int64) for name in drawn}
    elif manifest.labels == MULTI:
        features[_LABEL] = tf.io.RaggedFeature(tf.int64)
    elif manifest.labels != NONE:
        features[_LABEL] = tf.io.FixedLenFeature([], tf.int64, default_value=-1)

    def parse(shard: Tensor, position: Tensor, record: Tensor) -> tuple[Tensor, Tensor]:
        damaged = tf.strings.join([shard, ": a record is damaged or missing. Write the dataset anew."])
        with tf.control_dependencies([tf.debugging.Assert(tf.strings.length(record) > 0, [damaged])]):
            example = tf.io.parse_single_example(record, features)
        where = tf.strings.join([shard, " key ", example["image/key"], ": "])
        image = _decode(example, stored)
        _assert_size(image, size, where)
        image.set_shape([*size, 3])
        if manifest.task == "segmentation":
            target = pixels.draw_masks([example[name] for name in drawn], *size)
            return image, _uncounted(target) if manifest.ignores else target
        if manifest.labels == NONE:
            return image, position
        if manifest.labels == MULTI:
            return image, _multi_hot(example[_LABEL], len(manifest.classes), where)
        label = tf.cast(example[_LABEL], tf.int32)
        tf.debugging.Assert(label >= 0, [tf.strings.join([where, "has no label; leave unlabelled images out."])])
        return image, label

    return parse


def _uncounted(masks: Tensor) -> Tensor:
    """Takes off the last mask, of what is ignored, and marks its pixels in all the others."""
    # All bits of 255 are 1, so what a class says of the pixel makes no difference.
    return tf.bitwise.bitwise_or(masks[..., :-1], masks[..., -1:] * np.uint8(UNCOUNTED))


def _decode(example: Mapping[str, Tensor], stored: str | None) -> Tensor:
    """The pixels of a parsed example, that are stored as the recipe says; `None`: as JPEG or PNG."""
    encoded = example["image/encoded"]
    if stored == "raw":
        return pixels.decode_raw(encoded, example["image/height"], example["image/width"])
    decoders = {"jpeg": pixels.decode_jpeg, "tensor": pixels.parse_tensor}
    return decoders.get(str(stored), pixels.decode)(encoded)


def _multi_hot(labels: Tensor, classes: int, where: Tensor) -> Tensor:
    """Float32 [C]: 1 for every class of an image, else 0."""
    message = tf.strings.join([where, f"has a class that is none of the {classes}. Write the dataset anew."])
    tf.debugging.Assert(tf.reduce_all((labels >= 0) & (labels < classes)), [message])
    return tf.minimum(tf.reduce_sum(tf.one_hot(labels, classes), axis=0), 1.0)


def _assert_size(image: Tensor, size: tuple[int, int], where: Tensor) -> None:
    shape = tf.shape(image)
    found = tf.strings.join([tf.strings.as_string(shape[0]), " x ", tf.strings.as_string(shape[1])])
    message = tf.strings.join(
        [where, "image is ", found, f", not {size[0]} x {size[1]}. Batches need one size: use a transformed set."]
    )
    tf.debugging.Assert((shape[0] == size[0]) & (shape[1] == size[1]), [message])


def _augmented(
    image: Tensor, target: Tensor, augment: Sequence[str], seed: int, count: Tensor
) -> tuple[Tensor, Tensor]:
    """Changes one example; each augmentation has its own random number, whichever others are on."""
    drawn = tf.random.stateless_uniform([len(AUGMENTATIONS)], tf.stack([tf.constant(seed, tf.int64), count]))
    chance = dict(zip(AUGMENTATIONS, tf.unstack(drawn), strict=True))
    moving = [image, target] if target.shape.rank == 3 else [image]
    for name, axis in (("flip_left_right", 1), ("flip_up_down", 0)):
        if name in augment:
            moving = [_flipped(part, chance[name] < 0.5, axis) for part in moving]
    if "rotate90" in augment:
        turns = tf.cast(chance["rotate90"] * 4, tf.int32)
        moving = [tf.ensure_shape(tf.image.rot90(part, turns), part.shape) for part in moving]
    image = moving[0]
    if "brightness" in augment:
        shifted = tf.cast(image, tf.float32) + (2 * chance["brightness"] - 1) * _BRIGHTNESS
        image = tf.cast(tf.clip_by_value(tf.floor(shifted + 0.5), 0.0, 255.0), tf.uint8)
    return image, target if len(moving) == 1 else moving[1]


def _flipped(part: Tensor, flip: Tensor, axis: int) -> Tensor:
    return tf.ensure_shape(tf.cond(flip, lambda: tf.reverse(part, [axis]), lambda: part), part.shape)
