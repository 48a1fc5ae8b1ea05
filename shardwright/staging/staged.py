"""Lists and deletes staged datasets and trainings, and shows the progress of shards that other processes write."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from shardwright.errors import StorageError, UsageError
from shardwright.running.progress import Progress, progress
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import buckets, durable, is_remote
from shardwright.storage.locks import lock_folder
from shardwright.storage.mirror import remove_all, working_folder
from shardwright.storage.object_store import ObjectInfo
from shardwright.storage.own_names import SET_ASIDE, remove_tree
from shardwright.storage.paths import split_url

# Names of staged folders: datasets by fingerprint, those of a TensorFlow, checkpoints; and folders that `clean` had
# begun to delete. Other names are not ours.
_OURS = re.compile(rf"({SET_ASIDE.pattern})?([0-9a-f]{{64}}|[0-9a-f]{{32}})", re.ASCII)
_GROUPS = re.compile(r"tensorflow-[0-9][^/]*|training", re.ASCII)
# In a staging folder, the cache of probed files (`shardwright.ingest.known_files`), which all datasets share.
PROBED = "probed"
_SECONDS_BETWEEN_LOOKS = 0.5
# There each check is a listing, which costs money.
_ON_A_BUCKET = 10.0


def staged_folders(staging_root: str) -> Iterator[Path]:
    """Yields the staged folders on this machine, by name; none where there is no such staging folder."""
    for name in _folders(staging_root):
        if _is_ours(name):
            yield Path(staging_root, name)
        elif _GROUPS.fullmatch(name):
            below = (f"{name}/{one}" for one in _folders(f"{staging_root}/{name}"))
            yield from (Path(staging_root, one) for one in below if _is_ours(one))


def remove_empty_groups(staging_root: str) -> None:
    """Deletes the folders of groups, such as those of one TensorFlow, in which no dataset is staged any more."""
    for name in filter(_GROUPS.fullmatch, _folders(staging_root)):
        with suppress(OSError):  # It stays while something is in it.
            os.rmdir(f"{staging_root}/{name}")


def is_in_use(folder: Path) -> bool:
    """Returns whether another process is at work in a folder, writing a dataset or training, or it is not ours."""
    try:
        lock_folder(folder).close()
    except UsageError:
        return True
    return False


def clear(staging_root: str) -> list[str]:
    """Deletes all staged folders, but neither the cache of probed files nor foreign files; returns their names.

    Raises:
        UsageError: another run is active there, or a training.
    """
    if is_remote(staging_root):
        return _empty_bucket(staging_root.rstrip("/"))
    folders = list(staged_folders(staging_root))
    with ExitStack() as held:
        # Lock all of them before the first is deleted; a run that starts now waits, or gets an error.
        for folder in folders:
            held.enter_context(lock_folder(folder))
        for folder in folders:
            remove_tree(folder)
            if folder.exists():
                raise StorageError(f"{folder}: cannot be deleted. Delete it yourself, then run the command again.")
        remove_empty_groups(staging_root)
        if folders:
            # After a power failure they do not come back: they may contain images that a user wants forgotten.
            durable.flush([staging_root])
    return [str(folder) for folder in folders]


def _empty_bucket(root: str) -> list[str]:
    """Does the same on a bucket, with the working folders of this machine that belong to it."""
    urls = _staged_urls(root)
    with ExitStack() as held:
        working = [working_folder(url) for url in urls]
        for url, folder in zip(urls, working, strict=True):
            try:
                held.enter_context(lock_folder(folder))
            except UsageError:
                raise UsageError(f"{url}: another run is active there. Wait for it or end it.") from None
        remove_all(urls)
        for folder in working:
            remove_tree(folder)
    if again := _staged_urls(root):
        # By a run of an earlier version, which has no lease.
        raise UsageError(
            f"{again[0]}: a run on another machine wrote it while the rest was deleted. Stop that run, then run the "
            "command again."
        )
    return urls


def staged_objects(root: str) -> Iterator[tuple[str, ObjectInfo]]:
    """Yields the objects of staged datasets and trainings on a bucket, each with the URL of its folder."""
    start = len(split_url(root)[2]) + 1
    for info in buckets.list_objects(f"{root}/"):
        name = info.name[start:]
        if _is_ours(name) and _place(name) != name:
            yield f"{root}/{_place(name)}", info


def _staged_urls(root: str) -> list[str]:
    return sorted({folder for folder, _ in staged_objects(root)})


def _place(name: str) -> str:
    """Returns the staged dataset, or training, that one of our names belongs to."""
    first, second, *_ = [*name.split("/"), ""]
    return f"{first}/{second}" if _GROUPS.fullmatch(first) else first


def _is_ours(name: str) -> bool:
    """Returns whether a name below a staging folder, of a folder or of a file in it, is one of ours."""
    first, _, rest = name.partition("/")
    return _OURS.fullmatch(first) is not None or (
        _GROUPS.fullmatch(first) is not None and _OURS.fullmatch(rest.partition("/")[0]) is not None
    )


def _folders(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


@contextmanager
def shard_progress(
    staging: Staging,
    planned: Sequence[PlannedShard],
    label: str,
    bounds: Sequence[Sequence[int]] | None = None,
    sizes: Sequence[int] | None = None,
) -> Iterator[None]:
    """Shows the progress of shards that are written into staging while the block runs.

    Args:
        staging: the staging folder.
        planned: the shards.
        label: the name of the work.
        bounds: where the parts of each shard begin, and where the last one ends; then images are counted, not shards.
        sizes: bytes of the images of each shard, where they are counted, too.
    """
    cuts = dict(zip(planned, [(0, 1)] * len(planned) if bounds is None else bounds, strict=True))
    size_of = dict(zip(planned, [0] * len(planned) if sizes is None else sizes, strict=True))
    left = {shard: cuts[shard][-1] for shard in staging.unfinished(planned)}
    ended = threading.Event()
    with progress(sum(left.values()), label, size=sum(size_of[shard] for shard in left)) as shown:
        watcher = threading.Thread(target=_watch, args=(staging, left, cuts, size_of, shown, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _watch(
    staging: Staging,
    left: dict[PlannedShard, int],
    cuts: Mapping[PlannedShard, Sequence[int]],
    size_of: Mapping[PlannedShard, int],
    shown: Progress,
    ended: threading.Event,
) -> None:
    while left:
        last_look = ended.wait(_ON_A_BUCKET if staging.mirror else _SECONDS_BETWEEN_LOOKS)
        # In this order: a part that is gone at the second look is in a shard that is finished then.
        parts = staging.written_parts() if any(len(cuts[shard]) > 2 for shard in left) else {}
        unfinished = {*staging.unfinished([*left])}
        now = {shard: images for shard, images in left.items() if shard in unfinished}
        # Parts that are joined are gone.
        now = {shard: min(images, cuts[shard][-1] - parts.get(shard, 0)) for shard, images in now.items()}
        written = {shard: images - now.get(shard, 0) for shard, images in left.items()}
        size = sum(size_of[shard] * images // max(1, cuts[shard][-1]) for shard, images in written.items())
        shown.advance(sum(written.values()), size)
        left = now
        if last_look:
            return
