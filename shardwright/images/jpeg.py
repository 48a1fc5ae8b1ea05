"""A JPEG's segments and header, after ITU-T T.81, read without decoding a pixel."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from shardwright.images.exif import has_position, read_orientation
from shardwright.images.header import (
    DAMAGED,
    TOO_LARGE,
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

# Each scan of a progressive JPEG passes over the whole picture again. Encoders write about ten.
_MOST_SCANS = 500
# Pixels times scans: 20 scans of the largest picture, 500 of eight million pixels.
_MOST_SCANNED = 1 << 32

# A profile of 3 MiB takes fifty segments.
BUDGET = Budget("segments", objects=20_000, bytes_each=256)
JPEG_SIGNATURE = b"\xff\xd8\xff"
EXIF_PREFIX = b"Exif\0\0"
_END = b"\xff\xd9"
_NO_MARKER = (b"", b"\0", b"\xff")
_MARKER = re.compile(rb"\xff[^\x00\xff]")
# Bytes of a scan that are looked at together: they stay in the processor's cache.
_AT_ONCE = 1 << 17
# In fewer bytes a regular expression finds the end of a scan sooner than the calls of numpy.
_WORTH_ARRAYS = 1 << 13
_SCAN_END = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
EOI, SOS, APP1 = 0xD9, 0xDA, 0xE1
_DQT, _DHT = 0xDB, 0xC4
_FRAMES_TAKEN = (0xC0, 0xC1, 0xC2)
_FRAMES_NOT_TAKEN = {
    **dict.fromkeys((0xC3, 0xC7, 0xCB, 0xCF), "lossless"),
    **dict.fromkeys((0xC5, 0xC6, 0xCD, 0xCE), "hierarchical"),
    **dict.fromkeys((0xC9, 0xCA), "arithmetic-coded"),
    0xC8: "extended",
}
_BARE_MARKERS = (0x01, *range(0xD0, 0xD8))
# Segments that Pillow parses and may fail at, with the least length at which it does not; 64 KB means that it may
# always fail.
_NEVER = 1 << 16
_TAKEN_APART = {EXIF_PREFIX: _NEVER, b"Photoshop 3.0\0": _NEVER, b"ICC_PROFILE\0": 14, b"JFIF": 7, b"Adobe": 7}
_SEGMENTS = (_DHT, SOS, _DQT, 0xCC, 0xDC, 0xDD, 0xFE, *_FRAMES_TAKEN, *range(0xE0, 0xF0))


class JpegSegment(NamedTuple):
    """A marker and its segment.

    Attributes:
        marker: the marker's second byte.
        start: where its first byte is.
        body: where its parameters begin, after their length.
        end: where they end. The picture data of a scan follow, up to the next segment's `start`.
    """

    marker: int
    start: int
    body: int
    end: int


def jpeg_segments(data: bytes) -> Iterator[JpegSegment]:
    """Walks a JPEG as libjpeg does: junk before a marker is skipped, the first end-of-image marker ends it.

    Markers without parameters are not segments, except for that last one.

    Raises:
        ImageError: the file is cut off, contains a segment that JPEG does not have or decoders do not support, or far
            too many.
    """
    count = scans = 0
    position = 2
    while True:
        count += 1
        if count > BUDGET.objects:
            check_number(BUDGET, count, len(data))
        start: int | None = position
        if scans:
            start = _scan_end(data, position)
        # Every sound file has its markers where the segment before ends.
        elif data[position : position + 1] != b"\xff" or data[position + 1 : position + 2] in _NO_MARKER:
            match = _MARKER.search(data, position)
            start = None if match is None else match.start()
        if start is None:
            raise ImageError(TRUNCATED, f"the JPEG's {len(data)} bytes contain no end-of-image marker")
        marker, position = data[start + 1], start + 2
        if marker == EOI:
            yield JpegSegment(marker, start, position, position)
            return
        if marker in _BARE_MARKERS:
            continue
        if marker in _FRAMES_NOT_TAKEN:
            raise ImageError(UNSUPPORTED_FORMAT, f"{_FRAMES_NOT_TAKEN[marker]} JPEG; save it as baseline JPEG or PNG")
        if marker not in _SEGMENTS:
            raise ImageError(DAMAGED, f"the JPEG has a marker ff{marker:02x} at byte {start}, which is not valid")
        length = int.from_bytes(data[position : position + 2], "big")
        if position + max(length, 2) > len(data):
            raise ImageError(
                TRUNCATED, f"the JPEG's {len(data)} bytes end within a segment that begins at byte {position}"
            )
        if length < 2:
            raise ImageError(DAMAGED, f"the JPEG has a segment of length {length} at byte {position}")
        yield JpegSegment(marker, start, position + 2, position + length)
        position += length
        scans += marker == SOS


def _scan_end(data: bytes, position: int) -> int | None:
    """Returns the position of the first marker that is not part of a scan, as restart markers are, or `None`.

    Within a scan 0xFF00 is a data byte. Nearly all of a file is scans, so only this search takes time, and in all but
    small files numpy does it at twice the speed of a regular expression.
    """
    if len(data) - position < _WORTH_ARRAYS:
        match = _SCAN_END.search(data, position)
        return None if match is None else match.start()
    octets = np.frombuffer(data, np.uint8)
    # Nearly every file ends with the marker in question: then the search can stop before it, at any marker.
    ends_there = data.endswith(_END)
    stop = len(data) - (2 if ends_there else 1)
    while position < stop:
        following = octets[position + 1 : min(position + _AT_ONCE, stop) + 1]
        found = octets[position : position + len(following)] == 0xFF
        # 1 where 0xFF is followed by anything but 0, in one pass instead of a comparison and an `and`.
        np.minimum(found.view(np.uint8), following, out=found.view(np.uint8))
        if found[found.argmax()]:
            places = np.flatnonzero(found)
            markers = following[places]
            ends = places[(markers != 0xFF) & (markers & 0xF8 != 0xD0)]
            if len(ends):
                return position + int(ends[0])
        position += len(following)
    return stop if ends_there and position == stop else None


def read_jpeg(data: bytes, max_pixels: int, known: bool) -> ImageHeader:
    """Reads a JPEG's header; see `images.read_header`."""
    frame: tuple[int, int, int] | None = None
    exif: bytes | None = None
    located = False
    tables = set()
    scans = 0
    plain, previous = True, 2
    for marker, start, begin, end in jpeg_segments(data):
        body = data[begin:end]
        if not scans:
            plain = plain and start == previous
            if plain and marker & 0xF0 == 0xE0:
                plain = not any(body.startswith(name) and len(body) < least for name, least in _TAKEN_APART.items())
            previous = end
        if marker in _FRAMES_TAKEN:
            if frame is not None:
                raise ImageError(DAMAGED, f"the JPEG has a second frame header at byte {start}")
            frame = _frame_header(body, max_pixels)
        elif marker == APP1 and not scans:  # Behind the picture data no reader looks for it.
            if body.startswith(EXIF_PREFIX):
                exif = body[len(EXIF_PREFIX) :] if exif is None else exif
            else:
                located = located or XMP_GPS in body
        elif marker in (_DQT, _DHT):
            if not (_sound_quantization if marker == _DQT else _sound_huffman)(body):
                raise ImageError(DAMAGED, f"the JPEG's coding tables at byte {start} are damaged")
            tables.add(marker)
        elif marker == SOS:
            scans += 1
            if frame is None or len(tables) < 2:
                raise ImageError(DAMAGED, "the JPEG's picture data begins before its size and coding tables")
            if scans > _MOST_SCANS:
                raise ImageError(TOO_LARGE, f"the JPEG has more than {_MOST_SCANS} scans, each decoded at full size")
            if scans * frame[0] * frame[1] > _MOST_SCANNED:
                raise ImageError(TOO_LARGE, f"the JPEG has {scans} scans of {frame[0] * frame[1]:,} pixels each")
            if known:
                break
    if frame is None or not scans:
        raise ImageError(DAMAGED, "the JPEG ends without picture data")
    height, width, channels = frame
    orientation = 1 if exif is None else read_orientation(exif)
    located = located or (exif is not None and has_position(exif))
    return ImageHeader("jpeg", height, width, channels, orientation, located, plain and channels != 4)


def _frame_header(body: bytes, max_pixels: int) -> tuple[int, int, int]:
    """Returns height, width and number of components."""
    if len(body) < 6 or len(body) != 6 + 3 * body[5]:
        raise ImageError(DAMAGED, f"the JPEG's frame header has {len(body)} bytes, which do not fit its own count")
    depth, height, width, channels = struct.unpack_from(">BHHB", body)
    if depth != 8:
        raise ImageError(UNSUPPORTED_COLOR, f"JPEG of {depth} bits per sample; save it with 8 bits")
    if channels not in (1, 3, 4):
        raise ImageError(UNSUPPORTED_COLOR, f"JPEG of {channels} components; only 1 (gray), 3 and 4 (CMYK) are decoded")
    check_size("jpeg", height, width, max_pixels)
    if any(not (1 <= factors >> 4 <= 4 and 1 <= factors & 15 <= 4) for factors in body[7::3]):
        raise ImageError(DAMAGED, "the JPEG's frame header has sampling factors out of 1-4")
    return height, width, channels


@lru_cache(maxsize=256)  # Most files of an input have the same few.
def _sound_quantization(body: bytes) -> bool:
    """Returns whether a segment contains whole tables of 64 numbers of 8 or 16 bits, numbered 0 to 3."""
    position = 0
    while position < len(body):
        if body[position] & 15 > 3 or body[position] >> 4 > 1:
            return False
        position += 65 + 64 * (body[position] >> 4)
    return position == len(body)


@lru_cache(maxsize=256)
def _sound_huffman(body: bytes) -> bool:
    """Returns whether a segment contains whole tables, numbered 0 to 3, whose code lengths can form a prefix code."""
    position = 0
    while position + 17 <= len(body):
        kind = body[position]
        counts = body[position + 1 : position + 17]
        symbols = body[position + 17 : position + 17 + sum(counts)]
        if kind not in (0, 1, 2, 3, 16, 17, 18, 19) or len(symbols) != sum(counts):
            return False
        if sum(count << (15 - place) for place, count in enumerate(counts)) > 1 << 16:
            return False
        if kind < 16 and max(symbols, default=0) > 15:  # A symbol of a DC table is a number of bits.
            return False
        position += 17 + len(symbols)
    return position == len(body)
