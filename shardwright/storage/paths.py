"""Paths and URLs: the schemes of object stores, parts of files, and the locations of outputs.

An image in a TFRecord is a range of the file's bytes. Its path is that of the file, NUL, and the range. No file system
and no object store allows a NUL in a name, so such a path cannot mean anything else.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.untrusted.json_text import is_text

_MARK = "\0"
# The rest of a folder's URL: without the characters of a glob or of a pattern.
_FOLDER = r"(/[^\s*?\[\]{}]*)?"
# cloud.google.com/storage/docs/naming-buckets: a name with dots may be longer, but none of its parts; no IP addresses.
_GCS_BUCKET = r"(?![^/]*[^./]{64})(?!\d+(\.\d+){3}(/|$))[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]"


@dataclass(frozen=True)
class Scheme:
    """The URLs of one kind of object store.

    Attributes:
        prefix: the beginning of its URLs.
        mount_folder: the folder of containers in which its buckets are mounted, below the root.
        bucket_pattern: a regular expression for the name of a bucket.
        ranged_reads: whether TensorFlow reads parts of an object quickly, so that the loader needs no local copy.
        lists_unsure_checksums: whether a listing has checksums that are not those of the bytes, if the store encrypts
            them; `ObjectStore.stat` leaves these out.
    """

    prefix: str
    mount_folder: str
    bucket_pattern: str = r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]"
    ranged_reads: bool = False
    lists_unsure_checksums: bool = False

    @property
    def name(self) -> str:
        """The prefix without `://`."""
        return self.prefix.removesuffix("://")

    def is_folder_url(self, text: str) -> bool:
        """Returns whether a text is the URL of a bucket or of a folder in one."""
        return re.fullmatch(re.escape(self.prefix) + self.bucket_pattern + _FOLDER, text) is not None


GCS = Scheme("gs://", "gcs", _GCS_BUCKET, ranged_reads=True)


S3 = Scheme("s3://", "s3", lists_unsure_checksums=True)


# S3's protocol in a cluster, as Kubeflow names its own store: mounted only, not read here.
MINIO = Scheme("minio://", "minio")


# The stores that this package reads and writes, and those that containers mount.
SCHEMES = (GCS, S3)


MOUNTED_SCHEMES = (*SCHEMES, MINIO)


def scheme_of(path: str) -> Scheme | None:
    """Returns the scheme of a URL of a store that is read and written here, else `None`."""
    return next((scheme for scheme in SCHEMES if path.startswith(scheme.prefix)), None)


def is_remote(path: str) -> bool:
    """Returns whether a path is a URL, of a known store or not."""
    return "://" in path


def split_url(url: str) -> tuple[str, str, str]:
    """Returns scheme, bucket and name of `gs://bucket/name`; the name may be empty."""
    scheme, _, rest = url.partition("://")
    bucket, _, name = rest.partition("/")
    return scheme, bucket, name


class Part(NamedTuple):
    """A range of a file.

    Attributes:
        path: the file.
        start: first byte.
        stop: the byte after the last, `None` for the end of the file.
    """

    path: str
    start: int = 0
    stop: int | None = None


def part_path(path: str, start: int, stop: int) -> str:
    """Returns the path of bytes `start` to `stop` of a file."""
    return f"{path}{_MARK}{start}:{stop}"


def split_part(path: str) -> Part:
    """Returns the file and range that a path means; all of it for a file's own path."""
    file, mark, limits = path.partition(_MARK)
    if not mark:
        return Part(path)
    start, _, stop = limits.partition(":")
    return Part(file, int(start), int(stop))


def display_path(path: str) -> str:
    """Returns a path for messages."""
    file, start, stop = split_part(path)
    return file if stop is None else f"{file}, bytes {start} to {stop}"


def real_path(path: str | os.PathLike[str]) -> str:
    """Returns a path without links, or a URL without slashes at its end."""
    return str(path).rstrip("/") if is_remote(str(path)) else os.path.realpath(path)


def check_utf8(path: str | os.PathLike[str], option: str) -> None:
    """Refuses a path that TensorFlow and JSON cannot hold.

    Raises:
        UsageError: it is not UTF-8.
    """
    if not is_text(os.fspath(path)):
        raise UsageError(f"{option}: {os.fspath(path)!r} is not UTF-8. Rename the file or folder.")


def check_replaceable(folder: str | os.PathLike[str]) -> None:
    """Refuses the current folder where a new folder takes its place: a shell would be left in one that is gone.

    Raises:
        UsageError: it is the current folder.
    """
    if os.path.samefile(folder, os.curdir):
        raise UsageError(f"{folder}: is the current folder, which cannot be replaced. Name a folder in it.")


def check_not_inside(out: str | os.PathLike[str], dataset: str) -> None:
    """Refuses an output inside of a dataset that it is made of.

    Raises:
        UsageError: it is inside.
    """
    if is_inside(out, dataset):
        raise UsageError(f"{out}: is inside the dataset {dataset}. Name another folder.")


def is_inside(out: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Returns whether a path is below a folder."""
    return real_path(out).startswith(os.path.join(real_path(folder), ""))


def overlap(one: str, other: str) -> bool:
    """Returns whether one of two folders is, or is in, the other."""
    one, other = (path.rstrip("/") + "/" for path in (one, other))
    return one.startswith(other) or other.startswith(one)
