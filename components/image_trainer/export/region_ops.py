"""Removal of small regions from masks, as TensorFlow operations: `shardwright.masks.regions` inside the exported model.

So serving, evaluation and `shardwright predict` give the same masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

Tensor = Any


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
        return _jumped(hooked), roots

    return tf.while_loop(differ, tie, tie(own, own))[0]


def _jumped(roots: Tensor) -> Tensor:
    """Replaces each root by its root, until all are roots."""
    return tf.while_loop(
        lambda r: tf.reduce_any(tf.gather(r, r) != r), lambda r: [tf.gather(r, r)], [roots], parallel_iterations=1
    )[0]
