"""Positions of keys in a listing: every key is found, and no other."""

from hypothesis import given
from hypothesis import strategies as st

from shardwright.storage.listing import KeyIndex


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=6), unique=True), st.text(max_size=3))
def test_places_of_keys(keys, other):
    keys = sorted(keys)
    places = KeyIndex(keys)
    assert [places.find(key) for key in keys] == list(range(len(keys)))
    if other not in keys and other.isprintable():
        assert places.find(other) == -1
