"""Masks in the graph of the exported model: small regions are removed, and masks are encoded as short texts.

Regions are those of `shardwright.masks.regions`, so serving, evaluation and `shardwright predict` give the same masks.
A mask of 352x544 pixels and four classes is 20 MB as JSON numbers. As PNG or run lengths it is some kilobytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

Tensor = Any

# TF Serving's REST API encodes an output of a name that ends with `_bytes` in base64.
PNG_OUTPUT, RLE_OUTPUT = "png_bytes", "rle"


def remove_small(masks: Tensor, min_areas: Sequence[int]) -> Tensor:
    """Removes regions with fewer pixels than allowed from the masks of one image; corners connect.

    Args:
        masks: bool [H, W, C].
        min_areas: pixels of the smallest region, per class.

    Returns:
        bool [H, W, C].
    """
    height, width, classes = masks.shape
    # All columns of all classes in one vector, with empty places between them, so that only true neighbors touch.
    stride = height + 2
    flat = tf.reshape(tf.pad(tf.transpose(masks, [2, 1, 0]), [[0, 0], [0, 1], [0, 2]]), [-1])
    before = tf.concat([[False], flat[:-1]], 0)
    behind = tf.concat([flat[1:], [False]], 0)
    starts = tf.where(flat & ~before)[:, 0]
    ends = tf.where(flat & ~behind)[:, 0] + 1
    low = tf.searchsorted(ends, starts + stride, side="left", out_type=tf.int64)
    high = tf.searchsorted(starts, ends + stride, side="right", out_type=tf.int64)
    counts = tf.maximum(high - low, 0)
    pieces = tf.size(starts, tf.int64)
    left = tf.repeat(tf.range(pieces), counts)
    right = tf.repeat(low - tf.cumsum(counts, exclusive=True), counts) + tf.range(tf.reduce_sum(counts))
    roots = _roots(tf.range(pieces), left, right)
    areas = tf.gather(tf.math.unsorted_segment_sum(ends - starts, roots, pieces), roots)
    least = tf.gather(tf.constant(min_areas, tf.int64), starts // (stride * (width + 1)))
    # One place more, for masks without any piece.
    kept = tf.concat([areas >= least, [False]], 0)
    piece = tf.cumsum(tf.cast(flat & ~before, tf.int32)) - 1
    cleaned = flat & tf.gather(kept, tf.maximum(piece, 0))
    return tf.transpose(tf.reshape(cleaned, [classes, width + 1, stride])[:, :width, :height], [2, 1, 0])


def _roots(own: Tensor, left: Tensor, right: Tensor) -> Tensor:
    def differ(roots: Tensor, previous: Tensor) -> Tensor:
        return tf.reduce_any(roots != previous)

    def tie(roots: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
        ends = tf.gather(roots, left), tf.gather(roots, right)
        least = tf.minimum(*ends)
        hooked = roots
        for end in ends:
            hooked = tf.tensor_scatter_nd_min(hooked, end[:, tf.newaxis], least)
        # Each root is replaced by its root, until all are roots.
        jumped = tf.while_loop(
            lambda r: tf.reduce_any(tf.gather(r, r) != r), lambda r: [tf.gather(r, r)], [hooked], parallel_iterations=1
        )
        return jumped[0], roots

    return tf.while_loop(differ, tie, tie(own, own))[0]


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
