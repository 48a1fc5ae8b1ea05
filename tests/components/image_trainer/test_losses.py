"""The losses against their formulas in numpy, on TensorFlow and on JAX."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import losses_by_formula
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.components.image_trainer.training.losses import balanced_weights, build_loss, soft_dice
from shardwright.errors import UsageError

WANTED = {name: losses_by_formula.by_formula(*case) for name, case in losses_by_formula.cases().items()}


def test_every_loss_is_its_formula():
    found = losses_by_formula.by_keras()
    assert {name: loss for name, (loss, _) in found.items()} == pytest.approx(WANTED, rel=1e-4, abs=1e-5)
    assert WANTED["bce, all ignored, alike"] == 0
    assert WANTED["bce, plain, alike"] != pytest.approx(WANTED["bce, plain, weighted"], rel=1e-3)
    assert WANTED["labels cross_entropy, alike"] > 20


@pytest.mark.slow
def test_every_backend_gives_the_same_losses_and_gradients_from_logits_of_60():
    script, found = Path(losses_by_formula.__file__), {}
    for backend in ("jax", "tensorflow"):
        environment = {**os.environ, "KERAS_BACKEND": backend}
        done = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found[backend] = json.loads(done.stdout.splitlines()[-1])
        assert {name: loss for name, (loss, _) in found[backend].items()} == pytest.approx(WANTED, rel=1e-4, abs=1e-5)
    for name, case in losses_by_formula.cases().items():
        one, other = (np.array(found[backend][name][1]) for backend in found)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7, err_msg=name)
        wanted = losses_by_formula.gradient_by_formula(*case).ravel()
        np.testing.assert_allclose(one, wanted, atol=1e-5, err_msg=name)


def test_a_confidently_wrong_label_is_learned_from():
    # From probabilities, Keras' epsilon left no gradient here.
    logits = tf.constant([[20.0, 0.0], [60.0, -60.0]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = build_loss("classification")(np.array([1, 1]), logits)
    np.testing.assert_allclose(tape.gradient(loss, logits), [[0.5, -0.5]] * 2, atol=1e-6)


def test_images_that_do_not_count_change_nothing():
    random = np.random.default_rng(3)
    logits = random.normal(size=(4, 5, 6, 2)).astype(np.float32)
    truth = (random.random(logits.shape) < 0.4).astype(np.uint8)
    truth[0, :2] = 255
    counted = np.array([True, False, True, False])
    for loss in (build_loss("segmentation", ignore=True), build_loss("segmentation", ignore=True, weights=[1, 3])):
        assert float(loss(truth, logits, counted)) == pytest.approx(float(loss(truth[counted], logits[counted])))
    labels = build_loss("classification", weights=[1, 3])
    given = logits[:, 0, 0]
    kept = float(labels(np.array([1, 0])[:2], given[counted]))
    assert float(labels(np.array([1, 1, 0, 1]), given, counted)) == pytest.approx(kept)


@tries(25)
@given(st.integers(0, 2**32 - 1))
def test_the_mask_loss_is_cross_entropy_plus_what_dice_lacks(seed):
    random = np.random.default_rng(seed)
    truth = (random.random((2, 5, 4, 3)) < 0.4).astype(np.uint8)
    logits = random.uniform(-9, 9, truth.shape).astype(np.float32)
    wanted = losses_by_formula.by_formula({"task": "segmentation", "kind": "bce_dice"}, truth, logits)
    assert float(build_loss("segmentation")(truth, logits)) == pytest.approx(wanted, rel=1e-4)


def test_a_class_that_is_absent_and_not_predicted_loses_nothing():
    nothing = np.zeros((1, 4, 4, 1), np.float32)
    assert float(soft_dice(nothing, nothing)[0]) == 1.0
    assert float(build_loss("segmentation")(nothing, nothing - 60)) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    ("task", "multi", "kind"), [("segmentation", False, "cross_entropy"), ("classification", False, "dice")]
)
def test_a_loss_of_another_task_is_refused(task, multi, kind):
    with pytest.raises(UsageError, match=f"trainer.loss: '{kind}' is not one of {task}. Use one of: auto"):
        build_loss(task, multi=multi, kind=kind)


frequencies = st.lists(st.just(0.0) | st.floats(1e-6, 1), min_size=1, max_size=6)


@given(frequencies, st.sampled_from(["segmentation", "classification"]))
def test_rare_classes_weigh_more(shares, task):
    names = [str(i) for i in range(len(shares))]
    by_name = dict(zip(names, shares, strict=True))
    weights = balanced_weights(task, {"class_frequency": by_name, "pixel_frequency": by_name}, names)
    assert np.mean(weights) == pytest.approx(1)
    assert 0 < max(weights) <= 10 * min(weights) * (1 + 1e-9)
    order = sorted(range(len(shares)), key=lambda i: shares[i] or 0)
    assert all(weights[a] >= weights[b] * (1 - 1e-9) for a, b in itertools.pairwise(order))


def test_balanced_weights_by_hand():
    shares = {"a": 0.5, "b": 0.25, "c": 0.25}
    statistics = {"class_frequency": shares, "pixel_frequency": {"a": 0.64, "b": 0.16, "c": 0.01}}
    assert balanced_weights("classification", statistics, "abc") == pytest.approx((0.6, 1.2, 1.2))
    assert balanced_weights("segmentation", statistics, "abc") == pytest.approx(
        np.array([1.25, 2.5, 10]) / np.mean([1.25, 2.5, 10])
    )


@pytest.mark.parametrize("kind", ["cross_entropy", "focal"])
def test_shares_of_labels_share_their_losses(kind):
    """As mixup makes them."""
    loss = build_loss("classification", kind=kind, weights=None)
    logits = np.log(np.array([[0.2, 0.5, 0.3]], np.float32))
    of_label = [float(loss(np.array([label]), logits)) for label in range(3)]
    shares = np.array([[0.0, 0.75, 0.25]], np.float32)
    assert float(loss(shares, logits)) == pytest.approx(float(shares[0] @ of_label), rel=1e-5)
    assert float(loss(np.eye(3, dtype=np.float32)[1:2], logits)) == pytest.approx(of_label[1], rel=1e-6)
