"""The number of batches in an epoch, by the manifest's counts. It needs neither the records nor TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Sequence

from shardwright.config.loader import check_epoch
from shardwright.dataset.host_sharding import padded_steps, share_sizes
from shardwright.dataset.reader import ImageDataset


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
    """Returns the batches that every host can take from one epoch, by the manifest's counts.

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
        UsageError: an argument has another type or is out of range, or `load` refuses the combination.
    """
    check_epoch(batch_size, hosts=hosts, order=order, drop_remainder=drop_remainder, pad=pad)
    counts = [shard.records for shard in ImageDataset.open(dataset_dir).shards(split)]
    return _steps(counts, batch_size, hosts, order=order, drop_remainder=drop_remainder, pad=pad)


def _steps(counts: Sequence[int], batch_size: int, hosts: int, *, order: str, drop_remainder: bool, pad: bool) -> int:
    """Returns the batches that every host can take from one epoch.

    Args:
        counts: records in each shard of the split.
        batch_size: see `steps_per_epoch`, as the others.
        hosts: number of hosts.
        order: `fast` or `exact`.
        drop_remainder: do not count a last batch that is not full.
        pad: hosts with fewer records fill their batches up.
    """
    if pad and order != "exact":
        return padded_steps(counts, hosts, batch_size)
    if order == "exact":
        records, taken = sum(counts), batch_size * hosts
    else:
        records, taken = min(share_sizes(counts, hosts)), batch_size
    return records // taken if drop_remainder else -(-records // taken)
