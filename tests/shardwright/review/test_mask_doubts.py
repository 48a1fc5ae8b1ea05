"""Doubtful masks: regions of one side only, against a search pixel by pixel, and planted errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shardwright.review.mask_doubts import compare_masks, doubt_masks

MASKS = arrays.arrays(np.bool_, st.tuples(st.integers(1, 7), st.integers(1, 7), st.just(2)))


def lonely(mask, other):
    """Pixels of the regions of `mask` of which `other` has no pixel: flooded, corners connect."""
    left, total = {tuple(place) for place in np.argwhere(mask)}, 0
    while left:
        region, border = set(), [left.pop()]
        while border:
            row, column = border.pop()
            region.add((row, column))
            near = {(row + i, column + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
            left -= near
            border += near
        total += len(region) * (not any(other[place] for place in region))
    return total


@given(st.data())
def test_regions_of_one_side_are_counted(data):
    annotated = data.draw(MASKS)
    predicted = data.draw(arrays.arrays(np.bool_, annotated.shape))
    found = compare_masks(annotated, predicted, predicted.astype(float))
    for c, one in enumerate(found):
        assert one.missed == lonely(annotated[..., c], predicted[..., c])
        assert one.extra == lonely(predicted[..., c], annotated[..., c])
        assert one.wrong == (annotated ^ predicted)[..., c].sum()
        both = annotated[..., c].sum() + predicted[..., c].sum()
        assert one.dice == (2 * (annotated & predicted)[..., c].sum() / both if both else 1)


@given(st.data())
def test_pixels_that_are_not_counted_change_nothing(data):
    annotated = data.draw(MASKS)
    counted = data.draw(arrays.arrays(np.bool_, annotated.shape[:2]))
    other = np.where(counted[..., None], annotated, data.draw(arrays.arrays(np.bool_, annotated.shape)))
    sure = np.full(annotated.shape, 0.7)
    assert compare_masks(annotated, annotated, sure, counted) == compare_masks(other, annotated, sure, counted)


@pytest.mark.parametrize("error", ["shifted", "swapped", "left out", "invented"])
def test_planted_errors_come_first(error):
    """Among masks that the model finds roughly, with edges of which it is unsure."""
    random = np.random.default_rng(3)
    rows, columns = np.mgrid[:48, :48]
    images = []
    for number in range(60):
        radius, row, column = random.integers(6, 10), *random.integers(12, 36, 2)
        distance = np.hypot(rows - row, columns - column)
        truth = np.stack([distance < radius, np.zeros((48, 48), bool)], -1)
        rough = 1 / (1 + np.exp((distance - radius - random.normal(0, 0.5)) / 2))
        sure = np.stack([rough, np.full((48, 48), 0.02)], -1)
        if number < 3:
            if error == "shifted":
                truth = np.roll(truth, 12, 0)
            elif error == "swapped":
                truth = truth[..., ::-1]
            elif error == "left out":
                truth = np.zeros_like(truth)
            else:
                truth[:8, :8, 1] = True
        images.append(compare_masks(truth, sure >= 0.5, sure))
    order, doubts = doubt_masks(images)
    assert set(order[:3].tolist()) == {0, 1, 2}
    assert (np.diff(doubts[order]) <= 0).all()


def test_an_image_without_any_mask_is_not_doubted():
    nothing = np.zeros((4, 4, 1), bool)
    order, doubts = doubt_masks([compare_masks(nothing, nothing, np.zeros((4, 4, 1)))])
    assert order.tolist() == [0]
    assert doubts.tolist() == [0]
