"""Shows how many shards are finished while others write them: Beam's workers may be in other processes or machines."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shardwright.console import Progress, progress
from shardwright.writing.staging import PlannedShard, Staging

_SECONDS_BETWEEN_LOOKS = 0.5
# There every look is a listing, which costs.
_ON_A_BUCKET = 10.0


@contextmanager
def shards_shown(staging: Staging, planned: Sequence[PlannedShard], label: str) -> Iterator[None]:
    """Shows the progress of shards that are written into staging while the block runs.

    Args:
        staging: where they are finished.
        planned: the shards.
        label: what is being done.
    """
    left = staging.unfinished(planned)
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
        last_look = ended.wait(_ON_A_BUCKET if staging.mirror else _SECONDS_BETWEEN_LOOKS)
        still = staging.unfinished(left)
        shown.advance(len(left) - len(still))
        left = still
        if last_look:
            return
