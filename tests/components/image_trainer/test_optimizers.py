"""How weights follow gradients: rates over the steps, decay, running means, accumulated gradients."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import steps_by_hand
from recipes import changed, train_recipe

from shardwright.components.image_trainer.devices.placement import step_bytes
from shardwright.components.image_trainer.training.optimizers import build_optimizer
from shardwright.errors import ConfigError

RECIPE = train_recipe("unet", 4, 1, 1, 0.1, 1, "", shuffle_buffer=1)
STEPS = 100


def rates(**options):
    optimizer = build_optimizer(changed(RECIPE, **options).trainer, STEPS)
    found = []
    for step in range(STEPS + 1):
        optimizer.iterations.assign(step)
        found.append(float(optimizer.learning_rate))
    return np.array(found)


@pytest.mark.parametrize(("schedule", "last"), [("cosine", 0.001), ("linear", 0.001), ("constant", 0.1)])
def test_the_rate_rises_over_the_warm_up_and_then_follows_its_schedule(schedule, last):
    found = rates(schedule=schedule, warm_up=0.2)
    assert found[0] == pytest.approx(0.02)
    np.testing.assert_allclose(np.diff(found[:21]), 0.08 / 20, rtol=1e-3)
    assert found[20] == pytest.approx(0.1)
    assert found[-1] == pytest.approx(last, rel=1e-3)
    assert (np.diff(found[20:]) <= 1e-8).all()
    halfway = {"cosine": 0.0505, "linear": 0.0505, "constant": 0.1}[schedule]
    assert found[60] == pytest.approx(halfway, rel=1e-3)
    without = rates(schedule=schedule, warm_up=0.0)
    assert without[0] == pytest.approx(0.1)
    assert without[-1] == pytest.approx(last, rel=1e-3)


def test_a_cosine_is_none_of_a_line():
    assert rates(schedule="cosine", warm_up=0.0)[25] == pytest.approx(0.001 + 0.099 * (1 + np.cos(np.pi / 4)) / 2)
    assert rates(schedule="linear", warm_up=0.0)[25] == pytest.approx(0.001 + 0.099 * 0.75)


@pytest.mark.parametrize(
    ("optimizer", "kind", "decayed"), [("adamw", "AdamW", 0.95), ("adam", "Adam", 1.0), ("sgd", "SGD", 1.0)]
)
def test_adamw_alone_decays_weights_that_have_no_gradient(optimizer, kind, decayed):
    recipe = changed(
        RECIPE, optimizer=optimizer, weight_decay=0.5 if kind == "AdamW" else None, schedule="constant", warm_up=0.0
    )
    weight = keras.Variable([1.0])
    made = build_optimizer(recipe.trainer, STEPS)
    made.build([weight])
    made.apply([keras.ops.zeros(1)], [weight])
    assert type(made).__name__ == kind
    assert float(weight[0]) == pytest.approx(decayed)


def test_gradients_are_clipped():
    recipe = changed(RECIPE, optimizer="sgd", schedule="constant", warm_up=0.0)
    weight = keras.Variable([0.0, 0.0])
    made = build_optimizer(recipe.trainer, STEPS)
    made.build([weight])
    made.apply([keras.ops.array([3000.0, 4000.0])], [weight])
    # Nesterov's first step goes 1.9 times as far.
    np.testing.assert_allclose(np.asarray(weight), [-0.1 * 0.6 * 1.9, -0.1 * 0.8 * 1.9], rtol=1e-4)


def test_a_training_without_a_single_update_is_refused():
    recipe = changed(RECIPE, accumulate=STEPS)
    build_optimizer(recipe.trainer, STEPS)
    with pytest.raises(ConfigError, match=r"trainer\.accumulate: 100 batches make one update, .* training has 99"):
        build_optimizer(recipe.trainer, STEPS - 1)


@pytest.mark.parametrize(("options", "kept"), [({}, 0), ({"ema": 0.9}, 1), ({"ema": 0.9, "accumulate": 4}, 2)])
def test_what_an_optimizer_keeps_is_in_the_estimate(options, kept):
    inputs = keras.Input((8,))
    model = keras.Model(inputs, keras.layers.Dense(50)(inputs))
    optimizer = build_optimizer(changed(RECIPE, optimizer="adam", **options).trainer, STEPS)
    optimizer.build(model.trainable_variables)
    # Weights and gradients are not the optimizer's.
    held = sum(int(np.prod(variable.shape)) for variable in optimizer.variables) // model.count_params() + 2
    estimates = [step_bytes(model, 1, kept=copies) for copies in (kept, 0)]
    assert estimates[0] - estimates[1] == (held - 4) * model.count_params() * 4


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_means_and_accumulated_gradients_on_every_backend(backend):
    script = Path(steps_by_hand.__file__)
    environment = {**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    # Adam goes a rate at every update, as long as the gradient stays what it is.
    each = [1 - steps_by_hand.RATE * (n + 1) for n in range(6)]
    third = [1, 1, each[0], each[0], each[0], each[1]]
    for name, wanted, batches in (("plain", each, 1), ("mean", each, 1), ("accumulated", third, 3), ("both", third, 3)):
        case = found[name]
        assert case["weights"] == pytest.approx(wanted, abs=1e-4), name
        mean, means = 0.0, []
        for step, weight in enumerate(wanted):
            # The mean begins behind the first update: what was random is never part of it.
            mean = weight if step < batches else 0.75 * mean + 0.25 * weight
            means.append(mean)
        kept = means if name in ("mean", "both") else wanted
        assert case["kept"] == pytest.approx(kept, abs=1e-4), name
        assert case["answers"] == pytest.approx(kept, abs=1e-4), name
        assert case["after"] == case["weights"][-1], name
        assert case["traces"] == 1, name
