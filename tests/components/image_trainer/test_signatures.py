"""The truth that the exported model draws is exactly the one of `rle.resample`."""

import dataclasses
import io

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from property_tests import tries
from recipes import train_recipe

from shardwright.components.image_trainer.export.signatures import refuse_unreadable, sample_runs
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


def encoded(form):
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(file, form)
    return file.getvalue()


SERVED = tf.function(refuse_unreadable, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
GOOD = [encoded("JPEG"), encoded("PNG"), encoded("GIF"), encoded("BMP"), encoded("JPEG") + b"more"]
BAD = [b"", b"<html>", b"\xff\xd8\xff", GOOD[0][:-1], GOOD[0][:200], GOOD[1][:-12], GOOD[1][:100], b"\x89PNG\r\n\x1a\n"]


def test_readable_images_pass():
    assert SERVED(tf.constant(GOOD)).numpy().tolist() == GOOD


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", [0, 2, 5])
def test_an_unreadable_image_is_named_by_its_position(bad, place):
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"counted from 0, are no JPEG or PNG.*\[{place}\]"):
        SERVED(tf.constant([*GOOD[:place], bad, *GOOD[place:]]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.decode_image(bad)


def test_all_positions_are_named_and_an_empty_request_is_said():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[1 3\]"):
        SERVED(tf.constant([GOOD[0], b"x", GOOD[1], b"y"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"the request has no image\. Send one or more"):
        SERVED(tf.constant([], tf.string))
