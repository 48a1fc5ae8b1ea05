"""Two-sample tests in numpy; each returns a p-value.

Numbers: Kolmogorov and Smirnov (asymptotic distribution, which is conservative for ties). Categories: Pearson's
chi-square, with rare categories merged so that the approximation holds. Embeddings: maximum mean discrepancy (Gretton
et al., 2012) of random Fourier features (Rahimi and Recht, 2007) under permutations. Holm's procedure (1979) with
weights bounds the chance of any false alarm over several tests.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

_LEAST_EXPECTED = 5.0
_FEATURES = 96
_PERMUTATIONS = 999
# Permutations in memory at once.
_AT_ONCE = 1000
_GROUPS = 100
_ROUNDING = 1e-18
# Of the series of Kolmogorov's law, which does not converge for the smallest statistics; these are certain.
_TERMS, _CERTAIN = 100, 0.2


class TestResult(NamedTuple):
    """The result of a test.

    Attributes:
        p: chance of such a difference, or a larger one, if nothing has changed.
        distance: size of the difference, from 0 (none).
    """

    p: float
    distance: float


def kolmogorov_smirnov(one: Numbers, other: Numbers) -> TestResult:
    """Tests whether two samples of numbers are of one distribution.

    Args:
        one: float64 (n,), no NaN.
        other: float64 (m,).

    Returns:
        p and the largest distance between the two distribution functions, 0 to 1; p is 1 if a sample is empty.
    """
    if not len(one) or not len(other):
        return TestResult(1.0, 0.0)
    one, other = np.sort(one), np.sort(other)
    every = np.concatenate([one, other])
    below_one = np.searchsorted(one, every, side="right") / len(one)
    below_other = np.searchsorted(other, every, side="right") / len(other)
    distance = float(np.abs(below_one - below_other).max())
    root = math.sqrt(len(one) * len(other) / (len(one) + len(other)))
    # Stephens (1970): brings the asymptotic law close for small samples, too.
    x = distance * (root + 0.12 + 0.11 / root)
    total = sum((-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, _TERMS))
    return TestResult(1.0 if x < _CERTAIN else min(1.0, max(0.0, 2 * total)), distance)


def chi_square(one: Mapping[Hashable, int], other: Mapping[Hashable, int]) -> TestResult:
    """Tests whether two samples of kinds have the same shares.

    Args:
        one: kind -> how many, of the first sample.
        other: likewise.

    Returns:
        p and the share of images that would have to change their kind, 0 to 1; p is 1 if a sample is empty.
    """
    size_one, size_other = sum(one.values()), sum(other.values())
    kinds = sorted({*one, *other}, key=str)
    if not size_one or not size_other or len(kinds) < 2:
        return TestResult(1.0, 0.0)
    counts = np.array([[one.get(kind, 0), other.get(kind, 0)] for kind in kinds], np.float64)
    sizes = np.array([size_one, size_other], np.float64)
    shares = counts / sizes
    distance = float(np.abs(shares[:, 0] - shares[:, 1]).sum() / 2)
    # Categories that are too rare for the approximation are merged, the rarest first.
    least = _LEAST_EXPECTED * sizes.sum() / sizes.min()
    counts = counts[np.argsort(counts.sum(axis=1), kind="stable")]
    while len(counts) > 1 and counts[0].sum() < least:
        counts = np.concatenate([[counts[0] + counts[1]], counts[2:]])
        counts = counts[np.argsort(counts.sum(axis=1), kind="stable")]
    if len(counts) < 2:
        return TestResult(1.0, distance)
    expected = counts.sum(axis=1, keepdims=True) * sizes / sizes.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return TestResult(chi_square_tail(statistic, len(counts) - 1), distance)


def chi_square_tail(x: float, freedom: int) -> float:
    """Returns the chance that a chi-square variable exceeds x (Abramowitz and Stegun, 26.4)."""
    if x <= 0:
        return 1.0
    half, odd = x / 2, freedom % 2
    # In logarithms: from x = 1490 on, the exponential alone would be 0.
    powers = (i + odd / 2 for i in range(freedom // 2))
    terms = [math.exp(power * math.log(half) - half - math.lgamma(power + 1)) for power in powers]
    return min(1.0, math.fsum(terms) + (math.erfc(math.sqrt(half)) if odd else 0.0))


def discrepancy(one: Numbers, other: Numbers, seed: int = 0, permutations: int = _PERMUTATIONS) -> TestResult:
    """Tests whether two samples of vectors are of one distribution, under permutations.

    Args:
        one: float64 (n, d).
        other: float64 (m, d).
        seed: seed of features and permutations.
        permutations: their number; the smallest p is 1 / (permutations + 1).

    Returns:
        p and the maximum mean discrepancy.
    """
    if len(one) < 2 or len(other) < 2:
        return TestResult(1.0, 0.0)
    random = np.random.default_rng(seed)
    every = np.concatenate([one, other])
    features = _fourier(every, random)
    # Means of groups, of equal size on both sides, are as exchangeable as images are, and far fewer.
    size = max(1, min(len(one), len(other)) // _GROUPS)
    groups = np.concatenate(
        [_grouped(features[: len(one)], size, random), _grouped(features[len(one) :], size, random)]
    )
    count = len(one) // size
    side = np.full(len(groups), -1 / (len(groups) - count))
    side[:count] = 1 / count
    found = float(np.square(side @ groups).sum())
    # Equal sums differ in their last digits, by the order in which they are added.
    least = found * (1 - 1e-9) - _ROUNDING
    reached = 0
    for begin in range(0, permutations, _AT_ONCE):
        rows = min(_AT_ONCE, permutations - begin)
        signs = random.permuted(np.broadcast_to(side, (rows, len(side))), axis=1)
        reached += int((np.square(signs @ groups).sum(axis=1) >= least).sum())
    return TestResult((1 + reached) / (permutations + 1), math.sqrt(found))


def permutations_for(alpha: float) -> int:
    """Returns the number of permutations with which p can be smaller than alpha."""
    return max(_PERMUTATIONS, math.ceil(1 / alpha))


def _grouped(features: Numbers, size: int, random: np.random.Generator) -> Numbers:
    """Returns means of random groups of rows; an incomplete group is left out."""
    count = len(features) // size
    chosen = random.permutation(len(features))[: count * size]
    means: Numbers = features[chosen].reshape(count, size, -1).mean(axis=1)
    return means


def _fourier(points: Numbers, random: np.random.Generator) -> Numbers:
    """Returns random features whose products approximate a Gaussian kernel as wide as the median distance."""
    pairs = random.integers(0, len(points), (2, min(4096, 4 * len(points))))
    squares = np.square(points[pairs[0]] - points[pairs[1]]).sum(axis=1)
    width = math.sqrt(float(np.median(squares[squares > 0]))) if (squares > 0).any() else 1.0
    waves = points @ (random.standard_normal((points.shape[1], _FEATURES)) / width)
    return np.concatenate([np.cos(waves), np.sin(waves)], axis=1) / math.sqrt(_FEATURES)


def holm(p_values: Sequence[float], weights: Sequence[float], alpha: float) -> list[bool]:
    """Returns which of several tests reject, so that the chance of any false rejection is at most alpha.

    Args:
        p_values: one for each test.
        weights: how much of alpha each test may use, positive.
        alpha: the bound, 0 to 1.
    """
    rejects = [False] * len(p_values)
    left = float(sum(weights))
    for test in sorted(range(len(p_values)), key=lambda i: p_values[i] / weights[i]):
        if p_values[test] / weights[test] > alpha / left:
            break
        rejects[test] = True
        left -= weights[test]
        if left <= 0:
            break
    return rejects
