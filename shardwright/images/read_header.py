"""Reads an image's header from its bytes without decoding a pixel.

A header is checked before any decoder reads the file: a decompression bomb is refused by the size it claims. Files are
accepted if `tf.io.decode_jpeg` and `tf.io.decode_png` (channels=3) decode them to the same uint8 pixels on both
supported TensorFlow versions. By measurement these are gray, color and CMYK JPEG, baseline and progressive, and every
PNG (palette, gray, alpha, 1 to 16 bits, interlaced; of an animated PNG its still image).

After ITU-T T.81 (JPEG), the PNG specification (third edition) and Exif 2.3 (orientation). Limits are those of the
decoders inside TensorFlow. The content type is detected from the bytes, never from the file's name.
"""

from __future__ import annotations

import re

from shardwright.images.header import EMPTY_FILE, NOT_AN_IMAGE, TRUNCATED, UNSUPPORTED_FORMAT, ImageError, ImageHeader
from shardwright.images.jpeg import JPEG_SIGNATURE, read_jpeg
from shardwright.images.png import PNG_SIGNATURE, read_png

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
    (re.compile(rb"P[1-6]\s"), "PPM"),
)


def read_header(data: bytes, *, max_pixels: int, known: bool = False) -> ImageHeader:
    """Reads and checks an image's header, and that the file is there to its end.

    Args:
        data: the whole file.
        max_pixels: the most pixels (height * width) an image may have.
        known: these bytes have been checked before: of a JPEG, only the header is checked again.

    Returns:
        The header.

    Raises:
        ImageError: the file is empty, not an image, of an unsupported format or color, too large, truncated or
            damaged. No bytes raise another error.
    """
    if not data:
        raise ImageError(EMPTY_FILE, "the file has no bytes")
    if data.startswith(PNG_SIGNATURE):
        return read_png(data, max_pixels)
    if data.startswith(JPEG_SIGNATURE):
        return read_jpeg(data, max_pixels, known)
    raise _unknown(data)


def other_format(data: bytes) -> str:
    """Names the format of a file other than JPEG and PNG; empty where no signature is known."""
    return next((name for signature, name in _OTHER_SIGNATURES if signature.match(data)), "")


def _unknown(data: bytes) -> ImageError:
    """Describes bytes that begin neither as JPEG nor as PNG."""
    name = other_format(data)
    if name:
        return ImageError(
            UNSUPPORTED_FORMAT, f"the bytes are {name}; save it as JPEG or PNG, or set images.unsupported_formats"
        )
    if PNG_SIGNATURE.startswith(data) or JPEG_SIGNATURE.startswith(data):
        return ImageError(TRUNCATED, f"the file ends after {len(data)} bytes, within the signature")
    if data.count(0) == len(data):
        reason = f"all {len(data)} bytes are zero: a placeholder whose content was never copied; fetch the file again"
    elif data.startswith(b"version https://git-lfs"):
        reason = "the bytes are a Git LFS pointer, not the image; run `git lfs pull` where the files come from"
    elif data.lstrip()[:1] == b"<":
        reason = "the bytes are HTML or XML, perhaps an error page saved under an image's name; fetch the file again"
    else:
        reason = f"the bytes are neither JPEG nor PNG; they begin with {data[:8].hex(' ')}"
    return ImageError(NOT_AN_IMAGE, reason)
