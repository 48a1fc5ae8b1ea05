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
from shardwright.components.image_trainer.training.optimizers import build_optimizer, learning_rates
from shardwright.errors import ConfigError

RECIPE = train_recipe("unet", 4, 1, 1, 0.1, 1, "", shuffle_buffer=1)
STEPS = 100


def rates(**options):
    rate = learning_rates(changed(RECIPE, **options).trainer, STEPS)
    return np.array([float(rate(step)) for step in range(STEPS + 1)])


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


def built(model, **options):
    recipe = changed(RECIPE, schedule="constant", warm_up=0.0, **options)
    return build_optimizer(recipe.trainer, STEPS, steps_per_epoch=10, model=model)


def small_model():
    inputs = keras.Input((2,))
    outputs = keras.layers.LayerNormalization()(keras.layers.Dense(2, kernel_initializer="ones")(inputs))
    return keras.Model(inputs, outputs)


@pytest.mark.parametrize(("optimizer", "decayed"), [("adamw", 0.95), ("adam", 1.0), ("sgd", 1.0)])
def test_adamw_alone_decays_kernels_that_have_no_gradient(optimizer, decayed):
    model = small_model()
    made = built(model, optimizer=optimizer, weight_decay=0.5 if optimizer == "adamw" else None)
    for variable in model.trainable_variables:
        variable.assign(np.ones(variable.shape))
    made.apply([keras.ops.zeros(v.shape) for v in model.trainable_variables], model.trainable_variables)
    found = {v.path.split("/")[-1]: float(np.ravel(v)[0]) for v in model.trainable_variables}
    assert found == pytest.approx({"kernel": decayed, "bias": 1.0, "gamma": 1.0, "beta": 1.0})


def test_other_weights_decay_if_their_names_are_given_and_a_name_of_none_is_refused():
    model = small_model()
    made = built(model, weight_decay=0.5, decayed=("*gamma", "*beta"))
    gamma, kernel = (next(v for v in model.trainable_variables if v.path.endswith(n)) for n in ("gamma", "kernel"))
    made.apply([keras.ops.zeros(v.shape) for v in model.trainable_variables], model.trainable_variables)
    assert (float(gamma[0]), float(kernel[0, 0])) == pytest.approx((0.95, 1.0))
    with pytest.raises(ConfigError, match=r"trainer.decayed: no weight of the model has a name like \*weights. Its we"):
        built(small_model(), decayed=("*weights",))


@pytest.mark.parametrize(("limit", "length"), [(1.0, 1.0), (0.5, 0.5), (0, 5000.0)])
def test_gradients_are_clipped_together_so_that_they_keep_their_direction(limit, length):
    first, second = keras.Variable([0.0]), keras.Variable([0.0])
    made = build_optimizer(
        changed(RECIPE, optimizer="sgd", schedule="constant", warm_up=0.0, clip_norm=limit).trainer, STEPS
    )
    made.build([first, second])
    made.apply([keras.ops.array([3000.0]), keras.ops.array([4000.0])], [first, second])
    # Nesterov's first step goes 1.9 times as far.
    wanted = [-0.1 * 0.6 * 1.9 * length, -0.1 * 0.8 * 1.9 * length]
    assert [float(first[0]), float(second[0])] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(("rule", "rate"), [("none", 0.1), ("linear", 0.8), ("square_root", 0.1 * 8**0.5)])
def test_the_rate_follows_the_batch_by_the_rule_that_is_named(rule, rate):
    found = rates(schedule="constant", warm_up=0.0, rate_rule=rule, batch_size=64, accumulate=2)
    assert found[-1] == pytest.approx(rate)


def test_an_encoder_is_frozen_and_then_learns_more_slowly():
    inputs = keras.Input((1,))
    encoder = keras.Model(inputs, keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")(inputs))
    encoder.name = "encoder"
    image = keras.Input((1,))
    head = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = keras.Model(image, head(encoder(image)))
    made = built(
        model, optimizer="sgd", encoder="efficientnetv2-b0", encoder_rate=0.25, encoder_trainable_from=2, clip_norm=0
    )
    slow, fast = encoder.trainable_variables[0], head.kernel
    for step in range(12):
        before = float(slow[0, 0]), float(fast[0, 0])
        made.apply([keras.ops.full((1, 1), 0.1)] * 2, model.trainable_variables)
        moved = before[0] - float(slow[0, 0]), before[1] - float(fast[0, 0])
        assert moved[1] > 0
        # An epoch has ten steps. Its momentum is as old as that of the other.
        assert moved[0] == pytest.approx(0.25 * moved[1] if step >= 10 else 0.0, rel=1e-4)


def test_a_training_without_a_single_update_is_refused():
    recipe = changed(RECIPE, accumulate=STEPS)
    build_optimizer(recipe.trainer, STEPS)
    with pytest.raises(ConfigError, match=r"trainer\.accumulate: 100 batches make one update, .* training has 99"):
        build_optimizer(recipe.trainer, STEPS - 1)


@pytest.mark.parametrize(("options", "kept"), [({}, 0), ({"ema": 0.9}, 1), ({"ema": 0.9, "accumulate": 4}, 2)])
def test_what_an_optimizer_keeps_is_in_the_estimate(options, kept):
    inputs = keras.Input((8,))
    model = keras.Model(inputs, keras.layers.Dense(50)(inputs))
    optimizer = build_optimizer(changed(RECIPE, optimizer="adam", **options).trainer, STEPS, model=model)
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
        mean, means, updates = 1.0, [], 0
        for step, weight in enumerate(wanted):
            if (step + 1) % batches == 0:
                # The mean begins behind the first update: what was random is never part of it. Only updates move it.
                momentum = min(0.75, (updates + 1) / (updates + 10)) if updates else 0.0
                mean, updates = momentum * mean + (1 - momentum) * weight, updates + 1
            means.append(mean)
        kept = means if name in ("mean", "both") else wanted
        assert case["kept"] == pytest.approx(kept, abs=1e-4), name
        assert case["answers"] == pytest.approx(kept, abs=1e-4), name
        assert case["norms"] == pytest.approx([0.1] * 6)
        assert case["after"] == case["weights"][-1], name
        assert case["traces"] == 1, name
