"""The parts of Keras that are used and are not public."""

import keras
from compat import checked_with
from keras.src.applications import efficientnet_v2

from shardwright.components.image_trainer.keras_compat import all_layers, followed_variables
from shardwright.components.image_trainer.models.published_weights import WEIGHTS, PublishedWeights
from shardwright.config.trainer import ENCODERS
from shardwright.pipelines.commands.catalog_of_models import PUBLISHED_ENCODERS


def test_the_version_is_one_that_was_checked():
    checked_with("keras", ">=3.12,<3.16")


def test_layers_at_every_depth_are_listed_once():
    shared = keras.layers.Dense(3, name="shared")
    encoder_input = keras.Input((4,))
    encoder = keras.Model(encoder_input, shared(encoder_input), name="encoder")
    wrapper = keras.layers.TimeDistributed(keras.layers.Dense(2, name="wrapped"), name="wrapper")
    first, second = keras.Input((4,)), keras.Input((5, 4))
    model = keras.Model([first, second], [encoder(first), shared(first), wrapper(second)])
    names = [layer.name for layer in all_layers(model)]
    assert {"encoder", "shared", "wrapper", "wrapped"} <= set(names)
    assert (names.count("shared"), model.name in names) == (1, False)


def test_an_optimizer_knows_what_it_updates():
    variables = [keras.Variable([1.0, 2.0]), keras.Variable([3.0])]
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(variables)
    assert [id(one) for one in followed_variables(optimizer)] == [id(one) for one in variables]


def test_the_checksums_of_published_weights_are_those_of_keras():
    hashes = efficientnet_v2.WEIGHTS_HASHES
    expected = {name: PublishedWeights(f"{name}_notop.h5", hashes[name[-2:]][1]) for name in ENCODERS[1:]}
    assert expected == WEIGHTS
    assert tuple(WEIGHTS) == PUBLISHED_ENCODERS
