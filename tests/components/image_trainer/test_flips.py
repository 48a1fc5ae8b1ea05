"""Test-time flips: a model that sees where it looks gives the mean of its looks."""

import dataclasses
import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from recipes import changed, train_recipe

from shardwright.components.image_trainer.export.signatures import FlippedMean, ServedModel
from shardwright.components.image_trainer.spec import TrainRecipe, TrainSpec
from shardwright.config import parse_config
from shardwright.errors import ConfigError
from shardwright.masks import rle

RECIPE = train_recipe("unet", 8, 2, 4, 1e-3, 1, "eval")
SPEC = TrainSpec(RECIPE, "d", "d", "segmentation", ("a", "b"), 4, 6, "stretch", None, None, "run", "export")
RAMP = tf.constant(np.linspace(0, 1, 24).reshape(1, 4, 6, 1), tf.float32)


def flipping(*flips):
    return dataclasses.replace(SPEC, recipe=changed(RECIPE, flips=flips))


class Slanted:
    """Gives larger values on the right and below."""

    def __call__(self, images, training=False):
        return images[..., :2] * RAMP


@pytest.mark.parametrize("flips", [(), ("left_right",), ("left_right", "up_down")])
def test_the_looks_are_flipped_back_and_averaged(flips):
    images = np.random.default_rng(0).random((2, 4, 6, 3)).astype(np.float32)
    looks = [RAMP.numpy(), *(np.flip(RAMP.numpy(), {"left_right": 2, "up_down": 1}[flip]) for flip in flips)]
    wanted = images[..., :2] * np.mean(looks, axis=0)
    seen = FlippedMean(Slanted(), flipping(*flips))
    np.testing.assert_allclose(seen(images).numpy(), wanted, rtol=1e-5)


def test_probabilities_of_labels_are_not_flipped():
    def model(images, training=False):
        return images[:, 0, 0, :2]

    images = tf.constant(np.random.default_rng(0).random((2, 4, 6, 3)), tf.float32)
    spec = dataclasses.replace(flipping("left_right"), task="classification")
    found = FlippedMean(model, spec)(images)
    np.testing.assert_allclose(found.numpy(), (images[:, 0, 0, :2] + images[:, 0, -1, :2]).numpy() / 2, rtol=1e-6)


@pytest.mark.slow
def test_what_is_served_is_the_mean():
    image = np.random.default_rng(1).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    data = tf.io.encode_png(image)[tf.newaxis]
    spec = flipping("up_down")
    found = (
        ServedModel(FlippedMean(Slanted(), spec), spec)
        .signatures()["serving_default"](image_bytes=data)["probabilities"]
        .numpy()
    )
    wanted = image[None, ..., :2] / 255 * (RAMP.numpy() + np.flip(RAMP.numpy(), 1)) / 2
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["png", "rle"])
def test_masks_are_served_as_short_texts(name):
    images = np.random.default_rng(2).integers(0, 256, (3, 4, 6, 3), dtype=np.uint8)
    # The last image has no mask at all, and the second is full where the ramp is.
    images[2], images[1, ..., 0] = 0, 255
    data = tf.stack([tf.io.encode_png(image) for image in images])
    served = ServedModel(FlippedMean(Slanted(), SPEC), SPEC).signatures()
    masks = served["serving_default"](image_bytes=data)["masks"].numpy()
    ((output, found),) = served[name](image_bytes=data).items()
    assert (output, found.shape) == ({"png": "png_bytes"}.get(name, name), (3, 2))
    assert 0 < masks.mean() < 1
    for (image, kind), text in np.ndenumerate(found.numpy()):
        if name == "png":
            shown = np.asarray(Image.open(io.BytesIO(text)))
            np.testing.assert_array_equal(shown, masks[image, ..., kind] * 255)
        else:
            runs = rle.parse_pairs(text.decode(), height=4, width=6) if text else rle.encode(np.zeros((4, 6)))
            np.testing.assert_array_equal(rle.draw(runs, 4, 6), masks[image, ..., kind])


def test_flips_are_an_option():
    def recipe(flips):
        return TrainRecipe.from_config(
            parse_config({"input": {"images": "x"}, "evaluator": {"flips": flips}}, base="/")
        )

    assert recipe(["up_down", "up_down"]).evaluator.flips == ("up_down",)
    assert "evaluator" not in recipe([]).to_dict()
    with pytest.raises(
        ConfigError, match=r"evaluator\.flips\[0\]: 'sideways' is not known. Use one of: left_right, up_down"
    ):
        recipe(["sideways"])


def test_a_model_may_have_conditions_on_tensors_and_is_traced_once():
    traced = []

    def model(images, training):
        traced.append(training)
        if tf.reduce_mean(images) > 0.5:
            return images[..., :2] * 0
        return images[..., :2]

    signatures = ServedModel(FlippedMean(model, SPEC), SPEC).signatures()
    assert traced == [False]
    for level, answer in ((255, 0.0), (51, 0.2)):
        found = signatures["pixels"](pixels=tf.fill([1, 4, 6, 3], tf.constant(level, tf.uint8)))
        np.testing.assert_allclose(found["probabilities"].numpy(), answer, rtol=1e-6)
