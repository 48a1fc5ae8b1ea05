"""On both stacks, the tests refuse a Python integer that does not fit into an array's type."""

import operator

import numpy as np
import pytest

BYTES = np.array([3], np.uint8)


@pytest.mark.parametrize("compute", [operator.add, operator.sub, operator.mul])
@pytest.mark.parametrize("value", [BYTES, BYTES[0]])
def test_an_operand_that_does_not_fit_is_an_error(compute, value):
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        compute(value, 300)
    assert compute(value, 2).dtype == np.uint8


@pytest.mark.parametrize("make", [np.uint8, lambda number: np.array([number], np.uint8), BYTES.copy().fill])
def test_a_value_that_does_not_fit_is_an_error(make):
    with pytest.raises((OverflowError, DeprecationWarning), match="out of bounds|out-of-bound"):
        make(300)
