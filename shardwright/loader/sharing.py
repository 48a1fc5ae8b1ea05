"""Who reads what, and how many steps that gives, by the manifest's counts."""

from __future__ import annotations

from collections.abc import Sequence

from shardwright.dataset import Dataset
from shardwright.epochs.host_shares import Stretch, host_share, padded_steps, share_sizes
from shardwright.errors import UsageError


def share_of(dataset: Dataset, split: str, host: int, hosts: int) -> list[Stretch]:
    """What a host reads in an epoch of `order: fast`.

    Raises:
        DatasetError: there is no such split.
        UsageError: there is no such host.
    """
    try:
        return host_share(_counts(dataset, split), host, hosts)
    except ValueError as error:
        raise UsageError(str(error)) from None


def filler_of(dataset: Dataset, split: str, share: Sequence[Stretch]) -> Stretch | None:
    """The record that fills a host's last batches up: its first one, or the split's where it has none."""
    counts = _counts(dataset, split)
    own = share or [Stretch(shard, 0, count) for shard, count in enumerate(counts) if count]
    return own[0]._replace(records=1) if own else None


def steps_of(
    dataset: Dataset, split: str, batch_size: int, drop_remainder: bool, hosts: int, order: str, pad: bool = False
) -> int:
    """Batches that every host can take from one epoch. See `load.steps_per_epoch`."""
    counts = _counts(dataset, split)
    if pad and order != "exact":
        return padded_steps(counts, hosts, batch_size)
    if order == "exact":
        records, taken = sum(counts), batch_size * hosts
    else:
        records, taken = min(share_sizes(counts, hosts)), batch_size
    return records // taken if drop_remainder else -(-records // taken)


def _counts(dataset: Dataset, split: str) -> list[int]:
    return [shard.records for shard in dataset.shards(split)]
