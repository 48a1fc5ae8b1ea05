"""From a dataset on disk to batches: `tf.data`, in fixed shapes.

The loader reads the shards that the manifest lists. It compares the sizes of their files with the manifest before the
first record, so that a truncated shard is refused at once and by name. Records are shuffled while they are still
encoded: a buffer of a thousand JPEGs is tens of megabytes, of decoded images gigabytes. Until a batch is complete,
pixels stay bytes and masks bits; they are normalized and unpacked in one pass over the batch. No more than four batches
are finished at the same time, so that memory does not grow with the number of processors.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from functools import partial
from typing import Any

import tensorflow as tf

from shardwright.dataset.host_sharding import host_ranges, shards_of_host
from shardwright.dataset.reader import ImageDataset
from shardwright.loader.augment import apply_augmentations
from shardwright.loader.error_context import ErrorContext, Record, no_autograph, with_error_context
from shardwright.loader.exact import read_exact
from shardwright.loader.fast import read_fast
from shardwright.loader.load_options import LoaderOptions, ResolvedOptions, with_keywords_of
from shardwright.loader.memory import cache_examples, finished_at_once
from shardwright.loader.parse_example import Example, Parser
from shardwright.loader.postprocess import finish_batch
from shardwright.loader.shard_cache import ShardCache, cache_shards
from shardwright.running.processes import usable_cores
from shardwright.storage import is_remote
from shardwright.storage.paths import scheme_of
from shardwright.version import __version__

Tensor = Any

# Batches that wait besides those of `finished_at_once`.
_AHEAD = 1
_TUNED_BYTES = 512 << 20
# Like `shuffle` and `repeat`, but the buffer is filled with records of the next epoch while those of the last one leave
# it. Otherwise it runs empty first, and nothing is decoded until it is full again. TensorFlow fuses the two
# automatically, but not where a function of another dataset reads them; its own op for it is deprecated.
_shuffle_and_repeat = inspect.unwrap(tf.data.experimental.shuffle_and_repeat)


@with_keywords_of(LoaderOptions)
def load(dataset_dir: str | os.PathLike[str], options: LoaderOptions) -> Any:  # noqa: D417 -- these are its keywords
    """Reads a split as batches of images and targets.

    Args:
        dataset_dir: folder or URL of a dataset whose images have one size.
        split: name of the split.
        batch_size: images in a batch of this host.
        normalize: how pixels become floats: `unit` (0 to 1), `imagenet_torch`, `imagenet_caffe`, `dataset` or `none`.
        dtype: of the images: `float32`, `bfloat16`, or, with `normalize="none"`, `uint8`, a quarter of the bytes.
        targets: of a segmentation: `masks` (default), `labels` (float32 [B, C]: 1 for each class that has a mask), or
            `both`, a dict of the two.
        masks: `bytes`, or `bits`: uint8 [B, H, W, P] with a bit for each class, which `unpack_masks` unpacks on the
            device.
        ids: adds int64 [B] to each batch: the positions of the images in `ImageDataset.keys(split)`.
        texts: columns of `transform.text`. The image is then a dict of `image` and `text`, float32 [B, V]: how often
            each word of their vocabularies occurs, column after column.
        numbers: columns of numbers, of a dataset without classes. The target is then float32 [B, N], in their order.
        augment: names, or `name=strength`, of `loader.augment`; masks follow. The change of an image depends on `seed`
            and its position in the stream, so it differs in every epoch. `mixup` mixes within the batch of a host, and
            makes targets float32, [B, C] for one class an image.
        shuffle: mixes the shards, then the records within a buffer (`fast`) or a window (`exact`), in another order
            every epoch. Without `repeat`, `exact` has the same order each time that it is iterated.
        seed: the same seed gives the same order and the same augmentation; `None` draws one. `exact` with `shuffle`
            needs one on several hosts, and with `start_step`. `fast` also follows `tf.random.set_seed`.
        repeat: never ends. Batches then run across the end of an epoch and are all full.
        drop_remainder: leaves out a last batch that is not full, so that the batch dimension is static, as it is with
            `repeat` and with `exact`.
        pad: fills the last batches up with images of weight 0. Each image then counts once, and all hosts have equally
            many batches of one shape: the way to evaluate on several hosts. `exact` without `repeat` always does so.
        deterministic: keeps the order of `fast` fixed; `False` lets whichever element is ready first go first.
        shuffle_buffer: records in the shuffle buffer. Default: 1024, fewer of very large ones. Never more than 256 MB
            of decoded examples that come from a `cache` on a disk.
        host: number of this host, from 0.
        hosts: number of hosts. With `fast`, each reads whole shards, or an equal range of the records where the shards
            cannot be divided evenly.
        statistics: mean and std for `normalize="dataset"`; by default those in the folder of the dataset.
        order: `fast`: every host reads its own records, several shards concurrently. `exact`: one order of all records,
            of which each host reads its slice. A training then continues at any step, also with another number of hosts
            if the batch of all hosts stays the same. Save only the seed and the step.
        start_step: the first batch to read, with `exact`.
        cache: `memory`, or a folder on this machine: keeps decoded images and masks from the first epoch on, only with
            `fast`, in the stored order: `shuffle` then mixes within the buffer. More than half of the free memory, or
            nine tenths of the free disk, is refused.
        copies: `True` first copies the shards of a bucket to this machine, checks them, and keeps them for the next
            time; `ShardCache` names the folder and its limit. `False` reads ranges of the shards. By default, shards on
            s3:// are copied, and shards on gs:// are read.

    Returns:
        A `tf.data.Dataset` of (image, target). The image is [B, H, W, 3] of `dtype`. The target is uint8 [B, H, W, C]
        of 0 and 1 for masks, which may overlap, with `IGNORE_VALUE` (255) at ignored pixels; int32 [B] for one class
        an image; float32 [B, C] for several; for images without labels int64 [B], their positions in
        `ImageDataset.keys(split)`. With `pad`, and with `exact` without `repeat`, it is (image, target, weight):
        float32 [B], 0 for the images that fill batches up.

    Raises:
        DatasetError: there is no dataset or no such split, or a shard is missing or damaged.
        UsageError: the options do not fit each other or the dataset.
        tf.errors.OpError: while iterating: a damaged record, an image of another size, or one without a label. The
            message names the shard, the record, its offset and its key.
    """
    dataset = ImageDataset.open(dataset_dir)
    chosen = options.resolved(dataset)
    dataset = _with_copies(dataset, chosen)
    shards = dataset.shards(chosen.split)
    parser = Parser(dataset, chosen.size, chosen.with_masks, chosen.with_labels, chosen.columns, chosen.number_features)
    errors = ErrorContext(shards, parser.problem)
    read = read_exact if chosen.exact else read_fast
    # A cache keeps the stored order, which is the same for all that read it. They mix behind it.
    stored = chosen if chosen.cache is None else replace(chosen, shuffle=False)
    records, count = read(shards, stored, errors.read_errors)

    def parse(_: Tensor, record: Record) -> Example:
        return {**parser(record["record"]), **{name: part for name, part in record.items() if name != "record"}}

    def augment(number: Tensor, example: Example) -> Example:
        place = example.get("count", number)
        if chosen.augmentations:
            example = apply_augmentations(example, chosen.augmentations, chosen.seed, place)
        return {**example, "count": place}

    def prepare(number: Tensor, record: Record) -> Example:
        return augment(number, parse(number, record))

    if chosen.cache is None:
        counted = None if chosen.repeat else count
        mixed = _mixed(records, chosen)
        batches = with_error_context(
            mixed, prepare, errors.explain, count=counted, batch=chosen.batch_size, drop_remainder=chosen.fixed
        )
    else:
        identity = _identity(dataset, chosen, count)
        examples = with_error_context(records, parse, errors.explain, count=count)
        examples = cache_examples(examples, os.fspath(chosen.cache), count * chosen.example_bytes, identity)
        augmented = _mixed(examples, chosen).enumerate().map(no_autograph(augment), tf.data.AUTOTUNE)
        batches = augmented.batch(chosen.batch_size, drop_remainder=chosen.fixed)
    finish = no_autograph(partial(finish_batch, manifest=dataset.manifest, options=chosen))
    tuning = tf.data.Options()
    tuning.deterministic = chosen.deterministic or chosen.exact
    # Only examples from a cache are tuned; elsewhere there is nothing to tune, and watching costs.
    tuning.autotune.enabled = chosen.cache is not None
    tuning.autotune.ram_budget = _TUNED_BYTES
    return batches.map(finish, finished_at_once(usable_cores())).prefetch(_AHEAD).with_options(tuning)


def _with_copies(dataset: ImageDataset, options: ResolvedOptions) -> ImageDataset:
    """Copies the shards of a remote dataset that this host reads, where that is wanted."""
    copies = options.copies
    scheme = scheme_of(dataset.root)
    wanted = scheme is not None and not scheme.ranged_reads if copies is None else copies is not False
    if not wanted or not is_remote(dataset.root):
        return dataset
    shards = dataset.shards(options.split)
    if not options.exact:
        counts = [shard.records for shard in shards]
        shards = [shards[number] for number in shards_of_host(counts, options.host, options.hosts, pad=options.pad)]
    return cache_shards(dataset, shards, copies if isinstance(copies, ShardCache) else ShardCache())


def _mixed(elements: Any, options: ResolvedOptions) -> Any:
    """Shuffles and repeats elements; `exact` has done so by its order."""
    if options.exact or not (options.shuffle or options.repeat):
        return elements
    if not options.shuffle:
        return elements.repeat()
    if options.repeat:
        return elements.apply(_shuffle_and_repeat(options.shuffle_buffer, seed=options.seed))
    return elements.shuffle(options.shuffle_buffer, seed=options.seed)


def _identity(dataset: ImageDataset, options: ResolvedOptions, count: int) -> dict[str, Any]:
    """Returns the values by which cached examples differ from all others."""
    counts = [shard.records for shard in dataset.shards(options.split)]
    identity: dict[str, Any] = {
        "dataset": dataset.manifest.digest,
        "split": options.split,
        "share": host_ranges(counts, options.host, options.hosts),
        "targets": options.targets,
        "order": "stored" if options.deterministic else "any",
        # Others may decode a file to other pixels.
        "versions": [__version__, tf.__version__],
    }
    if options.texts:
        identity["texts"] = list(options.texts)
    if options.numbers:
        identity["numbers"] = list(options.numbers)
    if options.pad:
        identity["padded"] = count
    return identity
