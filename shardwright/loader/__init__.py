"""The loader: from a dataset on disk to the batches that a model is trained on.

`load(dir, split, batch_size, ...)` returns a `tf.data.Dataset` of (image, target[, weight][, id]). `augment` documents
the augmentations. `unpack_masks` makes masks of the bits of `load(..., masks="bits")` on the device.
"""

from shardwright.dataset.host_sharding import steps_per_epoch
from shardwright.dataset.train_statistics import STATISTICS_FILE, dataset_statistics
from shardwright.loader.dataset_info import image_size
from shardwright.loader.load import load
from shardwright.loader.masks import unpack_masks
from shardwright.loader.memory import MEMORY, room_in_memory
from shardwright.loader.shard_cache import ShardCache

__all__ = [
    "MEMORY",
    "STATISTICS_FILE",
    "ShardCache",
    "dataset_statistics",
    "image_size",
    "load",
    "room_in_memory",
    "steps_per_epoch",
    "unpack_masks",
]
