"""Checks the places and sizes that a Parquet file states, before pyarrow allocates memory for them.

A page of some kilobytes may state, and unpack to, gigabytes. Only the headers of the pages are read here. Without
these checks, the memory of a read depends on numbers that anyone can write into a file.

After apache/parquet-format, src/main/thrift/parquet.thrift (PageHeader: 2 uncompressed_page_size, 3
compressed_page_size, 5 data_page_header, 7 dictionary_page_header, 8 data_page_header_v2; 1 num_values in each) and the
compact protocol of Apache Thrift.
"""

from __future__ import annotations

import os
from typing import IO, Any, Final, NamedTuple

from shardwright.storage import read_start

MAGIC, ENCRYPTED = b"PAR1", b"PARE"
_TAIL = 8
# A footer describes each column of each row group in some hundred bytes.
_MOST_FOOTER: Final = 64 << 20
# Bytes that are read for the header of a page. It may contain the least and the largest value of the page.
_HEADERS: Final = (256, 1 << 16, 1 << 22)
_SIZE, _COMPRESSED, _VALUES, _OF_PAGE = 2, 3, 1, (5, 7, 8)
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, 12
_DEEPEST = 8


class PageError(ValueError):
    """A file is not Parquet, or states what it does not contain; a sentence without its end."""


class Pages(NamedTuple):
    """The pages of a column within one group of rows.

    Attributes:
        largest: bytes of the largest page, unpacked.
        values: the number of values in all pages.
    """

    largest: int
    values: int


def is_parquet(start: bytes) -> bool:
    """Returns whether a file with this beginning is Parquet."""
    return start[:4] in (MAGIC, ENCRYPTED)


def is_parquet_file(path: str, content: bytes | None = None) -> bool:
    """Returns whether a file, or its content where that was read already, begins as Parquet; a missing one does not."""
    try:
        return is_parquet(read_start(path, len(MAGIC)) if content is None else content)
    except OSError:
        return False


def check_footer(file: IO[bytes]) -> int:
    """Checks where the description of the columns is; returns the size of the file.

    Raises:
        PageError: the file is cut off, encrypted, or not Parquet.
    """
    size = file.seek(0, os.SEEK_END)
    if size < len(MAGIC) + _TAIL:
        raise PageError(f"it has {size} bytes, fewer than an empty Parquet file")
    file.seek(size - _TAIL)
    tail = file.read(_TAIL)
    if tail[4:] == ENCRYPTED:
        raise PageError("it is encrypted")
    if tail[4:] != MAGIC:
        raise PageError("it does not end as a Parquet file does, so it is cut off or damaged")
    footer = int.from_bytes(tail[:4], "little")
    if not 0 < footer <= size - len(MAGIC) - _TAIL:
        raise PageError(f"its footer states {footer:,} bytes, and the file has {size:,}")
    if footer > _MOST_FOOTER:
        raise PageError(f"its footer has {footer:,} bytes, and at most {_MOST_FOOTER:,} are read")
    return size


def scan_pages(file: IO[bytes], start: int, stop: int) -> Pages:
    """Reads the headers of the pages of a column within one group of rows.

    Args:
        file: the file.
        start: the first byte of the first page.
        stop: the byte after the last page.

    Raises:
        PageError: a header is damaged, or a page goes beyond `stop`.
    """
    largest = values = 0
    while start < stop:
        header, length = _read_header(file, start, stop)
        size, compressed = header.get(_SIZE, -1), header.get(_COMPRESSED, -1)
        counts = [header[kind].get(_VALUES) for kind in _OF_PAGE if isinstance(header.get(kind), dict)]
        if not all(isinstance(number, int) and number >= 0 for number in (size, compressed, *counts)):
            raise PageError(f"the page at byte {start} states no size, or one below 0")
        start += length + compressed
        largest, values = max(largest, size, compressed), values + sum(counts)
    if start > stop:
        raise PageError(f"a page ends at byte {start:,}, after its column at byte {stop:,}")
    return Pages(largest, values)


def _read_header(file: IO[bytes], start: int, stop: int) -> tuple[dict[int, Any], int]:
    for size in _HEADERS:
        file.seek(start)
        data = file.read(min(size, stop - start))
        try:
            return _read_struct(data, 0, 0)
        except IndexError:
            if len(data) < size:
                break
    raise PageError(f"the header of the page at byte {start:,} is damaged")


def _read_struct(data: bytes, place: int, depth: int) -> tuple[dict[int, Any], int]:
    """Returns the numbers and structures by field, and the place after them. `IndexError` at the end of the data."""
    if depth > _DEEPEST:
        raise PageError("the header of a page is damaged")
    found: dict[int, Any] = {}
    field = 0
    while True:
        head = data[place]
        place += 1
        if head == 0:
            return found, place
        step, kind = head >> 4, head & 15
        if step:
            field += step
        else:
            field, place = _read_number(data, place)
        if kind in _BOOLEANS:
            continue
        if kind == _STRUCT:
            found[field], place = _read_struct(data, place, depth + 1)
        elif kind in _INTEGERS:
            found[field], place = _read_number(data, place)
        elif kind == _BINARY:
            length, place = _read_varint(data, place)
            place += length
        elif kind in (_BYTE, _DOUBLE):
            place += 1 if kind == _BYTE else 8
        else:
            raise PageError("the header of a page is damaged")


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    """Reads a number with a sign: zigzag."""
    number, place = _read_varint(data, place)
    return (number >> 1) ^ -(number & 1), place


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        part = data[place]
        place += 1
        number |= (part & 127) << shift
        shift += 7
        if part < 128:
            return number, place
        if shift > 63:
            raise PageError("the header of a page is damaged")
