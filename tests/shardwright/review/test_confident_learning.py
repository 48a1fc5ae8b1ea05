"""Confident learning: against the paper's definition written down literally, and on planted errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.review.confident_learning import confident_joint, doubt_label_sets, doubt_labels, fit_temperature


@st.composite
def answers(draw):
    images, classes = draw(st.integers(1, 25)), draw(st.integers(2, 5))
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    probabilities = seed.dirichlet(np.full(classes, draw(st.sampled_from([0.05, 0.5, 5.0]))), images)
    return probabilities, seed.integers(0, classes, images)


@given(answers())
def test_the_joint_is_that_of_the_paper(given_answers):
    probabilities, labels = given_answers
    classes = probabilities.shape[1]
    thresholds = {}
    for k in set(labels.tolist()):
        own = [row[k] for row, label in zip(probabilities, labels, strict=True) if label == k]
        thresholds[k] = sum(own) / len(own)
    wanted = np.zeros((classes, classes), int)
    for row, label in zip(probabilities, labels, strict=True):
        reached = [k for k in thresholds if row[k] >= thresholds[k] - 1e-7]
        if reached:
            wanted[label, max(reached, key=lambda k: row[k])] += 1
    likely, joint = confident_joint(probabilities, labels)
    assert joint.tolist() == wanted.tolist()
    assert (likely >= 0).sum() == wanted.sum()


@given(answers())
def test_within_a_class_the_least_sure_come_first(given_answers):
    probabilities, labels = given_answers
    found = doubt_labels(probabilities, labels)
    assert sorted(found.order.tolist()) == list(range(len(labels)))
    for k in set(labels.tolist()):
        assert (np.diff(found.confidence[[n for n in found.order if labels[n] == k]]) >= 0).all()
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()


@given(answers(), st.randoms())
def test_the_order_of_the_images_decides_nothing(given_answers, random):
    probabilities, labels = given_answers
    places = list(range(len(labels)))
    random.shuffle(places)
    one, other = doubt_labels(probabilities, labels), doubt_labels(probabilities[places], labels[places])
    assert np.allclose(one.confidence[places], other.confidence)
    assert one.joint.tolist() == other.joint.tolist()


def test_planted_errors_come_first_though_the_model_knows_one_class_badly():
    """By the probability alone, the images of the class that the model knows badly come first."""
    random = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 100)
    sure = np.array([0.95, 0.9, 0.4])[truth]
    probabilities = np.repeat(((1 - sure) / 2)[:, None], 3, 1)
    probabilities[np.arange(300), truth] = sure + random.uniform(-0.03, 0.03, 300)
    probabilities /= probabilities.sum(1, keepdims=True)
    labels, wrong = truth.copy(), np.zeros(300, bool)
    # They are of the class that the model knows, and annotated as the one that it knows badly.
    wrong[random.choice(100, 15, replace=False)] = True
    labels[wrong] = 2
    found = doubt_labels(probabilities, labels)
    assert wrong[found.order[:15]].all()
    # The threshold is a mean, which about half of the images of a class reach.
    assert wrong[found.suspected].all()
    assert found.joint[2, 0] == found.suspected.sum() > 3


def test_a_model_that_is_sure_only_of_what_an_image_is_not_is_believed():
    """Errors about which it is torn between two other classes reach no threshold, and would come after all suspects."""
    random = np.random.default_rng(3)
    truth = np.repeat([0, 1, 2, 3], 50)
    # Right of three in five, sure of what it says, and never of the class that is neither.
    likely = np.where(random.random(200) < 0.6, truth, (truth + 1) % 4)
    probabilities = np.full((200, 4), 0.1)
    probabilities[np.arange(200), likely] = 0.7
    wrong = random.choice(200, 10, replace=False)
    labels = truth.copy()
    labels[wrong] = (truth[wrong] + 2) % 4
    probabilities[wrong] = 0.33
    probabilities[wrong, labels[wrong]] = 0.01
    found = doubt_labels(probabilities, labels)
    assert not found.suspected[wrong].any()
    assert set(found.order[:10].tolist()) == set(wrong.tolist())


@pytest.mark.parametrize("true", [0.5, 1.0, 4.0])
def test_the_temperature_is_found(true):
    random = np.random.default_rng(1)
    scores = random.normal(0, 2, (20_000, 4))
    chances = np.exp(scores / true)
    chances /= chances.sum(1, keepdims=True)
    labels = (chances.cumsum(1) < random.random((len(scores), 1))).sum(1)
    assert fit_temperature(scores, labels) == pytest.approx(true, rel=0.1)


@pytest.mark.parametrize("labels", [[], [1]])
def test_one_image_and_none_are_ranked(labels):
    found = doubt_labels(np.full((len(labels), 3), 1 / 3), labels)
    assert found.order.tolist() == list(range(len(labels)))


def test_of_several_classes_the_one_that_is_doubted_counts():
    random = np.random.default_rng(2)
    truth = random.random((200, 4)) < 0.4
    probabilities = np.where(truth, 0.85, 0.1) + random.uniform(-0.05, 0.05, truth.shape)
    labels = truth.astype(int)
    rows, columns = random.choice(200, 10, replace=False), random.integers(0, 4, 10)
    labels[rows, columns] ^= 1
    found = doubt_label_sets(probabilities, labels)
    assert set(found.order[:10].tolist()) == set(rows.tolist())
    assert set(np.flatnonzero(found.suspected).tolist()) <= set(rows.tolist())
    assert found.joint.shape == (4, 2, 2)
