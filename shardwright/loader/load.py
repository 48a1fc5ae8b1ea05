"""From a dataset on disk to batches: `tf.data`, in fixed shapes.

What is read is what the manifest names; sizes of the shard files are compared with it before the first record, so
that a cut shard is refused at once and by name. Records are shuffled while they are still encoded (a buffer of a
thousand JPEGs is tens of megabytes, of decoded images gigabytes), and normalized after batching, in one pass.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from shardwright import pixels
from shardwright.dataset import Dataset
from shardwright.errors import UsageError
from shardwright.loader.augment import augmented, check_augment
from shardwright.loader.exact import exact_steps, read_exactly
from shardwright.loader.facts import dataset_statistics, image_size
from shardwright.loader.fast import host_shards, read_interleaved
from shardwright.loader.parsing import parser

Tensor = Any


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
    order: str = "fast",
    start_step: int = 0,
) -> Any:
    """Reads a split as batches of images and targets.

    There are two orders. `fast`: every host interleaves shards of its own. `exact`: one order of all records for all
    hosts (`shardwright.sequence`), of which batch `start_step`, `start_step + 1`, ... are read, each host its slice of
    them; so a training goes on where it stopped, to the record, also with another number of hosts (and `batch_size`
    so that the batch of all together is the same). Then the seed and the step are all there is to save.

    Args:
        dataset_dir: folder of a dataset whose images have one size: what the transform wrote, or an ingested set of
            equal images.
        split: name of the split.
        batch_size: images in a batch of this host.
        normalize: what `pixels.normalize` does to the pixels: `unit`, `imagenet_torch`, `imagenet_caffe`, `dataset` or
            `none`.
        augment: any of `flip_left_right`, `flip_up_down`, `rotate90` (square images only), `brightness` (a shift of up
            to a fifth of the range). Masks follow. What happens to an image depends on `seed` and its position in
            the stream: with `repeat` every epoch differs.
        shuffle: mix the order, anew every epoch: the shards, then the records within a buffer (`fast`) or a window
            (`exact`).
        seed: the same seed gives the same order and the same augmentation; `None` draws one.
        repeat: never end. Batches then run across the end of an epoch and are all full.
        drop_remainder: leave out a last batch that is not full, so that the batch dimension is static.
        deterministic: keep the order fixed. `False` lets whatever is ready first go first; `exact` is always fixed.
        shuffle_buffer: records that are mixed at a time.
        host: number of this host, from 0. With `fast` it reads shards `host`, `host + hosts`, ...
        hosts: number of hosts.
        statistics: mean and std for `normalize="dataset"`; by default those beside the dataset.
        order: `fast` or `exact`.
        start_step: the first batch to read, with `exact`.

    Returns:
        A `tf.data.Dataset` of (image, target). The image is float32 [B, H, W, 3]. The target is uint8 [B, H, W, C] of 0
        and 1 for segmentation (masks may overlap) and int32 [B] for classification; where an image may have several
        classes, float32 [B, C] of 0 and 1. For images without labels it is int64 [B]: the position of the image in
        `Dataset.keys(split)`. Where the dataset marks pixels to be ignored (`Manifest.ignores`), they are
        `metrics.UNCOUNTED` (255) in all classes of the target. With `exact` and without `repeat` it is (image, target,
        weight): float32 [B], 0 for what fills the last batch up so that all hosts have equally many steps of one shape.

    Raises:
        DatasetError: there is no dataset, a shard is missing or damaged, or there is no such split.
        UsageError: the options do not fit each other or the dataset.
        tf.errors.OpError: while iterating: a damaged record, an image of another size, or one without a label. The
            message names the shard, and the key where there is one.
    """
    dataset = Dataset.open(dataset_dir)
    if batch_size < 1 or shuffle_buffer < 1:
        raise UsageError(f"batch_size {batch_size} and shuffle_buffer {shuffle_buffer} must be at least 1.")
    if order not in ("fast", "exact"):
        raise UsageError(f"order {order!r} is not known; use fast or exact.")
    if start_step and order == "fast":
        raise UsageError(f"start_step {start_step} needs order='exact'; order='fast' starts at the beginning.")
    size = image_size(dataset)
    check_augment(augment, size)
    if normalize == "dataset" and statistics is None:
        statistics = dataset_statistics(dataset_dir)
    mean, std = (statistics["mean"], statistics["std"]) if statistics else (None, None)
    seed = secrets.randbits(31) if seed is None else seed
    shuffle_seed = seed if shuffle else None

    if order == "exact":
        steps = exact_steps(dataset, split, batch_size, hosts, seed=shuffle_seed, window=shuffle_buffer)
        examples = read_exactly(
            dataset.shards(split), steps, host, hosts, start=start_step, repeat=repeat, drop_remainder=drop_remainder
        )
        weighted = not repeat
    else:
        shards = host_shards(dataset, split, host, hosts)
        records = read_interleaved(dataset, shards, shuffle_seed=shuffle_seed, buffer=shuffle_buffer)
        examples = (records.repeat() if repeat else records).enumerate()
        weighted = False
    parse = parser(dataset, size)

    def example(count: Tensor, record: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        image, target = parse(*record[:3])
        if augment:
            image, target = augmented(image, target, augment, seed, count)
        return (image, target, *record[3:]) if weighted else (image, target)

    def normalized(image: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        return (pixels.normalize(image, normalize, mean, std), *others)

    batches = examples.map(example, num_parallel_calls=tf.data.AUTOTUNE)
    batches = batches.batch(batch_size, drop_remainder=drop_remainder or order == "exact")
    options = tf.data.Options()
    options.deterministic = deterministic or order == "exact"
    # Whole batches are handed on: two are enough to keep the reader busy, and the memory stays bounded.
    return batches.map(normalized, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2).with_options(options)


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
    counts = [sum(shard.records for shard in host_shards(dataset, split, host, hosts)) for host in range(hosts)]
    return min(counts) // batch_size if drop_remainder else -(-min(counts) // batch_size)
