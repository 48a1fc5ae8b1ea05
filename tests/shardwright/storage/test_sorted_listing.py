"""Files that a listing finds: as if they had been sorted in one list, in a fraction of its memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from shardwright.storage import listing as storage_listing
from shardwright.storage.listing import Found, SortedListing, make_listing

texts = st.text(st.characters(), max_size=3)
files = st.lists(
    st.builds(
        lambda key, name, *rest: Found(key, name is not None and key != name, key if name is None else name, *rest),
        *(texts, st.none() | texts, st.integers(0, 9), texts, texts),
    )
)


@given(files, st.integers(1, 5))
def test_they_come_back_sorted(found, together):
    before, storage_listing._PACKED_TOGETHER = storage_listing._PACKED_TOGETHER, together
    try:
        held = SortedListing()
        for file in found:
            held.append(file)
        assert bool(held) == bool(found)
        assert list(held.by_key()) == sorted(found)
    finally:
        storage_listing._PACKED_TOGETHER = before


def test_a_listing_is_made_in_less_memory_than_its_files_would_take_as_objects():
    count = 30_000
    tracemalloc.start()
    try:
        held = SortedListing()
        for number in range(count):
            name = f"{number * 7919 % count:08d}.jpg"
            held.append(Found(name, False, name, 1000 + number))
        listing = make_listing("images", "/images", ("**", "*"), held, [])
        assert tracemalloc.get_traced_memory()[1] < 150 * count
    finally:
        tracemalloc.stop()
    assert list(listing.keys) == [f"{number:08d}.jpg" for number in range(count)]
    assert listing.sizes[7919] == 1001
