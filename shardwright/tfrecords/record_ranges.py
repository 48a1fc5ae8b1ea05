"""Records by their places, read in large pieces, many in one request where they lie near each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from shardwright.storage import in_parallel, part_path, read_bytes
from shardwright.tfrecords.records import RecordError, unframe

# Bytes of a request, and of what may lie between two wanted records of one.
_PIECE = 4 << 20
_GAP = 1 << 17
# Requests in flight: with 30 ms each, a gigabyte a second; and what waits stays under a hundred megabytes.
_AT_ONCE = 8

_Item = TypeVar("_Item")


@dataclass
class _Piece:
    """A range of a file, and what is wanted of it: offset, length, and what for."""

    file: int
    start: int
    stop: int
    wanted: list[tuple[int, int, Any]]


def records_at(
    files: Sequence[str], places: Iterable[tuple[Sequence[int], _Item]]
) -> Iterator[tuple[_Item, bytes | None]]:
    """Reads records, the next ones while one is worked with.

    Args:
        files: files of records, or their URLs.
        places: file, offset and length of each record, and what it is wanted for; taken some megabytes ahead.

    Yields:
        What each was wanted for, in order, and the payload; `None` where it is damaged or cannot be read.
    """

    def read(piece: _Piece) -> tuple[_Piece, bytes]:
        try:
            return piece, read_bytes(part_path(files[piece.file], piece.start, piece.stop))
        except OSError:
            return piece, b""

    pieces = in_parallel(read, _pieces(places), _AT_ONCE, lambda piece: piece.stop - piece.start)
    for piece, data in pieces:
        for offset, length, item in piece.wanted:
            begin = offset - piece.start
            yield item, _payload(data[begin : begin + length])


def _pieces(places: Iterable[tuple[Sequence[int], _Item]]) -> Iterator[_Piece]:
    piece: _Piece | None = None
    for (file, offset, length), item in places:
        stop = offset + length
        if piece is not None and (
            piece.file != file or not 0 <= offset - piece.stop <= _GAP or stop - piece.start > _PIECE
        ):
            yield piece
            piece = None
        if piece is None:
            piece = _Piece(file, offset, stop, [])
        piece.stop = stop
        piece.wanted.append((offset, length, item))
    if piece is not None:
        yield piece


def _payload(framed: bytes) -> bytes | None:
    try:
        return unframe(framed)
    except RecordError:
        return None
