"""Artifacts of a bucket as folders of this machine: many objects at a time, whatever their sizes."""

from __future__ import annotations

from pathlib import Path

from shardwright.errors import DatasetError
from shardwright.storage import buckets, in_parallel, readers
from shardwright.storage.objects import split_url
from shardwright.writing.mirror import Mirror


def fetch_folder(url: str, folder: Path) -> None:
    """Copies all objects below a URL into a folder of this machine, which is made.

    Raises:
        DatasetError: the name of an object leads out of the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    url = url.rstrip("/")
    start = len(split_url(url)[2]) + 1
    root = folder.resolve()
    source = Mirror(url)

    def fetch(name: str) -> None:
        target = (root / name).resolve()
        if not target.is_relative_to(root):
            raise DatasetError(f"{url}/{name}: its name leads out of the artifact. Delete it.")
        target.parent.mkdir(parents=True, exist_ok=True)
        source.place(name, target)

    # Some tools make an empty object for a folder.
    names = (info.name[start:] for info in buckets.list_objects(f"{url}/"))
    list(in_parallel(fetch, (name for name in names if name and not name.endswith("/")), readers(url)))
