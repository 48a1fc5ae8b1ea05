"""The signature `embedding` of exported models: the encoder's last map, averaged."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from recipes import train_recipe

from shardwright.components.image_trainer.export.export_model import save_model
from shardwright.components.image_trainer.export.signatures import EMBEDDING, FlippedMean
from shardwright.components.image_trainer.models.build import build_model
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.model_files.saved_model import load_saved_model
from shardwright.evaluation.thresholds import Thresholds

pytestmark = pytest.mark.slow

RECIPE = train_recipe("cnn", 8, 2, 4, 1e-3, 1, "eval")
SPEC = TrainSpec(RECIPE, "d", "d", "classification", ("a", "b"), 32, 32, "stretch", None, None, "run", "export")
IMAGES = np.random.default_rng(0).random((3, 32, 32, 3), np.float32)


def test_that_of_a_classifier_is_what_its_scores_depend_on():
    model = build_model("cnn", height=32, width=32, classes=2, filters=8, seed=0)
    model.get_layer("scores").set_weights([np.random.default_rng(1).normal(size=(64, 2)), np.zeros(2)])
    found = np.asarray(FlippedMean(model, SPEC).encoder()(IMAGES))
    kernel, bias = model.get_layer("scores").get_weights()
    scores = np.exp(found @ kernel + bias)
    assert np.allclose(scores / scores.sum(1, keepdims=True), np.asarray(model(IMAGES)), atol=1e-5)


def test_that_of_a_segmenter_is_at_its_lowest_resolution():
    model = build_model("unet", height=32, width=32, classes=2, filters=8, seed=0)
    spec = dataclasses.replace(SPEC, task="segmentation")
    found = np.asarray(FlippedMean(model, spec).encoder()(IMAGES))
    assert found.shape == (3, 64)
    assert len(np.unique(found, axis=0)) == 3


def inside_of_another():
    """Its layers are in no graph with the inputs."""
    image = keras.Input((32, 32, 3))
    inner = keras.Sequential([keras.Input((32, 32, 3)), layers.Conv2D(4, 3, strides=4)])
    return keras.Model(image, layers.GlobalAveragePooling2D()(inner(image)))


def without_maps():
    image = keras.Input((32, 32, 3))
    return keras.Model(image, layers.Dense(2)(layers.Flatten()(image)))


@pytest.mark.parametrize("make", [lambda: lambda images, training: images, without_maps])
def test_a_model_without_maps_is_exported_without_it(make, tmp_path):
    encoder = FlippedMean(make(), SPEC).encoder()
    # The image itself is a map of the highest resolution, which is all that a model without others has.
    assert encoder is None or np.asarray(encoder(IMAGES)).shape == (3, 3)


def test_a_model_inside_of_a_model_is_no_obstacle():
    encoder = FlippedMean(inside_of_another(), SPEC).encoder()
    assert encoder is None or len(np.asarray(encoder(IMAGES))) == 3


def test_it_is_exported_and_the_check_of_strange_models_lets_it_pass(tmp_path):
    model = build_model("cnn", height=32, width=32, classes=2, filters=8, seed=0)
    spec = dataclasses.replace(SPEC, export=str(tmp_path / "1"))
    averaged = FlippedMean(model, spec)
    save_model(averaged, spec, Thresholds.fixed(2))
    loaded = load_saved_model(tmp_path / "1")
    pixels = (IMAGES * 255).astype(np.uint8)
    found = loaded.signatures[EMBEDDING](pixels=tf.constant(pixels))[EMBEDDING].numpy()
    assert found.shape == (3, 64)
    assert found.dtype == np.float32
    again = loaded.signatures[EMBEDDING](pixels=tf.constant(pixels[1:]))[EMBEDDING].numpy()
    assert np.allclose(found[1:], again, atol=1e-5)
