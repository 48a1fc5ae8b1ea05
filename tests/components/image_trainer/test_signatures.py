"""The truth that the exported model draws is exactly the one of `rle.resample`."""

import dataclasses

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries
from recipes import train_recipe

from shardwright.components.image_trainer.export.signatures import sample_runs
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.images.geometry import POLICIES, plan_geometry
from shardwright.masks import rle

RECIPE = train_recipe("unet", 8, 2, 4, 1e-3, 1, "eval")
SPEC = TrainSpec(RECIPE, "data", "d", "segmentation", ("a", "b"), 24, 40, "stretch", None, None, "run", "export")
sides = st.integers(1, 40)


@tries(150)
@given(sides, sides, sides, sides, st.sampled_from(POLICIES), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_sampled_truth_is_the_resampled_mask(source_height, source_width, height, width, policy, seed, share):
    masks = np.random.default_rng(seed).random((2, source_height, source_width)) < share
    masks[1] = np.random.default_rng(seed).random() < 0.5
    runs = [rle.encode(mask) for mask in masks]
    spec = dataclasses.replace(SPEC, height=height, width=width, resize=policy)
    size = (tf.constant(source_height, tf.int64), tf.constant(source_width, tf.int64))
    found = sample_runs([tf.constant(r.reshape(-1)) for r in runs], size, spec).numpy()
    plan = plan_geometry(policy, source_height, source_width, height, width)
    wanted = np.stack([rle.draw(rle.resample(r, plan), height, width) for r in runs], -1)
    np.testing.assert_array_equal(found, wanted.astype(bool))
