"""Files inside files: an image in a TFRecord is a range of its bytes, and has a path like any other.

Such a path is that of the file, NUL, and the range. No file system and no object store takes a NUL in a name, so it
can mean nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

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


def shown_path(path: str) -> str:
    """A path for messages."""
    file, start, stop = split_part(path)
    return file if stop is None else f"{file}, bytes {start} to {stop}"
