"""Files inside files: an image in a TFRecord is a range of its bytes, and has a path like any other.

Such a path is that of the file, NUL, and the range. No file system and no object store takes a NUL in a name, so it
can mean nothing else.

Where an output lies: beside what it is staged, and in what it must not lie.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.storage.objects import is_remote

_MARK = "\0"


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
    """The path of bytes `start` to `stop` of a file."""
    return f"{path}{_MARK}{start}:{stop}"


def split_part(path: str) -> Part:
    """The file and range that a path means; all of it for a file's own path."""
    file, mark, limits = path.partition(_MARK)
    if not mark:
        return Part(path)
    start, _, stop = limits.partition(":")
    return Part(file, int(start), int(stop))


def display_path(path: str) -> str:
    """A path for messages."""
    file, start, stop = split_part(path)
    return file if stop is None else f"{file}, bytes {start} to {stop}"


def real_path(path: str | os.PathLike[str]) -> str:
    """A path without links, or a URL without slashes at its end."""
    return str(path).rstrip("/") if is_remote(str(path)) else os.path.realpath(path)


def staging_next_to(out: str | os.PathLike[str]) -> str:
    """The staging folder of an output where the configuration names none."""
    folder, name = os.path.split(real_path(out))
    return f"{folder}/.{name}.staging"


def check_not_inside(out: str | os.PathLike[str], dataset: str) -> None:
    """Refuses an output inside of a dataset that it is made of.

    Raises:
        UsageError: it lies there.
    """
    if is_inside(out, dataset):
        raise UsageError(f"{out}: lies inside {dataset}, whose files are all its own. Name another folder.")


def is_inside(out: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether an output would be written somewhere below a folder."""
    return real_path(out).startswith(os.path.join(real_path(folder), ""))
