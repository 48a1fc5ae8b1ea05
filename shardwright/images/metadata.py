"""Removes metadata from a JPEG or PNG without decoding it.

Segments (JPEG) and chunks (PNG) are left out or kept whole, except for Exif, which is written again. The coded picture
stays byte for byte what it is, so every decoder makes the same pixels of it; the orientation stays what it was.

| policy | JPEG keeps | PNG keeps |
|---|---|---|
| `private` | tables, picture; JFIF, Adobe's marker, ICC profile, public Exif | pixels, color, density, public Exif |
| `all` | tables, picture; JFIF, Adobe's marker, the orientation | pixels (palette, transparency), the orientation |

So both drop location, serial numbers, names, comments, XMP, IPTC, maker notes, thumbnails, signatures (C2PA), further
pictures after the first (MPO, gain maps) and all other bytes after the end. `exif.without_private` defines public Exif.
Markers that decoders derive colors from stay: JFIF's and Adobe's in a JPEG.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from shardwright.images.exif import only_orientation, without_private
from shardwright.images.header import ImageHeader
from shardwright.images.jpeg import APP1, EOI, EXIF_PREFIX, SOS, JpegSegment, jpeg_segments
from shardwright.images.png import PNG_CRITICAL, PNG_SIGNATURE, png_chunks

_APPLICATION = range(0xE0, 0xF0)
_COMMENT = 0xFE
_APP0, _APP2, _APP14 = 0xE0, 0xE2, 0xEE
_LONGEST_SEGMENT = 0xFFFF - 2
# Transparency is part of the pixels for readers of four channels.
_PNG_PIXELS = (*PNG_CRITICAL, "tRNS")
_PNG_PUBLIC = (
    *("gAMA", "cHRM", "sRGB", "iCCP", "sBIT", "cICP", "mDCV", "cLLI"),  # color
    *("bKGD", "pHYs", "hIST", "sPLT"),
    *("acTL", "fcTL", "fdAT"),  # the other pictures of an animation
)


def strip_metadata(data: bytes, header: ImageHeader, policy: str) -> bytes:
    """Leaves out metadata.

    Args:
        data: a whole file that `images.read_header` accepts.
        header: from `images.read_header`.
        policy: `none`, `private` or `all`, see above.

    Returns:
        The file without it; the same object for `none`.
    """
    if policy == "none":
        return data
    strip = _strip_jpeg if header.format == "jpeg" else _strip_png
    return b"".join(strip(data, header.orientation, policy == "private"))


# --- JPEG -----------------------------------------------------------------------------------------------------------


def _strip_jpeg(data: bytes, orientation: int, keep_public: bool) -> Iterator[bytes]:
    yield data[:2]
    if not keep_public:
        yield from _exif_segment(only_orientation(orientation))
    exif_due = keep_public
    scan: JpegSegment | None = None
    for segment in jpeg_segments(data):
        if scan is not None:
            yield data[scan.start : segment.start]
            scan = None
        body = data[segment.body : segment.end]
        if segment.marker == SOS:
            scan = segment
        elif segment.marker == EOI:
            yield data[segment.start : segment.end]
        elif segment.marker == APP1 and body.startswith(EXIF_PREFIX):
            if exif_due:  # Only the first block counts, for the orientation too.
                yield from _exif_segment(without_private(body[len(EXIF_PREFIX) :]))
            exif_due = False
        elif segment.marker in _APPLICATION or segment.marker == _COMMENT:
            if segment.marker == _APP0 and body.startswith(b"JFIF\0") and len(body) >= 14:
                yield _segment(_APP0, body[:12] + bytes(2))  # Without its thumbnail: 0 x 0.
            profile = keep_public and segment.marker == _APP2 and body.startswith(b"ICC_PROFILE\0")
            if profile or (segment.marker == _APP14 and body.startswith(b"Adobe")):
                yield _segment(segment.marker, body)
        else:
            yield data[segment.start : segment.end]


def _exif_segment(tiff: bytes) -> Iterator[bytes]:
    if tiff and len(EXIF_PREFIX) + len(tiff) <= _LONGEST_SEGMENT:
        yield _segment(APP1, EXIF_PREFIX + tiff)


def _segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


# --- PNG ------------------------------------------------------------------------------------------------------------


def _strip_png(data: bytes, orientation: int, keep_public: bool) -> Iterator[bytes]:
    view = memoryview(data)
    kept = (*_PNG_PIXELS, *_PNG_PUBLIC) if keep_public else _PNG_PIXELS
    # The last sound block contains the orientation, and is copied.
    exif = only_orientation(orientation)
    if keep_public:
        sound = [chunk for chunk in png_chunks(data) if chunk.kind == "eXIf" and chunk.is_sound(view)]
        exif = without_private(data[sound[-1].body : sound[-1].end - 4]) if sound else b""
    yield PNG_SIGNATURE
    for chunk in png_chunks(data):
        if chunk.kind in kept:
            yield data[chunk.start : chunk.end]
        if chunk.kind == "IHDR" and exif:
            yield struct.pack(">I", len(exif)) + b"eXIf" + exif + struct.pack(">I", zlib.crc32(b"eXIf" + exif))
