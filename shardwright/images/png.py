"""A PNG's chunks and header, after the PNG specification (third edition), read without decoding a pixel."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from shardwright.images.exif import has_position, read_orientation
from shardwright.images.header import (
    DAMAGED,
    TRUNCATED,
    UNSUPPORTED_COLOR,
    UNSUPPORTED_FORMAT,
    XMP_GPS,
    ImageError,
    ImageHeader,
    check_number,
    check_size,
)
from shardwright.untrusted.budget import Budget

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}
_PNG_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PNG_PALETTE = 3
# Encoders write picture data in chunks of 8 KiB and more.
BUDGET = Budget("chunks", objects=20_000, bytes_each=256)
# The specification allows one.
_MOST_EXIF = 8
PNG_CRITICAL = ("IHDR", "PLTE", "IDAT", "IEND")
# Of the other chunks, those that are read: libpng ignores them if their checksum is wrong, Pillow does not.
_READ = ("eXIf", "iTXt")


class PngChunk(NamedTuple):
    """A chunk of a PNG.

    Attributes:
        kind: its four letters.
        start: where it begins, with its length.
        body: where its data begin.
        end: where it ends, with its checksum.
    """

    kind: str
    start: int
    body: int
    end: int

    def is_sound(self, data: memoryview) -> bool:
        """Returns whether the checksum is right."""
        stored = int.from_bytes(data[self.end - 4 : self.end], "big")
        return zlib.crc32(data[self.body - 4 : self.end - 4]) == stored


def png_chunks(data: bytes) -> Iterator[PngChunk]:
    """Walks a PNG to its first IEND.

    Raises:
        ImageError: the file is cut off, a required chunk is missing, or there are far too many.
    """
    position = len(PNG_SIGNATURE)
    kind = ""
    count = 0
    while kind != "IEND":
        count += 1
        if count > BUDGET.objects:
            check_number(BUDGET, count, len(data))
        if position + 12 > len(data):
            raise ImageError(TRUNCATED, f"the PNG's {len(data)} bytes end before its IEND chunk: its end is missing")
        length = int.from_bytes(data[position : position + 4], "big")
        kind = str(data[position + 4 : position + 8], "latin-1")
        if length >= 2**31 or not (kind.isascii() and kind.isalpha()):
            raise ImageError(DAMAGED, f"the PNG is damaged at byte {position}: no chunk begins there")
        if kind != "IHDR" and position == len(PNG_SIGNATURE):
            raise ImageError(DAMAGED, f"the PNG begins with a chunk {kind}, not with IHDR")
        end = position + 12 + length
        if end > len(data):
            raise ImageError(TRUNCATED, f"the PNG's {len(data)} bytes end within a chunk {kind} that ends at {end}")
        yield PngChunk(kind, position, position + 8, end)
        position = end


def read_png(data: bytes, max_pixels: int) -> ImageHeader:
    """Reads a PNG's header; see `images.read_header`.

    The chunks that libpng needs, and those with the orientation and the position, must have the right checksum. Other
    chunks may be broken.
    """
    view = memoryview(data)
    header: tuple[int, int, int, int] | None = None
    seen = set()
    orientation, located, blocks = 1, False, 0
    for chunk in png_chunks(data):
        kind, body = chunk.kind, view[chunk.body : chunk.end - 4]
        if (kind[0].isupper() or kind in _READ) and not chunk.is_sound(view):
            raise ImageError(DAMAGED, f"the checksum of the PNG's chunk {kind} at byte {chunk.start} is wrong")
        if kind[0].isupper() and (kind not in PNG_CRITICAL or (kind == "IHDR" and header is not None)):
            raise ImageError(DAMAGED, f"the PNG holds a chunk {kind} at byte {chunk.start}, which cannot be there")
        if kind == "IHDR":
            header = _png_header(body, max_pixels)
        elif kind == "IDAT" and header is not None and header[3] == _PNG_PALETTE and "PLTE" not in seen:
            raise ImageError(DAMAGED, "the PNG has palette colors but no palette before its picture data")
        elif kind == "eXIf":
            blocks += 1
            if blocks > _MOST_EXIF:
                raise ImageError(DAMAGED, f"the PNG has more than {_MOST_EXIF} chunks eXIf; there may be one")
            exif = bytes(body)
            orientation = read_orientation(exif)
            located = located or has_position(exif)
        elif kind == "iTXt":
            located = located or XMP_GPS in bytes(body)
        seen.add(kind)
    if header is None or "IDAT" not in seen:
        raise ImageError(DAMAGED, "the PNG ends without picture data")
    height, width, channels, _ = header
    return ImageHeader("png", height, width, channels, orientation, located)


def _png_header(body: memoryview, max_pixels: int) -> tuple[int, int, int, int]:
    """Returns height, width, channels and color type."""
    if len(body) != 13:
        raise ImageError(DAMAGED, f"the PNG's header has {len(body)} bytes instead of 13")
    width, height, depth, color, compression, filtering, interlace = struct.unpack(">IIBBBBB", body)
    if depth not in _PNG_DEPTHS.get(color, ()):
        raise ImageError(
            UNSUPPORTED_COLOR, f"the PNG claims color type {color} with {depth} bits, which does not exist"
        )
    if compression or filtering or interlace > 1:
        raise ImageError(
            UNSUPPORTED_FORMAT,
            f"the PNG claims compression {compression}, filter {filtering}, interlace {interlace}; known are 0, 0, 0-1",
        )
    check_size("png", height, width, max_pixels)
    return height, width, _PNG_CHANNELS[color], color
