"""A test's own number of Hypothesis examples, which grows and shrinks with the profile (`tests/conftest.py`)."""

from hypothesis import settings

_OF_DEV = 25


def tries(count: int) -> settings:
    """Returns settings for a test that tries `count` examples in the profile `dev`, and at least 5 in any."""
    return settings(max_examples=max(5, count * settings().max_examples // _OF_DEV))
