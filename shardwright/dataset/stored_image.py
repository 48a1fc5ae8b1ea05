"""The bytes that are stored of one image: by default those of the file, else rotated, resized, converted, re-encoded.

An image is decoded only where the options require it: one that is upright, of the wanted size and of a format that is
kept passes through. Re-encoded bytes are the same only with the same versions of the libraries.

| `image/format` | bytes | read by |
|---|---|---|
| `jpeg` | baseline JPEG of the given quality and chroma; gray stays gray | `tf.io.decode_jpeg` |
| `png` | 8 bits, lossless; gray stays gray | `tf.io.decode_png` |
| `tensor` | a `TensorProto`, uint8 [height, width, 3] | `tf.io.parse_tensor(bytes, tf.uint8)` |
| `raw` | height * width * 3 values, row by row, RGB | `tf.io.decode_raw(bytes, tf.uint8)`, then reshape |

The bytes have no metadata but the orientation that is still needed (JPEG and PNG; for the others, only the feature has
it). TensorProto after tensorflow/core/framework/tensor.proto and tensor_shape.proto: TensorFlow is not needed.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence

from PIL import Image

from shardwright.config import ImagesConfig
from shardwright.config.images import FULL, KEEP
from shardwright.images.decode import apply_orientation, convert, decode, header_of
from shardwright.images.exif import only_orientation
from shardwright.images.geometry import DCT_RATIOS, Geometry, dct_ratio, plan_geometry, plan_longest_side
from shardwright.images.header import ImageHeader, check_size
from shardwright.images.jpeg import EXIF_PREFIX
from shardwright.images.metadata import strip_metadata
from shardwright.images.orientation import UPRIGHT, displayed_size
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.tfrecords.wire import VARINT, delimited, varint

# Chroma samples of a JPEG per four of brightness, as the field writes them; with Pillow's name.
CHROMA = {444: "4:4:4", 422: "4:2:2", 420: "4:2:0"}
# Numbers of fields and types in TensorFlow's messages.
_DTYPE, _SHAPE, _CONTENT, _DIM, _SIZE = 1, 2, 4, 2, 1
_DT_UINT8 = 4


def may_decode(options: ImagesConfig) -> bool:
    """Returns whether any image is decoded before it is stored."""
    changed = options.size is not None or options.encoding != KEEP or options.orientation == "apply"
    return options.verify == FULL or changed or options.unsupported_formats != "reject"


def prepare(
    data: bytes, options: ImagesConfig, header: ImageHeader | None = None
) -> tuple[bytes, ImageHeader, CoordinateFrame]:
    """Prepares an image for storing.

    Args:
        data: the file as it was delivered.
        options: `images`.
        header: of the file, where it was read already.

    Returns:
        The bytes to store; their header, whose `located` is that of the file; the frame that annotations move to.

    Raises:
        ImageError: the file is refused, if possible by its header, before it is decoded.
    """
    picture = None
    if header is None:
        # With `verify: full` the same bytes were probed.
        known = options.verify == FULL
        convertible = options.unsupported_formats != "reject"
        header = header_of(data, max_pixels=options.max_pixels, convert=convertible, known=known)
    if header is None:
        picture, header = convert(data, max_pixels=options.max_pixels)
    frame = frames_of(header.height, header.width, header.orientation, options)
    turned, geometry = frame.turned, frame.geometry
    if picture is None and not turned and geometry is None and options.encoding == KEEP:
        return strip_metadata(data, header, options.strip_metadata), header, frame
    ratio = 1
    if picture is None:
        encoding = header.format if options.encoding == KEEP else options.encoding
        ratio = _ratio(geometry, turned) if header.format == "jpeg" else 1
        picture = decode(data, header, ratio)
    else:
        encoding = options.unsupported_formats if options.encoding == KEEP else options.encoding
    if turned:
        picture = apply_orientation(picture, header.orientation)
    if geometry is not None:
        picture = resize(picture, geometry, ratio)
    stored, written = encode_image(
        picture,
        encoding,
        orientation=UPRIGHT if turned else header.orientation,
        quality=options.quality,
        optimize=options.optimize,
        chroma=options.chroma,
    )
    return stored, dataclasses.replace(written, located=header.located), frame


def frames_of(height: int, width: int, orientation: int, options: ImagesConfig) -> CoordinateFrame:
    """Returns how annotations move from a file's pixels, of this size and orientation, to the stored pixels."""
    turned = options.orientation == "apply" and orientation != UPRIGHT
    displayed = displayed_size(height, width, orientation if turned else UPRIGHT)
    plan = None
    if isinstance(options.size, int):
        plan = plan_longest_side(*displayed, options.size)
    elif options.size is not None:
        plan = plan_geometry(options.resize, *displayed, *options.size)
    if plan is not None and (plan.height, plan.width) == displayed:  # The pixels have the wanted size already.
        plan = None
    return CoordinateFrame(height, width, orientation, turned, plan)


def _ratio(geometry: Geometry | None, turned: bool) -> int:
    """Returns the largest ratio that a JPEG may be reduced by while it is decoded, without enlarging it later."""
    if geometry is None:
        return 1
    # If the size is not a multiple of the ratio, the last pixel covers fewer pixels. Rotation would put it first and
    # shift all others.
    whole = (r for r in DCT_RATIOS if not (geometry.source_height % r or geometry.source_width % r))
    return min(dct_ratio(geometry), next(whole)) if turned else dct_ratio(geometry)


def encode_image(
    image: Image.Image,
    encoding: str,
    *,
    orientation: int = 1,
    quality: int = 90,
    optimize: bool = False,
    chroma: int = 420,
) -> tuple[bytes, ImageHeader]:
    """Encodes a picture.

    Args:
        image: mode `L` or `RGB`.
        encoding: `jpeg`, `png`, `tensor` or `raw`.
        orientation: how the pixels are to be turned for display, 1-8.
        quality: of a JPEG, 1-100.
        optimize: smaller and slower: a JPEG's own Huffman tables, a PNG's best compression.
        chroma: of a JPEG, 444, 422 or 420.

    Returns:
        The bytes, and their header.

    Raises:
        ImageError: a side is longer than the encoding allows.
    """
    gray = image.mode == "L" and encoding in ("jpeg", "png")
    header = ImageHeader(encoding, image.height, image.width, 1 if gray else 3, orientation)
    if encoding in ("tensor", "raw"):
        values = (image.convert("RGB") if image.mode == "L" else image).tobytes()
        return (tensor_proto(values, (image.height, image.width, 3)) if encoding == "tensor" else values), header
    # Decoders refuse larger images.
    check_size(encoding, image.height, image.width, image.height * image.width)
    exif = only_orientation(orientation)
    file = io.BytesIO()
    if encoding == "jpeg":
        segment = EXIF_PREFIX + exif if exif else b""
        image.save(file, "JPEG", quality=quality, optimize=optimize, subsampling=CHROMA[chroma], exif=segment)
    else:
        image.save(file, "PNG", optimize=optimize, exif=exif or None)
    return file.getvalue(), header


def resize(image: Image.Image, geometry: Geometry, ratio: int = 1) -> Image.Image:
    """Crops, resizes and pads a picture as `rle.resample` does masks.

    The filter is the antialiased triangle (Pillow's BILINEAR, as wide as the shrinking asks for, half-pixel centers),
    that of `images.tf_ops`; borders are 0.

    Args:
        image: mode `L` or `RGB`; one pixel of it covers `ratio` x `ratio` of the source.
        geometry: the plan, in pixels of the source.
        ratio: what the source was divided by while it was decoded.

    Returns:
        Same mode, `geometry.height` x `geometry.width`.
    """
    g = geometry
    left, top = g.crop_left / ratio, g.crop_top / ratio
    right, bottom = (g.crop_left + g.crop_width) / ratio, (g.crop_top + g.crop_height) / ratio
    size = (g.resized_width, g.resized_height)
    resized = image.resize(size, Image.Resampling.BILINEAR, box=(left, top, right, bottom))
    if size == (g.width, g.height):
        return resized
    framed = Image.new(image.mode, (g.width, g.height))
    framed.paste(resized, (g.pad_left, g.pad_top))
    return framed


def tensor_proto(values: bytes, sides: Sequence[int]) -> bytes:
    """Serializes uint8 values as a `TensorProto`.

    Args:
        values: the values, the last side's next to each other.
        sides: the tensor's shape.
    """
    sizes = (bytes([_SIZE << 3 | VARINT]) + varint(side) for side in sides)
    shape = b"".join(delimited(_DIM, size) for size in sizes)
    kind = bytes([_DTYPE << 3 | VARINT, _DT_UINT8])
    return kind + delimited(_SHAPE, shape) + delimited(_CONTENT, values)
