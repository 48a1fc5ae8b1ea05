"""Masks as bits: one bit for each class and pixel from the run lengths to the finished batch, where they become bytes.

Touching pixels costs more time than drawing. The plain way is a cumulative sum of an int32 per pixel, then a
transposition and a shift for every class. It takes many times as long. Here one int64 holds eight neighboring columns
of a row: a byte for each, and in it a bit for each of eight classes. The sum runs down the rows, so runs that are
counted column by column need no transposition. TensorFlow's cumulative sum takes 4 ns for each value. So it only finds
the state before each block of rows, and a block is summed by adding its rows, which are tensors, one to the next. For
the same reason the changes are gathered by `unsorted_segment_sum`, not by `scatter_nd`. Augmentation and batching move
an eighth of the bytes as well. These alternatives are not faster: drawing a whole batch in one op, which leaves the
processor's caches, a byte for each class in the sum, and `tf.repeat` of sorted runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright.masks.regions import IGNORE_VALUE

Tensor = Any

CLASSES_A_PLANE = 8
_LANES = 8
# Rows of a block; a power of two. More of them mean fewer cumulative sums, but more ops.
_BLOCK = 16

# Multiplied by these, up to 2, 4 or 7 bits spread to the lowest ones of as many bytes; no two products overlap.
_SPREAD: tuple[tuple[int, Any, int, int], ...] = (
    (2, tf.int16, 0x0081, 0x0101),
    (4, tf.int32, 0x0020_4081, 0x0101_0101),
    (8, tf.int64, 0x0002_0408_1020_4081, 0x0101_0101_0101_0101),
)


def runs_fit(runs: Sequence[Tensor], pixels: int) -> Tensor:
    """Returns whether all runs are within an image of `pixels` pixels: a boolean scalar. See `draw_bits`."""
    flat = tf.concat(list(runs), 0)
    ends = flat[0::2] + flat[1::2]
    # An empty reduction gives the largest or least int64, either of which fits.
    return (tf.reduce_min(flat) >= 0) & (tf.reduce_max(ends) <= pixels)


def draw_bits(runs: Sequence[Tensor], height: int, width: int) -> Tensor:
    """Draws the run-length masks of one image.

    A run adds its class's bit at its start and subtracts it after its end. A byte of the sum may be negative in
    between, but the whole word is exact, and in the end every byte holds the bits of its pixel. A run that continues
    from the column before is added to the first pixel of a column.

    Args:
        runs: per class int64 [2n] of start, length, start, length, ...: column by column, from 0, disjoint, within
            height * width (`runs_fit`).
        height: rows.
        width: columns.

    Returns:
        uint8 [height, width, P], a byte for every eight classes; class k is bit k % 8 of byte k // 8.

    Raises:
        ValueError: there is no class.
    """
    if not runs:
        raise ValueError("masks of no class cannot be drawn; a class without a mask has an empty list of runs")
    groups = [runs[start : start + CLASSES_A_PLANE] for start in range(0, len(runs), CLASSES_A_PLANE)]
    return _joined([_draw_plane(group, height, width) for group in groups])


def _draw_plane(runs: Sequence[Tensor], height: int, width: int) -> Tensor:
    # One column more than there are, for a run that ends with the last pixel.
    words, blocks = width // _LANES + 1, -(-height // _BLOCK)
    flat = tf.cast(tf.concat(list(runs), 0), tf.int32)
    bits = tf.concat([tf.fill([tf.size(own) // 2], tf.constant(1 << k, tf.int64)) for k, own in enumerate(runs)], 0)
    starts = flat[0::2]
    places = tf.concat([starts, starts + flat[1::2]], 0)
    changes = tf.concat([bits, -bits], 0)
    columns = places // height
    rows = places - columns * height
    lanes = tf.cast(tf.bitwise.bitwise_and(columns, _LANES - 1), tf.int64)
    values = tf.bitwise.left_shift(changes, lanes * 8)
    of_block = tf.bitwise.right_shift(rows, _BLOCK.bit_length() - 1) * words + tf.bitwise.right_shift(columns, 3)
    of_row = tf.bitwise.bitwise_and(rows, _BLOCK - 1) * (blocks * words) + of_block
    # One sum finds the changes of each row (the first rows of all blocks, ...), of each block, and of each column.
    small, large = blocks * words, _BLOCK * blocks * words
    sums = tf.math.unsorted_segment_sum(
        tf.concat([values, values, changes], 0),
        tf.concat([of_row, of_block + large, columns + (large + small)], 0),
        large + small + words * _LANES,
    )
    inherited = tf.cumsum(sums[large + small :], exclusive=True)
    first_row = tf.bitcast(tf.reshape(tf.cast(inherited, tf.uint8), [words, _LANES]), tf.int64)
    state = tf.cumsum(tf.reshape(sums[large : large + small], [blocks, words]), exclusive=True) + first_row
    drawn = []
    for row in tf.unstack(tf.reshape(sums[:large], [_BLOCK, blocks, words])):
        state += row
        drawn.append(state)
    covered = tf.bitcast(tf.stack(drawn, axis=1), tf.uint8)
    return tf.reshape(covered, [blocks * _BLOCK, words * _LANES])[:height, :width]


def pack_bits(masks: Tensor) -> Tensor:
    """Packs masks: uint8 [..., C] of 0 and 1 to uint8 [..., P]."""
    classes = masks.shape[-1]
    found = []
    for start in range(0, classes, CLASSES_A_PLANE):
        group = masks[..., start : start + CLASSES_A_PLANE]
        weights = tf.constant(1 << np.arange(group.shape[-1]), tf.uint8)
        found.append(tf.reduce_sum(group * weights, axis=-1))
    return _joined(found)


def unpack_bits(bits: Tensor, classes: int, ignores: bool = False) -> Tensor:
    """Unpacks the masks of a batch on the host.

    Args:
        bits: uint8 [..., P], as `draw_bits` makes them.
        classes: number of classes, C.
        ignores: whether the bit after those of the classes marks pixels that are ignored.

    Returns:
        uint8 [..., C] of 0 and 1, and `IGNORE_VALUE` in all classes of an ignored pixel.
    """
    marks = classes + ignores
    counts = [min(marks - first, CLASSES_A_PLANE) for first in range(0, marks, CLASSES_A_PLANE)]
    # A single plane is all of them; slicing it would touch every pixel.
    drawn = [tf.squeeze(bits, -1)] if len(counts) == 1 else tf.unstack(bits, axis=-1)
    parts = [_spread(plane, count) for plane, count in zip(drawn, counts, strict=True)]
    masks = parts[0] if len(parts) == 1 else tf.concat(parts, axis=-1)
    if not ignores:
        return masks
    # All bits of 255 are 1, so the bits of the classes make no difference for an ignored pixel.
    return tf.bitwise.bitwise_or(masks[..., :classes], masks[..., classes:] * np.uint8(IGNORE_VALUE))


def _joined(drawn: Sequence[Tensor]) -> Tensor:
    return drawn[0][..., tf.newaxis] if len(drawn) == 1 else tf.stack(list(drawn), axis=-1)


def _spread(plane: Tensor, marks: int) -> Tensor:
    """Spreads the lowest bits of uint8 [...] to uint8 [..., marks] of 0 and 1."""
    if marks == 1:
        return plane[..., tf.newaxis]
    lanes, kind, factor, lowest = next(entry for entry in _SPREAD if marks <= entry[0])
    wide = tf.cast(plane, kind)
    if marks == CLASSES_A_PLANE:
        # Seven bits can be spread without overlapping products; the eighth is set separately.
        spread = tf.bitwise.bitwise_and(tf.bitwise.bitwise_and(wide, 0x7F) * factor, lowest)
        spread += tf.bitwise.left_shift(tf.bitwise.right_shift(wide, 7), tf.constant(56, kind))
    else:
        spread = tf.bitwise.bitwise_and(wide * factor, lowest)
    masks = tf.bitcast(spread, tf.uint8)
    return masks if marks == lanes else masks[..., :marks]


def unpack_masks(bits: Any, classes: int, ops: Any, ignores: bool = False, dtype: str = "float32") -> Any:
    """Unpacks the masks of a batch by `keras.ops` on the device, so that bits travel there and not bytes.

    Args:
        bits: uint8 [..., P], the target of `load(..., masks="bits")`.
        classes: number of classes, C.
        ops: the module `keras.ops`; the trainer has it, the loader does not.
        ignores: whether the dataset marks pixels to be ignored (`Manifest.ignores`).
        dtype: of the result.

    Returns:
        [..., C] of 0 and 1, and `IGNORE_VALUE` in all classes of an ignored pixel.
    """
    wide = ops.cast(bits, "int32")
    marks = [
        ops.mod(ops.floor_divide(wide[..., k // CLASSES_A_PLANE], 1 << k % CLASSES_A_PLANE), 2)
        for k in range(classes + ignores)
    ]
    masks = ops.cast(ops.stack(marks[:classes], axis=-1), dtype)
    if not ignores:
        return masks
    ignored = ops.expand_dims(ops.cast(marks[classes], dtype), -1)
    return masks * (1 - ignored) + ignored * IGNORE_VALUE
