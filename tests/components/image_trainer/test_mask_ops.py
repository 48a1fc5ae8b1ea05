"""The exported model drops the regions that the core drops."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.components.image_trainer.export import mask_ops
from shardwright.masks import rle
from shardwright.masks.regions import remove_small

MIN_AREAS = (0, 3, 9)


@pytest.fixture(scope="module")
def dropped():
    work = tf.function(lambda masks: mask_ops.remove_small(masks, MIN_AREAS))
    return work.get_concrete_function(tf.TensorSpec([17, 12, 3], tf.bool))


@tries(60)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_what_is_dropped_is_what_the_core_drops(dropped, seed, share):
    masks = np.random.default_rng(seed).random((17, 12, 3)) < share
    found = dropped(tf.constant(masks)).numpy()
    for c, least in enumerate(MIN_AREAS):
        runs = remove_small(rle.encode(masks[..., c]), 17, least)
        np.testing.assert_array_equal(found[..., c], rle.draw(runs, 17, 12) == 1)


@pytest.mark.parametrize("value", [False, True])
def test_nothing_and_everything(dropped, value):
    masks = tf.fill([17, 12, 3], value)
    assert (dropped(masks).numpy() == value).all()
