"""Lists and opens objects as inputs, by the rules of `local`.

A folder is the beginning of names up to a slash. Objects whose names end with one are the folders' placeholders that
consoles make; names with empty segments, `.` or `..`, or with a NUL are refused, since no file could have them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import IO

from shardwright.errors import UsageError
from shardwright.storage import buckets
from shardwright.storage.limits import TooLarge, check_size
from shardwright.storage.listing import (
    EVERYTHING,
    EmptyListing,
    Found,
    Listing,
    Pattern,
    Refusal,
    SortedListing,
    has_wildcard,
    key_of,
    make_listing,
    split_glob,
)
from shardwright.storage.objects import ObjectInfo
from shardwright.storage.paths import split_url


def list_files(images: str, leave_out: str | None, one_file: bool) -> Listing:
    """See `shardwright.storage.list_inputs`."""
    images = _trimmed(images)
    if has_wildcard(split_url(images)[1]):
        raise UsageError(f"input.images: {images} has a wildcard in the bucket's name. Name one bucket.")
    globbed = has_wildcard(images) and not is_folder(images)
    root, pattern = split_glob(images) if globbed else (images, EVERYTHING)
    listed = _Listed(root, pattern, leave_out)
    if not listed.any and one_file and not globbed and split_url(images)[2] and buckets.stat(images) is not None:
        root, _, name = images.rpartition("/")
        pattern = (name,)
        listed = _Listed(root, pattern, leave_out)
    if not listed.any:
        _check_exists(images, root)
    return make_listing(images, root, pattern, listed.found, listed.refused)


def list_names(folder: str) -> list[str]:
    """See `shardwright.storage.list_names`."""
    start = len(split_url(_folder(folder))[2])
    found = {name[start:].rstrip("/") for name in buckets.list_names(_folder(folder))}
    return sorted(name for name in found if name and not name.startswith("."))


def open_text(path: str, most: int | None) -> IO[str]:
    """See `shardwright.storage.open_table`."""
    try:
        info = buckets.stat(path) if most is not None else None
        check_size(path, 0 if info is None else info.size, most)
        return io.TextIOWrapper(buckets.open_object(path), encoding="utf-8-sig", newline="")
    except TooLarge as error:
        raise UsageError(f"input.labels.path: {path}: {error.strerror}. Split the file.") from None
    except FileNotFoundError:
        if is_folder(path):
            raise UsageError(f"input.labels.path: {path} is a folder. Give a CSV file.") from None
        raise UsageError(f"input.labels.path: {path} does not exist. Check the path.") from None


def is_folder(url: str) -> bool:
    """Returns whether there is any object below a URL; a whole bucket is a folder even when it is empty."""
    below = any(True for _ in buckets.list_objects(_folder(url)))
    return below or not split_url(_trimmed(url))[2]


def _trimmed(url: str) -> str:
    scheme, bucket, name = split_url(url)
    return f"{scheme}://{bucket}/{name}".rstrip("/") if bucket else url


def _folder(url: str) -> str:
    return _trimmed(url) + "/"


def _check_exists(images: str, root: str) -> None:
    """Finds out why nothing was listed; an existing folder without a match passes.

    Raises:
        UsageError: it is a file, or there is no such folder.
    """
    if root == images and split_url(images)[2]:
        if buckets.stat(images) is not None:
            raise UsageError(f"input.images: {images} is a file. Give its folder, or a glob.")
        raise EmptyListing(f"input.images: {images} does not exist. Check the path.")
    if not is_folder(root):
        raise EmptyListing(f"input.images: the folder {root} of {images} does not exist. Check the path.")


class _Listed:
    """The objects below a root that the pattern matches, and the refused ones.

    Args:
        root: URL of the folder.
        segments: the pattern.
        leave_out: see `list_files`.
    """

    def __init__(self, root: str, segments: tuple[str, ...], leave_out: str | None) -> None:
        self.any = False
        self.found = SortedListing()
        self.refused: list[Refusal] = []
        pattern = Pattern(segments)
        folder = _folder(root)
        start = len(split_url(folder)[2])
        # A folder of masks is left out with everything in it, unless the images themselves are in it.
        inside = None if leave_out is None or folder.startswith(_folder(leave_out)) else _folder(leave_out)
        # The text before the first wildcard limits the listing.
        literal = _literal(segments[0])
        for info in buckets.list_objects(folder + literal) if literal else buckets.list_tree(folder):
            self.any = True
            name = info.name[start:]
            if not inside or not f"{folder}{name}/".startswith(inside):
                self._take(pattern, name, info)

    def _take(self, pattern: Pattern, name: str, info: ObjectInfo) -> None:
        parts = name.split("/")
        if any(part.startswith(".") and part not in (".", "..") for part in parts) or not _takes(pattern, parts):
            return
        key, problem = key_of(name)
        problem = problem or _problem_of(name, info)
        if problem:
            self.refused.append(Refusal(key, *problem))
        elif not name.endswith("/"):
            self.found.append(Found(key, key != name, name if key != name else key, info.size, info.pin, info.checksum))


def _literal(segment: str) -> str:
    """Returns the part of a pattern's segment before its first wildcard."""
    return segment[: next((i for i in range(len(segment)) if has_wildcard(segment[: i + 1])), len(segment))]


def _takes(pattern: Pattern, parts: Iterable[str]) -> bool:
    *folders, name = parts
    states = pattern.start()
    for folder in folders:
        states = pattern.into_folder(states, folder)
    return pattern.takes_file(states, name)


def _problem_of(name: str, info: ObjectInfo) -> tuple[str, str] | None:
    """Returns why an object's name cannot be that of a file."""
    if name.endswith("/") or not name:
        # A placeholder that has bytes is data, and data is not left out silently.
        return (
            ("bad_name", "the object's name ends with a slash, and it is not empty; rename it") if info.size else None
        )
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        return "bad_name", "the object's name has an empty segment, `.`, `..` or a NUL; rename it"
    return None
