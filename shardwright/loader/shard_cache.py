"""Copies of shards from an object store in a folder of this machine: checked, shared between processes, bounded.

Each dataset has a folder, named by the digest of its manifest and laid out as the dataset is. A file appears there when
its BLAKE3 is the manifest's, so that every file in it is complete; two processes that fetch the same file do it twice,
without harm. A process holds a shared lock on its folder until it ends. When room is needed, folders without a lock are
deleted, the least recently used first.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.errors import DatasetError, UsageError
from shardwright.storage import map_threads, open_file
from shardwright.storage.checksum import new_checksum
from shardwright.storage.durable import replace as replace_file
from shardwright.storage.locks import lock_file
from shardwright.storage.own_names import check_own_tree, is_own, make_own_folder, open_own_file, remove_tree

_CHUNK = 4 << 20
_FILES_AT_ONCE = 4
_LOCK = "lock"
_LOCKING = os.O_RDWR | os.O_CREAT
# The folder of a dataset: the begin of a digest.
_OURS = re.compile(r"[0-9a-f]{32}", re.ASCII)

# The locks that this process holds: folder -> descriptor.
_held: dict[str, int] = {}


def default_folder() -> str:
    """Returns the folder of copies by default."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "shardwright", "shards")


@dataclass(frozen=True)
class ShardCache:
    """The place for copies of shards, and its limit.

    Attributes:
        folder: on this machine; made where missing. Empty: `default_folder()`.
        most_bytes: the most that all copies there may take together.

    Raises:
        UsageError: `most_bytes` is less than 1.
    """

    folder: str = ""
    most_bytes: int = 100 * 10**9

    def __post_init__(self) -> None:
        if self.most_bytes < 1:
            raise UsageError(f"most_bytes is {self.most_bytes}; give a number of bytes from 1.")


def cache_shards(dataset: ImageDataset, shards: Sequence[LocatedShard], copies: ShardCache) -> ImageDataset:
    """Copies some shards of a dataset, and their indexes, to this machine.

    Args:
        dataset: one on an object store.
        shards: the shards to copy.
        copies: where to keep them.

    Returns:
        The dataset with the local folder as its root, which contains only these shards.

    Raises:
        UsageError: there is no room for them.
        DatasetError: a file on the object store is missing, or differs from the manifest.
        StorageError: the object store does not answer.
    """
    root = Path(copies.folder or default_folder()).absolute()
    folder = root / dataset.manifest.digest[:32]
    wanted = {shard.path: (shard.file, shard.bytes, shard.checksum) for shard in shards}
    try:
        root.mkdir(parents=True, exist_ok=True)
        with os.fdopen(open_own_file(root / _LOCK, _LOCKING), "a", encoding="ascii") as turn:
            lock_file(turn, wait=True)
            make_own_folder(folder)
            if str(folder) not in _held:
                check_own_tree(folder)
                _held[str(folder)] = open_own_file(folder / _LOCK, _LOCKING, 0o600)
                lock_file(_held[str(folder)], shared=True, wait=True)
            os.utime(folder / _LOCK)  # The least recently used folders go first.
            files = {path: folder / path for path in wanted}
            missing = [
                path for path, file in files.items() if not file.is_file() or file.stat().st_size != wanted[path][1]
            ]
            _make_room(root, folder, sum(wanted[path][1] for path in missing), copies)
    except OSError as error:
        raise UsageError(f"{root}: cannot hold copies of shards ({error.strerror}). Give another folder.") from None
    for shard in shards:
        name = shard.index.removeprefix(f"{dataset.root}/")
        if not (folder / name).is_file():
            wanted[name] = (shard.index, -1, dataset.manifest.parts.get(name, ""))
            missing.append(name)
    list(map_threads(lambda path: _fetch(wanted[path][0], folder / path, wanted[path][2]), missing, _FILES_AT_ONCE))
    return replace(dataset, root=str(folder))


def _fetch(url: str, file: Path, checksum: str) -> None:
    make_own_folder(file.parent)
    digest = new_checksum()
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".fetching-")
    try:
        with os.fdopen(handle, "wb") as out, open_file(url) as source:
            while data := source.read(_CHUNK):
                digest.update(data)
                out.write(data)
        if digest.hexdigest() != checksum:
            raise DatasetError(f"{url}: its BLAKE3 is not the manifest's. Run `shardwright verify` to find the damage.")
        replace_file(name, file)
    except FileNotFoundError:
        raise DatasetError(f"{url}: listed in the manifest, but missing. Write the dataset again.") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error}). Give another folder for copies.") from None
    finally:
        Path(name).unlink(missing_ok=True)


def _make_room(root: Path, folder: Path, needed: int, copies: ShardCache) -> None:
    """Deletes copies of other datasets until the needed bytes fit. The caller holds the lock."""
    others = [entry for entry in root.iterdir() if _OURS.fullmatch(entry.name) and entry != folder and is_own(entry)]
    sizes = {entry: sum(file.stat().st_size for file in entry.rglob("*.tfrecord")) for entry in [folder, *others]}
    locks = {other: other / _LOCK for other in others}
    for other in sorted(others, key=lambda other: locks[other].stat().st_mtime if locks[other].is_file() else 0.0):
        if sum(sizes.values()) + needed > copies.most_bytes and _remove_unused(other):
            del sizes[other]
    there = sum(sizes.values())
    if there + needed > copies.most_bytes:
        raise UsageError(
            f"{root}: copies of {needed / 1e9:.2f} GB of shards do not fit: {there / 1e9:.2f} GB are in use there, and "
            f"{copies.most_bytes / 1e9:.2f} GB are allowed. Allow more, or read the dataset directly (copies=False)."
        )


def _remove_unused(folder: Path) -> bool:
    """Deletes a folder that no process uses; returns whether it did."""
    try:
        lock = open_own_file(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        return False  # Another program made the folder.
    try:
        if not lock_file(lock):
            return False
        remove_tree(folder)
        return True
    finally:
        os.close(lock)
