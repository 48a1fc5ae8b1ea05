"""Retries: how often, after which pauses, and the message in the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import StorageError, UsageError
from shardwright.storage.buckets import Retries
from shardwright.storage.object_store import Transient


def failing(times, error=Transient):
    """A function that raises so many times, then returns how often it was called."""
    calls = []

    def call():
        calls.append(None)
        if len(calls) <= times:
            raise error("busy")
        return len(calls)

    return call


@given(
    attempts=st.integers(1, 12),
    failures=st.integers(0, 14),
    first=st.floats(0.01, 4),
    longest=st.floats(0.01, 60),
    chance=st.floats(0, 1),
)
def test_pauses_grow_within_their_bounds_and_attempts_end(attempts, failures, first, longest, chance):
    pauses = []
    retries = Retries(attempts, first, longest, pauses.append, lambda: chance)
    if failures < attempts:
        assert retries.call("a", failing(failures)) == failures + 1
        assert len(pauses) == failures
    else:
        with pytest.raises(StorageError, match=rf"^a: .* in {attempts} attempts; the last one: busy"):
            retries.call("a", failing(failures))
        assert len(pauses) == attempts - 1
    for number, pause in enumerate(pauses):
        whole = min(longest, first * 2**number)
        assert whole / 2 <= pause <= whole


def test_permanent_errors_are_not_retried():
    pauses = []
    with pytest.raises(UsageError, match="busy"):
        Retries(sleep=pauses.append).call("a", failing(1, UsageError))
    assert not pauses


def test_the_whole_wait_is_bounded():
    pauses = []
    with pytest.raises(StorageError):
        Retries(sleep=pauses.append, chance=lambda: 1.0).call("a", failing(99))
    assert 10 < sum(pauses) < 30
