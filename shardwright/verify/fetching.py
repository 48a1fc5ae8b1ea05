"""A dataset on an object store, brought here to be verified: the small files at once, a shard at a time."""

from __future__ import annotations

import shutil
from pathlib import Path

from shardwright.storage import buckets, in_parallel, open_file, readers
from shardwright.storage.objects import split_url
from shardwright.verify.shards import ShardCheck, ShardTask, check_shard

_CHUNK = 4 << 20
_SHARDS = "Split-"


def is_read(name: str) -> bool:
    """Whether a file, by its name in the dataset, lies where readers look for shards, indexes or the ledger."""
    return name.startswith(_SHARDS) or name.split("/")[0] in ("index", "ledger")


def fetch_all_but_shards(url: str, folder: Path) -> list[str]:
    """Fetches what is small.

    Args:
        url: of the dataset.
        folder: an empty one.

    Returns:
        The names of all files, shards too, relative to the dataset.

    Raises:
        UsageError: the bucket is missing or closed to us.
        StorageError: the object store does not answer.
    """
    start = len(split_url(url)[2]) + 1
    names = [info.name[start:] for info in buckets.list_objects(f"{url}/") if not info.name.endswith("/")]
    small = [name for name in names if not name.startswith(_SHARDS) and _stays_inside(name)]
    list(in_parallel(lambda name: _fetch(url, name, folder / name), small, readers(url)))
    return names


def check_fetched(task: ShardTask) -> ShardCheck:
    """`check_shard` of a shard that is fetched for it, and deleted afterwards."""
    file = Path(task.shard.file)
    try:
        if _stays_inside(task.shard.path):
            _fetch(task.url, task.shard.path, file)
        return check_shard(task)
    finally:
        file.unlink(missing_ok=True)


def _stays_inside(name: str) -> bool:
    """Whether a name from a stranger leads to no other place than below the folder it is joined to."""
    return "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))


def _fetch(url: str, name: str, target: Path) -> None:
    """Fetches a file, if it is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open_file(f"{url}/{name}") as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, _CHUNK)
    except FileNotFoundError:
        return
