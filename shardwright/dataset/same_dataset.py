"""Checks that a folder still contains the dataset that was opened, for readers that open its files by name."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.errors import DatasetError
from shardwright.storage import buckets, is_remote

# A request for each record would take longer than to read it.
_SECONDS_BETWEEN_REQUESTS = 60.0

_State = tuple[object, ...]


class SameDataset:
    """Checks that the folder of some shards contains the same dataset as when it was opened.

    A folder may be replaced by a dataset with shards of the same names and sizes while a training reads it. Usable
    from several threads, and picklable.

    Args:
        shards: of one dataset.

    Raises:
        DatasetError: it is another dataset already.
    """

    def __init__(self, shards: Sequence[LocatedShard]) -> None:
        self._shards = list(shards)
        self._root = shards[0].file.removesuffix(shards[0].path).rstrip("/") if shards else ""
        self._remote = is_remote(self._root)
        self._state: _State | None = None
        self._next = time.monotonic() + _SECONDS_BETWEEN_REQUESTS
        self.check()

    def check(self) -> None:
        """Checks it now, after a file was opened or read. A bucket is asked once a minute.

        Raises:
            DatasetError: the manifest is gone, or has changed and states another checksum of a shard, or none.
        """
        if self._remote:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + _SECONDS_BETWEEN_REQUESTS
        state = self._now()
        if state is None and self._state is not None:
            raise DatasetError(f"{self._root}: the dataset was deleted while it was read. Create and load it again.")
        if state == self._state:
            return
        try:
            now = {shard.path: shard.checksum for shard in ImageDataset.open(self._root).manifest.shards}
        except DatasetError as error:
            raise DatasetError(f"{self._root}: has changed since it was loaded ({error})") from None
        if any(now.get(shard.path) != shard.checksum for shard in self._shards):
            raise DatasetError(f"{self._root}: contains another dataset now than when it was loaded. Load it again.")
        self._state = state

    def _now(self) -> _State | None:
        """Returns what changes with every new manifest; nothing where there is none: copied shards never have one."""
        file = f"{self._root}/{MANIFEST_FILE}"
        if self._remote:
            info = buckets.stat(file)
            return None if info is None else (info.pin, info.size, info.checksum)
        try:
            found = os.stat(file)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns
