"""What an image's header says, told from its bytes without decoding a pixel.

A header is checked before any decoder sees the file: a decompression bomb is refused by the size it claims. Accepted
is what `tf.io.decode_jpeg` and `tf.io.decode_png` (channels=3) turn into the same uint8 pixels on both supported
TensorFlow versions; measured there: grey, colour and CMYK JPEG, baseline and progressive, and every PNG (palette, grey,
alpha, 1 to 16 bits, interlaced; of an animated PNG its still image).

After ITU-T T.81 (JPEG), the PNG specification (third edition) and Exif 2.3 (orientation). Limits are those of the
decoders inside TensorFlow. Content type is told by the bytes, never by the file's name.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from shardwright.exif import has_position, read_orientation

EMPTY_FILE = "empty_file"
NOT_AN_IMAGE = "not_an_image"
UNSUPPORTED_FORMAT = "unsupported_format"
UNSUPPORTED_COLOR = "unsupported_color"
TOO_LARGE = "too_large"
TRUNCATED = "truncated"
DAMAGED = "damaged"
CODES = (EMPTY_FILE, NOT_AN_IMAGE, UNSUPPORTED_FORMAT, UNSUPPORTED_COLOR, TOO_LARGE, TRUNCATED, DAMAGED)

# TensorFlow refuses images of 2**29 pixels or more, libjpeg sides over 65,500, libpng sides over a million.
_MOST_PIXELS = 2**29 - 1
_LONGEST_SIDE = {"jpeg": 65_500, "png": 1_000_000}
# Each scan of a progressive JPEG passes over the whole picture again. Encoders write about ten.
_MOST_SCANS = 500

_JPEG_SIGNATURE = b"\xff\xd8\xff"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_OTHER_SIGNATURES = (
    (re.compile(rb"GIF8[79]a"), "GIF"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "WebP"),
    (re.compile(rb"BM"), "BMP"),
    (re.compile(rb"II[*+]\0|MM\0[*+]"), "TIFF"),
    (re.compile(rb"....ftyp(avif|avis)", re.DOTALL), "AVIF"),
    (re.compile(rb"....ftyp(hei[cxms]|hev[cxms]|mif1|msf1)", re.DOTALL), "HEIC"),
    (re.compile(rb"\xff\x0a|\0\0\0\x0cJXL "), "JPEG XL"),
    (re.compile(rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51"), "JPEG 2000"),
    (re.compile(rb"8BPS"), "Photoshop"),
)
EXIF_PREFIX = b"Exif\0\0"
# The name of the property in XMP, whichever way it is written (element or attribute).
_XMP_GPS = b"exif:GPSLatitude"

# Any marker; within a scan 0xFF00 is a data byte and the restart markers belong to the scan.
_MARKER = re.compile(rb"\xff[^\x00\xff]")
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
_SEGMENTS = (_DHT, SOS, _DQT, 0xCC, 0xDC, 0xDD, 0xFE, *_FRAMES_TAKEN, *range(0xE0, 0xF0))

_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}
_PNG_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PNG_PALETTE = 3
PNG_CRITICAL = ("IHDR", "PLTE", "IDAT", "IEND")


class ImageError(ValueError):
    """An image is refused.

    Args:
        code: one of `CODES`, for counting.
        reason: what was found and what to do, for people.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason

    def __reduce__(self) -> tuple[type["ImageError"], tuple[str, str]]:
        return (type(self), (self.code, self.reason))


@dataclass(frozen=True)
class ImageHeader:
    """What is known of an image without decoding it.

    Args:
        format: `jpeg` or `png`.
        height: rows of the stored pixels, before any turning by `orientation`.
        width: columns of the stored pixels.
        channels: 1 grey, 2 grey and alpha, 3 colour (a palette's also), 4 colour and alpha, or CMYK.
        orientation: 1-8 as Exif numbers them; 1 (upright) when there is none or it cannot be read.
        located: Exif or XMP says where on Earth it was taken.
    """

    format: str
    height: int
    width: int
    channels: int
    orientation: int
    located: bool = False


def read_header(data: bytes, *, max_pixels: int, known: bool = False) -> ImageHeader:
    """Reads and checks an image's header, and that the file is there to its end.

    Args:
        data: the whole file.
        max_pixels: the most pixels (height * width) an image may have.
        known: these very bytes have been checked before: of a JPEG, nothing behind the header is looked at again.

    Returns:
        The header.

    Raises:
        ImageError: the file is empty, no image, of a format or colour that is not taken, too large, truncated or
            damaged. No other error, whatever the bytes.
    """
    if not data:
        raise ImageError(EMPTY_FILE, "the file has no bytes")
    if data.startswith(PNG_SIGNATURE):
        return _read_png(data, max_pixels)
    if data.startswith(_JPEG_SIGNATURE):
        return _read_jpeg(data, max_pixels, known)
    raise _unknown(data)


def other_format(data: bytes) -> str:
    """Names the format of what is neither JPEG nor PNG; empty where no signature is known."""
    return next((name for signature, name in _OTHER_SIGNATURES if signature.match(data)), "")


def _unknown(data: bytes) -> ImageError:
    """Says what bytes are that begin neither as JPEG nor as PNG."""
    name = other_format(data)
    if name:
        return ImageError(UNSUPPORTED_FORMAT, f"the bytes are {name}; save it as JPEG or PNG, or set images.convert")
    if PNG_SIGNATURE.startswith(data) or _JPEG_SIGNATURE.startswith(data):
        return ImageError(TRUNCATED, f"the file ends after {len(data)} bytes, within the signature")
    if data.count(0) == len(data):
        reason = f"all {len(data)} bytes are zero: a placeholder whose content was never copied; fetch the file again"
    elif data.lstrip()[:1] == b"<":
        reason = "the bytes are HTML or XML, perhaps an error page saved under an image's name; fetch the file again"
    else:
        reason = f"the bytes are neither JPEG nor PNG; they begin with {data[:8].hex(' ')}"
    return ImageError(NOT_AN_IMAGE, reason)


def check_size(image_format: str, height: int, width: int, max_pixels: int) -> None:
    """Raises `ImageError` for an image without pixels, or with more than `max_pixels` or than decoders take."""
    if height < 1 or width < 1:
        raise ImageError(DAMAGED, f"the header says {width}x{height} (width x height): there are no pixels")
    longest = _LONGEST_SIDE.get(image_format, _LONGEST_SIDE["png"])
    if max(height, width) > longest:
        raise ImageError(TOO_LARGE, f"{width}x{height} (width x height): decoders take sides of at most {longest}")
    if height * width > min(max_pixels, _MOST_PIXELS):
        limit = (
            f"images.max_pixels is {max_pixels}"
            if max_pixels <= _MOST_PIXELS
            else f"TensorFlow decodes at most {_MOST_PIXELS}"
        )
        raise ImageError(TOO_LARGE, f"{width}x{height} (width x height) are {height * width} pixels; {limit}")


# --- JPEG -----------------------------------------------------------------------------------------------------------


class JpegSegment(NamedTuple):
    """A marker and what belongs to it.

    Attributes:
        marker: the marker's second byte.
        start: where its first byte is.
        body: where its parameters begin, behind their length.
        end: where they end. Of a scan the picture data follow, up to the next segment's `start`.
    """

    marker: int
    start: int
    body: int
    end: int


def jpeg_segments(data: bytes) -> Iterator[JpegSegment]:
    """Walks a JPEG as libjpeg does: junk before a marker is skipped, the first end-of-image marker ends it.

    Markers without parameters are no segments, but for that last one.

    Raises:
        ImageError: the file is cut off, or holds what no JPEG holds or what no decoder takes.
    """
    scans = 0
    position = 2
    while True:
        match = (_SCAN_END if scans else _MARKER).search(data, position)
        if match is None:
            raise ImageError(TRUNCATED, f"the JPEG's {len(data)} bytes hold no end-of-image marker: its end is missing")
        marker, position = data[match.end() - 1], match.end()
        if marker == EOI:
            yield JpegSegment(marker, match.start(), position, position)
            return
        if marker in _BARE_MARKERS:
            continue
        if marker in _FRAMES_NOT_TAKEN:
            raise ImageError(UNSUPPORTED_FORMAT, f"{_FRAMES_NOT_TAKEN[marker]} JPEG; save it as baseline JPEG or PNG")
        if marker not in _SEGMENTS:
            raise ImageError(DAMAGED, f"the JPEG holds marker ff{marker:02x} at byte {match.start()}, which cannot be")
        length = int.from_bytes(data[position : position + 2], "big")
        if position + max(length, 2) > len(data):
            raise ImageError(
                TRUNCATED, f"the JPEG's {len(data)} bytes end within a segment that begins at byte {position}"
            )
        if length < 2:
            raise ImageError(DAMAGED, f"the JPEG has a segment of length {length} at byte {position}")
        yield JpegSegment(marker, match.start(), position + 2, position + length)
        position += length
        scans += marker == SOS


def _read_jpeg(data: bytes, max_pixels: int, known: bool) -> ImageHeader:
    frame: tuple[int, int, int] | None = None
    exif: bytes | None = None
    located = False
    tables = set()
    scans = 0
    for marker, start, begin, end in jpeg_segments(data):
        body = data[begin:end]
        if marker in _FRAMES_TAKEN:
            if frame is not None:
                raise ImageError(DAMAGED, f"the JPEG has a second frame header at byte {start}")
            frame = _frame_header(body, max_pixels)
        elif marker == APP1 and not scans:  # Behind the picture data no reader looks for it.
            if body.startswith(EXIF_PREFIX):
                exif = body[len(EXIF_PREFIX) :] if exif is None else exif
            else:
                located = located or _XMP_GPS in body
        elif marker in (_DQT, _DHT):
            if not (_sound_quantization if marker == _DQT else _sound_huffman)(body):
                raise ImageError(DAMAGED, f"the JPEG's coding tables at byte {start} are damaged")
            tables.add(marker)
        elif marker == SOS:
            scans += 1
            if frame is None or len(tables) < 2:
                raise ImageError(DAMAGED, "the JPEG's picture data begins before its size and coding tables are told")
            if scans > _MOST_SCANS:
                raise ImageError(TOO_LARGE, f"the JPEG has more than {_MOST_SCANS} scans, each decoded at full size")
            if known:
                break
    if frame is None or not scans:
        raise ImageError(DAMAGED, "the JPEG ends without picture data")
    height, width, channels = frame
    orientation = 1 if exif is None else read_orientation(exif)
    located = located or (exif is not None and has_position(exif))
    return ImageHeader("jpeg", height, width, channels, orientation, located)


def _frame_header(body: bytes, max_pixels: int) -> tuple[int, int, int]:
    """Returns height, width and number of components."""
    if len(body) < 6 or len(body) != 6 + 3 * body[5]:
        raise ImageError(DAMAGED, f"the JPEG's frame header has {len(body)} bytes, which do not fit its own count")
    depth, height, width, channels = struct.unpack_from(">BHHB", body)
    if depth != 8:
        raise ImageError(UNSUPPORTED_COLOR, f"JPEG of {depth} bits per sample; save it with 8 bits")
    if channels not in (1, 3, 4):
        raise ImageError(UNSUPPORTED_COLOR, f"JPEG of {channels} components; only 1 (grey), 3 and 4 (CMYK) are decoded")
    check_size("jpeg", height, width, max_pixels)
    if any(not (1 <= factors >> 4 <= 4 and 1 <= factors & 15 <= 4) for factors in body[7::3]):
        raise ImageError(DAMAGED, "the JPEG's frame header has sampling factors out of 1-4")
    return height, width, channels


def _sound_quantization(body: bytes) -> bool:
    """Tells whether a segment holds whole tables of 64 numbers of 8 or 16 bits, numbered 0 to 3."""
    position = 0
    while position < len(body):
        if body[position] & 15 > 3 or body[position] >> 4 > 1:
            return False
        position += 65 + 64 * (body[position] >> 4)
    return position == len(body)


def _sound_huffman(body: bytes) -> bool:
    """Tells whether a segment holds whole tables, numbered 0 to 3, whose code lengths can form a prefix code."""
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


# --- PNG ------------------------------------------------------------------------------------------------------------


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
        """Tells whether the checksum is right."""
        stored = int.from_bytes(data[self.end - 4 : self.end], "big")
        return zlib.crc32(data[self.body - 4 : self.end - 4]) == stored


def png_chunks(data: bytes) -> Iterator[PngChunk]:
    """Walks a PNG to its first IEND.

    Raises:
        ImageError: the file is cut off, or no chunk stands where one must.
    """
    position = len(PNG_SIGNATURE)
    kind = ""
    while kind != "IEND":
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


def _read_png(data: bytes, max_pixels: int) -> ImageHeader:
    """What libpng cannot do without must have its right checksum, the rest may be broken."""
    view = memoryview(data)
    header: tuple[int, int, int, int] | None = None
    seen = set()
    orientation, located = 1, False
    for chunk in png_chunks(data):
        kind, body = chunk.kind, view[chunk.body : chunk.end - 4]
        sound = chunk.is_sound(view)
        if kind[0].isupper():
            if not sound:
                raise ImageError(DAMAGED, f"the checksum of the PNG's chunk {kind} at byte {chunk.start} is wrong")
            if kind not in PNG_CRITICAL or (kind == "IHDR" and header is not None):
                raise ImageError(DAMAGED, f"the PNG holds a chunk {kind} at byte {chunk.start}, which cannot be there")
        if kind == "IHDR":
            header = _png_header(body, max_pixels)
        elif kind == "IDAT" and header is not None and header[3] == _PNG_PALETTE and "PLTE" not in seen:
            raise ImageError(DAMAGED, "the PNG has palette colours but no palette before its picture data")
        elif kind == "eXIf" and sound:
            exif = bytes(body)
            orientation = read_orientation(exif)
            located = located or has_position(exif)
        elif kind == "iTXt":
            located = located or _XMP_GPS in bytes(body)
        seen.add(kind)
    if header is None or "IDAT" not in seen:
        raise ImageError(DAMAGED, "the PNG ends without picture data")
    height, width, channels, _ = header
    return ImageHeader("png", height, width, channels, orientation, located)


def _png_header(body: memoryview, max_pixels: int) -> tuple[int, int, int, int]:
    """Returns height, width, channels and colour type."""
    if len(body) != 13:
        raise ImageError(DAMAGED, f"the PNG's header has {len(body)} bytes instead of 13")
    width, height, depth, color, compression, filtering, interlace = struct.unpack(">IIBBBBB", body)
    if depth not in _PNG_DEPTHS.get(color, ()):
        raise ImageError(
            UNSUPPORTED_COLOR, f"the PNG claims colour type {color} with {depth} bits, which does not exist"
        )
    if compression or filtering or interlace > 1:
        raise ImageError(
            UNSUPPORTED_FORMAT,
            f"the PNG claims compression {compression}, filter {filtering}, interlace {interlace}; known are 0, 0, 0-1",
        )
    check_size("png", height, width, max_pixels)
    return height, width, _PNG_CHANNELS[color], color
