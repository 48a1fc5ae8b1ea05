"""Shows how many shards are finished while others write them: Beam's workers may be in other processes or machines."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shardwright.console import Progress, progress
from shardwright.staging import PlannedShard, Staging

_SECONDS_BETWEEN_LOOKS = 0.5


@contextmanager
def shards_shown(staging: Staging, planned: Sequence[PlannedShard], label: str) -> Iterator[None]:
    """Shows the progress of shards that are written into staging while the block runs.

    Args:
        staging: where they are finished.
        planned: the shards.
        label: what is being done.
    """
    left = [shard for shard in planned if staging.result(shard) is None]
    ended = threading.Event()
    with progress(len(left), label) as shown:
        watcher = threading.Thread(target=_watch, args=(staging, left, shown, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _watch(staging: Staging, left: list[PlannedShard], shown: Progress, ended: threading.Event) -> None:
    while left:
        last_look = ended.wait(_SECONDS_BETWEEN_LOOKS)
        still = [shard for shard in left if staging.result(shard) is None]
        shown.advance(len(left) - len(still))
        left = still
        if last_look:
            return
