"""What lies in a staging folder: who uses it, and how it is emptied."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from shardwright.errors import StorageError, UsageError
from shardwright.storage import buckets, in_parallel, is_remote, readers
from shardwright.storage.objects import split_url
from shardwright.writing.leases import at_work
from shardwright.writing.mirror import working_folder
from shardwright.writing.staging import Staging

# What is staged: datasets by fingerprint, those of a TensorFlow, checkpoints; and what `clean` had begun to delete.
# Whatever else lies there is not ours.
_OURS = re.compile(r"(\.deleted-)?([0-9a-f]{64}|[0-9a-f]{32})", re.ASCII)
_GROUPS = re.compile(r"tensorflow-[^/]+|training", re.ASCII)
# In a staging folder, the folder of what pixels told (`shardwright.probe.cache`): it is for every dataset.
PROBED = "probed"


def staged_folders(staging_root: str) -> Iterator[Path]:
    """What is staged in a folder of this machine, by name; nothing where there is no such folder."""
    for name in _folders(staging_root):
        if _is_ours(name):
            yield Path(staging_root, name)
        elif _GROUPS.fullmatch(name):
            below = (f"{name}/{one}" for one in _folders(f"{staging_root}/{name}"))
            yield from (Path(staging_root, one) for one in below if _is_ours(one))


def in_use(folder: Path) -> bool:
    """Whether another process is writing a dataset in a folder."""
    for lock in folder.glob(".lock"):
        try:
            with Staging(str(lock.parent), lock.parent.name).locked():
                continue
        except UsageError:
            return True
    return False


def empty(staging_root: str) -> list[str]:
    """Deletes all that is staged, but not what pixels told, nor what is not ours; names what went.

    Raises:
        UsageError: another run is at work there; a training elsewhere is seen only by what it writes meanwhile.
    """
    if is_remote(staging_root):
        return _empty_bucket(staging_root.rstrip("/"))
    folders = list(staged_folders(staging_root))
    for folder in folders:
        if in_use(folder):
            raise UsageError(f"{folder}: another run is writing a dataset there. Wait for it or end it.")
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            raise StorageError(f"{folder}: cannot be deleted. Delete it yourself, then do this again.")
        if _GROUPS.fullmatch(folder.parent.name):
            with suppress(OSError):
                folder.parent.rmdir()
    return [str(folder) for folder in folders]


def _empty_bucket(root: str) -> list[str]:
    """The same on a bucket, with the folders of this machine that went with what is staged there."""
    names = _staged_names(root)
    working = {name: working_folder(f"{root}/{name}") for name in sorted({_place(name) for name in names})}
    for name, folder in working.items():
        # Trainings keep no lease.
        if in_use(folder) or at_work(f"{root}/{name}"):
            raise UsageError(f"{root}/{name}: another run is writing a dataset there. Wait for it or end it.")
    urls = [f"{root}/{name}" for name in names]
    list(in_parallel(buckets.delete, urls, readers(root)))
    for folder in working.values():
        shutil.rmtree(folder, ignore_errors=True)
    if again := _staged_names(root):
        # Nobody but itself knows of a run on another machine.
        raise UsageError(
            f"{root}/{again[0]}: was written while the rest was deleted, by a run on another machine. End it, then do "
            "this again."
        )
    return urls


def _staged_names(root: str) -> list[str]:
    """The names below a staging folder on a bucket that are ours."""
    start = len(split_url(root)[2]) + 1
    names = (info.name[start:] for info in buckets.list_objects(f"{root}/"))
    return [name for name in names if _is_ours(name)]


def _place(name: str) -> str:
    """The staged dataset, or training, that one of our names belongs to."""
    first, second, *_ = [*name.split("/"), ""]
    return f"{first}/{second}" if _GROUPS.fullmatch(first) else first


def _is_ours(name: str) -> bool:
    """Whether a name below a staging folder, of a folder or of anything in it, is one that we give."""
    first, _, rest = name.partition("/")
    return _OURS.fullmatch(first) is not None or (
        _GROUPS.fullmatch(first) is not None and _OURS.fullmatch(rest.partition("/")[0]) is not None
    )


def _folders(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
