"""Fixtures for the tests of the benchmarks."""

from store_fixtures import _running_stores, stores

__all__ = ["_running_stores", "stores"]
