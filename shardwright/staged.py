"""What lies in a staging folder: who uses it, and how it is emptied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from shardwright.errors import UsageError
from shardwright.staging import Staging
from shardwright.storage import buckets, in_parallel, is_remote, readers
from shardwright.storage.objects import split_url

# In a staging folder, the folder of what pixels told (`shardwright.probe.cache`): it is for every dataset.
PROBED = "probed"


def in_use(folder: Path) -> bool:
    """Whether another process is writing a dataset in a folder, or in one right below it."""
    for lock in [*folder.glob(".lock"), *folder.glob("*/.lock")]:
        try:
            with Staging(str(lock.parent), lock.parent.name).locked():
                continue
        except UsageError:
            return True
    return False


def empty(staging_root: str) -> list[str]:
    """Deletes all that is staged, but not what pixels told; names what went.

    Raises:
        UsageError: another run is at work there.
    """
    if is_remote(staging_root):
        scheme, bucket, _ = split_url(staging_root)
        urls = [f"{scheme}://{bucket}/{info.name}" for info in buckets.list_objects(f"{staging_root}/")]
        list(in_parallel(buckets.delete, urls, readers(staging_root)))
        return urls
    names = sorted(os.listdir(staging_root)) if os.path.isdir(staging_root) else []
    folders = [Path(staging_root, name) for name in names if name != PROBED]
    for folder in folders:
        if in_use(folder):
            raise UsageError(f"{folder}: another run is writing a dataset there. Wait for it or end it.")
    for folder in folders:
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink(missing_ok=True)
    return [str(folder) for folder in folders]
