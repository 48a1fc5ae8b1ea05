"""The only package that opens input paths: listing, reading and hashing of images and tables.

A path is one of this machine or a URL, `gs://bucket/name` or `s3://bucket/name`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import chain
from typing import IO, NamedTuple, TextIO, TypeVar

import google_crc32c
import numpy as np
import numpy.typing as npt

from shardwright.storage import buckets, remote
from shardwright.storage import local_files as local
from shardwright.storage.checksum import BLAKE3, digest_of, md5_of, new_checksum
from shardwright.storage.file_pins import (
    KEY_BYTES,
    FileHash,
    cached_hashes,
    check_state,
    file_changed,
    hash_cached,
    look,
    states_of,
)
from shardwright.storage.limits import MOST_BYTES, MOST_TABLE_BYTES, check_size, open_regular, read_within
from shardwright.storage.listing import EmptyListing, Listing, Refusal, StringArray
from shardwright.storage.parallel import in_groups, map_threads, prefetch
from shardwright.storage.paths import Part, display_path, is_remote, part_path, split_part

__all__ = [
    "LOCAL_TOGETHER",
    "EmptyListing",
    "FileHash",
    "Listing",
    "Refusal",
    "cached_hashes",
    "check_not_encrypted",
    "check_table",
    "display_path",
    "file_changed",
    "file_states",
    "hash_bytes",
    "hash_file",
    "in_groups",
    "is_folder",
    "is_remote",
    "list_inputs",
    "list_names",
    "look_at_files",
    "map_threads",
    "matches_listed",
    "open_file",
    "open_table",
    "part_path",
    "read_bytes",
    "read_each",
    "read_hashed",
    "read_once",
    "read_start",
    "readers",
]

_CHUNK = 1 << 20
_LOCAL_READERS = 8
# Small local files that a thread gets together: passing them one by one would take a tenth of the time.
LOCAL_TOGETHER = 16

_Item = TypeVar("_Item")
# `None` where everything is listed and read anew.
_KNOWN: ContextVar[_Known | None] = ContextVar("known", default=None)


def list_inputs(images: str, leave_out: str | None = None, *, one_file: bool = False) -> Listing:
    """Lists a folder (with all folders in it) or a glob (`**` crosses folders).

    Hidden files are not inputs. A symbolic link counts when it leads to a file below the same root; links to folders
    are not followed, so nothing outside the root is ever read.

    Args:
        images: absolute folder or glob, or a URL of either.
        leave_out: absolute path of a file in the folder that is not an input: the table of labels.
        one_file: whether the path may be that of a file; its key is its name.

    Raises:
        EmptyListing: the folder is missing or empty, or the glob matches nothing.
        UsageError: the path is of a kind that is not read, or the bucket is missing or closed to us.
        StorageError: the bucket does not answer.
    """
    list_files = (remote if is_remote(images) else local).list_files
    if (known := _KNOWN.get()) is None:
        return list_files(images, leave_out, one_file)
    listings = known.listings
    # A file elsewhere is not in the listing anyway.
    root, place = (path if is_remote(path) else os.path.realpath(path) for path in (images, leave_out or ""))
    inside = leave_out if leave_out and place.startswith(root.rstrip("/") + "/") else None
    if (images, inside) not in listings:
        listings[images, inside] = list_files(images, inside, one_file)
    return listings[images, inside]


class _Known(NamedTuple):
    """What was listed, by folder or glob and what is left out of it; and files that were read, with their hashes."""

    listings: dict[tuple[str, str | None], Listing]
    files: dict[str, tuple[bytes, FileHash]]


@contextmanager
def read_once() -> Iterator[None]:
    """Lists each folder and reads each table once for what runs inside, which reads one input in several ways."""
    token = _KNOWN.set(_Known({}, {}))
    try:
        yield
    finally:
        _KNOWN.reset(token)


def read_hashed(path: str, most: int) -> tuple[bytes, FileHash]:
    """Returns the bytes of a file that has `most` at most, and their hashes; `OSError` if it cannot be read."""
    known = _KNOWN.get()
    if known is not None and path in known.files:
        return known.files[path]
    data = read_bytes(path, most=most)
    result = data, hash_bytes(data)
    if known is not None and len(data) + sum(len(other) for other, _ in known.files.values()) <= most:
        known.files[path] = result
    return result


def list_names(folder: str) -> list[str]:
    """Returns the names of the folders and files in a folder; none where there is no such folder.

    Hidden ones and links to folders are left out.
    """
    return (remote if is_remote(folder) else local).list_names(folder)


def is_folder(path: str) -> bool:
    """Returns whether a path is a folder."""
    return remote.is_folder(path) if is_remote(path) else os.path.isdir(path)


def open_table(path: str, most: int | None = None) -> TextIO:
    """Opens a CSV as UTF-8 text without a byte-order mark, line ends as they are.

    Args:
        path: the file.
        most: bytes that it may have, for one that is read whole.

    Raises:
        UsageError: it is missing, not a regular file, too large, or cannot be opened.
    """
    return (remote if is_remote(path) else local).open_text(path, most)


def check_table(path: str) -> None:
    """Refuses a table of this machine that is not a regular file, or too large, before anything of it is read.

    A missing one is left to those who know what it is for.

    Raises:
        UsageError: see above.
    """
    if not is_remote(path) and os.path.lexists(path):
        open_table(path, MOST_TABLE_BYTES).close()


def open_file(path: str, pin: str = "") -> IO[bytes]:
    """Opens a regular file for reading; it can be sought in. `OSError` if it cannot be. For `pin` see `read_bytes`."""
    return buckets.open_object(path, pin) if is_remote(path) else open_regular(path)


def read_bytes(path: str, pin: str = "", most: int = MOST_BYTES) -> bytes:
    """Returns a whole file, or the part of one that `part_path` names. `OSError` when it cannot be read.

    Args:
        path: the file.
        pin: the version of an object, or the state of a local file, that it must be (`Listing.pin`).
        most: bytes that it may have; of a larger file nothing is read, and that is an `OSError`, too.

    Raises:
        CheckFailed: the object is another version, or the file has changed.
    """
    return _read(split_part(path), pin, most)


def read_start(path: str, size: int, pin: str = "") -> bytes:
    """Returns at most the first `size` bytes of a file. See `read_bytes`."""
    part = split_part(path)
    stop = part.start + size
    return _read(part._replace(stop=stop if part.stop is None else min(stop, part.stop)), pin, MOST_BYTES)


def hash_bytes(data: bytes, algorithm: str = BLAKE3) -> FileHash:
    """Returns the hashes of the bytes of a file that was read already; `algorithm` is that of the content ID."""
    return FileHash(digest_of(data, algorithm), google_crc32c.value(data))


def matches_listed(data: bytes, listed: str) -> bool:
    """Returns whether bytes have a checksum that a store lists (`ObjectInfo.checksum`)."""
    kind, _, value = listed.partition(":")
    if kind == "md5":
        return md5_of(data) == value
    return kind == "crc32c" and f"{google_crc32c.value(data):08x}" == value


def check_not_encrypted(path: str, pin: str = "") -> None:
    """Checks why bytes that were read do not have the listed checksum: an encrypted object has another one.

    Args:
        path: the file.
        pin: see `read_bytes`.

    Raises:
        CheckFailed: the object is encrypted, and the listing did not show that.
    """
    if is_remote(path):
        remote.check_not_encrypted(split_part(path).path, pin)


def hash_file(path: str, pin: str = "", algorithm: str = BLAKE3) -> FileHash | None:
    """Returns the hashes of a file's bytes, or `None` when it cannot be read. See `read_bytes` and `cached_hashes`.

    Args:
        path: the file.
        pin: see `read_bytes`.
        algorithm: of the content ID.
    """
    try:
        if pin or split_part(path).stop is not None:
            # An image: one request, and the store's checksum of the whole object.
            return hash_bytes(read_bytes(path, pin), algorithm)
        with open_file(path) as file:
            if is_remote(path):
                return _hash_all(file, algorithm)
            return hash_cached(file.fileno(), algorithm, lambda: _hash_all(file, algorithm))
    except OSError:
        return None


def file_states(listing: Listing) -> bytes:
    """Returns the system's metadata of listed files without reading them; it changes when a file changes.

    Objects have none: a read with the pin (`Listing.pin`) returns the version that was listed, or an error.

    Returns:
        As many bytes for each file, in order; empty for a bucket.
    """
    return b"" if is_remote(listing.root) else states_of(listing.path(i) for i in range(len(listing.keys)))


def look_at_files(listing: Listing, sampled: npt.NDArray[np.bool_]) -> tuple[StringArray, npt.NDArray[np.uint8]]:
    """Returns the states of this machine's files, to be pins of a listing, and digests of samples of their bytes.

    Args:
        listing: the files.
        sampled: of which files bytes are read, bool (n,).

    Returns:
        The state of each file; empty for one that cannot be opened, or has changed in the last seconds. And digests,
        uint8 (n, 16): files of one size whose digests differ are not equal; zeros where nothing was read.
    """
    now, count = time.time_ns(), len(listing.keys)
    samples = np.zeros((count, KEY_BYTES), np.uint8)

    def look_at(positions: range) -> list[str]:
        states = []
        for i in positions:
            state, sample = look(listing.path(i), now, sampled=bool(sampled[i]))
            samples[i] = np.frombuffer(sample, np.uint8)
            states.append(state)
        return states

    some = (range(begin, min(count, begin + LOCAL_TOGETHER)) for begin in range(0, count, LOCAL_TOGETHER))
    return StringArray(chain.from_iterable(map_threads(look_at, some, _LOCAL_READERS))), samples


def _hash_all(file: IO[bytes], algorithm: str) -> FileHash:
    digest = new_checksum(algorithm)
    checksum = 0
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        checksum = google_crc32c.extend(checksum, chunk)
    return FileHash(digest.digest(), checksum)


def _read(part: Part, pin: str, most: int) -> bytes:
    if not is_remote(part.path):
        check = partial(check_state, part.path, pin=pin) if pin else None
        return read_within(part.path, part.start, part.stop, most, check)
    if part.stop is not None:
        check_size(part.path, part.stop - part.start, most)
    elif most < MOST_BYTES:
        info = buckets.stat(part.path)
        check_size(part.path, 0 if info is None else info.size - part.start, most)
    data = buckets.read(part.path, pin, part.start, part.stop)
    check_size(part.path, len(data), most)
    return data


def read_each(
    root: str,
    items: Iterable[_Item],
    path_of: Callable[[_Item], str],
    size_of: Callable[[_Item], int],
    pin_of: Callable[[_Item], str] = lambda _: "",
) -> Iterator[tuple[_Item, bytes | None]]:
    """Reads many files below a root, the next ones while one is worked with. See `read_bytes`.

    Args:
        root: the folder of all of them.
        items: what the files are for, taken a few ahead.
        path_of: the file of an item.
        size_of: its bytes.
        pin_of: the version that it must be; see `read_bytes`.

    Yields:
        Each item with its bytes, in order; `None` where they cannot be read.

    Raises:
        CheckFailed: a file or an object has changed.
    """
    if not is_remote(root):
        return prefetch(items, lambda item: split_part(path_of(item)), pin_of)

    def read(item: _Item) -> tuple[_Item, bytes | None]:
        try:
            return item, read_bytes(path_of(item), pin_of(item))
        except OSError:
            return item, None

    return map_threads(read, items, buckets.CONNECTIONS, size_of)


def readers(path: str) -> int:
    """Returns how many files of a root to read concurrently, for `map_threads`."""
    return buckets.CONNECTIONS if is_remote(path) else _LOCAL_READERS
