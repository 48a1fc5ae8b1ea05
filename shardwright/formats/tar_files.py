"""The members of a tar file one after the other: ustar with the long names of GNU and PAX, compressed by gzip or not.

Python's `tarfile` reads a header of any length whole, and the versions before 3.11.10 take a time that is quadratic in
it (CVE-2024-6232). Here headers are limited, records of PAX are read in one pass, and nothing that was read is kept.

After POSIX.1-2017, `pax`, and the GNU tar manual, "Basic Tar Format".
"""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from shardwright.tfrecords.scan import UNPACKING, Unpacked, is_compressed, unpacked_start
from shardwright.untrusted.budget import Budget

# Names have at most 4 KiB. macOS and SELinux store attributes of some kilobytes with a file.
BUDGET = Budget("members and attributes", objects=200_000, bytes_each=64, header=1 << 20)
# A file has one header of each kind, and one for all may come before it.
_MOST_HEADERS = 8

_MAGIC = slice(257, 262)
_BLOCK = 512
_CHUNK = 1 << 20
_LONGEST_NUMBER = 20
_SPARSE = "GNU.sparse."
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE)
_HEADERS = (*_PAX, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)


class TarError(ValueError):
    """A tar file is damaged; a sentence without its end."""


class Member(NamedTuple):
    """A file in a tar file.

    Attributes:
        path: its name.
        size: its bytes.
        kind: what it is where it is not a plain file, or empty.
    """

    path: str
    size: int
    kind: str


def begins_as_tar(start: bytes) -> bool:
    """Returns whether a file with this beginning is a tar file, compressed by gzip or not."""
    if is_compressed(start):
        start = unpacked_start(start, _BLOCK)
    return start[_MAGIC] == b"ustar"


def read_members(file: IO[bytes], wanted: Callable[[Member], bool]) -> Iterator[tuple[str, bytes]]:
    """Yields path and content of the files in a tar file; every header and the end are checked.

    Args:
        file: the tar file, open for reading; it can be sought in.
        wanted: whether a member is read. It is asked about everything but folders.

    Raises:
        TarError: it is damaged.
        OverBudget: it is made to use up memory or time.
    """
    tar = _Tar(file)
    try:
        for member in tar.members():
            if wanted(member):
                yield member.path, tar.content()
    except (zlib.error, EOFError) as error:
        raise TarError(str(error)) from None


class _Tar:
    """Reads a tar file forward.

    Args:
        file: see `read_members`.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._size = file.seek(0, os.SEEK_END)
        file.seek(0)
        self._packed = is_compressed(file.read(_BLOCK))
        file.seek(0)
        self._file = io.BufferedReader(Unpacked(file, UNPACKING), _CHUNK) if self._packed else file
        self._at = self._left = 0
        self._shared: dict[str, str] = {}
        self._count = 0

    def members(self) -> Iterator[Member]:
        """Yields the members; see `read_members`."""
        while (found := self._next()) is not None:
            info, values = found
            self._add(1)
            values = {**self._shared, **values}
            path = values.get("path", info.name).rstrip("/")
            size = _number(values["size"]) if "size" in values else info.size
            if size < 0:
                raise TarError(f"{path!r} has {size} bytes")
            if info.type in _LINKS:
                kind = "a link"
            elif info.type not in _FILES or _SPARSE in values:
                kind = "not a plain file"
            else:
                kind = ""
            if info.isdir():
                continue
            self._left = size
            yield Member(path, size, kind)
            self._skip(self._left)
            self._skip(-size % _BLOCK)

    def _next(self) -> tuple[tarfile.TarInfo, dict[str, str]] | None:
        """Returns the header of the next member, with the values of the headers before it; `None` at the end."""
        values: dict[str, str] = {}
        for _ in range(_MOST_HEADERS):
            block = self._file.read(_BLOCK)
            self._at += len(block)
            if not block:
                raise EOFError("its end is missing")
            if not block.strip(b"\0"):
                # Zeros, and nothing else: a damaged header of zeros is no end.
                while rest := self._file.read(_CHUNK):
                    if rest.count(0) < len(rest):
                        raise TarError(f"no header of a file is at byte {self._at}")
                return None
            try:
                info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError as error:
                raise TarError(f"no header of a file is at byte {self._at - len(block)} ({error})") from None
            if info.type not in _HEADERS:
                return info, values
            BUDGET.check_header(info.size, "header of a long name or of attributes in it")
            self._left = info.size
            data = self.content()
            self._skip(-info.size % _BLOCK)
            if info.type in _PAX:
                values |= self._pax_values(data)
            elif info.type == tarfile.XGLTYPE:
                self._shared |= self._pax_values(data)
            elif info.type == tarfile.GNUTYPE_LONGNAME:
                values["path"] = data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        raise TarError(f"more than {_MOST_HEADERS - 1} headers come before a file's own header")

    def _pax_values(self, data: bytes) -> dict[str, str]:
        """Returns what counts of the records of a PAX header, each `LENGTH KEY=VALUE` and a line end."""
        values: dict[str, str] = {}
        place = 0
        while place < len(data) and data[place]:
            space = data.find(b" ", place, place + _LONGEST_NUMBER)
            length = _number(data[place:space].decode("ascii", "replace")) if space > place else 0
            record = data[space + 1 : place + length]
            if length > len(data) - place or not record.endswith(b"\n") or b"=" not in record:
                raise TarError("invalid header: a record of PAX is damaged")
            key, _, value = record[:-1].partition(b"=")
            if key in (b"path", b"size"):
                values[key.decode()] = value.decode("utf-8", "surrogateescape")
            elif key.startswith(_SPARSE.encode()):
                values[_SPARSE] = ""
            self._add(1)
            place += length
        return values

    def _add(self, objects: int) -> None:
        self._count += objects
        BUDGET.check_objects(self._count, self._size)

    def content(self) -> bytes:
        """Returns the bytes of the member, or of the header, whose turn it is."""
        data, size = self._file.read(self._left), self._left
        self._at, self._left = self._at + size, 0
        if len(data) < size:
            raise EOFError("unexpected end of data")
        return data

    def _skip(self, size: int) -> None:
        self._at += size
        if not self._packed:
            if self._file.seek(size, os.SEEK_CUR) > self._size:
                raise EOFError("unexpected end of data")
            return
        while size > 0:
            if not (data := self._file.read(min(size, _CHUNK))):
                raise EOFError("unexpected end of data")
            size -= len(data)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < _LONGEST_NUMBER):
        raise TarError(f"invalid header: {text[:_LONGEST_NUMBER]!a} is not a number of bytes")
    return int(text)
