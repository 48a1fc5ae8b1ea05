"""Thresholds and smallest regions against trying them all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.errors import DatasetError
from shardwright.evaluation.metrics import MaskSums
from shardwright.evaluation.thresholds import (
    LEVELS,
    RegionCounts,
    ThresholdCounts,
    Thresholds,
    read_thresholds,
    threshold_masks,
    write_thresholds,
)
from shardwright.masks.regions import IGNORE_VALUE, remove_small
from shardwright.masks.rle import draw, encode


def guessed(seed, images=3, size=(9, 11), classes=2):
    random = np.random.default_rng(seed)
    truth = (random.random((images, *size, classes)) < 0.2).astype(np.uint8)
    truth[random.random((images, *size)) < 0.1] = IGNORE_VALUE
    probabilities = np.clip(truth % 254 * 0.3 + random.random(truth.shape) * 0.6, 0, 1).astype(np.float32)
    return probabilities, truth


def cleaned(masks, areas):
    height, width = masks.shape[1:3]
    out = np.zeros_like(masks)
    for i, c in np.ndindex(len(masks), masks.shape[3]):
        out[i, ..., c] = draw(remove_small(encode(masks[i, ..., c]), height, areas[c]), height, width)
    return out


@tries(20)
@given(st.integers(0, 2**32 - 1))
def test_the_threshold_is_the_best_of_all(seed):
    probabilities, truth = guessed(seed)
    counts = ThresholdCounts(2)
    counts.add(probabilities[:1], truth[:1])
    counts.add(probabilities[1:], truth[1:])
    tried = np.array([MaskSums.of_masks(probabilities >= t, truth, ignore=True).dice() for t in LEVELS])
    for c, chosen in enumerate(counts.best()):
        column = np.nan_to_num(tried[:, c])
        assert column[np.argmin(np.abs(LEVELS - chosen))] == pytest.approx(column.max())


def test_without_anything_to_hit_the_threshold_stays():
    counts = ThresholdCounts(1)
    counts.add(np.full((1, 4, 4, 1), 0.9, np.float32), np.zeros((1, 4, 4, 1), np.uint8))
    assert counts.best() == (0.5,)


@tries(20)
@given(st.integers(0, 2**32 - 1), st.integers(0, 9), st.integers(0, 9))
def test_sums_are_those_of_the_cleaned_masks(seed, first, second):
    probabilities, truth = guessed(seed)
    counts = RegionCounts((0.5, 0.4))
    counts.add(probabilities, truth)
    predicted = probabilities >= np.array([0.5, 0.4], np.float32)
    decided = threshold_masks(probabilities, Thresholds((0.5, 0.4), (first, second)))
    np.testing.assert_array_equal(decided, cleaned(predicted, (first, second)))
    wanted = MaskSums.of_masks(decided, truth, ignore=True)
    found = counts.sums((first, second))
    for name in ("intersection", "prediction", "truth", "kaggle", "images"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_specks_in_empty_images_are_dropped_and_the_objects_stay():
    truth = np.zeros((4, 20, 20, 1), np.uint8)
    truth[:2, 5:15, 5:15] = 1
    probabilities = truth.astype(np.float32)
    probabilities[:, 1, 1] = probabilities[:, 18, 2:5] = 1.0
    counts = RegionCounts((0.5,))
    counts.add(probabilities, truth)
    (area,) = counts.best()
    assert 3 < area <= 100
    before, after = (counts.sums((a,)).report(["x"]) for a in (0, area))
    assert before["kaggle_dice"] < 0.5
    assert after["kaggle_dice"] == after["mean_dice"] == 1.0


def test_without_regions_nothing_is_dropped():
    counts = RegionCounts((0.5,))
    assert counts.best() == (0,)
    assert counts.sums((0,)).images == 0
    counts.add(np.zeros((1, 4, 4, 1), np.float32), np.ones((1, 4, 4, 1), np.uint8))
    assert counts.best() == (0,)


def test_thresholds_survive_their_file(tmp_path):
    file = tmp_path / "thresholds.json"
    chosen = Thresholds((0.25, 0.5), (0, 17))
    write_thresholds(file, chosen, ["a/b", "ü"])
    assert read_thresholds(file, ["a/b", "ü"]) == chosen
    assert read_thresholds(file, ["ü", "a/b"]) == Thresholds((0.5, 0.25), (17, 0))
    for classes, place in ((["other"], file), (["ü"], tmp_path / "none.json")):
        with pytest.raises(DatasetError, match="Export the model again"):
            read_thresholds(place, classes)


def test_a_probability_at_the_threshold_is_predicted():
    counts = ThresholdCounts(1)
    counts.add(LEVELS[[69, 68]].reshape(1, 1, 2, 1), np.array([1, 0], np.uint8).reshape(1, 1, 2, 1))
    assert counts.best() == (0.7,)


def test_of_equal_thresholds_the_nearest_to_the_default_is_chosen():
    counts = ThresholdCounts(1)
    counts.add(LEVELS[[89, 9]].reshape(1, 1, 2, 1), np.array([1, 0], np.uint8).reshape(1, 1, 2, 1))
    assert counts.best() == (0.5,)
