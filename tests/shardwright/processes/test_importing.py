"""Modules that are imported in the block are excluded from garbage collection; later objects are not."""

import gc
import weakref

import pytest

from shardwright.running.processes import gc_paused


class Knot:
    """Refers to itself: only the collector can take it away."""

    def __init__(self) -> None:
        self.itself = self


def test_the_collector_rests_in_the_block_and_passes_over_what_came_in() -> None:
    with gc_paused():
        assert not gc.isenabled()
        inside = weakref.ref(Knot())
    assert gc.isenabled()
    after = weakref.ref(Knot())
    gc.collect()
    assert after() is None
    assert inside() is not None


def test_it_is_left_as_it_was_also_by_an_error() -> None:
    with pytest.raises(ImportError), gc_paused():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
