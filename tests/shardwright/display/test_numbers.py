"""Numbers as text have three digits and no exponent that could be left out; means are those of the values."""

import numpy as np
import pytest

from shardwright.display.histograms import Histogram, Scale, number, size_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00012, "1.2e-04"), (12.345, "12.3"), (999.4, "999"), (999.5, "1\u202f000"), (999.99, "1\u202f000"),
     (-999.7, "-1\u202f000"), (1000.2, "1\u202f000"), (5, "5"), (float("nan"), "–")],
)  # fmt: skip
def test_a_number_has_three_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(999, "999 bytes"), (1500, "1.5 kB"), (999_499, "999 kB"), (999_600, "1.0 MB"), (999_700_000, "1.0 GB"),
     (2_000_000_000_000, "2\u202f000 GB")],
)  # fmt: skip
def test_a_size_has_the_largest_unit_of_which_there_is_one(size, text):
    assert size_text(size) == text


@pytest.mark.parametrize("values", [[1 / 2_940_000] * 5, [5e-9, 1.0], [673_001.0, 673_001.0], [2.0**33, 3e-7]])
def test_a_mean_is_that_of_the_values_in_any_order(values):
    means = set()
    for order in (values, values[::-1]):
        found = Histogram("part", Scale(0, 1))
        for value in order:
            found.add("train", [value])
        means.add(found.mean())
    assert len(means) == 1
    assert means.pop() == pytest.approx(np.mean(values), rel=1e-6)
