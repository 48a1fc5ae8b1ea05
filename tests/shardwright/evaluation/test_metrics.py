"""Dice, IoU, accuracy and F1 from sums."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shardwright.evaluation.metrics import ClassSums, LabelCounts, MaskSums, as_good, better, headline, image_dice

CLASSES = ("a", "b")
masks = arrays.arrays(bool, st.tuples(st.integers(1, 6), st.just(3), st.just(4), st.just(2)))


@st.composite
def pairs(draw):
    truth = draw(masks)
    return draw(arrays.arrays(bool, truth.shape)), truth


@given(pairs(), st.data())
def test_any_partition_of_the_images_gives_the_same_figures(pair, data):
    predicted, true = pair
    cut = data.draw(st.integers(0, len(true)))
    whole = MaskSums.of_masks(predicted, true)
    parts = MaskSums.of_masks(predicted[cut:], true[cut:]) + MaskSums.of_masks(predicted[:cut], true[:cut])
    assert parts.images == whole.images
    # To the last bit, in any order.
    assert parts.report(CLASSES) == whole.report(CLASSES)
    order = data.draw(st.permutations(range(len(true))))
    assert MaskSums.of_masks(predicted[order], true[order]).report(CLASSES) == whole.report(CLASSES)


@given(st.lists(st.tuples(st.integers(0, 2**24), st.integers(1, 2**24)), min_size=1, max_size=30))
def test_the_mean_of_dice_is_rounded_once(sizes):
    hits = np.array([[min(pair)] for pair in sizes])
    sums = MaskSums.of_images(hits, *(np.array([[pair[side]] for pair in sizes]) for side in (0, 1)))
    every = [Fraction(2 * min(pair) / sum(pair)) for pair in sizes]
    assert sums.report(["a"])["kaggle_dice"] == float(sum(every) / len(every))


@given(pairs())
def test_dice_and_iou_are_their_definitions_over_all_pixels(pair):
    predicted, true = pair
    sums = MaskSums.of_masks(predicted, true)
    for index, name in enumerate(CLASSES):
        p, t = predicted[..., index], true[..., index]
        report = sums.report(CLASSES)
        if p.any() or t.any():
            assert report[f"dice/{name}"] == pytest.approx(2 * (p & t).sum() / (p.sum() + t.sum()))
            assert report[f"iou/{name}"] == pytest.approx((p & t).sum() / (p | t).sum())
        else:
            assert f"dice/{name}" not in report
    images = [
        1.0 if not (p | t).any() else 2 * (p & t).sum() / (p.sum() + t.sum())
        for p, t in ((predicted[n, ..., c], true[n, ..., c]) for n in range(len(true)) for c in range(2))
    ]
    assert sums.report(CLASSES)["kaggle_dice"] == pytest.approx(np.mean(images))


@given(masks)
def test_a_perfect_model_scores_one_and_an_empty_one_zero(true):
    if true.any():
        assert MaskSums.of_masks(true, true).report(CLASSES)["mean_dice"] == 1.0
        assert MaskSums.of_masks(np.zeros_like(true), true).report(CLASSES)["mean_dice"] == 0.0


def test_an_empty_model_is_rewarded_by_kaggles_figure_alone():
    true = np.zeros((4, 2, 2, 2), bool)
    true[0, 0, 0, 0] = True
    report = MaskSums.of_masks(np.zeros_like(true), true).report(CLASSES)
    assert report["mean_dice"] == 0.0
    assert report["kaggle_dice"] == pytest.approx(7 / 8)


def test_a_class_that_is_nowhere_does_not_count_in_the_mean():
    true = np.zeros((1, 2, 2, 2), bool)
    true[..., 0] = True
    report = MaskSums.of_masks(true, true).report(CLASSES)
    means = {"mean_dice": 1.0, "mean_iou": 1.0, "mean_f1": 1.0, "kaggle_dice": 1.0}
    assert report == {**means, "dice/a": 1.0, "iou/a": 1.0, "f1/a": 1.0}


def test_no_image_at_all_scores_zero():
    means = {"mean_dice": 0.0, "mean_iou": 0.0, "mean_f1": 0.0, "kaggle_dice": 0.0}
    assert MaskSums.zero(2).report(CLASSES) == means
    assert LabelCounts.zero(2).report(CLASSES) == {"accuracy": 0.0, "mean_f1": 0.0}


def test_image_dice_of_empty_against_empty_is_one():
    assert image_dice([0, 1], [0, 2], [0, 2]).tolist() == [1.0, 0.5]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_accuracy_and_f1_are_their_definitions(labels):
    predicted, true = np.array(labels).T
    report = LabelCounts.of_labels(predicted, true, 3).report(("x", "y", "z"))
    assert report["accuracy"] == pytest.approx(np.mean(predicted == true))
    for index, name in enumerate("xyz"):
        hits = ((predicted == index) & (true == index)).sum()
        wrong = ((predicted == index) ^ (true == index)).sum()
        if hits or wrong:
            assert report[f"f1/{name}"] == pytest.approx(2 * hits / (2 * hits + wrong))
        else:
            assert f"f1/{name}" not in report


ROW = st.tuples(st.booleans(), st.booleans(), st.booleans())


@given(st.lists(st.tuples(ROW, ROW), min_size=1, max_size=30), st.integers(0, 30))
def test_f1_of_several_classes_is_its_definition_however_the_images_are_dealt(rows, cut):
    predicted, true = (np.array([row[side] for row in rows]) for side in (0, 1))
    halves = [ClassSums.of_labels(p, t) for p, t in ((predicted[:cut], true[:cut]), (predicted[cut:], true[cut:]))]
    report = (ClassSums.zero(3) + halves[0] + halves[1]).report(("x", "y", "z"))
    assert report["exact_match"] == pytest.approx(np.mean([p == t for p, t in rows]))
    f1 = {}
    for index, name in enumerate("xyz"):
        hits = (predicted[:, index] & true[:, index]).sum()
        wrong = (predicted[:, index] ^ true[:, index]).sum()
        if hits or wrong:
            f1[name] = 2 * hits / (2 * hits + wrong)
    assert {name[3:]: value for name, value in report.items() if name.startswith("f1/")} == pytest.approx(f1)
    assert report["mean_f1"] == pytest.approx(np.mean(list(f1.values())) if f1 else 0)


def test_the_better_epoch_has_the_higher_headline_then_the_lower_loss():
    assert headline("segmentation") == "mean_dice"
    assert headline("classification") == "accuracy"
    assert headline("classification", multi=True) == "mean_f1"
    assert better("classification", {"mean_f1": 0.6, "loss": 0.9}, {"mean_f1": 0.5, "loss": 0.1}, multi=True)
    first = {"mean_dice": 0.5, "loss": 0.4}
    assert better("segmentation", first, None)
    assert better("segmentation", {"mean_dice": 0.6, "loss": 0.9}, first)
    assert better("segmentation", {"mean_dice": 0.5, "loss": 0.3}, first)
    assert not better("segmentation", first, first)


def test_f1_of_masks_is_that_of_the_images_that_show_a_class():
    # Class a: found, missed, false; class b: found once, right to be absent otherwise.
    prediction, truth = np.array([[5, 1], [0, 0], [2, 0]]), np.array([[1, 9], [3, 0], [0, 0]])
    sums = MaskSums.of_images(np.minimum(prediction, truth), prediction, truth)
    assert sums.report(CLASSES)["f1/a"] == pytest.approx(0.5)
    assert sums.report(CLASSES)["f1/b"] == 1.0


def test_ignored_pixels_are_neither_predicted_nor_true():
    true = np.array([[[[1], [255], [0]]]], np.uint8)
    sums = MaskSums.of_masks(np.ones_like(true), true, ignore=True)
    assert (sums.intersection, sums.prediction, sums.truth) == ([1], [2], [1])


def test_rows_of_the_confusion_are_true_labels():
    assert LabelCounts.of_labels([1, 1], [0, 1], 2).confusion.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("task", "images", "value", "good"),
    [
        ("classification", 23, 0.48, True), ("classification", 2000, 0.68, True), ("classification", 2000, 0.6, False),
        ("segmentation", 23, 0.69, False),
    ],
)  # fmt: skip
def test_a_later_model_that_is_worse_by_chance_is_as_good(task, images, value, good):
    name = headline(task)
    assert as_good(task, {name: value}, {name: 0.7}, images, multi=False) == good
