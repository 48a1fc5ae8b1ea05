"""What lies in a staging folder: who uses it, and how it is emptied.

Shows how many shards are finished while others write them: Beam's workers may be in other processes or machines.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from shardwright.errors import StorageError, UsageError
from shardwright.progress import Progress, progress
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import buckets, is_remote
from shardwright.storage.leases import remove_all
from shardwright.storage.locks import LOCK_FILE, is_locked
from shardwright.storage.mirror import working_folder
from shardwright.storage.objects import split_url

# What is staged: datasets by fingerprint, those of a TensorFlow, checkpoints; and what `clean` had begun to delete.
# Whatever else lies there is not ours.
_OURS = re.compile(r"(\.deleted-)?([0-9a-f]{64}|[0-9a-f]{32})", re.ASCII)
_GROUPS = re.compile(r"tensorflow-[^/]+|training", re.ASCII)
# In a staging folder, the folder of what pixels told (`shardwright.ingest.known_files`): it is for every dataset.
PROBED = "probed"


def staged_folders(staging_root: str) -> Iterator[Path]:
    """What is staged in a folder of this machine, by name; nothing where there is no such folder."""
    for name in _folders(staging_root):
        if _is_ours(name):
            yield Path(staging_root, name)
        elif _GROUPS.fullmatch(name):
            below = (f"{name}/{one}" for one in _folders(f"{staging_root}/{name}"))
            yield from (Path(staging_root, one) for one in below if _is_ours(one))


def is_in_use(folder: Path) -> bool:
    """Whether another process is at work in a folder: it writes a dataset, or trains."""
    if (folder / LOCK_FILE).exists():
        try:
            is_locked(folder).close()
        except UsageError:
            return True
    return False


def clear(staging_root: str) -> list[str]:
    """Deletes all that is staged, but not what pixels told, nor what is not ours; names what went.

    Raises:
        UsageError: another run is at work there, or a training.
    """
    if is_remote(staging_root):
        return _empty_bucket(staging_root.rstrip("/"))
    folders = list(staged_folders(staging_root))
    with ExitStack() as held:
        # All of them before the first goes, and whoever comes now waits, or is told.
        for folder in folders:
            held.enter_context(is_locked(folder))
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
    places = _staged_places(root)
    with ExitStack() as held:
        working = [working_folder(place) for place in places]
        for place, folder in zip(places, working, strict=True):
            try:
                held.enter_context(is_locked(folder))
            except UsageError:
                raise UsageError(f"{place}: another run is at work there. Wait for it or end it.") from None
        remove_all(places)
        for folder in working:
            shutil.rmtree(folder, ignore_errors=True)
    if again := _staged_places(root):
        # By one that keeps no lease: it began by an earlier version.
        raise UsageError(
            f"{again[0]}: was written while the rest was deleted, by a run on another machine. End it, then do this "
            "again."
        )
    return places


def _staged_places(root: str) -> list[str]:
    """The staged datasets and trainings on a bucket."""
    start = len(split_url(root)[2]) + 1
    names = (info.name[start:] for info in buckets.list_objects(f"{root}/"))
    return sorted({f"{root}/{_place(name)}" for name in names if _is_ours(name) and _place(name) != name})


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


_SECONDS_BETWEEN_LOOKS = 0.5
# There every look is a listing, which costs.
_ON_A_BUCKET = 10.0


@contextmanager
def shard_progress(staging: Staging, planned: Sequence[PlannedShard], label: str) -> Iterator[None]:
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
