"""Masks as short texts, as operations of a graph: PNG files, and run lengths.

A mask of 352x544 pixels and four classes is 20 MB as JSON numbers. As PNG or run lengths it is some kilobytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

Tensor = Any

# TF Serving's REST API encodes an output of a name that ends with `_bytes` in base64.
PNG_OUTPUT, RLE_OUTPUT = "png_bytes", "rle"


def encode_masks(masks: Tensor, encode: Callable[[Tensor], Tensor]) -> Tensor:
    """Encodes each mask of a batch.

    Args:
        masks: uint8 of 0 and 1, [N, height, width, C].
        encode: `to_png` or `to_run_lengths`.

    Returns:
        string [N, C].
    """
    _, height, width, classes = masks.shape
    flat = tf.reshape(tf.transpose(masks, [0, 3, 1, 2]), [-1, height, width])
    texts = tf.map_fn(encode, flat, fn_output_signature=tf.TensorSpec([], tf.string))
    return tf.reshape(texts, [-1, classes])


def to_png(mask: Tensor) -> Tensor:
    """Returns a mask of one class, uint8 [height, width], as a gray PNG of 0 and 255."""
    return tf.io.encode_png(tf.cast(mask, tf.uint8)[..., tf.newaxis] * tf.constant(255, tf.uint8))


def to_run_lengths(mask: Tensor) -> Tensor:
    """Returns a mask of one class, uint8 [height, width], as `start length …`: column by column, the first pixel is 1.

    That is the dialect of Kaggle's tables, and of `rle: {encoding: absolute, order: column, start: 1}`.
    """
    column_by_column = tf.reshape(tf.transpose(tf.cast(mask, tf.int8)), [-1])
    edge = tf.zeros([1], tf.int8)
    padded = tf.concat([edge, column_by_column, edge], 0)
    changes = tf.reshape(tf.where(padded[1:] != padded[:-1]), [-1, 2])
    pairs = tf.stack([changes[:, 0] + 1, changes[:, 1] - changes[:, 0]], axis=1)
    return tf.strings.reduce_join(tf.strings.as_string(tf.reshape(pairs, [-1])), separator=" ")
