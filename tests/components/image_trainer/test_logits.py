"""Models of logits: whatever a model ends in, its logits are found, and its probabilities stay what they were."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from shardwright.components.image_trainer.models.build import build_model
from shardwright.components.image_trainer.models.logits import LogitModel, ending_in, last_activation


def nested(x):
    return keras.Sequential([keras.Input((3,)), layers.Dense(2, activation="softmax")])(x)


def shared(x):
    dense = layers.Dense(2, activation="softmax")
    dense(layers.Dense(3)(x))
    return dense(x)


ENDS = {
    "a layer with weights": ("softmax", layers.Dense(2, activation="softmax"), True),
    "a layer of its own": ("sigmoid", lambda x: layers.Activation("sigmoid")(layers.Dense(2)(x)), True),
    "the layer Softmax": ("softmax", lambda x: layers.Softmax()(layers.Dense(2)(x)), True),
    "an operation": ("sigmoid", lambda x: ops.sigmoid(layers.Dense(2)(x)), True),
    "an inner model": ("softmax", nested, True),
    "a layer that is called twice": ("softmax", shared, False),
    "something else": ("sigmoid", lambda x: layers.Rescaling(0.5)(layers.Dense(2, activation="sigmoid")(x)), False),
    "an activation of another kind": ("sigmoid", layers.Dense(2, activation="softmax"), False),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_logits_of_a_model_give_its_probabilities(name):
    activation, end, known = ENDS[name]
    inputs = keras.Input((3,))
    model = keras.Model(inputs, end(inputs))
    batch = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    before, weights = np.asarray(model(batch)), [id(v) for v in model.variables]
    ended = ending_in(model, activation) if last_activation(model) == activation else model
    np.testing.assert_allclose(np.asarray(ended(batch)), before, rtol=1e-6)
    learned = LogitModel(ended, activation)
    assert [id(v) for v in learned.model.variables] == [id(v) for v in ended.variables] == weights
    outputs = learned.model(batch)
    assert (learned.model is not ended) == known
    np.testing.assert_allclose(np.asarray(learned.probabilities(outputs)), before, rtol=1e-5)
    logits = learned.logits(outputs)
    again = ops.softmax(logits) if activation == "softmax" else ops.sigmoid(logits)
    np.testing.assert_allclose(np.asarray(again), before, rtol=1e-4)


def test_a_sequential_model_that_was_never_called_has_logits():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, activation="softmax")])
    ended = ending_in(model, "softmax")
    batch = np.ones((1, 3), np.float32)
    logits = np.asarray(LogitModel(ended, "softmax").model(batch))
    np.testing.assert_allclose(np.asarray(ops.softmax(logits)), np.asarray(ended(batch)), rtol=1e-6)


def test_a_model_of_logits_gets_an_activation():
    inputs = keras.Input((3,))
    model = keras.Model(inputs, layers.Dense(2)(inputs))
    assert last_activation(model) == "linear"
    assert last_activation(ending_in(model, "softmax")) == "softmax"


@pytest.mark.parametrize("multi", [False, True])
def test_a_classifier_begins_with_the_loss_of_a_guess(multi):
    from shardwright.components.image_trainer.training.losses import build_loss

    model = build_model("cnn", height=32, width=48, classes=5, filters=8, seed=3, multi=multi)
    learned = LogitModel(model, "sigmoid" if multi else "softmax")
    images = np.random.default_rng(0).normal(size=(20, 32, 48, 3)).astype(np.float32) * 3
    labels = np.arange(20) % 5
    loss = build_loss("classification", multi=multi)(np.eye(5)[labels] if multi else labels, learned.model(images))
    assert float(loss) == pytest.approx(np.log(2) if multi else np.log(5), rel=0.1)
