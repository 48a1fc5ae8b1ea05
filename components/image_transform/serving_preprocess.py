"""What the ingest does to pixels, as TensorFlow ops: a file as the camera wrote it becomes what was trained on.

With `images.orientation: apply`, `images.resize`, `images.reencode` or `images.convert` the stored image is not the
file. What serves begins with the file, so it repeats these steps, and encodes as the ingest did: the same turns to the
last pixel, the same JPEG of them, the same filter up to its rounding. Of other formats than JPEG and PNG TensorFlow
reads a BMP of 24 bits as Pillow does, and no other; these are refused by what the graph says (`shardwright predict`
converts them before it asks).

Exif is read as `shardwright.images.exif` reads it; a test holds the two against each other.

What an ingest did to pixels, told by its recipe; what serves repeats it, so what cannot be repeated is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from shardwright.config.images import ImagesConfig, images_config
from shardwright.errors import ConfigError
from shardwright.images import tf_ops

Tensor = Any

_SOS, _EOI, _APP1 = 0xDA, 0xD9, 0xE1
_EXIF_PREFIX = b"Exif\0\0"
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TAG, _SHORT, _LONG = 0x0112, 3, 4
# Segments, chunks and bytes of junk that are passed over; encoders write a dozen.
_MOST_STEPS = 4096
# Where a BMP says how many bits a pixel has, and how they are compressed: not at all.
_BMP_KIND = ((28, 2), (30, 4))
_UNREAD = (
    "the bytes are neither JPEG nor PNG nor a BMP of 24 bits. images.convert has made such files JPEG or PNG for the "
    "training, but TensorFlow has no op for it: save them so first, or use `shardwright predict`, which does"
)


def as_ingested(encoded: Tensor, options: Mapping[str, Any]) -> Tensor:
    """Makes of a file what the ingest stores of it.

    Args:
        encoded: string scalar, JPEG or PNG.
        options: what `ingested.ingest_image_options` gave.

    Returns:
        String scalar, JPEG or PNG; `encoded` itself where there is nothing to do.

    Raises:
        tf.errors.InvalidArgumentError: of a format that cannot be repeated, see above.
    """
    if not options:
        return encoded
    images = images_config(options)
    # Whether it has to become a JPEG because its own format is none that is stored.
    converted = tf.constant(False)
    if images.convert != "reject":
        other = ~(tf_ops.is_jpeg(encoded) | (tf.strings.substr(encoded, 0, len(_PNG_SIGNATURE)) == _PNG_SIGNATURE))
        converted = other & (images.convert == "jpeg")
        encoded = tf.cond(other, lambda: _png_of_bmp(encoded), lambda: encoded)
    turn = exif_orientation(encoded) if images.orientation == "apply" else tf.constant(1, tf.int64)

    def made() -> Tensor:
        image = _turned(tf_ops.decode(encoded), turn)
        sides = tf.shape(image, tf.int64)[:2]
        height, width = _wanted(images, sides[0], sides[1])
        fits = tf.reduce_all(sides == tf.stack([height, width]))
        policy = "stretch" if images.resize == "longest_side" else images.resize
        if images.resize != "none":
            image = tf.cond(fits, lambda: image, lambda: tf_ops.resize(image, policy, height, width))
        if images.reencode != "none":
            return _encoded(image, tf.constant(images.reencode == "jpeg"), images)
        jpeg = tf_ops.is_jpeg(encoded) | converted
        return tf.cond(fits & (turn == 1) & ~converted, lambda: encoded, lambda: _encoded(image, jpeg, images))

    if images.resize == "none" and images.reencode == "none":
        return tf.cond((turn == 1) & ~converted, lambda: encoded, made)
    return made()


def _png_of_bmp(encoded: Tensor) -> Tensor:
    octets = tf.io.decode_raw(encoded, tf.uint8)
    kind = [_number(octets, tf.constant(place, tf.int64), count, True) for place, count in _BMP_KIND]
    plain = _says(octets, tf.constant(0, tf.int64), b"BM") & (kind[0] == 24) & (kind[1] == 0)
    # Before the decoder, which says less.
    with tf.control_dependencies([tf.debugging.Assert(plain, [_UNREAD])]):
        return tf.io.encode_png(tf.io.decode_bmp(tf.identity(encoded), channels=3))


def exif_orientation(encoded: Tensor) -> Tensor:
    """The orientation that a file's Exif block says.

    Args:
        encoded: string scalar, JPEG or PNG.

    Returns:
        int64 scalar, 1-8; 1 where there is none or it cannot be read.
    """
    octets = tf.io.decode_raw(encoded, tf.uint8)
    begin, end = tf.cond(tf_ops.is_jpeg(encoded), lambda: _jpeg_block(octets), lambda: _png_block(octets))
    return _tiff_orientation(octets[begin:end])


def _wanted(images: ImagesConfig, height: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """The size that the ingest brings pixels to, int64 scalars."""
    if isinstance(images.size, int):
        return tf_ops.longest_side(height, width, images.size)
    if images.size is not None:
        return tf.constant(images.size[0], tf.int64), tf.constant(images.size[1], tf.int64)
    return height, width


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
    """The bytes at some places, int64; 0 where there are none."""
    size = tf.size(octets, tf.int64)
    inside = (place >= 0) & (place < size)
    padded = tf.concat([octets, tf.zeros([1], tf.uint8)], 0)
    return tf.cast(tf.gather(padded, tf.where(inside, place, size)), tf.int64)


def _number(octets: Tensor, place: Tensor, count: int, little: Tensor | bool = False) -> Tensor:
    """Whole numbers of so many bytes."""
    places = tf.expand_dims(place, -1) + tf.range(count, dtype=tf.int64)
    values = _at(octets, places)
    weights = [256**power for power in range(count)]
    order = tf.where(little, tf.constant(weights, tf.int64), tf.constant(weights[::-1], tf.int64))
    return tf.reduce_sum(values * order, -1)


def _says(octets: Tensor, place: Tensor, text: bytes) -> Tensor:
    return tf.reduce_all(_at(octets, place + tf.range(len(text), dtype=tf.int64)) == tf.constant(list(text), tf.int64))


def _walk(octets: Tensor, start: int, step: Any) -> tuple[Tensor, Tensor]:
    """Begin and end of the block that `step` finds; it gives next place, begin and end, 0 for none."""
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
        found = segment & (marker == _APP1) & _says(octets, place + 4, _EXIF_PREFIX)
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
        found, zero = _says(octets, place + 4, b"eXIf"), tf.zeros([], tf.int64)
        return place + 12 + length, tf.where(found, place + 8, zero), tf.where(found, place + 8 + length, zero)

    return _walk(octets, len(_PNG_SIGNATURE), step)


def _tiff_orientation(block: Tensor) -> Tensor:
    little = _says(block, tf.constant(0, tf.int64), b"II*\0")
    sound = little | _says(block, tf.constant(0, tf.int64), b"MM\0*")
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


# Any of them may store other pixels than the file's.
_STEPS = ("orientation", "resize", "reencode", "convert")
_OPTIONS = (*_STEPS, "size", "quality", "optimize", "chroma")
_NOT_WRITTEN = 422


def ingest_image_options(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The options that tell what was done to pixels; empty where files are stored as they came.

    Args:
        recipe: of an ingested dataset, or a mapping with a section `images`.

    Raises:
        ConfigError: what serves cannot do the same.
    """
    given = recipe.get("images", {})
    plain = ImagesConfig()
    found = {name: given[name] for name in _OPTIONS if name in given and given[name] != getattr(plain, name)}
    if not set(_STEPS) & set(found):
        return {}
    # Without `reencode` a JPEG that is turned or resized becomes a JPEG again.
    moved = "orientation" in found or "resize" in found
    encoded = found.get("reencode") or ("jpeg" if moved else found.get("convert"))
    if found.get("chroma") == _NOT_WRITTEN and encoded == "jpeg":
        raise ConfigError(
            "images.chroma",
            f"{_NOT_WRITTEN}, and what serves does to images what the ingest did, but TensorFlow's encode_jpeg writes "
            "444 and 420 only",
            "Use one of these, or images.reencode: png; transform.chroma may be 422.",
        )
    return found
