"""Layers in fewer operations have the values and the gradients of Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from shardwright.components.image_trainer.models.tensorflow_layers import quick_layers

RANDOM = np.random.default_rng(0)


def outcome(layer, images, weights):
    """Returns output and gradients of a layer, in a graph as that of a step."""

    @tf.function
    def step(images):
        with tf.GradientTape() as tape:
            tape.watch(images)
            made = layer(images)
            total = tf.reduce_sum(tf.cast(made, tf.float32) * weights)
        return [made, *tape.gradient(total, [images, *(v.value for v in layer.trainable_variables)])]

    return [np.asarray(tf.cast(value, tf.float32)) for value in step(tf.constant(images))]


def normalization(channels, groups, **options):
    layer = layers.GroupNormalization(groups, **options)
    layer.build((None, 5, 6, channels))
    for variable in layer.trainable_variables:
        variable.assign(RANDOM.normal(size=channels))
    return layer


@pytest.mark.parametrize(("channels", "groups"), [(16, 8), (6, 2), (3, 1), (4, 4)])
@pytest.mark.parametrize("trained", [True, False])
def test_normalized_groups_are_those_of_keras(channels, groups, trained):
    # Far from 0: the variance must not be a difference of large numbers.
    images = RANDOM.normal(100, 3, size=(3, 5, 6, channels)).astype(np.float32)
    weights = RANDOM.normal(size=images.shape).astype(np.float32)
    layer = normalization(channels, groups)
    expected = outcome(layer, images, weights)
    with quick_layers(trained=trained):
        found = outcome(layer, images, weights)
    for made, kept in zip(found, expected, strict=True):
        np.testing.assert_allclose(made, kept, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("options", [{"axis": 1}, {"center": False}, {"scale": False}])
def test_other_forms_are_left_to_keras(options):
    images = RANDOM.normal(size=(2, 4, 5, 4)).astype(np.float32)
    layer = layers.GroupNormalization(2, **options)
    expected = np.asarray(layer(images))
    with quick_layers(trained=True):
        np.testing.assert_array_equal(np.asarray(layer(images)), expected)


def test_half_precision_is_computed_in_float32():
    images = RANDOM.normal(300, 1, size=(2, 5, 6, 4)).astype(np.float32)
    layer = layers.GroupNormalization(2, dtype="mixed_bfloat16")
    expected = layer(images)
    with quick_layers(trained=True):
        found = layer(images)
    assert found.dtype == expected.dtype == tf.bfloat16
    np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(expected, np.float32), atol=0.02)


def test_cropping_is_that_of_keras_and_its_layer_is_restored():
    images, layer = RANDOM.normal(size=(2, 8, 9, 3)).astype(np.float32), layers.Cropping2D(((1, 2), (0, 3)))
    before = layers.Cropping2D.call, layers.GroupNormalization.call
    with quick_layers(trained=True):
        np.testing.assert_array_equal(np.asarray(layer(images)), images[:, 1:6, :6])
        assert layers.Cropping2D.call is not before[0]
    assert (layers.Cropping2D.call, layers.GroupNormalization.call) == before


def test_a_model_keeps_its_static_shapes():
    inputs = keras.Input((8, 8, 4))
    model = keras.Model(inputs, layers.Cropping2D(((0, 1), (0, 2)))(layers.GroupNormalization(2)(inputs)))
    with quick_layers(trained=False):
        traced = tf.function(model).get_concrete_function(tf.TensorSpec([None, 8, 8, 4]))
    assert traced.outputs[0].shape.as_list() == [None, 7, 6, 4]
