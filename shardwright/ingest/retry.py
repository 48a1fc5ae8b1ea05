"""`shardwright retry-rejects`: after files, labels or options were mended, what an ingest had rejected is read again.

It is an ingest with `previous`: what was written is taken over, what was rejected is in no shard and so is read, and
the result is that of a full ingest. Added to that is what became of each rejected input.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from shardwright.config import Config
from shardwright.dataset.ledger import REJECTED, LedgerRow
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.ingest.previous_dataset import PreviousDataset
from shardwright.ingest.run import ingest
from shardwright.storage import is_remote

GONE = "gone"


@dataclass(frozen=True)
class RetryResult:
    """An input that had been rejected.

    Attributes:
        before: its row then.
        after: its row now, `None` where there is no such input any more.
    """

    before: LedgerRow
    after: LedgerRow | None

    @property
    def status(self) -> str:
        """What it is now: `written`, `duplicate`, `rejected` or `gone`."""
        return GONE if self.after is None else self.after.status


def retry_rejects(
    directory: str | os.PathLike[str],
    config: Config,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    quiet: bool = False,
    tell: Callable[[str], None] | None = None,
) -> tuple[Manifest, tuple[RetryResult, ...]]:
    """Makes a dataset in which the inputs that another one rejected are read again.

    Args:
        directory: that dataset.
        config: the configuration, mended or as it was; its own `previous` plays no part.
        out: see `ingest`.
        workers: likewise.
        quiet: likewise.
        tell: likewise.

    Returns:
        The manifest of the dataset, which is that of a full ingest; what became of each rejected input, by key.

    Raises:
        UsageError, DatasetError: `directory` is no dataset of an ingest, or damaged.
        ShardwrightError: see `ingest`.
    """
    path = os.fspath(directory)
    path = path if is_remote(path) else os.path.abspath(path)
    before = [row for row in PreviousDataset.open(path).dataset.ledger() if row.status == REJECTED]
    manifest = ingest(replace(config, previous=path), out, workers=workers, quiet=quiet, tell=tell)
    keys = {row.key for row in before}
    after = {row.key: row for row in ImageDataset.open(out).ledger() if row.key in keys}
    return manifest, tuple(RetryResult(row, after.get(row.key)) for row in before)
