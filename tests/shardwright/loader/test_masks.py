"""Masks as bits: drawn as numpy draws them, unpacked alike on the host and on the device."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from keras import ops
from property_tests import tries

from shardwright.loader import masks
from shardwright.masks import rle
from shardwright.masks.regions import IGNORE_VALUE


@st.composite
def drawings(draw):
    """Masks, uint8 [H, W, C], and their runs."""
    # More rows than two blocks of them.
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 24))
    classes = draw(st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 17]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    share = draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
    drawn = (random.random((height, width, classes)) < share).astype(np.uint8)
    runs = [rle.encode(np.ascontiguousarray(drawn[..., k])).reshape(-1) for k in range(classes)]
    return drawn, [tf.constant(own, tf.int64) for own in runs]


def bits_of(drawn):
    """By numpy."""
    packed = np.packbits(drawn, axis=-1, bitorder="little")
    assert packed.shape[-1] == -(-drawn.shape[-1] // 8)
    return packed


@tries(60)
@given(drawings())
def test_runs_are_drawn_as_numpy_draws_them(drawing):
    drawn, runs = drawing
    height, width, _ = drawn.shape
    assert bool(masks.runs_fit(runs, height * width))
    np.testing.assert_array_equal(masks.draw_bits(runs, height, width), bits_of(drawn))


@tries(40)
@given(drawings())
def test_bits_become_masks_and_masks_bits(drawing):
    drawn, _ = drawing
    bits, classes = bits_of(drawn), drawn.shape[-1]
    np.testing.assert_array_equal(masks.pack_bits(tf.constant(drawn)), bits)
    for unpacked in (
        masks.unpack_bits(tf.constant(bits), classes),
        masks.unpack_masks(bits, classes, ops, dtype="uint8"),
    ):
        np.testing.assert_array_equal(np.asarray(unpacked), drawn)


@tries(40)
@given(drawings())
def test_ignored_pixels_are_marked_in_all_classes(drawing):
    drawn, _ = drawing
    classes = drawn.shape[-1] - 1
    expected = np.where(drawn[..., -1:] > 0, IGNORE_VALUE, drawn[..., :-1])
    if classes:
        bits = bits_of(drawn)
        np.testing.assert_array_equal(masks.unpack_bits(tf.constant(bits), classes, True), expected)
        np.testing.assert_array_equal(np.asarray(masks.unpack_masks(bits, classes, ops, True)), expected)


@pytest.mark.parametrize("runs", [[11, 2], [-1, 3], [3, -1], [12, 1]])
def test_runs_beyond_the_image_do_not_fit(runs):
    assert not bool(masks.runs_fit([tf.constant([0, 12], tf.int64), tf.constant(runs, tf.int64)], 12))


def test_no_class_is_refused():
    with pytest.raises(ValueError, match="no class"):
        masks.draw_bits([], 3, 4)
