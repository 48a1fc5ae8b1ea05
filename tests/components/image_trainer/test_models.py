"""The models' shapes and guarantees."""

import keras
import numpy as np
import pytest

from shardwright.components.image_trainer.models.build import build_model


@pytest.mark.parametrize("name", ["unet", "deeplab"])
@pytest.mark.parametrize("size", [(16, 16), (17, 31), (8, 45), (50, 20)])
def test_masks_come_in_the_size_of_the_image_whatever_it_is(name, size):
    model = build_model(name, height=size[0], width=size[1], classes=3, filters=4, seed=1)
    images = np.random.default_rng(0).normal(size=(2, *size, 3)).astype(np.float32)
    probabilities = np.asarray(model(images))
    assert probabilities.shape == (2, *size, 3)
    assert probabilities.dtype == np.float32
    assert ((probabilities > 0) & (probabilities < 1)).all()
    # One sigmoid per class: they need not add up to one, since masks overlap.
    assert np.abs(probabilities.sum(-1) - 1).max() > 1e-3


def test_cnn_gives_one_probability_per_class():
    model = build_model("cnn", height=37, width=21, classes=4, filters=4, seed=1)
    probabilities = np.asarray(model(np.zeros((2, 37, 21, 3), np.float32)))
    assert probabilities.shape == (2, 4)
    np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-6)


@pytest.mark.parametrize("name", ["unet", "deeplab", "cnn"])
def test_the_output_is_float32_under_mixed_precision(name):
    before = keras.mixed_precision.dtype_policy()
    try:
        keras.mixed_precision.set_dtype_policy("mixed_bfloat16")
        mixed = build_model(name, height=24, width=24, classes=2, filters=4, seed=1)
    finally:
        keras.mixed_precision.set_dtype_policy(before)
    assert mixed.layers[1].compute_dtype == "bfloat16"
    assert mixed.outputs[0].dtype == "float32"


def test_an_image_is_seen_alike_alone_in_a_batch_in_training_and_after():
    model = build_model("unet", height=24, width=24, classes=2, filters=4, seed=1)
    images = np.random.default_rng(0).normal(size=(3, 24, 24, 3)).astype(np.float32)
    training, alone = np.asarray(model(images, training=True)), np.asarray(model(images[:1], training=False))
    np.testing.assert_allclose(training[:1], alone, atol=1e-5)


def test_the_seed_decides_the_weights():
    def weights(seed):
        return build_model("unet", height=16, width=16, classes=1, filters=4, seed=seed).get_weights()

    one, again, other = weights(1), weights(1), weights(2)
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
