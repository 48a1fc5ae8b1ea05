"""Fixtures for the tests of the core."""

from collections.abc import Iterator

import numpy as np
import pytest
from store_fixtures import _running_stores, stores

__all__ = ["_running_stores", "stores"]


@pytest.fixture(autouse=True)
def python_integers_must_fit() -> Iterator[None]:
    """Lets NumPy 1 refuse what NumPy 2 refuses, `np.uint8(3) - 300`: it would take a wider type without a warning."""
    if not np.__version__.startswith("1."):
        yield
        return
    before = np._get_promotion_state()
    np._set_promotion_state("weak")
    yield
    np._set_promotion_state(before)
