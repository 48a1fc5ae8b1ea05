"""The picture of one record: decoded, brought to its size, summed up, encoded again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from PIL import Image

from shardwright import pixels
from shardwright.components.image_transform.figures import channel_sums
from shardwright.components.image_transform.recipe import Recipe
from shardwright.geometry import Geometry
from shardwright.image_files.encoding import encode
from shardwright.image_files.image_header import ImageError, ImageHeader


class Picture(NamedTuple):
    """A transformed picture.

    Attributes:
        plan: what has happened to its pixels.
        data: the bytes that are stored.
        header: of these bytes.
        sums: see `figures.channel_sums`.
    """

    plan: Geometry
    data: bytes
    header: ImageHeader
    sums: tuple[list[int], list[int]]


def make_picture(encoded: bytes, header: ImageHeader, plan: Geometry, recipe: Recipe) -> Picture:
    """Transforms a picture.

    Args:
        encoded: as ingested.
        header: of these bytes.
        plan: what is to happen to its pixels.
        recipe: how it is stored.

    Raises:
        ImageError: it cannot be decoded, or what comes out cannot be encoded.
    """
    try:
        decoded = pixels.decode_planned(tf.constant(encoded), plan, jpeg=header.format == "jpeg")
    except tf.errors.InvalidArgumentError:
        # TensorFlow's own words hold numbers that change from run to run; the ledger must not.
        reason = f"the header is sound, but these {len(encoded)} bytes of {header.format} cannot be decoded"
        raise ImageError("undecodable", reason) from None
    # The tensor's own memory: `numpy()` would copy it.
    values = np.frombuffer(memoryview(decoded), np.uint8).reshape(plan.height, plan.width, 3)
    quality = recipe.quality or 0
    if recipe.encoding == "jpeg" and header.orientation == 1 and recipe.chroma in pixels.JPEG_CHROMA:
        # The same bytes, and other threads go on meanwhile.
        data = pixels.encode_jpeg(decoded, quality, optimize=recipe.optimize, chroma=recipe.chroma)
        return Picture(plan, data, ImageHeader("jpeg", plan.height, plan.width, 3, 1), channel_sums(values))
    data, written = encode(
        Image.fromarray(values),
        recipe.encoding,
        orientation=header.orientation,
        quality=quality,
        optimize=recipe.optimize,
        chroma=recipe.chroma,
    )
    return Picture(plan, data, written, channel_sums(values))
