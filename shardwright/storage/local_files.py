"""Lists and opens files of this machine; no link and no name leads outside of the root."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import TextIO

from shardwright.errors import UsageError
from shardwright.storage.limits import TooLarge, check_size, regular
from shardwright.storage.listing import (
    EVERYTHING,
    EmptyListing,
    Found,
    Listing,
    Pattern,
    Refusal,
    SortedListing,
    has_wildcard,
    is_hidden,
    key_of,
    make_listing,
    split_glob,
)

# Bytes of a table that are read together. A row of masks has kilobytes: more than the usual buffer.
_TOGETHER = 1 << 17


def list_files(images: str, leave_out: str | None, one_file: bool) -> Listing:
    """Lists the files below a folder, or those that match a glob."""
    root, pattern = (images, EVERYTHING) if os.path.isdir(images) else _split(images, one_file)
    found, refused = _walk(root, pattern, _LeftOut(leave_out))
    return make_listing(images, os.path.abspath(root), pattern, found, refused)


def list_names(folder: str) -> list[str]:
    """Returns the names in a folder, sorted, without hidden ones and links to folders."""
    if not os.path.isdir(folder):
        return []
    found = (entry for entry in _entries(folder) if not is_hidden(entry.name))
    return sorted(entry.name for entry in found if not (entry.is_symlink() and os.path.isdir(entry.path)))


def open_text(path: str, most: int | None) -> TextIO:
    """Opens a table of labels; a message names `input.labels.path`."""
    try:
        file = open(path, encoding="utf-8-sig", newline="", buffering=_TOGETHER, opener=regular)  # noqa: SIM115
    except FileNotFoundError:
        raise UsageError(f"input.labels.path: {path} does not exist. Check the path.") from None
    except IsADirectoryError:
        raise UsageError(f"input.labels.path: {path} is a folder. Give a CSV file.") from None
    except OSError as error:
        raise UsageError(f"input.labels.path: {path} cannot be opened ({error.strerror}).") from None
    try:
        check_size(path, os.fstat(file.fileno()).st_size, most)
    except TooLarge as error:
        file.close()
        raise UsageError(f"input.labels.path: {path}: {error.strerror}. Split the file.") from None
    return file


def _split(images: str, one_file: bool) -> tuple[str, tuple[str, ...]]:
    if not has_wildcard(images):
        if one_file and os.path.isfile(images):
            folder, name = os.path.split(images)
            return folder or ".", (name,)
        if os.path.exists(images):
            raise UsageError(f"input.images: {images} is a file. Give its folder, or a glob.")
        raise EmptyListing(f"input.images: {images} does not exist. Check the path.")
    folder, pattern = split_glob(images)
    root = folder or "/"
    if not os.path.isdir(root):
        raise EmptyListing(f"input.images: the folder {root} of {images} does not exist. Check the path.")
    return root, pattern


class _LeftOut:
    """The file or folder that is not an input, recognized by its identity, not by the spelling of its path."""

    def __init__(self, path: str | None) -> None:
        self._path = os.path.realpath(path) if path else ""
        try:
            self._stat = os.stat(self._path) if path else None
        except OSError:
            self._stat = None

    def is_at(self, entry: os.DirEntry[str]) -> bool:
        """Returns whether an entry is this file; compares real paths, which is slow, only for the same inode."""
        if self._stat is None:
            return False
        try:
            same = entry.stat().st_ino == self._stat.st_ino and os.path.samestat(entry.stat(), self._stat)
        except OSError:
            return False  # It has just gone.
        return same and os.path.realpath(entry.path) == self._path  # Not another hard link to it.


def _walk(root: str, segments: tuple[str, ...], left_out: _LeftOut) -> tuple[SortedListing, list[Refusal]]:
    """Returns the files that match the pattern, and the refused ones."""
    pattern = Pattern(segments)
    real_root = os.path.join(os.path.realpath(root), "")
    found = SortedListing()
    refused: list[Refusal] = []
    folders = [("", pattern.start())]
    while folders:
        folder, states = folders.pop()
        above = os.path.join(folder, "")
        for entry in _entries(os.path.join(root, folder)):
            if is_hidden(entry.name):
                continue
            name = above + entry.name
            if entry.is_dir(follow_symlinks=False):
                below = pattern.into_folder(states, entry.name)
                if below and not left_out.is_at(entry):
                    folders.append((name, below))
            elif pattern.takes_file(states, entry.name):
                key, problem = key_of(name)
                problem = problem or _problem_of(entry, real_root)
                if problem:
                    refused.append(Refusal(key, *problem))
                elif not left_out.is_at(entry):
                    found.append(Found(key, key != name, name if key != name else key, entry.stat().st_size))
    return found, refused


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yields the entries of a folder, one by one, since an entry keeps all metadata once its size was read."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        raise UsageError(
            f"input.images: {folder} cannot be listed ({error.strerror}). Check its permissions."
        ) from None


def _problem_of(entry: os.DirEntry[str], real_root: str) -> tuple[str, str] | None:
    """Returns why an entry is not a file that we read. Reasons go into the ledger, so they have no absolute path."""
    try:
        mode = entry.stat().st_mode
    except OSError:
        return "broken_link", "a symbolic link that leads nowhere"
    if entry.is_symlink():
        if stat.S_ISDIR(mode):
            return "linked_folder", "a symbolic link to a folder is not followed; move or mount the folder here"
        if not os.path.realpath(entry.path).startswith(real_root):
            return "outside_root", "a symbolic link out of the input folder is not followed; copy the file here"
    return None if stat.S_ISREG(mode) else ("not_a_file", "neither a file nor a folder")
