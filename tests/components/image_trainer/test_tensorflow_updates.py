"""Updates in fewer operations are those of Keras, as long as its optimizers have the parts that are replaced."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from recipes import changed, train_recipe

from shardwright.components.image_trainer.training.optimizers import build_optimizer
from shardwright.components.image_trainer.training.tensorflow_updates import quick_updates

RECIPE = train_recipe("unet", 4, 1, 1, 0.1, 1, "", shuffle_buffer=1)
STEPS = 8


def trained(*, quick, **options):
    """Returns the weights and the optimizer's variables after a few updates, and the operations of one."""
    random = np.random.default_rng(1)
    weights = [keras.Variable(random.normal(size=shape), dtype="float32") for shape in ((3, 4), (5,))]
    optimizer = build_optimizer(changed(RECIPE, **options).trainer, STEPS)
    optimizer.build(weights)

    @tf.function
    def step(*gradients):
        if quick:
            with quick_updates(optimizer):
                optimizer.apply(list(gradients), weights)
        else:
            optimizer.apply(list(gradients), weights)

    for number in range(STEPS):
        # Gradients above and below the norm at which they are clipped, and without any change.
        step(*(tf.constant(random.normal(size=w.shape) * (0, 0.1, 10)[number % 3], tf.float32) for w in weights))
    graph = step.get_concrete_function(*(tf.zeros(w.shape) for w in weights)).graph
    values = {v.path: np.asarray(v) for v in (*weights, *optimizer.variables)}
    return list(values.values()), len(graph.get_operations())


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "adamw"},
        {"optimizer": "adam"},
        {"optimizer": "adamw", "ema": 0.9, "accumulate": 3},
        {"optimizer": "sgd"},
    ],
)
def test_updates_are_those_of_keras(options):
    expected, operations = trained(quick=False, **options)
    found, fewer = trained(quick=True, **options)
    for made, kept in zip(found, expected, strict=True):
        np.testing.assert_allclose(made, kept, rtol=1e-4, atol=1e-6)
    # With accumulated gradients the update is a graph within this one.
    assert (fewer < operations) == (options["optimizer"] != "sgd" and "accumulate" not in options)


def test_an_optimizer_is_as_before_after_the_trace():
    optimizer = keras.optimizers.AdamW(0.1, clipnorm=1.0)
    weight = keras.Variable([1.0])
    optimizer.build([weight])
    before = set(vars(optimizer))
    with quick_updates(optimizer):
        assert set(vars(optimizer)) > before
    assert set(vars(optimizer)) == before
