"""Lists and opens objects as inputs, by the rules of `local`.

A folder is the beginning of names up to a slash. Objects whose names end with one are the folders' placeholders that
consoles make; names with empty segments, `.` or `..`, or with a NUL are refused, since no file could have them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TextIO

from shardwright.errors import CheckFailed, UsageError
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
    is_hidden,
    key_of,
    make_listing,
    split_glob,
)
from shardwright.storage.object_store import ObjectInfo
from shardwright.storage.parallel import map_threads
from shardwright.storage.paths import scheme_of, split_url

# One in so many objects of a listing is checked.
_EACH = 1000


def list_files(images: str, leave_out: str | None, one_file: bool) -> Listing:
    """Lists the objects below a prefix, or those that match a glob."""
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
    return _with_sure_checksums(make_listing(images, root, pattern, listed.found, listed.refused), listed.ends)


def check_not_encrypted(url: str, pin: str = "") -> None:
    """Checks that an object without its listed checksum is not one of those that `_with_sure_checksums` missed.

    Raises:
        CheckFailed: it is.
    """
    scheme = scheme_of(url)
    info = buckets.stat(url) if scheme is not None and scheme.lists_unsure_checksums else None
    if info is not None and not info.checksum and pin in ("", info.pin):
        raise CheckFailed(
            f"{url}: is encrypted with SSE-KMS or SSE-C, unlike other objects of the input: its ETag is not its MD5. "
            f"Copy it onto itself (`aws s3 cp {url} {url} --sse aws:kms --sse-kms-key-id KEY`), and run it again: if "
            "the newest object is encrypted, all are read before."
        )


def list_names(folder: str) -> list[str]:
    """Returns the names below a prefix up to the next slash, sorted, without hidden ones."""
    start = len(split_url(_folder(folder))[2])
    found = {name[start:].rstrip("/") for name in buckets.list_names(_folder(folder))}
    return sorted(name for name in found if name and not is_hidden(name))


def open_text(path: str, most: int | None) -> TextIO:
    """Opens a table of labels; a message names `input.labels.path`."""
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


def _with_sure_checksums(listing: Listing, ends: Iterable[ObjectInfo]) -> Listing:
    """Leaves out the checksums of a listing, if those of some objects are not the checksums of their bytes.

    A listing of S3 does not show which objects are encrypted. A bucket's default applies to the objects that are
    written after it was set. So the oldest object and the newest one are checked, and a few others.

    Args:
        listing: the objects.
        ends: the oldest and the newest one with a listed checksum.
    """
    scheme = scheme_of(listing.root)
    if not listing.checksums or scheme is None or not scheme.lists_unsure_checksums:
        return listing
    checksums = {f"{scheme.prefix}{split_url(listing.root)[1]}/{info.name}": info.checksum for info in ends}
    for i in range(0, len(listing.keys), _EACH):
        checksums[listing.path(i)] = listing.checksum(i)
    sure = map_threads(lambda url: not checksums[url] or _has(url, checksums[url]), checksums, buckets.CONNECTIONS)
    return listing if all(sure) else replace(listing, checksums=())


def _has(url: str, checksum: str) -> bool:
    """Returns whether an object has a listed checksum."""
    try:
        info = buckets.stat(url)
    except OSError:
        return False  # S3 answers with an error if the object is encrypted with a customer's key.
    return info is not None and info.checksum == checksum


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
        # The oldest and the newest object with a listed checksum.
        self.ends: tuple[ObjectInfo, ...] = ()
        self.found = SortedListing()
        self.refused: list[Refusal] = []
        pattern = Pattern(segments)
        folder = _folder(root)
        start = len(split_url(folder)[2])
        # A folder of masks is left out with everything in it, unless the images themselves are in it.
        inside = None if leave_out is None or folder.startswith(_folder(leave_out)) else _folder(leave_out)
        # The text before the first wildcard limits the listing.
        literal = re.split(r"[*?\[]", segments[0])[0]
        for info in buckets.list_objects(folder + literal) if literal else buckets.list_tree(folder):
            self.any = True
            name = info.name[start:]
            if not inside or not f"{folder}{name}/".startswith(inside):
                self._take(pattern, name, info)

    def _take(self, pattern: Pattern, name: str, info: ObjectInfo) -> None:
        parts = name.split("/")
        if any(is_hidden(part) and part not in (".", "..") for part in parts) or not pattern.matches(name):
            return
        key, problem = key_of(name)
        problem = problem or _problem_of(name, info)
        if problem:
            self.refused.append(Refusal(key, *problem))
        elif not name.endswith("/"):
            if info.checksum:
                first, last = self.ends or (info, info)
                self.ends = (min(first, info, key=_updated), max(info, last, key=_updated))
            self.found.append(Found(key, key != name, name if key != name else key, info.size, info.pin, info.checksum))


def _updated(info: ObjectInfo) -> float:
    return info.updated


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
