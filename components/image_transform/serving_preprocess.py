"""The ingest's changes of pixels as TensorFlow operations: serving turns a camera's file into a training image.

With `images.orientation: apply`, `images.resize`, `images.encoding` or `images.unsupported_formats` the stored image
differs from the file. Serving begins with the file, so the graph repeats these steps: orientation and JPEG encoding are
identical to the ingest's, resizing is up to rounding. Besides JPEG and PNG, TensorFlow reads only BMP of 24 bits like
Pillow; the graph rejects other formats (`shardwright predict` converts them first).

Exif is read as in `shardwright.images.exif`; a test compares the two. The options come from the ingest's recipe. Those
that serving cannot repeat are refused before a dataset is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from shardwright.components.image_transform.transform_recipe import changes_pixels
from shardwright.config.images import ImagesConfig, images_config
from shardwright.images import tf_ops

Tensor = Any

_SOS, _EOI, _APP1 = 0xDA, 0xD9, 0xE1
_EXIF_PREFIX = b"Exif\0\0"
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TAG, _SHORT, _LONG = 0x0112, 3, 4
# Maximum number of segments, chunks and junk bytes to skip; encoders write a dozen.
_MOST_STEPS = 4096
# Place and length of two numbers in a BMP: bits per pixel, and compression.
_BMP_KIND = ((28, 2), (30, 4))
_UNREAD = (
    "the bytes are neither JPEG nor PNG nor a BMP of 24 bits. For the training, images.unsupported_formats has made "
    "such files JPEG or PNG, but TensorFlow has no op for it. Save them as PNG first, or use `shardwright predict`, "
    "which does so"
)


def as_ingested(encoded: Tensor, options: Mapping[str, Any]) -> Tensor:
    """Turns a file into the image that the ingest stores.

    Args:
        encoded: string scalar, JPEG or PNG.
        options: result of `ingest_image_options`.

    Returns:
        String scalar, JPEG or PNG; `encoded` itself if there is nothing to do.

    Raises:
        tf.errors.InvalidArgumentError: the format is not supported, see above.
    """
    if not changes_pixels(options):
        return encoded
    images = images_config(options)
    # True if the file becomes a JPEG because its own format is not stored.
    converted = tf.constant(False)
    if images.unsupported_formats != "reject":
        other = ~(tf_ops.is_jpeg(encoded) | (tf.strings.substr(encoded, 0, len(_PNG_SIGNATURE)) == _PNG_SIGNATURE))
        converted = other & (images.unsupported_formats == "jpeg")
        encoded = tf.cond(other, lambda: _png_of_bmp(encoded), lambda: encoded)
    turn = exif_orientation(encoded) if images.orientation == "apply" else tf.constant(1, tf.int64)

    def made() -> Tensor:
        image = _turned(tf_ops.decode(encoded), turn)
        sides = tf.shape(image, tf.int64)[:2]
        height, width = sides[0], sides[1]  # Those that the ingest stores.
        if isinstance(images.size, int):
            height, width = tf_ops.longest_side(height, width, images.size)
        elif images.size is not None:
            height, width = (tf.constant(side, tf.int64) for side in images.size)
        fits = tf.reduce_all(sides == tf.stack([height, width]))
        policy = "stretch" if images.resize == "longest_side" else images.resize
        if images.resize != "keep":
            image = tf.cond(fits, lambda: image, lambda: tf_ops.resize(image, policy, height, width))
        if images.encoding != "keep":
            return _encoded(image, tf.constant(images.encoding == "jpeg"), images)
        jpeg = tf_ops.is_jpeg(encoded) | converted
        return tf.cond(fits & (turn == 1) & ~converted, lambda: encoded, lambda: _encoded(image, jpeg, images))

    if images.resize == "keep" and images.encoding == "keep":
        return tf.cond((turn == 1) & ~converted, lambda: encoded, made)
    return made()


def _png_of_bmp(encoded: Tensor) -> Tensor:
    octets = tf.io.decode_raw(encoded, tf.uint8)
    kind = [_number(octets, tf.constant(place, tf.int64), count, True) for place, count in _BMP_KIND]
    plain = _matches(octets, tf.constant(0, tf.int64), b"BM") & (kind[0] == 24) & (kind[1] == 0)
    # Before the decoder, whose message is less specific.
    with tf.control_dependencies([tf.debugging.Assert(plain, [_UNREAD])]):
        return tf.io.encode_png(tf.io.decode_bmp(tf.identity(encoded), channels=3))


def exif_orientation(encoded: Tensor) -> Tensor:
    """Reads the orientation in a file's Exif block.

    Args:
        encoded: string scalar, JPEG or PNG.

    Returns:
        int64 scalar, 1-8; 1 if it is missing or cannot be read.
    """
    octets = tf.io.decode_raw(encoded, tf.uint8)
    begin, end = tf.cond(tf_ops.is_jpeg(encoded), lambda: _jpeg_block(octets), lambda: _png_block(octets))
    return _tiff_orientation(octets[begin:end])


def _turned(image: Tensor, orientation: Tensor) -> Tensor:
    """Pixels as they are displayed; the table of `shardwright.images.orientation`."""
    across = tf.transpose(image, [1, 0, 2])
    turns = [(part, axes) for part in (image, across) for axes in ([], [1], [0, 1], [0])]
    branches = [lambda part=part, axes=axes: tf.reverse(part, axes) if axes else part for part, axes in turns]
    return tf.switch_case(tf.cast(orientation - 1, tf.int32), branches)


def _encoded(image: Tensor, jpeg: Tensor, images: ImagesConfig) -> Tensor:
    def as_jpeg() -> Tensor:
        return tf.io.encode_jpeg(
            image,
            format="rgb",
            quality=images.quality,
            optimize_size=images.optimize,
            # 422 is refused by `ingest_image_options` wherever a JPEG is written.
            chroma_downsampling=tf_ops.JPEG_CHROMA.get(images.chroma, True),
        )

    return tf.cond(jpeg, as_jpeg, lambda: tf.io.encode_png(image))


def _at(octets: Tensor, place: Tensor) -> Tensor:
    """Returns the bytes at some places, int64; 0 beyond the end."""
    size = tf.size(octets, tf.int64)
    inside = (place >= 0) & (place < size)
    padded = tf.concat([octets, tf.zeros([1], tf.uint8)], 0)
    return tf.cast(tf.gather(padded, tf.where(inside, place, size)), tf.int64)


def _number(octets: Tensor, place: Tensor, count: int, little: Tensor | bool = False) -> Tensor:
    """Reads whole numbers of `count` bytes."""
    places = tf.expand_dims(place, -1) + tf.range(count, dtype=tf.int64)
    values = _at(octets, places)
    weights = [256**power for power in range(count)]
    order = tf.where(little, tf.constant(weights, tf.int64), tf.constant(weights[::-1], tf.int64))
    return tf.reduce_sum(values * order, -1)


def _matches(octets: Tensor, place: Tensor, text: bytes) -> Tensor:
    return tf.reduce_all(_at(octets, place + tf.range(len(text), dtype=tf.int64)) == tf.constant(list(text), tf.int64))


def _walk(octets: Tensor, start: int, step: Any) -> tuple[Tensor, Tensor]:
    """Returns begin and end of the block that `step` finds; `step` returns next place, begin and end, 0 for none."""
    size, zero = tf.size(octets, tf.int64), tf.constant(0, tf.int64)
    _, begin, end = tf.while_loop(
        lambda place, begin, _: (begin == 0) & (place + 4 <= size),
        lambda place, *_: step(place, size),
        (tf.constant(start, tf.int64), zero, zero),
        maximum_iterations=_MOST_STEPS,
    )
    return begin, tf.minimum(end, size)


def _jpeg_block(octets: Tensor) -> tuple[Tensor, Tensor]:
    def step(place: Tensor, size: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        marker = _at(octets, place + 1)
        segment = (_at(octets, place) == 0xFF) & (marker != 0) & (marker != 0xFF)
        bare = (marker == 1) | ((marker >= 0xD0) & (marker <= 0xD7))
        length = tf.where(bare, tf.constant(0, tf.int64), tf.maximum(_number(octets, place + 2, 2), 2))
        found = segment & (marker == _APP1) & _matches(octets, place + 4, _EXIF_PREFIX)
        ends = segment & ((marker == _SOS) | (marker == _EOI))
        after = tf.where(segment, place + 2 + length, place + 1)
        zero = tf.zeros([], tf.int64)
        begin = tf.where(found, place + 4 + len(_EXIF_PREFIX), zero)
        return tf.where(ends, size, after), begin, tf.where(found, place + 2 + length, zero)

    return _walk(octets, 2, step)


def _png_block(octets: Tensor) -> tuple[Tensor, Tensor]:
    def step(place: Tensor, size: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        del size
        length = _number(octets, place, 4)
        found, zero = _matches(octets, place + 4, b"eXIf"), tf.zeros([], tf.int64)
        return place + 12 + length, tf.where(found, place + 8, zero), tf.where(found, place + 8 + length, zero)

    return _walk(octets, len(_PNG_SIGNATURE), step)


def _tiff_orientation(block: Tensor) -> Tensor:
    little = _matches(block, tf.constant(0, tf.int64), b"II*\0")
    sound = little | _matches(block, tf.constant(0, tf.int64), b"MM\0*")
    size = tf.size(block, tf.int64)
    directory = _number(block, tf.constant(4, tf.int64), 4, little)
    sound = sound & (directory >= 8) & (directory + 2 <= size)
    entries = tf.where(sound, _number(block, directory, 2, little), tf.constant(0, tf.int64))
    places = directory + 2 + 12 * tf.range(entries)
    places = tf.boolean_mask(places, places <= size - 12)
    of_tag = tf.boolean_mask(places, _number(block, places, 2, little) == _TAG)[:1]
    kind, count = _number(block, of_tag + 2, 2, little), _number(block, of_tag + 4, 4, little)
    value = tf.where(kind == _LONG, _number(block, of_tag + 8, 4, little), _number(block, of_tag + 8, 2, little))
    good = ((kind == _SHORT) | (kind == _LONG)) & (count == 1) & (value >= 1) & (value <= 8)
    return tf.reduce_max(tf.concat([tf.constant([1], tf.int64), tf.boolean_mask(value, good)], 0))
