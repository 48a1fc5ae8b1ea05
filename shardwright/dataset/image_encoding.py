"""From pixels to the bytes that are stored: JPEG, PNG, a TensorFlow tensor or nothing but the values.

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

import io
from collections.abc import Sequence

from PIL import Image

from shardwright.images.exif import only_orientation
from shardwright.images.geometry import Geometry
from shardwright.images.header import ImageHeader, check_size
from shardwright.images.jpeg import EXIF_PREFIX
from shardwright.tfrecords.wire import VARINT, delimited, varint

# Chroma samples of a JPEG per four of brightness, as the field writes them; with Pillow's name.
CHROMA = {444: "4:4:4", 422: "4:2:2", 420: "4:2:0"}

# Numbers of fields and types in TensorFlow's messages.
_DTYPE, _SHAPE, _CONTENT, _DIM, _SIZE = 1, 2, 4, 2, 1
_DT_UINT8 = 4


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
