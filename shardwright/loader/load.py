"""From a dataset on disk to batches: `tf.data`, in fixed shapes.

What is read is what the manifest names; sizes of the shard files are compared with it before the first record, so
that a cut shard is refused at once and by name. Records are shuffled while they are still encoded (a buffer of a
thousand JPEGs is tens of megabytes, of decoded images gigabytes); pixels stay bytes and masks bits until a batch is
whole, and are normalized and unpacked in one pass over it. How many batches are made at a time is fixed, so that
memory does not grow with the number of processors.
"""

from __future__ import annotations

import inspect
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from shardwright.config.loader import NORMALIZATIONS, ORDERS, read_augmentations
from shardwright.dataset.manifest import NONE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.loader.augment import apply_augmentations, check_augment
from shardwright.loader.dataset_info import dataset_statistics, image_size
from shardwright.loader.error_context import (
    ReadErrors,
    RecordLocator,
    no_autograph,
    threads_of_decoding,
    with_error_context,
)
from shardwright.loader.exact import exact_steps, read_exactly
from shardwright.loader.fast import padded, read_fast
from shardwright.loader.host_sharding import host_ranges, padding_range, steps_of
from shardwright.loader.memory import MEMORY, cache_examples, decoded_bytes
from shardwright.loader.parsing import Example, Parser
from shardwright.loader.postprocess import BOTH, LABELS, MASKS, Postprocess
from shardwright.loader.shard_cache import ShardCache, cache_shards
from shardwright.loader.text_features import text_features
from shardwright.storage import is_remote
from shardwright.storage.paths import scheme_of

Tensor = Any

DTYPES = ("float32", "bfloat16", "uint8")
# Batches that are finished at a time, of which as many wait when they are, and that wait behind them.
_AT_ONCE, _AHEAD = 2, 1
# What the shuffle buffer holds where nothing else is said.
_SHUFFLED, _SHUFFLED_BYTES = 1024, 256 << 20
_TUNED_BYTES = 512 << 20
# Epoch after epoch as by `shuffle` and `repeat`, but the buffer is filled with the next one's records while those of
# the last one leave it: else it runs empty first, and nothing is decoded until it is full again. TensorFlow makes one
# op of the two by itself, but not where a function of another dataset reads them; its own op for it is deprecated.
_shuffle_and_repeat = inspect.unwrap(tf.data.experimental.shuffle_and_repeat)


def load(
    dataset_dir: str | os.PathLike[str],
    split: str,
    batch_size: int,
    *,
    normalize: str = "unit",
    dtype: str = "float32",
    targets: str | None = None,
    masks: str = "bytes",
    ids: bool = False,
    texts: Sequence[str] = (),
    augment: Sequence[str] = (),
    shuffle: bool = False,
    seed: int | None = None,
    repeat: bool = False,
    drop_remainder: bool = False,
    pad: bool = False,
    deterministic: bool = True,
    shuffle_buffer: int | None = None,
    host: int = 0,
    hosts: int = 1,
    statistics: Mapping[str, Any] | None = None,
    order: str = "fast",
    start_step: int = 0,
    cache: str | os.PathLike[str] | None = None,
    copies: ShardCache | bool | None = None,
) -> Any:
    """Reads a split as batches of images and targets.

    There are two orders. `fast`: every host reads records of its own, several shards at a time. `exact`: one order of
    all records for all hosts (`shardwright.loader.global_order`), of which batch `start_step`, `start_step + 1`, ...
    are read, each host its slice of them; so a training goes on where it stopped, to the record, also with another
    number of hosts (and `batch_size` so that the batch of all together is the same). Then the seed and the step are all
    there is to save.

    Args:
        dataset_dir: folder or URL of a dataset whose images have one size: what the transform wrote, or an ingested
            set of equal images.
        split: name of the split.
        batch_size: images in a batch of this host.
        normalize: what `pixels.normalize` does to the pixels: `unit`, `imagenet_torch`, `imagenet_caffe`, `dataset` or
            `none`.
        dtype: of the images: `float32`, `bfloat16`, or `uint8` (with `normalize="none"`): a quarter of the bytes, to be
            normalized on the device.
        targets: of a segmentation: `masks` (default), `labels` (float32 [B, C]: 1 for each class that has a mask), or
            `both`, a dict of these two names.
        masks: `bytes`, or `bits`: uint8 [B, H, W, P] with a bit for each class, to be unpacked on the device by
            `unpack_masks`.
        ids: end each batch with int64 [B]: the positions of the images in `Dataset.keys(split)`.
        texts: columns of `transform.text`. The image is then a dict of `image` and `text`, float32 [B, V]: how often
            each word of their vocabularies occurs, one column behind the other, in whatever form they are stored.
        augment: names, or `name=strength`, of `loader.augment`. Masks follow. What happens to an image depends on
            `seed` and its position in the stream: with `repeat` every epoch differs. `mixup` makes targets soft:
            float32, and [B, C] for labels of one class an image; it mixes within the batch of a host,
            so that another number of hosts mixes other pairs.
        shuffle: mix the order, anew every epoch: the shards, then the records within a buffer (`fast`) or a window
            (`exact`).
        seed: the same seed gives the same order and the same augmentation; `None` draws one. The order of `fast` also
            follows `tf.random.set_seed`, that of `exact` does not.
        repeat: never end. Batches then run across the end of an epoch and are all full.
        drop_remainder: leave out a last batch that is not full, so that the batch dimension is static. It is with
            `repeat` and with `exact` as well.
        pad: fill the last batches up with images of weight 0, so that all hosts have equally many, of one shape, and
            each image counts once: the way to evaluate on several hosts. `exact` does so anyhow, without `repeat`.
        deterministic: keep the order fixed. `False` lets whatever is ready first go first; `exact` is always fixed.
        shuffle_buffer: records that are mixed at a time; by default 1024, fewer of very large ones; never more than
            256 MB of what comes decoded from a `cache` on a disk.
        host: number of this host, from 0. With `fast` it reads whole shards, or an equal stretch of the records where
            the shards cannot be shared out evenly.
        hosts: number of hosts.
        statistics: mean and std for `normalize="dataset"`; by default those beside the dataset.
        order: `fast` or `exact`.
        start_step: the first batch to read, with `exact`.
        cache: `memory`, or a folder on this machine, to keep decoded images and masks from the first epoch on; with
            `fast` alone. What does not fit into half of the free memory, or nine tenths of the free disk, is refused.
        copies: of a dataset on an object store: `True`, or where and how many (`ShardCache`): the shards that this host
            reads are copied to this machine first, checked, and kept for the next time; `False`: they are read in
            ranges. By default those of s3:// are copied, and those of gs:// read.

    Returns:
        A `tf.data.Dataset` of (image, target). The image is [B, H, W, 3] of `dtype`. The target is uint8 [B, H, W,
        C] of 0 and 1 for segmentation (masks may overlap) and int32 [B] for classification; where an image may have
        several classes, float32 [B, C] of 0 and 1. For images without labels it is int64 [B]: the position of the image
        in `Dataset.keys(split)`. Where the dataset marks pixels to be ignored (`Manifest.ignores`), they are
        `metrics.UNCOUNTED` (255) in all classes of the target. With `pad`, and with `exact` without `repeat`, it is
        (image, target, weight): float32 [B], 0 for what fills batches up.

    Raises:
        DatasetError: there is no dataset, a shard is missing or damaged, or there is no such split.
        UsageError: the options do not fit each other or the dataset.
        tf.errors.OpError: while iterating: a damaged record, an image of another size, or one without a label. The
            message names the shard, the record, its offset and its key.
    """
    dataset = ImageDataset.open(dataset_dir)
    changes = read_augmentations(augment)
    size = image_size(dataset)
    check_augment(changes, size)
    targets = _targets(dataset, targets)
    _check(dataset, batch_size, shuffle_buffer, order, start_step, normalize, dtype, masks, targets, cache)
    if pad and (repeat or drop_remainder):
        raise UsageError(
            "pad fills the last batch up, and with repeat or drop_remainder none is not full. Leave one out."
        )
    if "mixup" in changes and (dtype == "uint8" or masks == "bits" or dataset.manifest.labels == NONE or texts):
        raise UsageError("augment 'mixup' makes fractions: it needs labels, a float dtype, masks as bytes, no texts.")
    if normalize == "dataset" and statistics is None:
        statistics = dataset_statistics(dataset_dir)
    seed = secrets.randbits(31) if seed is None else seed
    shuffle_seed = seed if shuffle else None
    dataset = _nearer(dataset, split, copies, None if order == "exact" else (host, hosts), pad)
    shards = dataset.shards(split)
    words = text_features(dataset, texts)
    parse = Parser(dataset, split, size, masks=targets in (MASKS, BOTH), labels=targets in (LABELS, BOTH), texts=words)

    naming, unread = RecordLocator(shards), ReadErrors()

    def told(positions: Sequence[int]) -> str:
        return unread.why() or naming.first_wrong(positions, parse.problem)

    def made(
        elements: Any,
        make: Callable[..., Example],
        position_of: Callable[..., Tensor],
        count: int | None,
        **batched: Any,
    ) -> Any:
        threads = threads_of_decoding()
        return with_error_context(
            elements, no_autograph(make), no_autograph(position_of), told, count=count, threads=threads, **batched
        )

    def example(position: Tensor, record: Tensor, *weight: Tensor) -> Example:
        return {**parse(record), "position": position, **dict(zip(("weight",), weight, strict=False))}

    def changed(count: Tensor, example: Example) -> Example:
        found = apply_augmentations(example, changes, seed, count) if changes else example
        return {**found, "count": count}

    fixed = drop_remainder or repeat or pad or order == "exact"
    batched = {"batch": batch_size, "drop_remainder": fixed}
    if order == "exact":
        window = _SHUFFLED if shuffle_buffer is None else shuffle_buffer
        steps = exact_steps(dataset, split, batch_size, hosts, seed=shuffle_seed, window=window)
        placed = read_exactly(
            shards,
            steps,
            host,
            hosts,
            start=start_step,
            repeat=repeat,
            drop_remainder=drop_remainder,
            unread=unread,
        )
        count = None if repeat else int(placed.cardinality())
        if repeat:
            placed = placed.map(lambda count, record: (count, record[:2]))
        batches = made(
            placed,
            lambda _, place, record: changed(place, example(*record)),
            lambda _, record: record[0],
            count,
            **batched,
        )
    else:
        share = host_ranges(dataset, split, host, hosts)
        found = read_fast(shards, share, shuffle_seed, unread)
        records = sum(stretch.records for stretch in share)
        filler = padding_range(dataset, split, share) if pad else None
        if filler is not None:
            records = steps_of(dataset, split, batch_size, False, hosts, order, pad) * batch_size
            found = padded(found, shards, filler, records, unread)
        buffer = _buffer(dataset, split) if shuffle_buffer is None else shuffle_buffer
        if cache is not None:
            found = made(found, lambda _, *record: example(*record), lambda position, *_: position, records)
            each = decoded_bytes(size, len(dataset.manifest.classes), sum(text.vocabulary for text in words))
            identity: dict[str, Any] = {
                "dataset": dataset.manifest.digest,
                "split": split,
                "share": share,
                "targets": targets,
            }
            if words:
                identity["texts"] = list(texts)
            if pad:
                identity["padded"] = records
            found = cache_examples(found, os.fspath(cache), records * each, identity)
            if cache != MEMORY:
                # What comes from a disk is decoded, and held once more while it is mixed.
                buffer = min(buffer, max(1, _SHUFFLED_BYTES // each))
        if shuffle and repeat:
            found = found.apply(_shuffle_and_repeat(buffer, seed=seed))
        elif shuffle:
            found = found.shuffle(buffer, seed=seed)
        elif repeat:
            found = found.repeat()
        if cache is None:
            batches = made(
                found,
                lambda number, *record: changed(number, example(*record)),
                lambda position, *_: position,
                None if repeat else records,
                **batched,
            )
        else:
            counted = found.enumerate()
            batches = counted.map(no_autograph(changed), tf.data.AUTOTUNE).batch(batch_size, drop_remainder=fixed)
    mixing = changes["mixup"].strength if "mixup" in changes else 0.0
    finish = Postprocess(dataset.manifest, targets, masks == "bits", normalize, statistics, dtype, mixing, seed, ids)
    options = tf.data.Options()
    options.deterministic = deterministic or order == "exact"
    # Only what comes out of a cache is tuned; elsewhere there is nothing to tune, and watching costs.
    options.autotune.enabled = cache is not None
    options.autotune.ram_budget = _TUNED_BYTES
    return batches.map(no_autograph(finish.__call__), _AT_ONCE).prefetch(_AHEAD).with_options(options)


def steps_per_epoch(
    dataset_dir: str | os.PathLike[str],
    split: str,
    batch_size: int,
    *,
    drop_remainder: bool = False,
    hosts: int = 1,
    order: str = "fast",
    pad: bool = False,
) -> int:
    """Batches that every host can take from one epoch, by the manifest's counts.

    Args:
        dataset_dir: folder of the dataset.
        split: name of the split.
        batch_size: images in a batch of one host.
        drop_remainder: do not count a last batch that is not full.
        hosts: number of hosts; with `fast` the one with the fewest records decides.
        order: `fast` or `exact`.
        pad: of `load`; the host with the most records then decides.

    Raises:
        DatasetError: there is no such dataset or split.
        UsageError: `batch_size` is less than 1.
    """
    if batch_size < 1:
        raise UsageError(f"batch_size is {batch_size}; it must be at least 1.")
    return steps_of(ImageDataset.open(dataset_dir), split, batch_size, drop_remainder, hosts, order, pad)


def _nearer(
    dataset: ImageDataset, split: str, copies: ShardCache | bool | None, share: tuple[int, int] | None, pad: bool
) -> ImageDataset:
    """The dataset, with copies of what will be read of it where they are wanted."""
    scheme = scheme_of(dataset.root)
    wanted = scheme is not None and not scheme.ranged_reads if copies is None else copies is not False
    if not wanted or not is_remote(dataset.root):
        return dataset
    shards = dataset.shards(split)
    if share is not None:
        parts = host_ranges(dataset, split, *share)
        filler = padding_range(dataset, split, parts) if pad else None
        shards = [shards[number] for number in sorted({part.shard for part in (*parts, *([filler] if filler else []))})]
    return cache_shards(dataset, shards, copies if isinstance(copies, ShardCache) else ShardCache())


def _targets(dataset: ImageDataset, targets: str | None) -> str:
    """What is wanted; what the dataset has where nothing is said."""
    has_masks = dataset.manifest.task == "segmentation"
    if targets is None:
        return MASKS if has_masks else LABELS
    if targets not in (MASKS, LABELS, BOTH):
        raise UsageError(f"targets {targets!r} is not known; use {MASKS}, {LABELS} or {BOTH}.")
    if targets != LABELS and not has_masks:
        raise UsageError(f"targets {targets!r}: {dataset.root} has no masks. Leave it out.")
    return targets


def _check(
    dataset: ImageDataset,
    batch_size: int,
    shuffle_buffer: int | None,
    order: str,
    start_step: int,
    normalize: str,
    dtype: str,
    masks: str,
    targets: str,
    cache: object,
) -> None:
    if batch_size < 1 or (shuffle_buffer is not None and shuffle_buffer < 1):
        raise UsageError(f"batch_size {batch_size} and shuffle_buffer {shuffle_buffer} must be at least 1.")
    if order not in ORDERS:
        raise UsageError(f"order {order!r} is not known; use fast or exact.")
    if start_step and order == "fast":
        raise UsageError(f"start_step {start_step} needs order='exact'; order='fast' starts at the beginning.")
    if normalize not in NORMALIZATIONS:
        raise UsageError(f"normalize {normalize!r} is not known; use one of {', '.join(NORMALIZATIONS)}.")
    if dtype not in DTYPES:
        raise UsageError(f"dtype {dtype!r} is not known; use one of {', '.join(DTYPES)}.")
    if dtype == "uint8" and normalize != "none":
        raise UsageError(
            f"dtype 'uint8' are the pixels as they are, and normalize={normalize!r} makes fractions; use 'none'."
        )
    if masks not in ("bytes", "bits"):
        raise UsageError(f"masks {masks!r} is not known; use bytes or bits.")
    if masks == "bits" and targets == LABELS:
        raise UsageError(f"masks 'bits': no masks are loaded from {dataset.root}. Leave it out.")
    if cache is not None and order == "exact":
        raise UsageError("cache needs order='fast'; order='exact' reads by the index, so that it may begin anywhere.")


def _buffer(dataset: ImageDataset, split: str) -> int:
    """Records that are mixed at a time: so many that they take no more than a part of the memory."""
    return max(1, min(_SHUFFLED, _SHUFFLED_BYTES // _record_bytes(dataset, split)))


def _record_bytes(dataset: ImageDataset, split: str) -> int:
    """Bytes of a record on average, at least 1."""
    shards = dataset.shards(split)
    return max(1, sum(shard.bytes for shard in shards) // max(1, sum(shard.records for shard in shards)))
