"""Decodes a file to pixels of 8 bits, gray or RGB: the only place that decides about colors and formats.

Files that are stored unchanged are not decoded here. Images that are turned, resized, encoded again or converted are,
and get the same values as TensorFlow's `decode_jpeg` and `decode_png` (channels=3) return for the original file:

| the file has | becomes |
|---|---|
| gray of 1, 2, 4, 8 bits | gray, spread over 0-255 |
| 16 bits a channel | the upper 8 bits |
| a palette | its colors, RGB |
| alpha, or a transparent color | dropped: the color beneath is taken as it is stored, not blended with a background |
| YCbCr, YCCK | RGB or CMYK by the decoder (JFIF) |
| CMYK | RGB: (255 - C)(255 - K) / 255, and so on; in a JPEG without Adobe's marker the inks are the other way round |
| Lab, 32-bit or float values | rejected: no single meaning in 8 bits |
| an ICC profile | not applied, not kept: the numbers are those of the file |
| several pictures (GIF, WebP, TIFF, AVIF, APNG, MPO) | the first; of an APNG its still image |

JPEG and PNG need nothing to be taken. The others (`FORMATS`) are for `images.unsupported_formats`: they are read by
Pillow, whose wheels have the same decoders on both supported stacks. It cannot read HEIC and JPEG XL; they are always
rejected.

Sizes are checked by header before any pixel is made: JPEG and PNG by `images.read_header`, the others by Pillow, which
opens a file without decoding it. The bytes select the decoder. No decoder that runs programs is used.
"""

from __future__ import annotations

import dataclasses
import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    Jpeg2KImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    PsdImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from shardwright.images.exif import has_position, read_orientation
from shardwright.images.header import (
    DAMAGED,
    TOO_LARGE,
    UNSUPPORTED_COLOR,
    UNSUPPORTED_FORMAT,
    ImageError,
    ImageHeader,
    check_size,
)
from shardwright.images.jpeg import EXIF_PREFIX
from shardwright.images.metadata import strip_metadata
from shardwright.images.orientation import displayed_size, inverse
from shardwright.images.parts import check_parts, check_pixels
from shardwright.images.pillow_compat import decode_in_one_piece, decode_jpeg
from shardwright.images.read_header import other_format, read_header

# By the names of `images.other_format`.
FORMATS: dict[str, type[ImageFile.ImageFile]] = {
    "GIF": GifImagePlugin.GifImageFile,
    "WebP": WebPImagePlugin.WebPImageFile,
    "BMP": BmpImagePlugin.BmpImageFile,
    "TIFF": TiffImagePlugin.TiffImageFile,
    "AVIF": AvifImagePlugin.AvifImageFile,
    "JPEG 2000": Jpeg2KImagePlugin.Jpeg2KImageFile,
    "Photoshop": PsdImagePlugin.PsdImageFile,
    "PPM": PpmImagePlugin.PpmImageFile,
}

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ORIENTATION_TAG = 0x0112
_pillow_limit = threading.Lock()


def header_of(data: bytes, *, max_pixels: int, convert: bool, known: bool = False) -> ImageHeader | None:
    """Returns the header of a JPEG or PNG, or `None` for a file of another format that will be converted.

    Args:
        data: the file.
        max_pixels: the most pixels it may have.
        convert: whether other formats are accepted.
        known: see `read_header`.

    Raises:
        ImageError: the file is refused because of its header.
    """
    try:
        return read_header(data, max_pixels=max_pixels, known=known)
    except ImageError as error:
        if error.code != UNSUPPORTED_FORMAT or not convert or not other_format(data):
            raise
        return None


def decode(data: bytes, header: ImageHeader, ratio: int = 1) -> Image.Image:
    """Decodes a JPEG or PNG.

    Args:
        data: the file.
        header: from `images.read_header`, which has checked the size.
        ratio: of a JPEG, one of `DCT_RATIOS`, at most its shorter side: its sides are divided by it (rounded up) while
            they are decoded.

    Returns:
        Mode `L` or `RGB`, in the stored frame.

    Raises:
        ImageError: the picture data are damaged.
    """
    with _named_errors(header.format.upper()):
        image: ImageFile.ImageFile
        if header.format == "jpeg":
            if header.plain:
                size = (-(-header.width // ratio), -(-header.height // ratio))
                # Without Pillow's reader of segments, which after a failure names the damage.
                with suppress(OSError, ValueError):
                    return decode_jpeg(data, "L" if header.channels == 1 else "RGB", size, ratio)
            image = JpegImagePlugin.JpegImageFile(io.BytesIO(data))
            image.draft(None, (image.width // ratio, image.height // ratio))
            decode_in_one_piece(image, len(data))
        else:
            # Without metadata nothing is parsed but the picture: no text that unpacks to gigabytes, no broken profile.
            image = PngImagePlugin.PngImageFile(io.BytesIO(strip_metadata(data, header, "all")))
        image.load()
        return _eight_bits(image)


def convert(data: bytes, *, max_pixels: int) -> tuple[Image.Image, ImageHeader]:
    """Decodes a file of another format.

    Args:
        data: the file.
        max_pixels: the most pixels it may have.

    Returns:
        The picture, mode `L` or `RGB`, in the stored frame; and its header, whose `format` is the name of the format.

    Raises:
        ImageError: the format or color is not supported, or the file is too large by its header or damaged.
    """
    with _opened(data, max_pixels) as (image, header):
        image.load()
        # A second header within the file may claim more.
        check_size(header.format, image.height, image.width, max_pixels)
        picture = _eight_bits(image)
    if header.format == "TIFF":  # Pillow has turned it already.
        picture = apply_orientation(picture, inverse(header.orientation))
    bands = len(picture.getbands())
    return picture, dataclasses.replace(header, height=picture.height, width=picture.width, channels=bands)


def other_header(data: bytes, *, max_pixels: int) -> ImageHeader:
    """Returns a file's size and orientation as `convert` does, without decoding it.

    Args:
        data: the file.
        max_pixels: the most pixels it may have.

    Raises:
        ImageError: the format is not supported, or the file is too large, or its header damaged.
    """
    with _opened(data, max_pixels) as (_, header):
        return header


@contextmanager
def _opened(data: bytes, max_pixels: int) -> Iterator[tuple[ImageFile.ImageFile, ImageHeader]]:
    """Opens a file of another format without decoding it; a failure within the block is an `ImageError`."""
    name = other_format(data)
    if name not in FORMATS:
        raise ImageError(UNSUPPORTED_FORMAT, f"the bytes are {name}, which is not converted; save it as JPEG or PNG")
    check_parts(data)
    if name == "WebP":  # Opening it allots two whole canvases.
        check_size(name, *_webp_size(data), max_pixels)
    with _limited(max_pixels), _named_errors(name):
        image = FORMATS[name](io.BytesIO(data))
        check_size(name, image.height, image.width, max_pixels)
        if name in ("JPEG 2000", "AVIF"):
            check_pixels(image.height * image.width, len(data))
        if isinstance(image, TiffImagePlugin.TiffImageFile):
            exif = data
            stored: Any = image.tag_v2.get(_ORIENTATION_TAG)
        else:
            exif = bytes(image.info.get("exif", b"")).removeprefix(EXIF_PREFIX)
            stored = read_orientation(exif)
        orientation = int(stored) if stored in range(1, 9) else 1
        # Pillow reports the displayed size of a TIFF.
        height, width = displayed_size(image.height, image.width, orientation if name == "TIFF" else 1)
        yield image, ImageHeader(name, height, width, len(image.getbands()), orientation, has_position(exif))


def _webp_size(data: bytes) -> tuple[int, int]:
    """Returns height and width from a WebP's first chunk (RFC 9649); 1 x 1 if damaged, which opening refuses."""
    kind, body = data[12:16], data[20:30].ljust(10, b"\0")
    if kind == b"VP8X":
        return int.from_bytes(body[7:10], "little") + 1, int.from_bytes(body[4:7], "little") + 1
    if kind == b"VP8L":
        sides = int.from_bytes(body[1:5], "little")
        return (sides >> 14 & 0x3FFF) + 1, (sides & 0x3FFF) + 1
    if kind == b"VP8 ":
        return int.from_bytes(body[8:10], "little") & 0x3FFF, int.from_bytes(body[6:8], "little") & 0x3FFF
    return 1, 1


def apply_orientation(image: Image.Image, orientation: int) -> Image.Image:
    """Turns stored pixels by an Exif orientation, as `coordinate_frame.orient_runs` turns masks."""
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image


def _eight_bits(image: Image.Image) -> Image.Image:
    """Converts pixels of any mode to `L` or `RGB`, see the table above; metadata is dropped."""
    mode = image.mode
    if mode in ("L", "RGB"):
        picture: Image.Image = image
    elif mode == "LA":
        picture = image.getchannel("L")
    elif mode.startswith("I;16"):
        picture = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    elif mode == "CMYK":
        inks: npt.NDArray[np.uint16] = np.asarray(image).astype(np.uint16)
        # Pillow takes every CMYK JPEG for one of Adobe's, which are inverted.
        inverted = isinstance(image, JpegImagePlugin.JpegImageFile) and "adobe" not in image.info
        light = inks if inverted else 255 - inks
        picture = Image.fromarray((light[..., :3] * light[..., 3:] // 255).astype(np.uint8))
    elif mode in ("1", "P", "PA", "RGBA", "RGBX", "YCbCr"):
        image.info.pop("transparency", None)
        picture = image.convert("L" if mode == "1" else "RGB")
    else:
        raise ImageError(UNSUPPORTED_COLOR, f"pixels of mode {mode} have no single meaning in 8 bits; save it as RGB")
    picture.info = {}
    return picture


@contextmanager
def _limited(max_pixels: int) -> Iterator[None]:
    """Applies our limit to Pillow, whose decoders may find another size within a file (a tile, a frame).

    Its limit is a variable of the module, so it is restored for other users of Pillow in this process. Its warnings are
    suppressed: such files are refused or harmless.
    """
    with _pillow_limit, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, max_pixels
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before


@contextmanager
def _named_errors(name: str) -> Iterator[None]:
    """Turns all exceptions of a decoder, which may be of nearly every type, into an `ImageError`.

    A `MemoryError` is not a property of the file, and is passed on.
    """
    try:
        yield
    except (ImageError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise ImageError(TOO_LARGE, f"the {name} claims more pixels than images.max_pixels allows") from error
    except Exception as error:
        # The messages of other types come from Python, and differ between its versions.
        why = str(error) if isinstance(error, (OSError, SyntaxError)) else type(error).__name__
        raise ImageError(DAMAGED, f"the {name}'s picture data cannot be decoded ({why})") from error
