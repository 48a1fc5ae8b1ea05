"""The only package that opens input paths: listing, reading and hashing of images and tables."""

from __future__ import annotations

import hashlib
from typing import IO

from shardwright.errors import UsageError
from shardwright.storage import local
from shardwright.storage.listing import Listing, Refusal
from shardwright.storage.parallel import in_parallel

__all__ = ["Listing", "Refusal", "hash_file", "in_parallel", "list_inputs", "open_table", "read_bytes", "read_start"]

_CHUNK = 1 << 20


def list_inputs(images: str, leave_out: str | None = None) -> Listing:
    """Lists a folder (with all folders in it) or a glob (`**` crosses folders).

    Hidden files are no inputs. A symbolic link counts when it leads to a file below the same root; links to folders are
    not followed, so nothing outside the root is ever read.

    Args:
        images: absolute folder or glob.
        leave_out: absolute path of a file that is no input though it may lie there: the table of labels.

    Raises:
        UsageError: the folder is missing or empty, the glob matches nothing, or the path is of a kind that this version
            does not read.
    """
    _refuse_remote("input.images", images)
    return local.list_files(images, leave_out)


def open_table(path: str) -> IO[str]:
    """Opens a CSV as UTF-8 text without a byte-order mark, line ends as they are.

    Raises:
        UsageError: it is missing, no file, or cannot be opened.
    """
    _refuse_remote("input.labels.path", path)
    return local.open_text(path)


def read_bytes(path: str) -> bytes:
    """A whole file. `OSError` when it cannot be read."""
    with open(path, "rb") as file:
        return file.read()


def read_start(path: str, size: int) -> bytes:
    """At most the first `size` bytes of a file. `OSError` when it cannot be read."""
    with open(path, "rb") as file:
        return file.read(size)


def hash_file(path: str) -> bytes | None:
    """SHA-256 of a file's bytes, or `None` when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError:
        return None
    return digest.digest()


def _refuse_remote(option: str, path: str) -> None:
    if "://" in path:
        raise UsageError(f"{option}: {path} is on a bucket, which is not in this version. Copy it to a local folder.")
