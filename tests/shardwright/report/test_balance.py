"""How even classes are within a split."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.report.overview import evenness


# With more items, counts that differ by one are even to more digits than are compared.
@given(st.lists(st.integers(0, 50), min_size=2, max_size=9))
def test_it_is_a_part_whatever_the_order_and_the_number_of_things(counts):
    found = evenness(counts)
    if not sum(counts):
        assert math.isnan(found)
        return
    assert -1e-12 <= found <= 1 + 1e-12
    assert evenness(sorted(counts)) == pytest.approx(found)
    assert evenness([3 * count for count in counts]) == pytest.approx(found)
    assert (found == pytest.approx(1)) == (len(set(counts)) == 1)
    assert (found == 0) == (sum(count > 0 for count in counts) == 1)


def test_known_values():
    assert evenness([1, 1, 2]) == pytest.approx(1.5 / math.log2(3))
    assert math.isnan(evenness([7]))
