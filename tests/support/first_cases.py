"""Leaves out cases on the other stack: of a test with a table of cases, the first one runs there.

The cases of a test send other values through the same code, and what a package does differently fails with the first
one, too. `make test` runs all of them on the stack of the checkout. The tests in `ALL_CASES` run with all their cases:
they hand the values to TensorFlow, Keras, TFX or Pillow. So do fixtures with parameters: an object store is another
package. Tests marked `one_stack` do not run on the other stack at all, nor do those of the packages in `NO_PACKAGES`:
these work on texts and files. Whatever computes with NumPy runs there: NumPy 2 promotes types in another way.
"""

from collections.abc import Sequence

import pytest

ALL_CASES = ("tests/components/", "tests/e2e/", "tests/shardwright/images/", "tests/shardwright/loader/")
NO_PACKAGES = ("tests/shardwright/config/", "tests/shardwright/lineage/", "tests/shardwright/processes/")


def split(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Returns the tests to run on the other stack, and those to leave out, each in their order."""
    seen: set[tuple[object, ...]] = set()
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        key = _test_of(item)
        first = key not in seen or item.nodeid.startswith(ALL_CASES)
        seen.add(key)
        here = item.nodeid.startswith(NO_PACKAGES) or item.get_closest_marker("one_stack")
        (left_out if here or not first else chosen).append(item)
    return chosen, left_out


def _test_of(item: pytest.Item) -> tuple[object, ...]:
    """The function of a test with the parameters of its fixtures, without those of its own cases."""
    case = getattr(item, "callspec", None)
    if case is None:
        return (item.nodeid,)
    own = {name.strip() for mark in item.iter_markers("parametrize") for name in _names(mark.args[0])}
    fixtures = sorted((name, index) for name, index in case.indices.items() if name not in own)
    return (item.nodeid.partition("[")[0], *fixtures)


def _names(given: str | Sequence[str]) -> Sequence[str]:
    return given.split(",") if isinstance(given, str) else given
