"""Limits of what is read: only regular files, up to a size that is compared before anything is read.

The limits protect a run from input that was made to use up its memory: sparse files of terabytes, lines without an end.
They are far above what the formats need. `images.max_bytes` is an option; the others are documented in
`docs/how-to/ingest.md`.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from typing import IO, TextIO

from shardwright.untrusted.budget import Budget, OverBudget

# Protocol buffers end at 2 GiB, so no larger file can become a record, and no larger record can be read.
MOST_BYTES = 2**31 - 1
# Read whole and kept as Python objects of several times the size.
MOST_JSON_BYTES = 4 << 30
# Tables are streamed, but hashed first; the largest known have three gigabytes.
MOST_TABLE_BYTES = 16 << 30
# A table that is not larger is read once and kept for all passes.
MOST_KEPT_BYTES = 32 << 20
# Lists of names: of classes, of the images of a split.
MOST_LIST_BYTES = 256 << 20
# A mask of a large image is a field of megabytes.
LONGEST_LINE = 64 << 20
# A row names an image, and something about it.
LINES = Budget("lines", objects=1_000_000, bytes_each=3)
_LINES_BETWEEN = 10_000


class TooLarge(OSError):
    """A file, or a part of one, is larger than what is read at once."""

    def __init__(self, path: str, size: int, most: int) -> None:
        super().__init__(errno.EFBIG, f"it has {size:,} bytes, more than the {most:,} that are read at once", path)

    def __reduce__(self) -> tuple[type[OSError], tuple[object, ...]]:
        return (OSError, (self.errno, self.strerror, self.filename))


class LineTooLong(ValueError):
    """A line of a table has no end within `LONGEST_LINE`, or there are more lines than a table has."""


def open_regular(path: str, *, buffered: bool = True) -> IO[bytes]:
    """Opens a file of this machine; a pipe or a device, which may never answer or never end, is refused unread.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "a path cannot have a null character", path)
    return open(path, "rb", buffering=-1 if buffered else 0, opener=regular)


def regular(path: str, flags: int) -> int:
    """Opens a regular file, for the parameter `opener` of `open`."""
    # Without O_NONBLOCK, opening a pipe waits for somebody who writes into it.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise OSError(errno.EINVAL, "it is a pipe, a device or a socket, not a regular file", path)
    return descriptor


def read_within(
    path: str, start: int, stop: int | None, most: int, check: Callable[[int], None] | None = None
) -> bytes:
    """Reads a file of this machine, or a part of it.

    Args:
        path: the file.
        start: the first byte.
        stop: the byte after the last, `None` for the end of the file.
        most: bytes that are read at most.
        check: is called with the descriptor after everything was read.

    Raises:
        TooLarge: there is more. Nothing was read.
        OSError: it cannot be read.
    """
    with open_regular(path, buffered=False) as file:
        end = os.fstat(file.fileno()).st_size
        size = (end if stop is None else min(stop, end)) - start
        check_size(path, size, most)
        if start:
            file.seek(start)
        # Memory is taken for all bytes that are asked for. One call reads them, but for a part of gigabytes.
        data = file.read() if stop is None else file.read(max(0, size))
        while stop is not None and len(data) < size and (more := file.read(size - len(data))):
            data += more
        if check is not None:
            check(file.fileno())
        return data


def check_size(path: str, size: int, most: int | None) -> None:
    """Raises `TooLarge` where a file, or a part of one, has more bytes than may be read."""
    if most is not None and size > most:
        raise TooLarge(path, size, most)


def bounded_lines(file: TextIO) -> Iterator[str]:
    """Yields the lines of a text file that was just opened (`open_table`), with their ends.

    They are decoded here: the file's own reader of lines takes three times as long.

    Raises:
        LineTooLong: one is longer than any that a table needs, or most are empty.
    """
    most, number, size, rest, due = LONGEST_LINE, 0, 0, b"", LINES.objects
    readline = file.buffer.readline
    while data := rest if rest.endswith(b"\n") else rest + readline(most + 1 - len(rest)):
        rest = b""
        if len(data) > most:
            # Lines may end with a carriage return alone. The last byte may be the first half of an end.
            cut = data.rfind(b"\r", 0, len(data) - (2 if data.endswith(b"\r\n") else 1)) + 1
            if not cut:
                raise LineTooLong(f"line {number + 1} is longer than {most:,} bytes")
            data, rest = data[:cut], data[cut:]
        line = data.decode("utf-8" if number else "utf-8-sig")
        cut = data.find(b"\r")
        whole = cut < 0 or data[cut:] == b"\r\n"
        for part in (line,) if whole else io.StringIO(line, newline=""):
            number += 1
            size += len(part)
            if number > due:
                try:
                    LINES.check_objects(number, size)
                except OverBudget as error:
                    raise LineTooLong(str(error)) from None
                due += _LINES_BETWEEN
            yield part
