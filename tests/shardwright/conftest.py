"""Fixtures for the tests of the core."""

from store_fixtures import _running_stores, stores

__all__ = ["_running_stores", "stores"]
