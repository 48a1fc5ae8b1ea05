"""Leaves out datasets and runs in a folder of images, whose files are neither images nor annotations."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterable, Sequence

from shardwright.dataset.manifest import BUILD_FILE, MANIFEST_FILE, Manifest
from shardwright.errors import ShardwrightError, UsageError
from shardwright.running.progress import counted
from shardwright.storage import Listing, buckets, is_remote, read_bytes
from shardwright.storage.listing import Pattern
from shardwright.storage.paths import real_path

# Files that a dataset of ours has, and a run (`shardwright.lineage.ancestry`).
_OUTPUTS = (frozenset((MANIFEST_FILE, BUILD_FILE)), frozenset(("metadata.sqlite",)))
_SHOWN = 3


def output_folders(keys: Iterable[str]) -> list[str]:
    """Returns the folders of datasets and runs, by the paths of their files; the folder itself may be a dataset."""
    names = {name for output in _OUTPUTS for name in output}
    found: dict[str, set[str]] = {}
    for key in keys:
        folder, _, name = key.rpartition("/")
        if folder and name in names:
            found.setdefault(folder, set()).add(name)
    folders = [folder for folder, there in found.items() if any(there >= output for output in _OUTPUTS)]
    return [folder for folder in folders if not is_below(folder.rpartition("/")[0], folders)]


def is_below(key: str, folders: Collection[str]) -> bool:
    """Returns whether a path is one of some folders, or in one of them."""
    return any(key == folder or key.startswith(folder + "/") for folder in folders)


def without_outputs(listing: Listing) -> tuple[Listing, str]:
    """Leaves out the files of datasets and runs.

    A folder of nothing else stays as it is: then their records are the input.

    Returns:
        The listing, and a note for the user; an empty text if there is nothing to leave out.
    """
    folders = output_folders(listing.keys)
    if not folders:
        return listing, ""
    kept = [i for i, key in enumerate(listing.keys) if not is_below(key, folders)]
    if not kept:
        return listing, ""
    refused = [refusal for refusal in listing.refused if not is_below(refusal.key, folders)]
    shown = ", ".join(sorted(folders)[:_SHOWN]) + (", …" if len(folders) > _SHOWN else "")
    files = counted(len(listing.keys) - len(kept), "file is", "files are")
    return dataclasses.replace(
        listing.part(kept), refused=refused
    ), f"images: {files} of datasets or runs, and left out: {shown}"


def without_excluded(listing: Listing, patterns: Sequence[str]) -> tuple[Listing, str]:
    """Leaves out the files that `input.exclude` names.

    Args:
        listing: the files.
        patterns: globs of paths below the listing's root; that of a folder stands for everything in it.

    Returns:
        The listing, and a note for the user with the number of files of each pattern.

    Raises:
        UsageError: nothing is left.
    """
    if not patterns:
        return listing, ""
    # `**` at the end stands for all files below, as in `input.images`.
    chosen = [Pattern(tuple(one.strip("/").split("/")) + (("*",) if one.endswith("**") else ())) for one in patterns]
    counts, folders = [0] * len(patterns), {"": 0}

    def number(path: str) -> int:
        """Returns the number of the pattern that leaves a path out, from 1; 0 where none does."""
        return next((i for i, pattern in enumerate(chosen, 1) if pattern.matches(path)), 0)

    def of_folder(folder: str) -> int:
        if folder not in folders:
            folders[folder] = of_folder(folder.rpartition("/")[0]) or number(folder)
        return folders[folder]

    kept = []
    for i, key in enumerate(listing.keys):
        found = of_folder(key.rpartition("/")[0]) or number(key)
        if found:
            counts[found - 1] += 1
        else:
            kept.append(i)
    if not kept:
        raise UsageError(f"input.exclude: leaves out all {len(listing.keys)} files of {listing.root}. Name fewer.")
    refused = [one for one in listing.refused if not (of_folder(one.key.rpartition("/")[0]) or number(one.key))]
    shown = ", ".join(f"{one} {count:,}" for one, count in zip(patterns, counts, strict=True))
    return dataclasses.replace(listing.part(kept), refused=refused), f"images: left out by input.exclude: {shown}"


def check_not_in_dataset(out: str) -> None:
    """Refuses a place inside of a dataset of ours; the place itself may be one.

    Raises:
        UsageError: it is in one.
    """
    place = real_path(out)
    folder = os.path.dirname(place)
    while folder != place and is_remote(folder) == is_remote(place):
        if _is_dataset(folder):
            raise UsageError(f"{out}: is inside the dataset {folder}. Name another folder.")
        place, folder = folder, os.path.dirname(folder)


def _is_dataset(folder: str) -> bool:
    file = f"{folder}/{MANIFEST_FILE}"
    try:
        if is_remote(folder) and buckets.stat(file) is None:
            return False
        Manifest.from_json(read_bytes(file).decode("utf-8"), file)
    except (OSError, ShardwrightError, UnicodeDecodeError):
        # The file of another program. Or the account has rights to the folder of the output only.
        return False
    return True
