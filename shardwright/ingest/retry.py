"""`shardwright retry-rejects`: reads rejected inputs again, after files, labels or options were fixed.

It is an ingest with `previous`: written images are copied, rejected ones are in no shard and so are read. The result is
that of a full ingest, and in addition the new status of each rejected input.
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
from shardwright.ingest.run_ingest import ingest
from shardwright.storage import is_remote

GONE = "gone"


@dataclass(frozen=True)
class RetryResult:
    """An input that was rejected.

    Attributes:
        before: its row then.
        after: its row now, `None` where the input no longer exists.
    """

    before: LedgerRow
    after: LedgerRow | None

    @property
    def status(self) -> str:
        """Returns its status now: `written`, `duplicate`, `rejected` or `gone`."""
        return GONE if self.after is None else self.after.status


def retry_rejects(
    directory: str | os.PathLike[str],
    config: Config,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    quiet: bool = False,
    log: Callable[[str], None] = lambda note: None,
) -> tuple[Manifest, tuple[RetryResult, ...]]:
    """Makes a dataset in which the inputs that another one rejected are read again.

    Args:
        directory: that dataset.
        config: the configuration, changed or not; its option `previous` is ignored.
        out: see `ingest`.
        workers: likewise.
        quiet: likewise.
        log: likewise.

    Returns:
        The manifest of the dataset, which is that of a full ingest; the result of each rejected input, by key.

    Raises:
        UsageError, DatasetError: `directory` is not a dataset of an ingest, or is damaged.
        ShardwrightError: see `ingest`.
    """
    path = os.fspath(directory)
    path = path if is_remote(path) else os.path.abspath(path)
    before = [row for row in PreviousDataset.open(path).dataset.ledger() if row.status == REJECTED]
    manifest = ingest(replace(config, reuse_from=path), out, workers=workers, quiet=quiet, log=log)
    keys = {row.key for row in before}
    after = {row.key: row for row in ImageDataset.open(out).ledger() if row.key in keys}
    return manifest, tuple(RetryResult(row, after.get(row.key)) for row in before)
