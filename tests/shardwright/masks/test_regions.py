"""Regions against a flood fill, pixel by pixel."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shardwright.masks import rle
from shardwright.masks.regions import areas_and_hits, find_regions, remove_small

sides = st.integers(1, 14)


def flood(mask: np.ndarray) -> np.ndarray:
    """Numbers of the regions from 1, by their first pixel column by column; 0 outside."""
    numbers = np.zeros(mask.shape, int)
    for x in range(mask.shape[1]):
        for y in range(mask.shape[0]):
            if not mask[y, x] or numbers[y, x]:
                continue
            numbers[y, x] = number = numbers.max() + 1
            open_ = [(y, x)]
            while open_:
                r, c = open_.pop()
                around = [(r + i, c + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
                for n in around:
                    inside = 0 <= n[0] < mask.shape[0] and 0 <= n[1] < mask.shape[1]
                    if inside and mask[n] and not numbers[n]:
                        numbers[n] = number
                        open_.append(n)
    return numbers


@st.composite
def masks(draw):
    height, width, seed = draw(sides), draw(sides), draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).random((height, width)) < draw(st.floats(0, 1))


@given(masks())
def test_regions_are_those_of_a_flood_fill(mask):
    found = find_regions(rle.encode(mask), len(mask))
    numbers = np.zeros(mask.shape, int)
    for column, begin, end, region in zip(*found[:4], strict=True):
        numbers[begin:end, column] = region + 1
    np.testing.assert_array_equal(numbers, flood(mask))
    np.testing.assert_array_equal(found.areas, np.bincount(numbers.ravel())[1:])


@given(masks(), st.integers(0, 20))
def test_small_regions_go_and_the_others_stay(mask, least):
    numbers = flood(mask)
    areas = np.bincount(numbers.ravel())
    wanted = mask & (areas[numbers] >= least)
    runs = remove_small(rle.encode(mask), len(mask), least)
    np.testing.assert_array_equal(runs, rle.encode(wanted))


@given(masks(), st.integers(0, 2**32 - 1))
def test_hits_of_a_region_are_its_true_pixels(mask, seed):
    truth = np.random.default_rng(seed).random(mask.shape) < 0.5
    areas, hits = areas_and_hits(mask, truth)
    numbers = flood(mask)
    np.testing.assert_array_equal(areas, [(numbers == n + 1).sum() for n in range(len(areas))])
    np.testing.assert_array_equal(hits, [(truth & (numbers == n + 1)).sum() for n in range(len(hits))])


def test_a_long_snake_is_one_region():
    mask = np.ones((41, 41), bool)
    mask[:-1, 1::4] = mask[1:, 3::4] = False
    assert find_regions(rle.encode(mask), 41).areas.tolist() == [mask.sum()]


def test_a_region_of_exactly_the_least_area_stays():
    runs = np.array([[0, 3]])
    assert remove_small(runs, 4, 3).tolist() == [[0, 3]]
    assert remove_small(runs, 4, 4).tolist() == []


def test_columns_that_do_not_touch_are_two_regions():
    mask = np.array([[1, 0, 1], [1, 0, 0]])
    assert find_regions(rle.encode(mask), 2).areas.tolist() == [2, 1]
