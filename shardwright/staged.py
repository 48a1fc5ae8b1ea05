"""What lies in a staging folder: who uses it, and how it is emptied."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from shardwright.errors import UsageError
from shardwright.staging import Staging
from shardwright.storage import buckets, in_parallel, is_remote, readers
from shardwright.storage.objects import split_url

# What is staged: datasets by fingerprint, those of a TensorFlow, checkpoints. Whatever else lies there is not ours.
_OURS = re.compile(r"[0-9a-f]{64}|tensorflow-[^/]+|training", re.ASCII)
# In a staging folder, the folder of what pixels told (`shardwright.probe.cache`): it is for every dataset.
PROBED = "probed"


def staged_folders(staging_root: str) -> Iterator[Path]:
    """What is staged in a folder of this machine, by name; nothing where there is no such folder."""
    if os.path.isdir(staging_root):
        with os.scandir(staging_root) as entries:
            found = sorted(e.name for e in entries if _OURS.fullmatch(e.name) and e.is_dir(follow_symlinks=False))
        yield from (Path(staging_root, name) for name in found)


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
    """Deletes all that is staged, but not what pixels told, nor what is not ours; names what went.

    Raises:
        UsageError: another run is at work there.
    """
    if is_remote(staging_root):
        root = staging_root.rstrip("/")
        start = len(split_url(root)[2]) + 1
        names = (info.name[start:] for info in buckets.list_objects(f"{root}/"))
        urls = [f"{root}/{name}" for name in names if _OURS.fullmatch(name.partition("/")[0])]
        list(in_parallel(buckets.delete, urls, readers(staging_root)))
        return urls
    folders = list(staged_folders(staging_root))
    for folder in folders:
        if in_use(folder):
            raise UsageError(f"{folder}: another run is writing a dataset there. Wait for it or end it.")
    for folder in folders:
        shutil.rmtree(folder)
    return [str(folder) for folder in folders]
