"""The two-sample tests: laws they must keep, and values computed elsewhere."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.drift.two_samples import (
    chi_square,
    chi_square_tail,
    discrepancy,
    holm,
    kolmogorov_smirnov,
    permutations_for,
)

NUMBERS = st.lists(st.integers(-20, 20), min_size=1, max_size=30).map(lambda values: np.array(values, np.float64))
COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 200), max_size=6)


@given(NUMBERS, NUMBERS)
def test_ks_is_the_largest_distance_between_the_steps(one, other):
    every = np.concatenate([one, other])
    wanted = max(abs((one <= value).mean() - (other <= value).mean()) for value in every)
    found = kolmogorov_smirnov(one, other)
    assert found.distance == pytest.approx(wanted)
    assert 0 <= found.p <= 1
    assert found == kolmogorov_smirnov(other, one)
    assert found == kolmogorov_smirnov(np.exp(one / 10), np.exp(other / 10))  # Only the order counts.


def test_ks_has_the_values_of_the_law():
    # Smirnov's table: the limits of 5 % and 1 % are 1.3581 and 1.6276 over the root of nm / (n + m).
    size = 200_000
    for limit, p in ((1.3581, 0.05), (1.6276, 0.01)):
        shift = round(limit / math.sqrt(size / 2) * size)
        found = kolmogorov_smirnov(np.arange(size, dtype=float), np.arange(size, dtype=float) + shift)
        assert found.p == pytest.approx(p, rel=0.02)


def test_chi_square_tail_has_the_values_of_the_tables():
    table = {
        (3.841, 1): 0.05,
        (6.635, 1): 0.01,
        (5.991, 2): 0.05,
        (11.345, 3): 0.01,
        (14.067, 7): 0.05,
        (18.307, 10): 0.05,
    }
    for (x, freedom), p in table.items():
        assert chi_square_tail(x, freedom) == pytest.approx(p, rel=1e-3)
    assert chi_square_tail(0, 1) == chi_square_tail(0, 6) == 1


# From SciPy 1.12, `scipy.stats.chi2.sf`. From x = 1490 on, exp(-x / 2) is 0.
@pytest.mark.parametrize(
    ("x", "freedom", "p"),
    [
        (1499, 1499, 0.49514257), (1500, 1500, 0.49514419), (1700, 1500, 0.000221708), (1700, 1499, 0.00020724727),
        (4000, 3999, 0.49256605), (6000, 600, 0), (6000, 1001, 0),
    ],
)  # fmt: skip
def test_chi_square_tail_of_many_kinds(x, freedom, p):
    assert chi_square_tail(x, freedom) == pytest.approx(p, rel=1e-5, abs=1e-300)


@given(COUNTS, COUNTS)
def test_chi_square_keeps_its_laws(one, other):
    found = chi_square(one, other)
    assert 0 <= found.p <= 1
    assert 0 <= found.distance <= 1
    assert found.p == pytest.approx(chi_square(other, one).p)
    assert chi_square(one, one).p == pytest.approx(1)


def test_chi_square_of_a_table():
    # 30 of 100 against 45 of 100: statistic 4.8, one degree of freedom.
    found = chi_square({"a": 30, "b": 70}, {"a": 45, "b": 55})
    assert found.p == pytest.approx(0.02846, rel=1e-3)
    assert found.distance == pytest.approx(0.15)


def test_kinds_that_are_too_rare_for_the_law_are_counted_as_one():
    rare = chi_square({"a": 60, "b": 35, "c": 1, "d": 4}, {"a": 50, "b": 43, "c": 3, "d": 4})
    together = chi_square({"a": 60, "b": 35, "c and d": 5}, {"a": 50, "b": 43, "c and d": 7})
    assert rare.p == pytest.approx(together.p)


def test_samples_that_are_the_same_lie_nowhere_apart():
    one = np.random.default_rng(1).standard_normal((90, 5))
    found = discrepancy(one, one[::-1], 3, 99)
    assert found.p == 1
    assert found.distance == pytest.approx(0, abs=1e-9)


def test_there_are_as_many_permutations_as_alpha_asks_for():
    for alpha in (0.05, 0.001, 0.0002, 0.00003):
        count = permutations_for(alpha)
        assert count == max(999, math.ceil(1 / alpha))
        assert 1 / (count + 1) < alpha


def test_discrepancy_is_the_same_for_the_same_seed_and_sees_a_shift():
    random = np.random.default_rng(1)
    one, other = random.standard_normal((2, 200, 5))
    assert discrepancy(one, other, 3, 199) == discrepancy(one, other, 3, 199)
    assert discrepancy(one, other, 3, 199).p > 0.01
    assert discrepancy(one, other + 0.5, 3, 199).p == 1 / 200
    assert discrepancy(one * 0, other[:50] * 0, 3, 99).p == 1


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1)), min_size=1, max_size=8), st.floats(0.001, 0.2))
def test_holm_is_between_bonferroni_and_none(tests, alpha):
    p_values, weights = [p for p, _ in tests], [weight for _, weight in tests]
    rejects = holm(p_values, weights, alpha)
    for p, weight, rejected in zip(p_values, weights, rejects, strict=True):
        if p / weight <= alpha / sum(weights):
            assert rejected
        if p > alpha:
            assert not rejected


def test_holm_as_in_the_paper():
    assert holm([0.01, 0.04, 0.03, 0.005], [1, 1, 1, 1], 0.05) == [True, False, False, True]
    assert holm([0.01, 0.02, 0.5], [1, 1, 1], 0.05) == [True, True, False]
