"""Finds artifacts: in one parent folder, in the folder of a run, below folders that a user names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.errors import UsageError
from shardwright.lineage.record import LINEAGE_FILE
from shardwright.storage import buckets, is_folder, is_remote, list_names, map_threads, readers
from shardwright.storage.paths import split_url

# The file that every folder of a run on this machine has, and the folders in it that contain artifacts.
METADATA_FILE = "metadata.sqlite"
ARTIFACTS, PUSHED = "artifacts", "pushed"
# Below these an artifact keeps only its own files.
_INSIDE = re.compile(r"Split-.*|Format-.*|\.system|variables|index|ledger|origins|assets")


def run_root_of(place: str) -> str | None:
    """Returns the folder of the run that contains a place on this machine; `None` if there is no such run."""
    folder = place
    while not is_remote(folder) and folder != os.path.dirname(folder):
        if os.path.isfile(os.path.join(folder, METADATA_FILE)):
            return folder
        folder = os.path.dirname(folder)
    return None


def known_places(place: str, search: Iterable[str] = ()) -> Iterator[str]:
    """Yields the folders of artifacts that may be related to one: in its run or its parent folder, and further ones.

    Args:
        place: the folder of the artifact.
        search: further folders and URLs.

    Raises:
        UsageError: one of them is not a folder.
    """
    run_root = run_root_of(place)
    if run_root is not None:
        for folder in (ARTIFACTS, PUSHED):
            yield from find_artifacts(f"{run_root}/{folder}")
    else:
        parent = place.rpartition("/")[0]
        siblings = [f"{parent}/{name}" for name in list_names(parent)]
        yield from (one for one in map_threads(_artifact_or_none, siblings, readers(place)) if one)
    for folder in search:
        folder = folder.rstrip("/") if is_remote(folder) else os.path.abspath(folder)
        if not is_folder(folder):
            raise UsageError(f"{folder}: is not a folder. Name one that contains artifacts.")
        yield from find_artifacts(folder)


def find_artifacts(folder: str) -> Iterator[str]:
    """Yields every artifact below a folder, and the folder itself if it is one; links are not followed."""
    if is_remote(folder):
        scheme, bucket, _ = split_url(folder)
        for info in buckets.list_objects(f"{folder}/"):
            if info.name.rpartition("/")[2] == LINEAGE_FILE:
                yield f"{scheme}://{bucket}/{info.name.rpartition('/')[0]}"
        return
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _INSIDE.fullmatch(name))
        if LINEAGE_FILE in files or MANIFEST_FILE in files:
            yield here


def find_files(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yields every file below a folder or a URL whose name ends in a certain way, but for the files of datasets."""
    if is_remote(folder):
        scheme, bucket, _ = split_url(folder)
        for info in buckets.list_objects(f"{folder}/"):
            if info.name.endswith(endings):
                yield f"{scheme}://{bucket}/{info.name}"
        return
    for here, folders, files in os.walk(folder):
        folders[:] = [] if MANIFEST_FILE in files else sorted(folders)
        yield from (os.path.join(here, name) for name in sorted(files) if name.endswith(endings))


def contains(place: str, name: str) -> bool:
    """Returns whether a file is in a folder or below a URL."""
    file = f"{place}/{name}"
    return buckets.stat(file) is not None if is_remote(file) else os.path.isfile(file)


def _artifact_or_none(place: str) -> str | None:
    return place if contains(place, LINEAGE_FILE) or contains(place, MANIFEST_FILE) else None
